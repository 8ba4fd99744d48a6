"""The brokers of a cluster that is up, and what can be done to them: a part of ``Cluster``.

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
    """The brokers by id; none until the cluster starts."""

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """The brokers by id, running or not."""
        return MappingProxyType({key: member.broker for key, member in self._members.items()})

    @property
    def bootstrap(self) -> str:
        """The plain listener's addresses, "host:port,host:port"."""
        return self.bootstrap_of(PLAIN)

    def bootstrap_of(self, listener: str) -> str:
        """One listener's addresses, "host:port,host:port"."""
        return ",".join(broker.addresses[listener] for broker in self.brokers.values())

    def is_running(self, broker_id: int) -> bool:
        """Whether the broker's process lives, paused or not."""
        return self._members[broker_id].is_running

    async def wait_active(self, ids: Collection[int], timeout_s: float = 30.0) -> None:
        """Wait until every running, not paused broker sees exactly these brokers active.

        Raises:
            ClusterError: they don't in time.
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
        """Stop the broker cleanly: leadership moves first, data is flushed."""
        await self._members[broker_id].end(signal.SIGTERM, timeout_s)

    async def start_broker(self, broker_id: int, timeout_s: float = 60.0) -> None:
        """Start a broker that was killed or stopped; returns when the others see it active.

        Soon after a kill that takes until the controller has fenced the dead one, some 4 s.
        """
        await self._members[broker_id].start(timeout_s)
        async with deadline(timeout_s, f"broker {broker_id} was not active"):
            await self._wait_all_see(lambda active: broker_id in active)

    async def pause_broker(self, broker_id: int) -> None:
        """Stop the broker's process in its tracks (SIGSTOP): it accepts and never answers."""
        await self._members[broker_id].pause()

    async def resume_broker(self, broker_id: int) -> None:
        """Resume a paused broker (SIGCONT)."""
        await self._members[broker_id].resume()

    async def fail_log_dir(self, broker_id: int, index: int, timeout_s: float = 30.0) -> None:
        """Make a log dir fail for real; returns when the broker has taken it offline.

        The folder is moved aside and a file put in its place, so the broker's next checkpoint in it
        (they are written every second here) fails as it would on a dead disk. A read-only remount
        would be refused while the broker has files open there. A broker whose last log dir fails
        ends itself.
        """
        await self._members[broker_id].fail_log_dir(index, timeout_s)

    async def restore_log_dir(self, broker_id: int, index: int, timeout_s: float = 60.0) -> None:
        """Make a failed log dir whole again, and restart the broker, as Kafka needs for it."""
        await self._members[broker_id].restore_log_dir(index, timeout_s)

    async def occupy(self, broker_id: int, index: int, size_bytes: int) -> None:
        """Take so many bytes of a volume with a file of the cluster's own; 0 frees them.

        Raises:
            ClusterError: there are not so many.
        """
        await self._members[broker_id].occupy(index, size_bytes)

    async def usage(self, broker_id: int, index: int) -> tuple[int, int]:
        """Total and available bytes of a volume, by its file system."""
        return await self._members[broker_id].usage(index)

    async def heal(self, timeout_s: float = 60.0) -> None:
        """Undo what was done to brokers and volumes; every broker is active afterwards."""
        async with asyncio.TaskGroup() as group:
            for member in self._members.values():
                group.create_task(member.heal(timeout_s))
        await self.wait_active(self._members)
