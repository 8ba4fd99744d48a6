"""Of which pass a line is whose time a broker's clock showed twice.

Each autumn clocks of many zones are put back by an hour. A line of 02:30 is then of one of two
hours, and says not of which; the order of the lines does. Between the passes a log steps back:
02:59:59 is followed by 02:00:00. Where a file has no such step, but has lines of before, it went on
into the first pass; where it only has lines of after, it came out of the second. A file that has
neither was all written in one of them: in the second, if it was changed last when its last line
would have been logged then, or not much later; else in the first.

Lines that are logged at the same time by several threads may be out of order by some milliseconds,
so beside the step a line of the last second before it is of the first pass all the same, and one of
the first second after it is of the second.

Example: a file of a whole day in Berlin, 1 GB: a hundred of its lines are looked at to find the
step, and each line of 02:00 to 03:00 from that byte on is an hour later than it seems.
"""

import gzip
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedIOBase
from itertools import pairwise
from typing import Final

import numpy as np

from usage_pipeline.ingest.log_clock import Doubled
from usage_pipeline.kernels.values import Flags, Longs

TimeAt = Callable[[int], int | None]
"""A byte of a file -> what the clock showed, seconds since 1970 as if it were UTC's, when the first
line from there on was logged; None: there is none."""

_NEAR_BYTES: Final = 1 << 14
_NEAR_S: Final = 1
_FEWEST: Final = 64
_MOST: Final = 1024
_EVERY: Final = 1 << 20
"""A line in a mebibyte is looked at, but not so few or so many."""
_CLOCKS_DIFFER_S: Final = 60
_PIECE: Final = 1 << 14
_LOOKED_FOR_TIME: Final = 1 << 22
"""Bytes in which a line with a time is searched."""
_LONGEST_TIME: Final = 40
_TIME: Final = re.compile(rb"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class SecondPass:
    """Which lines of a file are of the second pass.

    Attributes:
        doubled: what the clock shows twice.
        since: they begin at this byte, or later.
        is_step: whether the log steps back there; else it is the file's start or end.
    """

    doubled: Doubled
    since: int
    is_step: bool

    def has(self, offsets: Longs, seconds: Longs) -> Flags:
        """Which of some lines are of the second pass; their times are in ``doubled``.

        Args:
            offsets: where they begin, bytes of the unpacked file.
            seconds: what the clock showed.
        """
        after = offsets >= self.since
        if not self.is_step:
            return np.asarray(after)
        near = np.abs(offsets - self.since) < _NEAR_BYTES
        last = near & (seconds >= self.doubled.end - _NEAR_S)
        first = near & (seconds < self.doubled.start + _NEAR_S)
        return np.asarray((after & ~last) | first)


def second_pass(time_at: TimeAt, size: int, doubled: Doubled, changed: float | None) -> SecondPass:
    """Finds where a file's second pass begins.

    Args:
        time_at: of the file.
        size: of the file, unpacked, bytes.
        doubled: what the clock shows twice; the file has such lines.
        changed: when the file was changed last, seconds since 1970 as if what the clock showed in
            the second pass were UTC's; None: it is not known.
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
    # The line before that which reaches the end begins at the byte before.
    last = time_at(max(begin, end - 1))
    if not goes_in and (comes_out or _is_by_change(last, changed, back_s)):
        return SecondPass(doubled, 0, is_step=False)
    return SecondPass(doubled, size, is_step=False)


def times_of(file: BufferedIOBase, size: int) -> TimeAt:
    """The times of a plain file; its position is moved.

    Raises:
        OSError: later, when it can't be read.
    """

    def time_at(at: int) -> int | None:
        line = 0 if at == 0 else _next_line(file, at - 1, size)
        stop = min(size, line + _LOOKED_FOR_TIME)
        while line < stop:
            file.seek(line)
            time = _time_of(file.read(_LONGEST_TIME))
            if time is not None:
                return time
            line = _next_line(file, line, size)
        return None

    return time_at


def times_of_packed(file: BufferedIOBase) -> tuple[TimeAt, int]:
    """The times of a gzip file, and its size, as far as it can be unpacked; all of it is read."""
    places: list[int] = []
    times: list[int] = []
    size = 0
    try:
        for line in gzip.GzipFile(fileobj=file):
            time = _time_of(line[:_LONGEST_TIME])
            # Of lines of the same second that follow each other the first is noted.
            if time is not None and times[-1:] != [time]:
                places.append(size)
                times.append(time)
            size += len(line)
    except (OSError, EOFError, zlib.error):
        # Its damage is reported by who reads its lines.
        pass

    def time_at(at: int) -> int | None:
        return times[max(0, bisect_right(places, at) - 1)] if times and at < size else None

    return time_at, size


def _step(time_at: TimeAt, begin: int, end: int, back_s: int) -> int | None:
    """Where time steps back by so much between two places; None where it doesn't."""
    pieces = max(_FEWEST, min(_MOST, (end - begin) // _EVERY))
    places = sorted(
        {begin + (end - begin) * number // pieces for number in range(pieces)}
        | {max(begin, end - 1)}
    )
    seen = [(place, time) for place in places if (time := time_at(place)) is not None]
    for (before, earlier), (after, later) in pairwise(seen):
        if later < earlier - back_s:
            # Each time before the step is later than each after it, down to here.
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


def _next_line(file: BufferedIOBase, at: int, size: int) -> int:
    """Where a line begins after the first end of a line from a byte on."""
    while at < size:
        file.seek(at)
        piece = file.read(_PIECE)
        if not piece:
            break
        found = piece.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(piece)
    return size


def _time_of(line: bytes) -> int | None:
    """What the clock showed when a line was logged; None where it doesn't begin with a time."""
    found = _TIME.match(line)
    if found is None:
        return None
    try:
        time = datetime.fromisoformat(found[1].decode())
    except ValueError:
        return None
    return int(time.replace(tzinfo=UTC).timestamp())
