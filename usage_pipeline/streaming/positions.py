"""The lines and files that a stream has read, so that it reads none of them twice.

A rotated file may appear again under another name, for example after compression. It is recognized
by its beginning (``file_head``) and its length. The number of remembered files is limited.

After a crash, a shipper starts again from its last checkpoint, so Kafka has some lines twice. A
message that states its line's file and offset is recognized by this position (``kafka_source``).
Rotation uses a file's name again, so lines are remembered in stretches. Within a stretch, offsets
rise and times rise with them. A line was sent again if a stretch contains its offset and, at that
offset, its time. The lines of a new file have old offsets but later times, so they never belong to
the old file. This holds even if the new file's first line is missing, or if lines from the end of
the old file arrive between the new ones.

A line is never dropped only because it is late. Bytes that were skipped are gaps of the stretch,
and a line in a gap is new. Memory is bounded: there are limits for the stretches of a broker in a
partition, and for the gaps of a stretch. A line whose stretch was forgotten counts as new, because
reading a line twice is better than losing it.

Lines may be out of order by at most one second. If the clock is put back further, a new stretch
begins. If it is put back so far that a file gets the same times at the same offsets as the file
before it, its lines are taken for those of the earlier file.

Example: ``kafka-request.log`` was read to offset 9,000 at 10:59:59. Offset 4,000 of 10:30 was sent
again. Offset 0 of 11:00 belongs to the next file, and so does offset 4,000 of 11:20. Offset 9,300
of 10:59 is the end of the old file. Offset 8,500 is new if no line between 8,400 and 8,700 has
arrived yet.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
import numpy as np

from usage_pipeline.ingest.file_head import Head
from usage_pipeline.kernels.values import Flags, Longs

NO_TIME: Final = np.iinfo(np.int64).min
"""The time of a line that can't be read."""
_NOWHERE: Final = np.iinfo(np.int64).max
"""An offset that no line has."""
_DISORDER_US: Final = 1_000_000
_STRETCHES: Final = 16
"""The limit for a broker in a partition; a file is forgotten after this number of rotations."""
_GAPS: Final = 64
_MARKS: Final = 8
_STEP: Final = 1 << 16
_FILES: Final = 10_000
"""The limit of remembered files, 40 bytes each: four days of 100 brokers that rotate hourly."""
_LOG: Final = re.compile(r"(.*/[^/]*?\.log)\.[^/]*")


class Lines(NamedTuple):
    """Lines in the order of their arrival.

    Attributes:
        offsets: the offsets of the lines' first bytes in their file.
        ends: the offsets at which the next lines begin.
        times: when the lines were logged, in microseconds since 1970, or ``NO_TIME``.
    """

    offsets: Longs
    ends: Longs
    times: Longs

    def at(self, which: Longs | slice) -> "Lines":
        """Return some of the lines."""
        return Lines(self.offsets[which], self.ends[which], self.times[which])


def log_of(path: str) -> str:
    """Return the name that all files of a log share, without what rotation appends to ``.log``.

    Example: ``/logs/kafka-request.log.2026-11-20-10`` belongs to ``/logs/kafka-request.log``.
    """
    match = _LOG.fullmatch(path)
    return match[1] if match else path


class Stretch(msgspec.Struct):
    """Lines of a log that were read, at rising offsets.

    Attributes:
        log: the log's name.
        marks: the first line and some others, ascending: the offset, and the latest time so far.
        last: the last line, in the same form.
        end: the offset at which the next line begins.
        step: the smallest distance between marks, in bytes.
        gaps: the last gaps between lines, as pairs of offsets.
    """

    log: str
    marks: list[tuple[int, int]]
    last: tuple[int, int]
    end: int
    step: int = _STEP
    gaps: list[tuple[int, int]] = []

    @classmethod
    def begun(cls, log: str, lines: Lines) -> "Stretch":
        """Begin a stretch with the first line."""
        first = (int(lines.offsets[0]), int(lines.times[0]))
        return cls(log, [first], first, int(lines.ends[0]))

    def spans(self, lines: Lines) -> Flags:
        """Return which lines are within this stretch: they were read, or are in one of its gaps."""
        offsets, times = np.array([*self.marks, self.last]).T
        before = np.searchsorted(offsets, lines.offsets, side="right") - 1
        after = np.searchsorted(offsets, lines.offsets)
        inside = (before >= 0) & (after < len(offsets))
        earliest = times[before] - _DISORDER_US
        latest = times[np.minimum(after, len(offsets) - 1)]
        return np.asarray(inside & (earliest <= lines.times) & (lines.times <= latest))

    def lacks(self, lines: Lines) -> Flags:
        """Return which lines are in gaps, for lines within the stretch."""
        if not self.gaps:
            return np.zeros(len(lines.offsets), np.bool_)
        begins, ends = np.array(self.gaps).T
        gap = np.searchsorted(begins, lines.offsets, side="right") - 1
        return np.asarray((gap >= 0) & (lines.offsets < ends[gap]))

    def goes_on_with(self, lines: Lines) -> bool:
        """Return whether lines with rising offsets continue this stretch."""
        latest = np.maximum.accumulate(np.concatenate(([self.last[1]], lines.times[:-1])))
        return bool(
            lines.offsets[0] > self.last[0] and (lines.times >= latest - _DISORDER_US).all()
        )

    def is_met_by(self, lines: Lines) -> bool:
        """Return whether lines begin before the stretch's end, and a later line continues it."""
        at = int(np.searchsorted(lines.offsets, self.last[0], side="right"))
        return 0 < at < len(lines.offsets) and self.goes_on_with(lines.at(slice(at, at + 1)))

    def add(self, lines: Lines) -> None:
        """Add lines that continue the stretch."""
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
        """Remove a line from the gap that contains it."""
        offset, end = int(lines.offsets[0]), int(lines.ends[0])
        left = []
        for begins, ends in self.gaps:
            if begins <= offset < ends:
                left += [(begins, offset), (min(end, ends), ends)]
            else:
                left.append((begins, ends))
        self.gaps = [gap for gap in left if gap[0] < gap[1]][-_GAPS:]


