"""The brokers of a running cluster, and operations on them; the base class of ``Cluster``.

Example: ``await cluster.pause_broker(0)``, ``await cluster.wait_active({1, 2})``,
``await cluster.heal()``.
"""

import asyncio
import signal
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from kafka_lab.layout import PLAIN
from kafka_lab.member import Member
from kafka_lab.nodes import Broker
from kafka_lab.waiting import deadline


class Members:
    """The brokers by id; empty until the cluster starts."""

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """Return the brokers by id, running or not."""
        return MappingProxyType({key: member.broker for key, member in self._members.items()})

    @property
    def bootstrap(self) -> str:
        """Return the plain listener's addresses, "host:port,host:port"."""
        return self.bootstrap_of(PLAIN)

    def bootstrap_of(self, listener: str) -> str:
        """Return a listener's addresses, "host:port,host:port"."""
        return ",".join(broker.addresses[listener] for broker in self.brokers.values())

    def is_running(self, broker_id: int) -> bool:
        """Return whether the broker's process exists, paused or not."""
        return self._members[broker_id].is_running

    async def wait_active(self, ids: Collection[int], timeout_s: float = 30.0) -> None:
        """Wait until every running broker that is not paused sees exactly these brokers active.

        Raises:
            ClusterError: this takes too long.
        """
        expected = frozenset(ids)
        async with deadline(timeout_s, f"brokers {sorted(expected)} were not the active ones"):
            await self._wait_all_see(lambda active: active == expected)

    async def _wait_all_see(self, holds: Callable[[frozenset[int]], bool]) -> None:
        async with asyncio.TaskGroup() as group:
            for member in self._members.values():
                if member.is_running and not member.is_paused:
                    group.create_task(member.wait_sees(holds))

    async def kill_broker(
        self, broker_id: int, signal: signal.Signals = signal.SIGKILL, timeout_s: float = 30.0
    ) -> None:
        """Send a signal that ends the broker and wait for its end."""
        await self._members[broker_id].end(signal, timeout_s)

    async def stop_broker(self, broker_id: int, timeout_s: float = 30.0) -> None:
        """Stop the broker cleanly: it moves leadership first, and flushes data."""
        await self._members[broker_id].end(signal.SIGTERM, timeout_s)

    async def start_broker(self, broker_id: int, timeout_s: float = 60.0) -> None:
        """Start a broker that was killed or stopped; returns when the others see it active.

        After a kill, the controller must first fence the dead broker, which takes about 4 s.
        """
        await self._members[broker_id].start(timeout_s)
        async with deadline(timeout_s, f"broker {broker_id} was not active"):
            await self._wait_all_see(lambda active: broker_id in active)

    async def pause_broker(self, broker_id: int) -> None:
        """Pause the broker's process (SIGSTOP): it accepts connections and never answers."""
        await self._members[broker_id].pause()

    async def resume_broker(self, broker_id: int) -> None:
        """Resume a paused broker (SIGCONT)."""
        await self._members[broker_id].resume()

    async def fail_log_dir(self, broker_id: int, index: int, timeout_s: float = 30.0) -> None:
        """Make a log dir fail; returns when the broker has taken it offline.

        The folder is renamed and a file takes its place. The broker's next checkpoint, which it
        writes every second, then fails as on a dead disk. A read-only remount would be refused
        while the broker has open files there. A broker whose last log dir fails ends itself.
        """
        await self._members[broker_id].fail_log_dir(index, timeout_s)

    async def restore_log_dir(self, broker_id: int, index: int, timeout_s: float = 60.0) -> None:
        """Restore a failed log dir, and restart the broker, as Kafka requires."""
        await self._members[broker_id].restore_log_dir(index, timeout_s)

    async def occupy(self, broker_id: int, index: int, size_bytes: int) -> None:
        """Occupy some bytes of a volume with a file of the cluster; 0 removes the file.

        Raises:
            ClusterError: the volume has less space.
        """
        await self._members[broker_id].occupy(index, size_bytes)

    async def usage(self, broker_id: int, index: int) -> tuple[int, int]:
        """Return the total and the available bytes of a volume, by its file system."""
        return await self._members[broker_id].usage(index)

    async def heal(self, timeout_s: float = 60.0) -> None:
        """Undo the changes to brokers and volumes; returns when every broker is active."""
        async with asyncio.TaskGroup() as group:
            for member in self._members.values():
                group.create_task(member.heal(timeout_s))
        await self.wait_active(self._members)
