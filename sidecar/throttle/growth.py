"""Who fills a volume: its used bytes, and their growth between two readings, split into parts.

The parts are topics (partitions that their broker leads, and replicas of partitions led elsewhere),
replicas that arrive by a reassignment or a log-dir move, and what no partition has. Kafka reports
the size of each partition in a log dir, and the sizes of the volume. The rest of the used bytes is
of no partition: files of others, indexes, and deleted segments until the broker removes them
(file.delete.delay.ms, a minute by default). Kafka's protocol can't tell these three apart. The
sizes of all parts add up to the used bytes, and their growths to the growth of the used bytes. So
the last part is negative if partitions are larger than what is used, such as on a file system that
compresses.

A partition is compared with itself, also when its move ends meanwhile. A segment that is deleted
makes its partition smaller at once, and the rest larger by as much until the file is gone. This is
no growth by files of others.

Example: a volume has 100 used bytes, then 160. Partition 0 of "orders", led here, grew from 60 to
90, and a copy of "clicks" 3 began to arrive and has 20. The parts are orders 90 (+30), clicks 20
(+20), no partition 50 (+10). A throttle slows 30 of these 60 bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from heapq import nlargest
from typing import Final

from sidecar.throttle.fold import is_low
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.throttle.rules import Rules
from sidecar.throttle.sizes import size

MOST: Final = 10
"""The most topics that are named; all others are one part of each kind."""

NEAR_S: Final = 3600.0
"""A volume that reaches its limit within this time is near it, as for the critical alert."""

SURE: Final = 0.8
"""The share of the growth from which on the headline says that a throttle does not stop it."""

WEEK_S: Final = 7 * 86_400.0
"""A growth that would take longer than this to fill the whole volume is not worth a headline."""

_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""The records of these topics are not produced by clients, so no throttle slows them."""

Replicas = Mapping[str, Iterable[tuple[int, int, bool]]]
"""Topic -> index and size of each of its partitions in a log dir, and whether a log-dir move copies
it there."""

Partition = tuple[str, int]
"""Topic and index."""


class Kind(StrEnum):
    """What a part is. It is the label of a metric, so the list is closed."""

    LEADER = "leader"
    """Partitions that the broker leads."""
    REPLICA = "replica"
    """Replicas of partitions that other brokers lead."""
    TOPIC = "topic"
    """Partitions of a topic that have no leader, or whose leaders could not be read."""
    REASSIGNMENT = "reassignment"
    """Replicas that a reassignment adds to the broker."""
    MOVE = "log_dir_move"
    """Copies of the broker's partitions, made by a move from another log dir."""
    OTHERS = "other_topics"
    """All topics that are not named."""
    RESERVE = "reserve"
    """The broker's reserve, if its quota callback reports it to this sidecar."""
    NO_PARTITION = "no_partition"
    """Used bytes that no partition has."""


_ARRIVING: Final = frozenset({Kind.REASSIGNMENT, Kind.MOVE})
_DOES: Final = {
    Kind.LEADER: "topic {topic} (partitions led here)",
    Kind.REPLICA: "topic {topic} (replicas of partitions led elsewhere)",
    Kind.TOPIC: "topic {topic}",
    Kind.REASSIGNMENT: "replicas of {topic} that a reassignment moves here",
    Kind.MOVE: "copies of {topic} that a log-dir move makes here",
    Kind.OTHERS: "all other topics",
    Kind.RESERVE: "the broker's reserve",
    Kind.NO_PARTITION: "files of no partition",
}


@dataclass(frozen=True, slots=True)
class LogDirReading:
    """A log dir and its volume, as its broker reported them at once.

    Attributes:
        used_bytes: the used bytes of the volume.
        replicas: the partitions there.
        read_at: when the broker was asked, steady seconds.
    """

    used_bytes: int
    replicas: Replicas
    read_at: float


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the cluster has placed partitions.

    Attributes:
        leaders: the leaders of the partitions of the named topics, as far as they are known.
        arriving: the partitions that a reassignment adds to the broker, each with the brokers that
            it will have; None if not known.
        topic_ids: topic -> its id as request logs write it.
        sizes: the sizes of arriving partitions on their leaders, as far as they are known.
        replicas: topic -> the number of its partitions, and the most replicas of one of them.
    """

    leaders: Mapping[Partition, int] = field(default_factory=dict)
    arriving: Mapping[Partition, tuple[int, ...]] | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[Partition, int] = field(default_factory=dict)
    replicas: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a volume.

    Attributes:
        kind: what it is.
        topic: the topic; "" for several topics or for none.
        size_bytes: its size; negative only for ``NO_PARTITION``, as described above.
        growth_bytes: its growth since the reading before; None before a second reading.
    """

    kind: Kind
    topic: str
    size_bytes: int
    growth_bytes: int | None

    @property
    def is_throttled(self) -> bool:
        """Whether a throttle of producers slows its growth."""
        if self.topic in _INTERNAL:
            return False
        return not self.arrives and self.kind not in {Kind.RESERVE, Kind.NO_PARTITION}

    @property
    def arrives(self) -> bool:
        """Whether a reassignment or a log-dir move brings it."""
        return self.kind in _ARRIVING

    def __str__(self) -> str:
        return _DOES[self.kind].format(topic=self.topic or "other topics")


