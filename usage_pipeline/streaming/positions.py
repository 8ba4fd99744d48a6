"""Which lines and files of logs a stream has taken, so that what comes again is not taken twice.

A rotated file may come again under another name, as when it is packed. It is known by how it
begins (``file_head``) and how long it is; so many files are remembered.

A shipper that was killed begins again at its last checkpoint, and Kafka has lines twice. A message
that says where its line is, the file and the offset, is known by that (``kafka_source``). Rotation
uses a file's name again, so its lines are taken in stretches: in a stretch offsets rise, and times
with them. A line is sent again if a stretch has its offset and, at that offset, its time. A new
file's lines have old offsets but later times, so they are none of the old file's, whether its first
line was seen or not, and while the end of the old file still comes between them.

A line is never dropped for being late alone: bytes that were passed over are gaps of the stretch,
and a line in a gap is new. Memory is bounded: of a broker in a partition so many stretches, of a
stretch so many gaps. A line whose stretch is forgotten is new too: of the two faults, a line twice
is the lesser.

Lines of one moment may be logged in another order than they were stamped, by a second at most. A
clock that is put back further begins a stretch; so far back that a file written then has the times
of the one before at the same offsets, its lines would be taken for that one's.

Example: ``kafka-request.log`` was taken to offset 9,000 at 10:59:59. Offset 4,000 of 10:30 is sent
again; offset 0 of 11:00 is the next file's, and offset 4,000 of 11:20 too; 9,300 of 10:59 is the
end of the old one. Offset 8,500 is new if nothing between 8,400 and 8,700 has come so far.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
import numpy as np

from usage_pipeline.ingest.file_head import Head
from usage_pipeline.kernels.values import Flags, Longs

NO_TIME: Final = np.iinfo(np.int64).min
"""Of a line that can't be read."""
_NOWHERE: Final = np.iinfo(np.int64).max
"""An offset that no line has."""
_DISORDER_US: Final = 1_000_000
_STRETCHES: Final = 16
"""Of a broker in a partition: files that were rotated so many times ago are forgotten."""
_GAPS: Final = 64
_MARKS: Final = 8
_STEP: Final = 1 << 16
_FILES: Final = 10_000
"""So many are remembered, 40 bytes each: four days of 100 brokers that rotate by the hour."""
_LOG: Final = re.compile(r"(.*/[^/]*?\.log)\.[^/]*")


class Lines(NamedTuple):
    """Lines in the order in which they came.

    Attributes:
        offsets: of their first bytes in their file.
        ends: where the lines after them begin.
        times: when they were logged, microseconds since 1970, or ``NO_TIME``.
    """

    offsets: Longs
    ends: Longs
    times: Longs

    def at(self, which: Longs | slice) -> "Lines":
        """Some of them."""
        return Lines(self.offsets[which], self.ends[which], self.times[which])


def log_of(path: str) -> str:
    """A log's name, which its files share: what rotation has put behind ``.log`` is no part of it.

    Example: ``/logs/kafka-request.log.2026-11-20-10`` is of ``/logs/kafka-request.log``.
    """
    found = _LOG.fullmatch(path)
    return found[1] if found else path


