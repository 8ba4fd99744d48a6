"""A watch of ids that write, over leaders whose answers a test sets."""

import asyncio
from collections.abc import Callable, Mapping

from sidecar.kafka.active_producers import OnStates, ScanResult
from sidecar.kafka.leaders import Partition
from sidecar.kafka.producer_messages import ProducerStates
from sidecar.producer_ids.active_watch import ActiveIdWatch
from sidecar.quotas.producer_ids.active_ids import ActiveIds
from sidecar.volumes import Failure, FailureKind

ORDERS, CLICKS = ("orders", 0), ("clicks", 0)
REFUSED = Failure(FailureKind.AUTHORIZATION, "it needs READ on the topics")
SILENT = Failure(FailureKind.TIMEOUT, "broker 1: no answer")


def packed(*written: tuple[int, int]) -> ProducerStates:
    """Producers by id and last sequence."""
    return ProducerStates(
        b"".join(
            producer_id.to_bytes(8) + bytes(4) + sequence.to_bytes(4) + bytes(21)
            for producer_id, sequence in written
        )
    )


class FakeSource:
    """Leaders whose answers a test sets."""

    def __init__(self) -> None:
        self.partitions: Mapping[int, list[Partition]] = {0: [ORDERS, CLICKS]}
        self.written: dict[Partition, ProducerStates] = {}
        self.failures: dict[Partition, Failure] = {}
        self.failure: Failure | None = None
        self.skipped = 0
        self.took_s = 0.0
        self.scanned_at: list[float] = []

    async def scan(self, on_states: OnStates, timeout_s: float) -> ScanResult | Failure:
        """Scans once."""
        assert timeout_s > 0
        self.scanned_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.took_s)
        if self.failure is not None:
            return self.failure
        for partition, states in self.written.items():
            on_states(partition, states)
        producers = sum(map(len, self.written.values()))
        return ScanResult(len(self.written), producers, self.failures, self.skipped)


class WatchScene:
    """A watch over a fake source, with what it counted and reported."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = lambda: 1000.0
        self.source = FakeSource()
        self.counted: list[tuple[str, int]] = []
        self.reported: list[tuple[str | None, int]] = []
        self.is_wanted = True
        self.watch = ActiveIdWatch(
            self.source,
            ActiveIds(3_600_000),
            lambda user, producer_id: self.counted.append((user, producer_id)),
            lambda user, producer_id: self.reported.append((user, producer_id)),
            self.now,
            interval_s=2.0,
            is_wanted=lambda: self.is_wanted,
        )

    def now(self) -> float:
        """Monotonic seconds."""
        return self.clock()

    def later(self, seconds: float) -> None:
        """Lets time pass."""
        now = self.clock() + seconds
        self.clock = lambda: now

    async def see(self, *written: tuple[int, int], at: Partition = ORDERS) -> None:
        """Scans when a partition has these producers."""
        self.source.written[at] = packed(*written)
        await self.watch.scan()
