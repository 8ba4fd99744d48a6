"""A broker of a running cluster, and operations on its process and its volumes."""

import signal
from collections.abc import Callable, Mapping
from dataclasses import replace

from kafka_lab.admin import Admin
from kafka_lab.node import Node
from kafka_lab.nodes import Broker
from kafka_lab.processes import Processes
from kafka_lab.waiting import deadline, until

_REQUEST_S = 1.0


class Member(Node):
    """A broker, running or not.

    Attributes:
        broker: the broker's values; each start replaces them, with the new pid.
        is_paused: whether the process is stopped by SIGSTOP.
    """

    def __init__(self, broker: Broker, properties: Mapping[str, str], processes: Processes) -> None:
        """Make a broker without starting it."""
        file = broker.home / "server.properties"
        super().__init__(f"broker {broker.id}", file, broker.log, properties, processes)
        self.broker = broker
        self.is_paused = False
        self._failed: set[int] = set()

    async def spawn(self) -> None:
        """Start the process; the caller waits for it."""
        await super().spawn()
        self.broker = replace(self.broker, pid=self._pid)

    async def wait_sees(self, holds: Callable[[frozenset[int]], bool]) -> None:
        """Wait until a condition holds for the active brokers that this broker sees."""
        async with Admin(self.broker.address, timeout_s=_REQUEST_S) as admin:
            await admin.wait_active(holds)

    async def start(self, timeout_s: float) -> None:
        """Start the broker; returns when it is up and unfenced."""
        async with deadline(timeout_s, f"{self._name} was not ready"):
            await self.spawn()
            await self.wait_started()

    async def end(self, signal: signal.Signals, timeout_s: float) -> None:
        """Send a signal that ends the process, and wait for its end."""
        await self._processes.signal(self._name, signal)
        async with deadline(timeout_s, f"{self._name} did not end"):
            await self._processes.wait_ended(self._name)
        self.is_paused = False

    async def pause(self) -> None:
        """Stop the process (SIGSTOP)."""
        await self._processes.signal(self._name, signal.SIGSTOP)
        self.is_paused = True

    async def resume(self) -> None:
        """Resume the process (SIGCONT)."""
        await self._processes.signal(self._name, signal.SIGCONT)
        self.is_paused = False

    async def fail_log_dir(self, index: int, timeout_s: float) -> None:
        """Replace the log dir by a file; returns when the broker has taken the log dir offline."""
        path = self.broker.volumes[index].path
        request = self._processes.supervisor.ask
        before = self._offline_count(path)
        await request("rename", path=path, to=f"{path}.failed")
        self._failed.add(index)
        await request("put", path=path, text="A failed disk.\n")
        async with deadline(timeout_s, f"{self._name} did not take {path} offline"):
            await until(lambda: not self.is_running or self._offline_count(path) > before)

    async def restore_log_dir(self, index: int, timeout_s: float) -> None:
        """Put the log dir back and restart the broker."""
        path = self.broker.volumes[index].path
        request = self._processes.supervisor.ask
        if self.is_running:
            await self.end(signal.SIGTERM, timeout_s)
        await request("remove", path=path)
        await request("rename", path=f"{path}.failed", to=path)
        self._failed.discard(index)
        await self.start(timeout_s)

    async def occupy(self, index: int, size_bytes: int) -> None:
        """Occupy some bytes of a volume with a file beside the log dir."""
        ballast = f"{self.broker.volumes[index].mount}/ballast"
        await self._processes.supervisor.ask("occupy", path=ballast, bytes=size_bytes)

    async def usage(self, index: int) -> tuple[int, int]:
        """Return the total and the available bytes of a volume."""
        mount = self.broker.volumes[index].mount
        total, available = await self._processes.supervisor.ask("usage", path=mount)
        return total, available

    async def heal(self, timeout_s: float) -> None:
        """Undo all of the above; restart the broker only if this needs a restart."""
        if self.is_paused:
            await self.resume()
        for index in range(len(self.broker.volumes)):
            await self.occupy(index, 0)
        for index in sorted(self._failed):
            await self.restore_log_dir(index, timeout_s)
        if not self.is_running:
            await self.start(timeout_s)

    def _offline_count(self, path: str) -> int:
        # The message in every version since 1.0. "Stopping serving" comes before DescribeLogDirs
        # reports the log dir as offline.
        message = f"Stopped serving replicas in dir {path}"
        return self.broker.log.read_bytes().count(message.encode())
