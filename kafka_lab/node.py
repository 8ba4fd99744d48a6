"""A node of a running cluster: its properties, its log, and its process."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kafka_lab.broker_properties import render
from kafka_lab.processes import Processes


class Node:
    """A broker or a dedicated controller, running or not."""

    def __init__(
        self,
        name: str,
        file: Path,
        log: Path,
        properties: Mapping[str, str],
        processes: Processes,
    ) -> None:
        """Make a node without starting it; each start writes the properties to ``file``."""
        self._name = name
        self._file = file
        self._log = log
        self._base = dict(properties)
        self._more: Mapping[str, str] = {}
        self._more_jars: tuple[Path, ...] = ()
        self._processes = processes
        self._pid = 0

    @property
    def is_running(self) -> bool:
        """Return whether the process exists, paused or not."""
        return self._processes.is_running(self._name)

    def configure(self, more: Mapping[str, str], more_jars: Sequence[Path]) -> None:
        """Set additional properties and jars, which apply from the next start on."""
        self._more, self._more_jars = dict(more), tuple(more_jars)

    async def spawn(self) -> None:
        """Start the process; the caller waits for it."""
        self._file.write_text(render({**self._base, **self._more}))
        # Rename the log, because an earlier run's messages would be taken for this run's.
        if self._log.exists():
            self._log.rename(self._log.with_suffix(f".{self._pid}.log"))
        self._pid = await self._processes.start(
            self._name, [str(self._file)], self._log, more_jars=self._more_jars
        )

    async def wait_started(self) -> None:
        """Wait until the log says that the node is up, and a broker unfenced.

        Raises:
            ClusterError: the process ended instead; the message has the end of its log.
        """
        await self._processes.wait_started(self._name)