@dataclass(frozen=True, slots=True)
class Split:
    """A volume in parts.

    Attributes:
        used_bytes: the used bytes, the sum of all parts.
        growth_bytes: their growth, the sum of the parts' growths; None before a second reading.
        seconds: the time between the two readings.
        parts: those that grow most first, then the largest; ``NO_PARTITION`` is the last.
        shrunk_bytes: by how much partitions shrank or were deleted meanwhile.
        placement: the placement by which it was split.
    """

    used_bytes: int
    growth_bytes: int | None
    seconds: float | None
    parts: tuple[Part, ...]
    shrunk_bytes: int
    placement: Placement

    @property
    def bytes_per_second(self) -> float | None:
        """The growth of the used bytes."""
        return self.rate(self.growth_bytes)

    def rate(self, growth_bytes: int | None) -> float | None:
        """A growth by the second; None when it is not known."""
        return None if growth_bytes is None or not self.seconds else growth_bytes / self.seconds

    def grown(self, part: Part) -> int | None:
        """A part's growth; of no partition, at most what the other parts leave of the volume's.

        When a segment is deleted, its size goes from a partition to what no partition has, and the
        volume does not grow.
        """
        growth = part.growth_bytes
        if growth is None or part.kind is not Kind.NO_PARTITION:
            return growth
        others = sum(max(0, each.growth_bytes or 0) for each in self.parts[:-1])
        return min(growth, max(0, (self.growth_bytes or 0) - others))

    @property
    def throttled_growth(self) -> int:
        """The growth of all parts that a throttle slows; 0 before a second reading."""
        return sum(part.growth_bytes or 0 for part in self.parts if part.is_throttled)

    def share(self, part: Part) -> float:
        """The share of a part in all growth, 0 to 1, without parts that shrink."""
        whole = sum(max(0, self.grown(each) or 0) for each in self.parts)
        return max(0, self.grown(part) or 0) / whole if whole else 0.0


def near_limit(memory: Memory, rules: Rules) -> list[VolumeState]:
    """The online volumes of active brokers that are near or past a limit, the worst first."""
    near = [
        state
        for broker in memory.active_brokers()
        for state in broker.volumes
        if state.online
        and (
            is_low(state, rules)
            or (state.seconds_left is not None and state.seconds_left <= NEAR_S)
        )
    ]
    return sorted(near, key=lambda state: state.volume.available_ratio)


def largest(earlier: LogDirReading | None, later: LogDirReading) -> list[str]:
    """The topics to name: those with the largest shares in the size or the growth, most first."""
    sizes = {topic: _total(replicas) for topic, replicas in later.replicas.items()}
    before = {} if earlier is None else earlier.replicas
    grown = (
        {}
        if earlier is None
        else {topic: max(0, size - _total(before.get(topic, ()))) for topic, size in sizes.items()}
    )
    whole, growth = sum(sizes.values()) or 1, sum(grown.values()) or 1
    return nlargest(
        MOST, sizes, key=lambda topic: max(sizes[topic] / whole, grown.get(topic, 0) / growth)
    )


def completed(placements: Sequence[Placement]) -> Placement:
    """The last placement, with the reassignments or sizes that it lacks from the ones before.

    Example: the leader of "orders" 0 had 9 GB a minute ago and has not answered since, so it still
    counts with 9 GB.
    """
    known = [each.arriving for each in placements if each.arriving is not None]
    sizes = {key: size for each in placements for key, size in each.sizes.items()}
    return replace(placements[-1], arriving=known[-1] if known else None, sizes=sizes)


def split(
    earlier: LogDirReading | None,
    later: LogDirReading,
    broker_id: int,
    named: Iterable[str],
    placement: Placement,
) -> Split:
    """Split a volume into parts.

    Args:
        earlier: the reading before; None for the first.
        later: the last reading.
        broker_id: the volume's broker.
        named: the topics that get parts of their own.
        placement: where partitions are.
    """
    before, now = _partitions(earlier), _partitions(later)
    names, arriving = frozenset(named), placement.arriving or {}
    sums: dict[tuple[Kind, str], list[int]] = {}
    shrunk = 0
    for key in now.keys() | before.keys():
        size_bytes, is_copy = now.get(key, (0, False))
        was_bytes, was_copy = before.get(key, (0, False))
        topic = key[0] if key[0] in names else ""
        if is_copy or was_copy:
            kind = Kind.MOVE
        elif key in arriving:
            kind = Kind.REASSIGNMENT
        else:
            kind = _led(placement.leaders.get(key), broker_id) if topic else Kind.OTHERS
        both = sums.setdefault((kind, topic), [0, 0])
        both[0] += size_bytes
        both[1] += size_bytes - was_bytes
        shrunk += max(0, was_bytes - size_bytes)
    whole = None if earlier is None else later.used_bytes - earlier.used_bytes
    rest = [later.used_bytes, 0 if whole is None else whole]
    for size_bytes, growth in sums.values():
        rest[0] -= size_bytes
        rest[1] -= growth
    rows = sorted(sums.items(), key=lambda each: (-each[1][1], -each[1][0], each[0]))
    rows.append(((Kind.NO_PARTITION, ""), rest))
    return Split(
        later.used_bytes,
        whole,
        None if earlier is None else later.read_at - earlier.read_at,
        tuple(
            Part(kind, topic, both[0], None if earlier is None else both[1])
            for (kind, topic), both in rows
        ),
        0 if earlier is None else shrunk,
        placement,
    )