class Stretch(msgspec.Struct):
    """Lines of a log at rising offsets that were taken.

    Attributes:
        log: whose they are.
        marks: the first line and some others, ascending: offset, and the latest time so far.
        last: the last line, likewise.
        end: where the line after it begins.
        step: bytes from mark to mark, at least.
        gaps: the last of those between lines: from, to.
    """

    log: str
    marks: list[tuple[int, int]]
    last: tuple[int, int]
    end: int
    step: int = _STEP
    gaps: list[tuple[int, int]] = []

    @classmethod
    def begun(cls, log: str, lines: Lines) -> "Stretch":
        """With the first of some lines."""
        first = (int(lines.offsets[0]), int(lines.times[0]))
        return cls(log, [first], first, int(lines.ends[0]))

    def spans(self, lines: Lines) -> Flags:
        """Which lines are where and when this stretch is: taken, or in one of its gaps."""
        offsets, times = np.array([*self.marks, self.last]).T
        before = np.searchsorted(offsets, lines.offsets, side="right") - 1
        after = np.searchsorted(offsets, lines.offsets)
        inside = (before >= 0) & (after < len(offsets))
        earliest = times[before] - _DISORDER_US
        latest = times[np.minimum(after, len(offsets) - 1)]
        return np.asarray(inside & (earliest <= lines.times) & (lines.times <= latest))

    def lacks(self, lines: Lines) -> Flags:
        """Which lines of those it spans are in its gaps."""
        if not self.gaps:
            return np.zeros(len(lines.offsets), np.bool_)
        begins, ends = np.array(self.gaps).T
        gap = np.searchsorted(begins, lines.offsets, side="right") - 1
        return np.asarray((gap >= 0) & (lines.offsets < ends[gap]))

    def goes_on_with(self, lines: Lines) -> bool:
        """Whether all of some lines, whose offsets rise, come after it."""
        latest = np.maximum.accumulate(np.concatenate(([self.last[1]], lines.times[:-1])))
        return bool(
            lines.offsets[0] > self.last[0] and (lines.times >= latest - _DISORDER_US).all()
        )

    def is_met_by(self, lines: Lines) -> bool:
        """Whether one of some lines that begin before its end would come after it."""
        at = int(np.searchsorted(lines.offsets, self.last[0], side="right"))
        return 0 < at < len(lines.offsets) and self.goes_on_with(lines.at(slice(at, at + 1)))

    def add(self, lines: Lines) -> None:
        """Lines with which it goes on."""
        latest = np.maximum.accumulate(np.concatenate(([self.last[1]], lines.times)))[1:]
        before = np.concatenate(([self.end], lines.ends[:-1]))
        passed = lines.offsets > before
        gaps = zip(before[passed].tolist(), lines.offsets[passed].tolist(), strict=True)
        self.gaps = [*self.gaps, *gaps][-_GAPS:]
        while (at := int(np.searchsorted(lines.offsets, self.marks[-1][0] + self.step))) < len(
            latest
        ):
            self.marks.append((int(lines.offsets[at]), int(latest[at])))
            if len(self.marks) > _MARKS:
                self.marks, self.step = self.marks[::2], self.step * 2
        self.last = (int(lines.offsets[-1]), int(latest[-1]))
        self.end = int(lines.ends[-1])

    def fill(self, lines: Lines) -> None:
        """A line in one of its gaps."""
        offset, end = int(lines.offsets[0]), int(lines.ends[0])
        left = []
        for begins, ends in self.gaps:
            if begins <= offset < ends:
                left += [(begins, offset), (min(end, ends), ends)]
            else:
                left.append((begins, ends))
        self.gaps = [gap for gap in left if gap[0] < gap[1]][-_GAPS:]


class State(msgspec.Struct):
    """What was taken.

    Attributes:
        lines: by partition and broker; a broker's stretches as they were last used.
        files: by broker, size and beginning; in the order in which they were taken.
    """

    lines: dict[str, list[Stretch]] = {}
    files: list[str] = []


class Positions:
    """What was taken before a batch, to which a task adds what it takes."""

    def __init__(self, state: State) -> None:
        """With what was taken before, which is changed."""
        self.resent = 0
        """Lines or files that were taken before."""
        self._lines = state.lines
        self._changed: set[str] = set()
        self._files = set(state.files)
        self._new_files: list[str] = []

    def changed(self) -> State:
        """What has changed: of the partitions and files that the task has."""
        lines = {source: self._lines[source] for source in sorted(self._changed)}
        return State(lines, self._new_files)

    def is_new(self, broker: int, head: Head, size: int) -> bool:
        """Whether a file of so many bytes was not taken so far; now it is."""
        name = f"{broker} {size} {head.length}:{head.digest}"
        if name in self._files:
            self.resent += 1
            return False
        self._files.add(name)
        self._new_files.append(name)
        return True

    def are_new(self, source: str, log: str, lines: Lines) -> Flags:
        """Which of some lines were not taken so far; now they are.

        Args:
            source: partition and broker.
            log: whose lines they are.
            lines: in the order in which they came.
        """
        known = self._lines.setdefault(source, [])
        self._changed.add(source)
        found = _taken(known, log, lines._replace(times=_timed(lines, known, log)))
        self.resent += int(np.count_nonzero(~found))
        return found


