"""The active producers of partitions, from the partitions' leaders (DescribeProducers, KIP-664).

A scan reads ``AT_ONCE`` brokers concurrently, and the partitions of each broker in pieces. A piece
has as many partitions as fit into ``PIECE_BYTES``, judging by the previous answer, so answers stay
small in a large cluster. If a partition can't be read, only that partition has a failure. If a
broker does not answer, all its partitions that are left have its failure. DescribeProducers needs
READ on the topics.

Example: a broker leads 4,000 partitions with 4,000 producers in all, 148 kB. The first scan reads
pieces of 100, 200, 400, and then 500 partitions. The next scan reads eight pieces of 500.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from aiokafka.protocol.api import Response

from sidecar.kafka.client.failures import error_name
from sidecar.kafka.client.one_call import how_to_grant
from sidecar.kafka.client.pool import ClusterId, Pool, any_cluster
from sidecar.kafka.leaders import Leaders, Partition
from sidecar.kafka.producer_messages import DescribeProducers, ProducerStates
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

PIECE_BYTES: Final = 1 << 20
AT_ONCE: Final = 4

_FIRST_PIECE: Final = 100
_LARGEST_PIECE: Final = 500
_ANSWER_S: Final = 10.0
_NOT_AUTHORIZED: Final = 29
_MOVED: Final = frozenset({3, 6})
"""UNKNOWN_TOPIC_OR_PARTITION and NOT_LEADER_OR_FOLLOWER."""


OnStates = Callable[[Partition, ProducerStates], None]
"""Receives the producers of a partition."""


@dataclass(slots=True)
class ScanResult:
    """The result of a scan.

    Attributes:
        partitions: how many partitions were read.
        producers: how many producers they have. A producer of two partitions counts twice.
        failures: why the other partitions were not read.
        skipped: how many partitions were not scanned because there are too many.
    """

    partitions: int = 0
    producers: int = 0
    failures: dict[Partition, Failure] = field(default_factory=dict)
    skipped: int = 0

    @property
    def not_read(self) -> int:
        """How many partitions were not read, because of a failure or because there are too many."""
        return len(self.failures) + self.skipped


class ActiveProducers:
    """Scans the leaders repeatedly, over connections that stay open.

    Args:
        admin: how to reach the brokers.
        broker_id: the broker whose partitions are scanned; None for all brokers.
        clock: steady seconds.
        cluster_id: the id of the only cluster that is scanned; None for any.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def __init__(
        self,
        admin: KafkaAdmin,
        broker_id: int | None,
        clock: Callable[[], float],
        *,
        cluster_id: ClusterId = any_cluster,
    ) -> None:
        self._pool = Pool.of(admin, clock, cluster_id=cluster_id)
        self._leaders = Leaders(self._pool, broker_id, clock)
        self._pieces: dict[int, int] = {}
        self._too_long: set[Partition] = set()

    @property
    def partitions(self) -> Mapping[int, list[Partition]]:
        """Leader's broker id -> the partitions that are scanned there."""
        return self._leaders.partitions

    def reload(self, admin: KafkaAdmin, *, redial: bool = True) -> Callable[[], None]:
        """Reads new credentials; see ``Pool.reload``."""
        return self._pool.reload(admin, redial=redial)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def scan(self, on_states: OnStates, timeout_s: float) -> ScanResult | Failure:
        """Read the leaders once.

        Args:
            on_states: called for each partition that was read.
            timeout_s: the time for the whole scan, seconds.

        Returns:
            The result, or a failure if no leader is known.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        failure = await self._leaders.refresh(deadline)
        if failure is not None:
            if failure.kind is FailureKind.AUTHORIZATION:
                return Failure(failure.kind, f"{failure.message}: {self._read_hint()}")
            return failure
        result = ScanResult(skipped=self._leaders.skipped)
        turns = asyncio.Semaphore(AT_ONCE)

        async def scan_broker(broker_id: int) -> None:
            async with turns:
                await self._scan_broker(broker_id, _Scan(on_states, result, deadline))

        await asyncio.gather(*map(scan_broker, self._leaders.partitions))
        return result

    async def _scan_broker(self, broker_id: int, scan: "_Scan") -> None:
        # A partition whose answer was too long comes last, so that the others are read before it.
        left = iter(sorted(self._leaders.partitions[broker_id], key=self._too_long.__contains__))
        while piece := list(islice(left, self._pieces.get(broker_id, _FIRST_PIECE))):
            topics: dict[str, list[int]] = {}
            for topic, index in piece:
                topics.setdefault(topic, []).append(index)
            until = min(scan.deadline, asyncio.get_running_loop().time() + _ANSWER_S)
            answer = await self._pool.call(broker_id, DescribeProducers(topics), until)
            if isinstance(answer, Failure):
                self._shrink_piece(broker_id, piece, answer)
                scan.result.failures |= dict.fromkeys((*piece, *left), answer)
                return
            size = await self._read(answer, set(piece), scan)
            fits = len(piece) * PIECE_BYTES // max(size, 1)
            self._pieces[broker_id] = max(1, min(fits, 2 * len(piece), _LARGEST_PIECE))

    def _shrink_piece(self, broker_id: int, piece: list[Partition], failure: Failure) -> None:
        self._leaders.doubt()
        if failure.kind in {FailureKind.PROTOCOL, FailureKind.TIMEOUT}:
            # The answer may have been too long.
            self._pieces[broker_id] = max(1, len(piece) // 8)
            if len(piece) == 1:
                self._too_long.add(piece[0])

    async def _read(self, answer: Response, requested: set[Partition], scan: "_Scan") -> int:
        """Reads an answer, and returns the bytes of its producers."""
        result, size = scan.result, 0
        for topic, partitions, *_tags in answer.topics or ():
            for index, error_code, _, states, *_more in partitions or ():
                partition = (topic, index)
                if partition not in requested:
                    continue
                requested.discard(partition)
                if error_code:
                    result.failures[partition] = self._refused(error_code)
                    continue
                size += len(states) * ProducerStates.ENTRY.size
                result.partitions += 1
                result.producers += len(states)
                scan.on_states(partition, states)
                if states:
                    # Let the API answer between two partitions.
                    await asyncio.sleep(0)
        result.failures |= dict.fromkeys(requested, _UNANSWERED)
        return size

    def _refused(self, code: int) -> Failure:
        if code in _MOVED:
            self._leaders.doubt()
        if code == _NOT_AUTHORIZED:
            text = f"DescribeProducers returned {error_name(code)}: {self._read_hint()}"
            return Failure(FailureKind.AUTHORIZATION, text)
        return Failure(FailureKind.BROKER, f"DescribeProducers returned {error_name(code)}")

    def _read_hint(self) -> str:
        command = how_to_grant("Read", "--topic '*'", self._pool.principal)
        return f"it needs READ on the topics: {command}"


@dataclass(frozen=True, slots=True)
class _Scan:
    on_states: OnStates
    result: ScanResult
    deadline: float


_UNANSWERED: Final = Failure(
    FailureKind.PROTOCOL, "DescribeProducers did not answer for all requested partitions"
)
