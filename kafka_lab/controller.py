"""The dedicated controller of a running cluster, and its restart."""

import signal
from collections.abc import Mapping
from pathlib import Path

from kafka_lab.node import Node
from kafka_lab.processes import Processes
from kafka_lab.waiting import deadline


class Controller(Node):
    """The controller, running or not."""

    def __init__(self, folder: Path, properties: Mapping[str, str], processes: Processes) -> None:
        """Make a controller without starting it; its log is ``controller.log`` in the folder."""
        file, log = folder / "controller.properties", folder / "controller.log"
        super().__init__("the controller", file, log, properties, processes)

    async def restart(self, timeout_s: float) -> None:
        """Stop it cleanly and start it; returns when it is up."""
        async with deadline(timeout_s, f"{self._name} was not up again"):
            await self._processes.signal(self._name, signal.SIGTERM)
            await self._processes.wait_ended(self._name)
            await self.spawn()
            await self.wait_started()