def merged(before: State, changes: Iterable[State]) -> State:
    """What was taken after a batch, whose tasks have had different partitions and files."""
    lines, files = dict(before.lines), list(before.files)
    for change in changes:
        lines |= change.lines
        files += change.files
    return State(lines, files[-_FILES:])


def _timed(lines: Lines, known: list[Stretch], log: str) -> Longs:
    """A line that can't be read has the time of the one that ends where it begins.

    So it has the same one when it is sent again. The first of those from which a shipper begins
    again has the time of the next one, and of the last one that was taken if it is that.
    """
    if (lines.times != NO_TIME).all():
        return lines.times
    latest = next((each for each in reversed(known) if each.log == log), None)
    offset, time, end = (_NOWHERE, 0, _NOWHERE) if latest is None else (*latest.last, latest.end)
    offsets = np.concatenate(([offset], lines.offsets))
    times = np.concatenate(([time], lines.times))
    ends = np.concatenate(([end], lines.ends[:-1]))
    begins = (lines.offsets != ends) & (lines.offsets != offsets[:-1])
    run = np.concatenate(([0], np.cumsum(begins)))
    has = np.flatnonzero(times != NO_TIME)
    at = np.arange(len(times))
    before = has[np.searchsorted(has, at, side="right") - 1]
    after = has[np.minimum(np.searchsorted(has, at), len(has) - 1)]
    # Where some lines are not sent none may be the next: then the order of the offsets says it.
    is_last = (run[after] != run) & (offsets[before] < offsets) & (offsets[after] < offsets)
    return np.asarray(times[np.where((run[before] == run) | is_last, before, after)][1:])


def _taken(known: list[Stretch], log: str, lines: Lines) -> Flags:
    """Halves lines until all of a part have one answer: mostly they have it at once."""
    count = len(lines.offsets)
    answer = _taken_at_once(known, log, lines)
    if answer is not None:
        return np.full(count, answer)
    parts = (slice(0, count // 2), slice(count // 2, count))
    return np.concatenate([_taken(known, log, lines.at(part)) for part in parts])


def _taken_at_once(known: list[Stretch], log: str, lines: Lines) -> bool | None:
    """The answer for lines that have one, as a single line has; None for others."""
    of_log = [each for each in known if each.log == log]
    is_one = len(lines.offsets) == 1
    for stretch in of_log:
        again = stretch.spans(lines) & ~stretch.lacks(lines)
        if again.all():
            _use(known, stretch)
            return False
        if again.any():
            return None
    for stretch in of_log:
        if stretch.spans(lines).any():
            if not is_one:
                return None
            stretch.fill(lines)
            _use(known, stretch)
            return True
    if not is_one and not (np.diff(lines.offsets) > 0).all():
        return None
    return _gone_on(known, of_log, log, lines)


def _gone_on(known: list[Stretch], of_log: list[Stretch], log: str, lines: Lines) -> bool | None:
    """With new lines: a stretch that they come after, with the least gap, or one that begins."""
    first = lines.at(slice(0, 1))
    fitting = [each for each in of_log if each.goes_on_with(first)]
    if fitting:
        stretch, rest = max(fitting, key=lambda each: each.last[0]), lines
    else:
        stretch, rest = Stretch.begun(log, lines), lines.at(slice(1, None))
    if len(rest.offsets):
        others = (each for each in of_log if each is not stretch)
        if not stretch.goes_on_with(rest) or any(each.is_met_by(rest) for each in others):
            return None
        stretch.add(rest)
    _use(known, stretch)
    return True


def _use(known: list[Stretch], stretch: Stretch) -> None:
    known[:] = [each for each in known if each is not stretch]
    known.append(stretch)
    del known[:-_STRETCHES]
