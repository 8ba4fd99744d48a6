"""Plans which records to delete so that no volume reaches its limit: a function of what is known.

Only topics of a declared class are deleted from, in the order of the classes: what the next step
can take of a class is not taken from a later one. A step deletes the oldest records of some
partitions with a replica on one volume. It never deletes at or above the lowest of these offsets of
a partition:

- The high watermark.
- With ``keep_s``: the first record that is younger, by the records' timestamps. It is exact, since
  the broker looks it up.
- With ``keep_bytes``: the newest offset that certainly has that many bytes at or above it
  (``sidecar.throttle.partition_track``). Kafka can't tell bytes between offsets, so this is a lower
  bound from what was seen being written. Until that much was seen, nothing of the partition goes.
- The committed offset of each group, unless the class ignores groups. Kafka reports no time of a
  commit, and forgets the offsets of a group that is empty for a week (offsets.retention.minutes).
  So every group that the cluster lists counts. A group that has committed offsets of the topic, but
  none of this partition, holds all of it.

What is not known counts as "no": unreadable groups, a topic whose configuration can't be read, an
observation that is not whole. Deletion removes whole segments that are older than the active one,
so a partition that would give less than a segment is left alone.

When: a volume is relieved from ``Room.begins_at`` on, and until ``Room.ends_at``. A step is for the
most urgent volume alone. Freeing takes ``settle_s`` (log.retention.check.interval.ms,
file.delete.delay.ms), so the plan begins when the limit is closer than twice that and half a
minute, at the fastest recent growth. Bytes that were deleted count as free until the volume was
read ``settle_s`` later. Sizes of steps are estimates, floors are not: records from before the first
mark of a track count as equally large, so a step may delete many times ``step_bytes`` of larger
ones.

Two sidecars at once: both see what either deleted, since the first offsets moved. So the second one
deletes only what is still needed, and a request with a known offset does nothing twice.

Example: /data of broker 1 has 3.0 GB available, its limit is 2 GB, and it grows by 18 MB/s. Freeing
takes 10 s. So the plan begins at 2 GB + 50 s * 18 MB/s = 2.9 GB, and ends at 3.8 GB.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from sidecar.throttle.partition_track import Track
from sidecar.throttle.sizes import size
from sidecar.volumes import LogDir, Volume

ROUND_S: Final = 10.0
"""The time between two steps."""
MOST_DELETIONS: Final = 100
"""The most partitions in a step."""
MOST_IN_VAIN: Final = 3
"""After this number of reliefs in a row without a gain, something else fills the volume."""
AGAIN_S: Final = 3600.0
"""How long such a volume is left alone then."""
MOST_PARTITIONS: Final = 2500
"""The most partitions that are read. What is known of one takes up to 16 kB of memory, and a
reading of all takes a third of a second of CPU time."""

BEYOND: Final = (
    f"the declared topics have more than {MOST_PARTITIONS:,} partitions, and topics of earlier "
    "classes and names come first"
)
"""Why a topic is left out that is not read."""

NOTHING: Final = -1
"""The committed offset of a group that has committed for the topic, but not for the partition."""


@dataclass(frozen=True, slots=True)
class ReliefClass:
    """Topics from which records may be deleted.

    Attributes:
        topics: patterns of names, as in a shell.
        keep_bytes: the bytes to keep of each partition; None: by time alone.
        keep_s: the age up to which records are kept, seconds; None: by bytes alone.
        ignores_groups: whether records may be deleted that a group has not read.
    """

    topics: tuple[str, ...]
    keep_bytes: int | None = None
    keep_s: float | None = None
    ignores_groups: bool = False

    def has(self, topic: str) -> bool:
        """Whether a topic is in the class; Kafka's own topics never are."""
        return not topic.startswith("__") and any(fnmatchcase(topic, each) for each in self.topics)

    def __str__(self) -> str:
        return ", ".join(self.topics)


@dataclass(frozen=True, slots=True)
class Room:
    """The room on a volume.

    Attributes:
        log_dir: the volume.
        total: its size, bytes.
        available: what is available, bytes.
        threshold: the available bytes at which producers are slowed or throttled.
        growth: the fastest growth of the last minutes, bytes/s, >= 0.
    """

    log_dir: LogDir
    total: int
    available: int
    threshold: float
    growth: float

    def begins_at(self, settle_s: float) -> float:
        """The available bytes from which on it is relieved."""
        return self.threshold + min(self._lead(settle_s), self._above / 4)

    def ends_at(self, settle_s: float) -> float:
        """The available bytes with which a relief ends."""
        return self.threshold + min(2 * self._lead(settle_s), self._above / 2)

    @property
    def volume(self) -> Volume:
        """The volume with its sizes."""
        return Volume(*self.log_dir, self.total, self.available)

    @property
    def _above(self) -> float:
        return max(0.0, self.total - self.threshold)

    def _lead(self, settle_s: float) -> float:
        return max(self.growth * (2 * settle_s + 3 * ROUND_S), self._above / 50)


