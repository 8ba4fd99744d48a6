"""Who leads which partition, by Metadata, and which of them are scanned.

The answer has all topics that may be described, without internal ones. It is read again after
``LEADERS_S``, or after ``DOUBTED_S`` when something failed since; if it can't be, what was known is
retained. 8 bytes are retained of each partition of the cluster, some hundred of each scanned one.

Example: broker 1's are scanned, and "orders" gets a third partition, led by it: it is new, its
producers all wrote lately. One that moves to broker 1 is not: the sidecar there scanned it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

from aiokafka.protocol.api import Response

from sidecar.kafka.client.pool import Pool
from sidecar.kafka.producer_messages import AllTopics
from sidecar.settings import HostPort
from sidecar.volumes import Failure, FailureKind

LEADERS_S: Final = 10.0
"""So late it is seen that a topic was made or that a leader changed."""
DOUBTED_S: Final = 2.0
MOST_PARTITIONS: Final = 20_000
"""So many are scanned, those of the first topics by name."""

_ALL_TOPICS: Final = AllTopics()

Partition = tuple[str, int]
"""Topic and index."""


class Leaders:
    """Which partitions are scanned. Initially none.

    Attributes:
        partitions: broker id -> those that are scanned and led by it, by topic and index.
        new: those that were not there when leaders were first read and were not reported since:
            of the scanned ones, and of those that have no leader yet.
        skipped: how many are not scanned because they are too many.
    """

    def __init__(self, pool: Pool, broker_id: int | None, clock: Callable[[], float]) -> None:
        """Nothing is read yet; the pool's list of brokers is set here."""
        self.partitions: dict[int, list[Partition]] = {}
        self.new: set[Partition] = set()
        self.skipped = 0
        self._pool = pool
        self._broker_id = broker_id
        self._clock = clock
        self._topics: Mapping[str, Sequence[int]] | None = None
        self._brokers: set[int] = set()
        self._refreshed_at = 0.0
        self._believed_for_s = LEADERS_S

    def __repr__(self) -> str:
        return f"Leaders({sum(map(len, self.partitions.values()))} partitions)"

    def doubt(self) -> None:
        """What is known may be wrong."""
        self._believed_for_s = DOUBTED_S

    async def refresh(self, deadline: float) -> Failure | None:
        """Reads them if that is due.

        Args:
            deadline: the loop's time by which this returns.

        Returns:
            Why nothing is known, or nothing can be scanned.
        """
        if self._topics is None or self._clock() >= self._refreshed_at + self._believed_for_s:
            answer = await self._pool.call_any(
                _ALL_TOPICS, deadline, _read, "who leads which partition"
            )
            if isinstance(answer, Failure):
                return answer if self._topics is None else None
            self._take(*answer)
        if self._broker_id is not None and self._broker_id not in self._brokers:
            text = f"broker {self._broker_id}, of SIDECAR_BROKER_ID, is not active"
            return Failure(FailureKind.CONNECT, text)
        if not self._topics:
            self.doubt()
            text = "there is no topic, or none may be described"
            return Failure(FailureKind.AUTHORIZATION, text)
        return None

    def _take(self, topics: Mapping[str, Sequence[int]], brokers: Mapping[int, HostPort]) -> None:
        self._refreshed_at, self._believed_for_s = self._clock(), LEADERS_S
        self._pool.set_brokers(brokers)
        if topics == self._topics and brokers.keys() == self._brokers:
            return
        before, self._topics = self._topics, topics
        self._brokers = set(brokers)
        leaderless = self._choose(topics)
        if before is not None:
            listed = chain(leaderless, *self.partitions.values())
            self.new = {each for each in listed if each in self.new or not _has(before, each)}

    def _choose(self, topics: Mapping[str, Sequence[int]]) -> list[Partition]:
        """Chooses those to be scanned, and returns those without an active leader."""
        self.partitions = {}
        leaderless: list[Partition] = []
        count = 0
        for topic in sorted(topics):
            found = topics[topic]
            for index, leader in zip(found[::2], found[1::2], strict=True):
                if leader not in self._brokers:
                    leaderless.append((topic, index))
                elif self._broker_id in {None, leader}:
                    count += 1
                    if count <= MOST_PARTITIONS:
                        self.partitions.setdefault(leader, []).append((topic, index))
        self.skipped = max(0, count - MOST_PARTITIONS)
        return leaderless


def _has(topics: Mapping[str, Sequence[int]], partition: Partition) -> bool:
    topic, index = partition
    # Indexes run from 0 on, without gaps: their number determines them.
    return index < len(topics.get(topic, ())) // 2


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
