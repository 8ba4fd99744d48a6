"""The leaders of all partitions, from Metadata, and which partitions are scanned.

The answer contains the topics that the sidecar may describe. Internal topics are left out. The
leaders are read again after ``LEADERS_S``, or after ``DOUBTED_S`` if a request to a leader failed
since. If they can't be read, the previous ones stay. Each partition of the cluster takes 8 bytes,
and each scanned partition about a hundred more.

Example: the partitions of broker 1 are scanned, and "orders" gets a third partition, led by broker
1. It is scanned within ten seconds, like a partition that moves to broker 1.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from aiokafka.protocol.api import Response

from sidecar.kafka.client.pool import Pool
from sidecar.kafka.producer_messages import AllTopics
from sidecar.settings import HostPort
from sidecar.volumes import Failure, FailureKind

LEADERS_S: Final = 10.0
"""How late a new topic or a new leader can be noticed."""
DOUBTED_S: Final = 2.0
MOST_PARTITIONS: Final = 20_000
"""The most partitions that are scanned; the first topics by name come first."""

_ALL_TOPICS: Final = AllTopics()

Partition = tuple[str, int]
"""Topic and index."""


class Leaders:
    """The partitions that are scanned, by leader; initially none.

    Attributes:
        partitions: broker id -> the scanned partitions that it leads, sorted.
        skipped: how many partitions are not scanned because there are too many.
    """

    def __init__(self, pool: Pool, broker_id: int | None, clock: Callable[[], float]) -> None:
        """Starts without reading. Each ``refresh`` also sets the pool's list of brokers."""
        self.partitions: dict[int, list[Partition]] = {}
        self.skipped = 0
        self._pool = pool
        self._broker_id = broker_id
        self._clock = clock
        self._topics: Mapping[str, Sequence[int]] | None = None
        self._brokers: set[int] = set()
        self._refreshed_at = 0.0
        self._valid_for_s = LEADERS_S

    def doubt(self) -> None:
        """Makes the next ``refresh`` come sooner, because a leader may have changed."""
        self._valid_for_s = DOUBTED_S

    async def refresh(self, deadline: float) -> Failure | None:
        """Reads the leaders if they are due.

        Args:
            deadline: the loop's time by which this returns.

        Returns:
            Why no leader is known or no partition can be scanned; None if one can.
        """
        if self._topics is None or self._clock() >= self._refreshed_at + self._valid_for_s:
            answer = await self._pool.call_any(
                _ALL_TOPICS, deadline, _read, "the leaders of partitions"
            )
            if isinstance(answer, Failure):
                return answer if self._topics is None else None
            self._update(*answer)
        if self._broker_id is not None and self._broker_id not in self._brokers:
            text = f"broker {self._broker_id} (SIDECAR_BROKER_ID) is not active"
            return Failure(FailureKind.CONNECT, text)
        if not self._topics:
            self.doubt()
            text = "the cluster has no topic that the sidecar may describe"
            return Failure(FailureKind.AUTHORIZATION, text)
        return None

    def _update(self, topics: Mapping[str, Sequence[int]], brokers: Mapping[int, HostPort]) -> None:
        self._refreshed_at, self._valid_for_s = self._clock(), LEADERS_S
        self._pool.set_brokers(brokers)
        if topics == self._topics and brokers.keys() == self._brokers:
            return
        self._topics = topics
        self._brokers = set(brokers)
        self._choose(topics)

    def _choose(self, topics: Mapping[str, Sequence[int]]) -> None:
        """Chooses the partitions to scan: those with an active leader."""
        self.partitions = {}
        count = 0
        for topic in sorted(topics):
            indexes_and_leaders = topics[topic]
            pairs = zip(indexes_and_leaders[::2], indexes_and_leaders[1::2], strict=True)
            for index, leader in pairs:
                if leader in self._brokers and self._broker_id in {None, leader}:
                    count += 1
                    if count <= MOST_PARTITIONS:
                        self.partitions.setdefault(leader, []).append((topic, index))
        self.skipped = max(0, count - MOST_PARTITIONS)


def _read(
    response: Response, _: HostPort
) -> tuple[dict[str, Sequence[int]], dict[int, HostPort]] | Failure:
    topics = {
        name: leaders
        for error_code, name, _id, is_internal, leaders, *_ in response.topics or ()
        if not error_code and not is_internal and name is not None
    }
    brokers = {
        broker_id: HostPort(host, port) for broker_id, host, port, *_ in response.brokers or ()
    }
    return topics, brokers