@dataclass(frozen=True, slots=True)
class Expendable:
    """A partition of a declared class.

    Attributes:
        topic: its topic.
        index: its index.
        leader: the broker to which deletions are sent.
        homes: the volumes with a replica.
        track: what was seen of it.
        segment_bytes: the topic's segment.bytes.
        young_from: the first record that is younger than the class's ``keep_s``; its end if none
            is; None if that is not known, or the class has no ``keep_s``.
        commits: group -> its committed offset, or ``NOTHING``.
    """

    topic: str
    index: int
    leader: int
    homes: frozenset[LogDir]
    track: Track
    segment_bytes: int
    young_from: int | None = None
    commits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """All that a plan depends on.

    Attributes:
        rooms: all volumes.
        partitions: the partitions of declared classes that may be deleted from.
        classes: the classes in their order.
        settle_s: how long freeing takes, seconds.
        step_bytes: the most bytes of a step, by estimate.
        refusal: why nothing may be deleted at all; "" if it may.
        pending: volume -> about how many bytes were deleted there that may not be free yet, also
            of partitions that may not be deleted from now.
        groups_unknown: why the groups' offsets are not known; "" if they are.
        relieving: the volumes that were relieved less than ``settle_s`` ago.
        in_vain: volumes that were relieved ``MOST_IN_VAIN`` times without a gain.
        left_out: topic -> why it is left out, though it is declared.
    """

    rooms: Sequence[Room]
    partitions: Sequence[Expendable]
    classes: Sequence[ReliefClass]
    settle_s: float
    step_bytes: int
    refusal: str = ""
    pending: Mapping[LogDir, float] = field(default_factory=dict)
    groups_unknown: str = ""
    relieving: frozenset[LogDir] = frozenset()
    in_vain: frozenset[LogDir] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deletion:
    """Records of a partition to delete: those from ``start`` to below ``to``."""

    topic: str
    index: int
    leader: int
    start: int
    to: int
    about_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The next step, or why there is none.

    Attributes:
        room: the volume that needs room most; None if none does.
        deletions: what to delete; empty if nothing may or must go.
        why: the reason for the step, or for its absence, one sentence.
        is_short: whether a volume needs room and nothing may go.
    """

    room: Room | None
    deletions: tuple[Deletion, ...]
    why: str
    is_short: bool = False


def plan(view: View) -> Plan:
    """The next step."""
    needing = _needing(view)
    if not needing:
        return Plan(None, (), "no volume needs room")
    if view.refusal:
        return Plan(needing[0], (), view.refusal, is_short=True)
    reasons: list[str] = []
    for room in needing:
        if room.log_dir in view.in_vain:
            text = f"{_name(room.log_dir)} was relieved {MOST_IN_VAIN} times without gaining space"
            reasons.append(f"{text}: something else fills it")
            continue
        deletions, holds = _step(room, view)
        if deletions:
            left = size(round(room.available))
            text = f"{_name(room.log_dir)} has {left} available and is relieved from "
            text += f"{size(round(room.begins_at(view.settle_s)))} on"
            return Plan(room, deletions, text)
        reasons.append(f"nothing may go from {_name(room.log_dir)}: {'; '.join(holds)}")
    return Plan(needing[0], (), reasons[0], is_short=True)


def deletable_to(
    partition: Expendable, declared: ReliefClass, groups_unknown: str
) -> tuple[int, str]:
    """The offset up to which a partition may be deleted, and what holds the rest."""
    return min(_bounds(partition, declared, groups_unknown))


def pending(room: Room, view: View) -> float:
    """About how many bytes were deleted on a file system and may not be free yet."""
    here = (each for each in view.rooms if room.volume.may_share(each.volume))
    return sum(view.pending.get(each.log_dir, 0.0) for each in here)


def _needing(view: View) -> list[Room]:
    """The volumes that need room, the most urgent first."""
    needing: list[tuple[float, Room]] = []
    for room in view.rooms:
        is_going_on = room.log_dir in view.relieving
        until = (room.ends_at if is_going_on else room.begins_at)(view.settle_s)
        projected = room.available + pending(room, view)
        # Where even an empty volume violates the limit, no deletion helps.
        if projected < until and room.threshold < room.total:
            needing.append(((projected - room.threshold) / max(room.growth, 1.0), room))
    return [room for _, room in sorted(needing, key=lambda each: each[0])]


def _step(room: Room, view: View) -> tuple[tuple[Deletion, ...], list[str]]:
    projected = room.available + pending(room, view)
    left = min(float(view.step_bytes), room.ends_at(view.settle_s) - projected)
    # A step is at least one segment, since less frees nothing.
    most = float(view.step_bytes)
    deletions: list[Deletion] = []
    # Topics beyond the limit would hide the others' reasons, and may be on other volumes.
    holds = {topic: f"{topic}: {why}" for topic, why in view.left_out.items() if why != BEYOND}
    here = [each for each in view.partitions if room.log_dir in each.homes]
    is_full = False
    for declared in view.classes:
        if is_full:
            # The next step goes on with the class before; a later one has to wait for it.
            break
        mine = [each for each in here if class_of(each.topic, view.classes) is declared]
        limits = [(deletable_to(each, declared, view.groups_unknown), each) for each in mine]
        by_bytes = [(each.track.about(to), to, why, each) for (to, why), each in limits]
        for offered, to, why, each in sorted(by_bytes, key=lambda entry: -entry[0]):
            start = each.track.last.start
            take = min(max(left, each.segment_bytes), most, offered)
            if take < each.segment_bytes or to <= start:
                too_large = each.segment_bytes > view.step_bytes
                is_full |= not too_large and to > start and offered >= each.segment_bytes
                text = "its segments are larger than a step" if too_large else why
                holds.setdefault(each.topic, f"{each.topic}: {text}")
                continue
            if left <= 0 or len(deletions) == MOST_DELETIONS:
                break
            target = min(to, each.track.offset_of(take))
            about = round(each.track.about(target))
            if target > start:
                deletions.append(
                    Deletion(each.topic, each.index, each.leader, start, target, about)
                )
                left, most = left - about, most - about
    return tuple(deletions), sorted(holds.values())[:3] or ["no declared topic is there"]


def _bounds(
    partition: Expendable, declared: ReliefClass, groups_unknown: str
) -> Iterator[tuple[int, str]]:
    last = partition.track.last
    yield last.end, "all of it may go, but that is less than a segment"
    if declared.keep_s is not None:
        if partition.young_from is None:
            yield last.start, "the age of its records is not known"
        else:
            yield partition.young_from, f"its records of the last {declared.keep_s:.0f} s are kept"
    if declared.keep_bytes is not None:
        kept = partition.track.kept_from(declared.keep_bytes)
        if kept is None:
            text = (
                f"{size(declared.keep_bytes)} were not seen being written since the sidecar or the "
            )
            yield last.start, f"{text}leader of a partition started"
        else:
            yield kept, f"{size(declared.keep_bytes)} of each partition are kept"
    if declared.ignores_groups:
        return
    if groups_unknown:
        yield last.start, groups_unknown
    for group, offset in partition.commits.items():
        yield max(offset, last.start), f"group {group} has read no further"


def class_of(topic: str, classes: Iterable[ReliefClass]) -> ReliefClass | None:
    """The first class that has a topic; None if none has."""
    return next((each for each in classes if each.has(topic)), None)


def matching(
    partitions: Mapping[str, int], classes: Sequence[ReliefClass]
) -> tuple[list[str], list[str]]:
    """The topics that some class has: those to read, and those beyond ``MOST_PARTITIONS``.

    Args:
        partitions: topic -> the number of its partitions.
        classes: the classes; topics of the first class come first, and those of a class by name.
    """
    declared = [
        (classes.index(each), topic)
        for topic in partitions
        if (each := class_of(topic, classes)) is not None
    ]
    read: list[str] = []
    beyond: list[str] = []
    left = MOST_PARTITIONS
    for _, topic in sorted(declared):
        if partitions[topic] <= left:
            left -= partitions[topic]
            read.append(topic)
        else:
            beyond.append(topic)
    return read, beyond


def left_out_order(entry: tuple[str, str]) -> tuple[bool, str]:
    """Sort topics that are left out: those beyond ``MOST_PARTITIONS`` last."""
    topic, why = entry
    return why == BEYOND, topic


def _name(log_dir: LogDir) -> str:
    broker_id, path = log_dir
    return f"{path} of broker {broker_id}"
