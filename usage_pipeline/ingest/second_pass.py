"""Finds out to which pass a line with a repeated time belongs.

Each autumn, the clocks of many zones are put back by an hour. A line of 02:30 then belongs to one
of two hours. The line itself does not say to which one, but the order of the lines does. Between
the passes the times in a log step back: 02:00:00 follows 02:59:59. If a file has no such step but
has earlier lines, its lines belong to the first pass. If it only has later lines, they belong to
the second pass. A file with neither was written within one pass. It was the second one if the
file's last change fits the last line's time in that pass; otherwise it was the first.

Lines that several threads log at the same time may be out of order by some milliseconds. Next to
the step, a line of the last second before it belongs to the first pass, and a line of the first
second after it belongs to the second pass, wherever they are.

The times are those that ``Layout`` finds. If a collector has put its own time in UTC before each
line, the broker's time in the line counts. Times with an offset are not repeated, and are skipped.

Example: for a file of a whole day in Berlin (1 GB), a hundred lines are read to find the step. From
that byte on, each line of 02:00 to 03:00 is an hour later than its time seems to say.
"""

import gzip
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import pairwise
from typing import Final

import numpy as np

from sidecar.requestlog.layout import Layout
from sidecar.requestlog.line import logged_at
from sidecar.requestlog.rejected import Rejected
from usage_pipeline.ingest.lines import LONGEST_LINE, next_line
from usage_pipeline.ingest.log_clock import Doubled
from usage_pipeline.ingest.rows import local_us
from usage_pipeline.kernels.values import Flags, Longs

TimeAt = Callable[[int], int | None]
"""A position in a file -> the local time of the first line from there on, or None. The time is in
seconds since 1970, as if it were UTC."""

_NEAR_BYTES: Final = 1 << 14
_NEAR_S: Final = 1
_FEWEST: Final = 64
_MOST: Final = 1024
_EVERY: Final = 1 << 20
"""One line per mebibyte is read, within these bounds."""
_CLOCKS_DIFFER_S: Final = 60
_PIECE: Final = 1 << 14
_LOOKED_FOR_TIME: Final = 1 << 22
"""How many bytes are searched for a line with a time."""


@dataclass(frozen=True, slots=True)
class SecondPass:
    """Which lines of a file belong to the second pass.

    Attributes:
        doubled: the range of repeated times.
        since: lines of the second pass begin at this byte or later.
        is_step: whether the times step back there; if not, it is the file's start or end.
    """

    doubled: Doubled
    since: int
    is_step: bool

    def has(self, offsets: Longs, seconds: Longs) -> Flags:
        """Return which of some lines, all with repeated times, belong to the second pass.

        Args:
            offsets: where the lines begin in the uncompressed file.
            seconds: their local times.
        """
        after = offsets >= self.since
        if not self.is_step:
            return np.asarray(after)
        near = np.abs(offsets - self.since) < _NEAR_BYTES
        last = near & (seconds >= self.doubled.end - _NEAR_S)
        first = near & (seconds < self.doubled.start + _NEAR_S)
        return np.asarray((after & ~last) | first)


def second_pass(time_at: TimeAt, size: int, doubled: Doubled, changed: float | None) -> SecondPass:
    """Find where a file's second pass begins.

    Args:
        time_at: returns the time at a position in the file.
        size: the size of the uncompressed file in bytes.
        doubled: the range of repeated times; the file has such lines.
        changed: the local time of the file's last change in the second pass, in seconds since 1970
            as if it were UTC; None if unknown.
    """

    def reaches(second: int) -> Callable[[int], bool]:
        return lambda at: (time := time_at(at)) is None or time >= second

    begin = bisect_left(range(size), True, key=reaches(doubled.start))
    end = bisect_left(range(size), True, key=reaches(doubled.end))
    back_s = (doubled.end - doubled.start) // 2
    step = _step(time_at, begin, end, back_s)
    if step is not None:
        return SecondPass(doubled, step, is_step=True)
    first = time_at(0)
    goes_in = first is not None and first < doubled.start
    comes_out = end < size and time_at(end) is not None
    # The line before the one that reaches the end begins at an earlier byte.
    last = time_at(max(begin, end - 1))
    if not goes_in and (comes_out or _is_by_change(last, changed, back_s)):
        return SecondPass(doubled, 0, is_step=False)
    return SecondPass(doubled, size, is_step=False)


def times_of(file: BufferedIOBase, size: int, pattern: str | None = None) -> TimeAt:
    """Return the function that reads times of a plain file; it moves the file's position.

    Args:
        file: the file.
        size: its size in bytes.
        pattern: as for ``Layout``.

    Raises:
        OSError: raised later, by that function, if the file can't be read.
    """

    def time_at(at: int) -> int | None:
        line = 0 if at == 0 else next_line(file, at - 1, _PIECE)
        stop = min(size, line + _LOOKED_FOR_TIME)
        while line < stop:
            end = min(size, next_line(file, line, _PIECE))
            file.seek(line)
            # A new layout: the pieces of a line can't be joined in whatever order they are read.
            time = _time_of(file.read(min(end - line, LONGEST_LINE)), Layout(pattern))
            if time is not None:
                return time
            line = end
        return None

    return time_at


def times_of_packed(file: BufferedIOBase, pattern: str | None = None) -> tuple[TimeAt, int]:
    """Read a gzip file; return a function for its times, and its size, up to any damage.

    Args:
        file: the file.
        pattern: as for ``Layout``.
    """
    layout = Layout(pattern)
    places: list[int] = []
    times: list[int] = []
    size = 0
    try:
        for line in gzip.GzipFile(fileobj=file):
            time = _time_of(line, layout)
            # Of consecutive lines with the same second, only the first is noted.
            if time is not None and times[-1:] != [time]:
                places.append(size)
                times.append(time)
            size += len(line)
    except (OSError, EOFError, zlib.error):
        # The reader of the lines reports the damage.
        pass

    def time_at(at: int) -> int | None:
        return times[max(0, bisect_right(places, at) - 1)] if times and at < size else None

    return time_at, size


def _step(time_at: TimeAt, begin: int, end: int, back_s: int) -> int | None:
    """Return where the times step back by at least an amount between two positions, or None."""
    pieces = max(_FEWEST, min(_MOST, (end - begin) // _EVERY))
    places = sorted(
        {begin + (end - begin) * number // pieces for number in range(pieces)}
        | {max(begin, end - 1)}
    )
    seen = [(place, time) for place in places if (time := time_at(place)) is not None]
    for (before, earlier), (after, later) in pairwise(seen):
        if later < earlier - back_s:
            # Down to here, each time before the step is later than each time after it.
            return before + bisect_left(
                range(before, after),
                True,
                key=lambda at: (time := time_at(at)) is None or time < earlier - back_s,
            )
    return None


def _is_by_change(last: int | None, changed: float | None, most_s: int) -> bool:
    if last is None or changed is None:
        return False
    return -_CLOCKS_DIFFER_S <= changed - last < most_s


def _time_of(line: bytes, layout: Layout) -> int | None:
    """Return the local time of a request, or None if the line is none, or its time is not local."""
    found = layout.find(line)
    if isinstance(found, Rejected) or not found[0]:
        return None
    try:
        time = logged_at(found[0])
    except ValueError:
        return None
    return None if time.tzinfo is not None else local_us(time) // 1_000_000