def with_reserve(whole: Split, nbytes: int) -> Split:
    """Show a broker's reserve apart from the other bytes that no partition has.

    A reserve that is being made is not reported yet, so it grows as part of ``NO_PARTITION``.

    Args:
        whole: the volume.
        nbytes: the size of its reserve; 0 for none.
    """
    *others, rest = whole.parts
    if not 0 < nbytes <= rest.size_bytes:
        return whole
    growth = None if rest.growth_bytes is None else 0
    reserve = Part(Kind.RESERVE, "", nbytes, growth)
    left = replace(rest, size_bytes=rest.size_bytes - nbytes)
    return replace(whole, parts=(*others, reserve, left))


def unthrottled(
    now: Split, before: Split | None, total_bytes: int, beside: Iterable[Split] = ()
) -> str:
    """Say that a throttle does not stop most of the growth; "" if it does, or that is not known.

    Growth of no partition counts only as far as partitions did not shrink, and only if it was seen
    twice: a segment that was written and deleted within a minute looks the same once.

    Args:
        now: the volume.
        before: the volume a reading before.
        total_bytes: the size of the volume.
        beside: the broker's other log dirs that may be on the same file system.
    """
    by = now.bytes_per_second
    if by is None or by <= 0 or total_bytes / by > WEEK_S:
        return ""
    grown = sum(max(0, part.growth_bytes or 0) for part in now.parts)
    other = {part: _sure_growth(part, now, before) for part in now.parts if not part.is_throttled}
    rest = now.parts[-1]
    # Partitions of another log dir on the same file system are no partitions of this one.
    other[rest] = max(0, other[rest] - sum(max(0, each.throttled_growth) for each in beside))
    share = sum(other.values()) / grown if grown else 0.0
    if share < SURE:
        return ""
    part = max(other, key=lambda each: other[each])
    return (
        f"Throttling producers does not stop its growth by {size(by)}/s: {100 * share:.0f} % of "
        f"that is not written by producers, most by {part}."
    )


def grows(split_: Split, writers: Mapping[str, tuple[str, ...]]) -> str:
    """Say what grows most: "topic orders … grows by 6.2 MB/s, 71 % of the growth; written by etl".

    Args:
        split_: the volume.
        writers: topic -> the users who write to it, those that write most first.
    """
    part = max(split_.parts, key=lambda each: split_.grown(each) or 0)
    by = split_.rate(split_.grown(part))
    if by is None:
        return ""
    if by < 1.0:
        return "nothing grows there"
    users = writers.get(part.topic, ()) if part.kind in {Kind.LEADER, Kind.TOPIC} else ()
    verb = "grows" if part.kind in {Kind.LEADER, Kind.REPLICA, Kind.TOPIC} else "grow"
    text = f"{part} {verb} by {size(by)}/s, {100 * split_.share(part):.0f} % of the growth"
    if part.kind is Kind.NO_PARTITION and split_.shrunk_bytes:
        text += "; segments were deleted meanwhile, and may count there"
    return f"{text}; written by {', '.join(users)}" if users else text


def _sure_growth(part: Part, now: Split, before: Split | None) -> int:
    growth = max(0, part.growth_bytes or 0)
    if part.kind is not Kind.NO_PARTITION:
        return growth
    last = None if before is None else before.parts[-1].growth_bytes
    if before is None or last is None:
        return 0
    return max(0, min(growth - now.shrunk_bytes, last - before.shrunk_bytes))


def _partitions(reading: LogDirReading | None) -> dict[Partition, tuple[int, bool]]:
    if reading is None:
        return {}
    return {
        (topic, index): (size_bytes, is_copy)
        for topic, replicas in reading.replicas.items()
        for index, size_bytes, is_copy in replicas
    }


def _total(replicas: Iterable[tuple[int, int, bool]]) -> int:
    return sum(size_bytes for _, size_bytes, _ in replicas)


def _led(leader: int | None, broker_id: int) -> Kind:
    if leader is None or leader < 0:
        return Kind.TOPIC
    return Kind.LEADER if leader == broker_id else Kind.REPLICA