class State(msgspec.Struct):
    """The lines and files that were read.

    Attributes:
        lines: stretches by partition and broker, in the order of their last use.
        files: the broker, size and beginning of each file, in the order of reading.
    """

    lines: dict[str, list[Stretch]] = {}
    files: list[str] = []


class Positions:
    """The lines and files that were read before a batch, to which a task adds its own."""

    def __init__(self, state: State) -> None:
        """Start from the state before the batch; the state is changed."""
        self.resent = 0
        """The number of lines or files that were left out, because they were read before."""
        self._lines = state.lines
        self._changed: set[str] = set()
        self._files = set(state.files)
        self._new_files: list[str] = []

    def changed(self) -> State:
        """Return the changes, for the partitions and files of this task."""
        lines = {source: self._lines[source] for source in sorted(self._changed)}
        return State(lines, self._new_files)

    def is_new(self, broker: int, head: Head, size: int) -> bool:
        """Return whether a file of this size was not read before, and remember it."""
        name = f"{broker} {size} {head.length}:{head.digest}"
        if name in self._files:
            self.resent += 1
            return False
        self._files.add(name)
        self._new_files.append(name)
        return True

    def are_new(self, source: str, log: str, lines: Lines) -> Flags:
        """Return which lines were not read before, and remember them.

        Args:
            source: the partition and the broker.
            log: the name of the lines' log.
            lines: the lines in the order of their arrival.
        """
        known = self._lines.setdefault(source, [])
        self._changed.add(source)
        new = _taken(known, log, lines._replace(times=_timed(lines, known, log)))
        self.resent += int(np.count_nonzero(~new))
        return new


def merged(before: State, changes: Iterable[State]) -> State:
    """Return the state after a batch; its tasks had different partitions and files."""
    lines, files = dict(before.lines), list(before.files)
    for change in changes:
        lines |= change.lines
        files += change.files
    return State(lines, files[-_FILES:])


def _timed(lines: Lines, known: list[Stretch], log: str) -> Longs:
    """Return the times, where a line that can't be read gets the time of the line before it.

    The line before it is the one that ends where this line begins, so the time is the same when the
    line is sent again. The first line after a shipper's restart gets the time of the next line,
    or the time of the last line that was read if it is that line.
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
    # The line before or after it may not have been sent. Then the order of the offsets decides.
    is_last = (run[after] != run) & (offsets[before] < offsets) & (offsets[after] < offsets)
    return np.asarray(times[np.where((run[before] == run) | is_last, before, after)][1:])


def _taken(known: list[Stretch], log: str, lines: Lines) -> Flags:
    """Halve the lines until each part has a single answer; mostly, all lines have the same one."""
    count = len(lines.offsets)
    answer = _taken_at_once(known, log, lines)
    if answer is not None:
        return np.full(count, answer)
    parts = (slice(0, count // 2), slice(count // 2, count))
    return np.concatenate([_taken(known, log, lines.at(part)) for part in parts])


def _taken_at_once(known: list[Stretch], log: str, lines: Lines) -> bool | None:
    """Return the answer for lines that have a single one, as one line has; None for others."""
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
    """Add new lines to the stretch that they continue with the smallest gap, or begin a stretch."""
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
