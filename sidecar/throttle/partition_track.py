"""How many bytes of a partition come after an offset, by what was seen of it.

Kafka has no request for the bytes between two offsets, and records differ in size. But a sidecar
that reads a partition repeatedly sees its log grow. Each reading has the high watermark E first,
and then the size S of the leader's log. At that time the log had all records below E, so these were
at most S bytes. Whatever the log grew by later was written at E or above:

    bytes at or above E  >=  the sum of all increases of S since that reading.

Retention makes S smaller. It takes only the oldest records, and a decrease is not counted, so the
bound holds. It does not hold if records in the middle vanish. So it begins anew with a new leader,
leader epoch or topic id, if an end goes back (an unclean election), and after a reading that lacks
the partition, or finds that its topic is compacted (``Track.interrupted``). So the bound is exact,
on the safe side, and needs no guess about sizes of records. A sidecar that has just started knows
no bound yet.

What was deleted outlives all this except another topic id: it may still be on disk.

``about`` is an estimate for everything else: the same curve, and below its first mark the mean size
of the rest.

Example: at offset 1,000 the log has 50 MB. Later it has 80 MB at offset 1,200, then 60 MB after
retention, then 90 MB at offset 1,500. At or above offset 1,000 there are at least 60 MB.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Final

MOST_MARKS: Final = 128
"""The most marks of a partition. If there are more, every second one of the older half goes."""
MOST_APART_S: Final = 120.0
"""After a longer time without a reading, no bound holds: the topic may have been compacted."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A reading of a partition.

    Attributes:
        at: steady seconds.
        lineage: topic id, leader and leader epoch. Another one makes earlier sizes meaningless.
        start: the first offset.
        end: the high watermark, read before the size.
        size: the size of the leader's log, bytes.
    """

    at: float
    lineage: tuple[bytes, int, int]
    start: int
    end: int
    size: int

    @property
    def topic_id(self) -> str:
        """The topic's id, as text."""
        return self.lineage[0].hex()


@dataclass(frozen=True, slots=True)
class Mark:
    """The high watermark at a reading, and the increases of the size until then, bytes."""

    end: int
    increases: int


@dataclass(frozen=True, slots=True)
class Track:
    """A partition since it was first seen.

    Attributes:
        last: the last reading.
        increases: the sum of all increases of the size.
        marks: earlier readings since it has its leader, oldest first, and the last one.
        moves: when the first offset moved, steady seconds, and about how many bytes were below it.
        unremoved: about how many of these bytes are still in the size.
    """

    last: Sight
    increases: int = 0
    marks: tuple[Mark, ...] = ()
    moves: tuple[tuple[float, float], ...] = ()
    unremoved: float = 0.0

    @property
    def pending_bytes(self) -> float:
        """About how much was deleted but may still be on disk."""
        return sum(nbytes for _, nbytes in self.moves)

    def interrupted(self, now: float, pending_s: float) -> "Track":
        """The track when a reading lacks the partition, so that the next one begins anew."""
        moves = _pending(self.moves, now, pending_s)
        last = replace(self.last, lineage=(self.last.lineage[0], -1, -1))
        return replace(self, last=last, moves=moves)

    def kept_from(self, nbytes: int) -> int | None:
        """The newest offset that certainly has that many bytes at or above it; None: not known."""
        enough = (
            mark for mark in reversed(self.marks) if self.increases - mark.increases >= nbytes
        )
        return next((mark.end for mark in enough), None)

    def about(self, offset: int) -> float:
        """About how many bytes are below an offset."""
        offsets, sizes = self._curve()
        return _between(offset, offsets, sizes)

    def offset_of(self, nbytes: float) -> int:
        """The offset that about this many bytes are below, not more."""
        offsets, sizes = self._curve()
        return int(_between(nbytes, sizes, offsets))

    def _curve(self) -> tuple[list[float], list[float]]:
        last = self.last
        live = max(0.0, last.size - self.unremoved)
        offsets, sizes = [float(last.start)], [0.0]
        for mark in (*self.marks, Mark(last.end, self.increases)):
            if mark.end > offsets[-1]:
                offsets.append(float(mark.end))
                sizes.append(max(sizes[-1], live - (self.increases - mark.increases)))
        return offsets, sizes


def next_track(track: Track | None, sight: Sight, pending_s: float) -> Track:
    """The track after one more reading; ``pending_s``: how long deleted bytes stay on disk."""
    if track is None or sight.lineage[0] != track.last.lineage[0]:
        return Track(sight, marks=(Mark(sight.end, 0),))
    moves = _pending(track.moves, sight.at, pending_s)
    moved = 0.0
    if sight.start > track.last.start:
        moved = track.about(sight.start)
        moves = (*moves, (sight.at, moved))
    removed = max(0, track.last.size - sight.size)
    unremoved = max(0.0, track.unremoved + moved - removed) if moves else 0.0
    if (
        sight.lineage != track.last.lineage
        or sight.end < track.last.end
        or sight.start < track.last.start
        or sight.at > track.last.at + MOST_APART_S
    ):
        first = Mark(sight.end, track.increases)
        return Track(sight, track.increases, (first,), moves, unremoved)
    increases = track.increases + max(0, sight.size - track.last.size)
    marks = track.marks
    if sight.end > marks[-1].end:
        marks = (*marks, Mark(sight.end, increases))
    if len(marks) > MOST_MARKS:
        half = MOST_MARKS // 2
        marks = (*marks[:half:2], *marks[half:])
    return Track(sight, increases, marks, moves, unremoved)


def _pending(
    moves: tuple[tuple[float, float], ...], now: float, pending_s: float
) -> tuple[tuple[float, float], ...]:
    return tuple(move for move in moves if move[0] >= now - pending_s)


def _between(value: float, xs: list[float], ys: list[float]) -> float:
    """The y at an x of a curve that never falls; the first or last one outside of it."""
    at = bisect_left(xs, value)
    if at == 0:
        return ys[0]
    if at == len(xs):
        return ys[-1]
    share = (value - xs[at - 1]) / (xs[at] - xs[at - 1])
    return ys[at - 1] + share * (ys[at] - ys[at - 1])
