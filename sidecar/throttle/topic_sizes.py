"""The sizes of topics in the whole cluster, from what each broker reports of its replicas.

A size has two forms: the bytes of all replicas, and the bytes of each partition counted once, by
its largest replica. A copy that a log-dir move makes is left out, because an operator made it and
not a client. For the same reason, a partition counts during a reassignment by its largest replicas,
as many as it will have. A reading of a broker counts for the validity. After that the broker is not
seen, and sums without it are the least that topics can have. Topics that were read alone since then
still count for the validity. A reading that lacks a log dir renews only what it has, and the broker
is not seen once the last one with all log dirs is too old.

Sums are kept for each topic, and only topics whose partitions have changed are added up again. So
the cost of a reading grows with what was written, not with what there is.

Example: partition 0 of "orders" has 100 bytes on broker 1 and 90 on broker 2, whose replica is
behind: 190 bytes in all replicas, and 100 counted once. A reassignment from broker 2 to 3 has
copied 80 bytes: these are still 190 bytes in all replicas.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sidecar.throttle.growth import Partition, Replicas
from sidecar.throttle.validity import is_valid

Partitions = Mapping[int, int]
"""Index -> size, bytes."""

Arriving = Mapping[Partition, tuple[int, ...]]
"""The partitions that a reassignment adds to a broker, each with the brokers that it will have."""


class TopicSize(NamedTuple):
    """The size of a topic in the cluster, bytes.

    Attributes:
        once: each partition counted once.
        replicas: all replicas; during a reassignment the largest, as many as it will have.
    """

    once: int
    replicas: int


@dataclass(frozen=True, slots=True)
class BrokerTopics:
    """The topics of a broker, in all its log dirs.

    Attributes:
        read_at: when the broker was asked, steady seconds.
        topics: topic -> its partitions there.
        arriving: those that a reassignment adds.
        is_partial: whether a log dir is missing.
    """

    read_at: float
    topics: dict[str, Partitions]
    arriving: Arriving = field(default_factory=dict)
    is_partial: bool = False


def broker_topics(
    read_at: float,
    log_dirs: Iterable[Replicas],
    arriving: Arriving | None = None,
    *,
    is_partial: bool = False,
) -> BrokerTopics:
    """Put the log dirs of a broker together, without the copies of log-dir moves.

    Args:
        read_at: when the broker was asked, steady seconds.
        log_dirs: the partitions of each log dir.
        arriving: those that a reassignment adds; None if that is not known.
        is_partial: whether a log dir is missing.
    """
    topics: dict[str, Partitions] = {}
    for replicas in log_dirs:
        for topic, partitions in replicas.items():
            sizes = {index: size_bytes for index, size_bytes, is_copy in partitions if not is_copy}
            topics[topic] = {**topics[topic], **sizes} if topic in topics else sizes
    return BrokerTopics(read_at, topics, arriving or {}, is_partial)


class TopicSizes:
    """The sizes of topics, by the last valid readings; it changes with each reading."""

    def __init__(self) -> None:
        self._brokers: dict[int, BrokerTopics] = {}
        self._sizes: dict[str, TopicSize] = {}
        # The last readings without all log dirs, of brokers with a valid reading that has all.
        self._partial: dict[int, BrokerTopics] = {}
        # Broker id -> topic -> when it was read alone, since the last reading of all.
        self._alone: dict[int, dict[str, float]] = {}

    @property
    def sizes(self) -> Mapping[str, TopicSize]:
        """The topics that any valid reading has."""
        return self._sizes

    def partitions(self, broker_id: int, topics: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The partitions of these topics that were last seen on a broker."""
        known = self._brokers.get(broker_id)
        if known is None:
            return {}
        return {topic: tuple(known.topics[topic]) for topic in topics if topic in known.topics}

    def take(
        self, broker_id: int, reading: BrokerTopics, asked: Collection[str] | None = None
    ) -> None:
        """Take a reading of a broker.

        Args:
            broker_id: the broker.
            reading: its topics.
            asked: the only topics that were asked for, which does not renew the reading of the
                others; None for all of them.
        """
        before = self._brokers.get(broker_id)
        if asked is None:
            if before is None or before.is_partial or not reading.is_partial:
                self._partial.pop(broker_id, None)
                self._alone.pop(broker_id, None)
                self._replace(broker_id, reading)
                return
            self._partial[broker_id] = reading
            asked = reading.topics
        elif before is not None and not reading.is_partial:
            self._alone.setdefault(broker_id, {}).update(dict.fromkeys(asked, reading.read_at))
        if before is None:
            return
        # Thousands of other topics are not touched.
        for topic in asked:
            partitions = reading.topics.get(topic, {})
            if reading.is_partial:
                # What is missing may be in the missing log dir.
                partitions = {**before.topics.get(topic, {}), **partitions}
            if before.topics.get(topic) != partitions:
                before.topics[topic] = partitions
                self._add_up(topic)

    def seen(self, brokers: Iterable[int], validity_s: float, now: float) -> list[int]:
        """Drop the readings that are too old, and return those brokers that were not seen.

        Args:
            brokers: the brokers of the cluster.
            validity_s: how long a reading counts, seconds.
            now: steady seconds.
        """
        for broker_id, reading in list(self._brokers.items()):
            if not is_valid(reading.read_at, validity_s, now):
                partial = self._partial.pop(broker_id, None)
                self._replace(broker_id, partial or self._read_alone(broker_id, validity_s, now))
        whole = {key for key, each in self._brokers.items() if not each.is_partial}
        return sorted(set(brokers) - whole)

    def _read_alone(self, broker_id: int, validity_s: float, now: float) -> BrokerTopics | None:
        """The topics of an old reading that were read alone lately; None if none were."""
        old, alone = self._brokers[broker_id], self._alone.pop(broker_id, {})
        alone = {topic: at for topic, at in alone.items() if is_valid(at, validity_s, now)}
        topics = {topic: old.topics[topic] for topic in alone if topic in old.topics}
        if not topics:
            return None
        self._alone[broker_id] = alone
        return BrokerTopics(min(alone.values()), topics, old.arriving, is_partial=True)

    def _replace(self, broker_id: int, reading: BrokerTopics | None) -> None:
        nothing = BrokerTopics(0.0, {})
        old, new = self._brokers.pop(broker_id, nothing), reading or nothing
        if reading is not None:
            self._brokers[broker_id] = reading
        changed = old.arriving.items() ^ new.arriving.items()
        moved = {topic for (topic, _), _ in changed}
        for topic in old.topics.keys() | new.topics.keys():
            if topic in moved or old.topics.get(topic) != new.topics.get(topic):
                self._add_up(topic)

    def _add_up(self, topic: str) -> None:
        largest: dict[int, int] = defaultdict(int)
        most: dict[int, int] = {}
        total = 0
        found = False
        for reading in self._brokers.values():
            if (partitions := reading.topics.get(topic)) is not None:
                found = True
                for index, size_bytes in partitions.items():
                    total += size_bytes
                    largest[index] = max(largest[index], size_bytes)
                if reading.arriving:
                    most |= {
                        index: len(brokers)
                        for index in partitions
                        if (brokers := reading.arriving.get((topic, index)))
                    }
        for index, count in most.items():
            total -= sum(self._replicas(topic, index)[:-count])
        if found:
            self._sizes[topic] = TopicSize(sum(largest.values()), total)
        else:
            self._sizes.pop(topic, None)

    def _replicas(self, topic: str, index: int) -> list[int]:
        """The sizes of a partition's replicas, the smallest first."""
        known = (reading.topics.get(topic, {}) for reading in self._brokers.values())
        return sorted(partitions[index] for partitions in known if index in partitions)
