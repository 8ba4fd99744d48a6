"""The dedicated controller of a running cluster: its files, its process, and its restart."""

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafka_lab.broker_properties import render
from kafka_lab.processes import Processes
from kafka_lab.waiting import deadline

_NAME = "the controller"


class Controller:
    """The controller, running or not."""

    def __init__(self, folder: Path, properties: Mapping[str, str], processes: Processes) -> None:
        """Make a controller without starting it; its log is ``controller.log`` in the folder."""
        self._file = folder / "controller.properties"
        self._log = folder / "controller.log"
        self._base = dict(properties)
        self._more: Mapping[str, str] = {}
        self._more_jars: tuple[Path, ...] = ()
        self._processes = processes
        self._pid = 0

    def configure(self, more: Mapping[str, str], more_jars: Sequence[Path]) -> None:
        """Set additional properties and jars, which apply from the next start on."""
        self._more, self._more_jars = dict(more), tuple(more_jars)

    async def spawn(self) -> None:
        """Start the process; the caller waits for it."""
        self._file.write_text(render({**self._base, **self._more}))
        # Rename the log, because an earlier run's start message would be taken for this run's.
        if self._log.exists():
            self._log.rename(self._log.with_suffix(f".{self._pid}.log"))
        self._pid = await self._processes.start(
            _NAME, [str(self._file)], self._log, more_jars=self._more_jars
        )

    async def wait_started(self) -> None:
        """Wait until the log says that the controller is up.

        Raises:
            ClusterError: the controller ended instead; the message has the end of its log.
        """
        await self._processes.wait_started(_NAME)

    async def restart(self, timeout_s: float) -> None:
        """Stop it cleanly and start it; returns when it is up."""
        async with deadline(timeout_s, f"{_NAME} was not up again"):
            await self._processes.signal(_NAME, signal.SIGTERM)
            await self._processes.wait_ended(_NAME)
            await self.spawn()
            await self.wait_started()
