"""How far to read each of many growing logs, so that none runs ahead of the others in time.

Spark's watermark is the latest time seen in any log: rows of a log that is read later are dropped
as late. So each batch has a time T, and every log is read up to its last line of T or before. T is
as late as the number of bytes allowed for a batch lets it be: each log that has lines before T gets
an equal share, and the first whose share is used up sets T.

Logs are nearly sorted by time, so the line that follows T is found by halving.

Example: 20 MB a batch of two logs, one of 100 MB an hour and one of 10, both from 10:00: a share is
10 MB, which is 6 minutes of the first. T is 10:06, and the second is read up to it, 1 MB. A third
log that starts at 11:00 waits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Timed(Protocol):
    """A log's lines, by where they begin."""

    def line_from(self, at: int, end: int) -> int:
        """Where the first line begins that begins at this byte or later; ``end`` if none does."""
        ...

    def time_ms(self, at: int, end: int) -> int | None:
        """When the first line was logged that begins at this byte or later and has a time.

        Returns:
            Milliseconds since 1970, UTC; None when no line before ``end`` has one.
        """
        ...


@dataclass(frozen=True, slots=True)
class Unread:
    """What of a log is not read yet, a byte at least.

    Attributes:
        key: of the log.
        at: where it goes on, the begin of a line.
        end: what is there, the end of a line.
        lines: the log's.
    """

    key: str
    at: int
    end: int
    lines: Timed


def ends_in_step(unread: Sequence[Unread], most_bytes: int | None) -> Mapping[str, int]:
    """Up to where each log is read in the next batch.

    Args:
        unread: of each log.
        most_bytes: of a batch, > 0; lines of the same time are read together, however many they
            are. None: no limit.

    Returns:
        By key, where to stop; a log that has to wait stays where it is. Some log goes on.
    """
    if most_bytes is None or sum(each.end - each.at for each in unread) <= most_bytes:
        return {each.key: each.end for each in unread}
    known = {each.key: each.lines.time_ms(each.at, each.end) for each in unread}
    timed = [(time, each) for each in unread if (time := known[each.key]) is not None]
    timed.sort(key=lambda pair: pair[0])
    # A log without any time can't be late; it is read by its share.
    rest = {
        each.key: _share_end(each, most_bytes // len(unread))
        for each in unread
        if known[each.key] is None
    }
    if not timed:
        return rest
    until_ms = _until_ms(timed, most_bytes)
    return rest | {each.key: _end(each, until_ms) for _, each in timed}


def _until_ms(timed: Sequence[tuple[int, Unread]], most_bytes: int) -> int | None:
    """The time up to which the batch reads; None for all there is.

    The more logs share the bytes, the earlier it is: so the most logs that all begin before it are
    found by halving.
    """
    low, high = 1, len(timed)
    while low < high:
        middle = (low + high + 1) // 2
        until = _used_up_ms(timed[:middle], most_bytes)
        if until is None or timed[middle - 1][0] <= until:
            low = middle
        else:
            high = middle - 1
    until = _used_up_ms(timed[:low], most_bytes)
    if low < len(timed):
        # Those that begin later had no share.
        next_ms = timed[low][0]
        until = next_ms if until is None else min(until, next_ms)
    # Where lines are not sorted, a later one may be older than the first.
    return None if until is None else max(until, timed[0][0])


def _used_up_ms(timed: Sequence[tuple[int, Unread]], most_bytes: int) -> int | None:
    share = most_bytes // len(timed)
    times = (
        each.lines.time_ms(each.at + share, each.end)
        for _, each in timed
        if each.end - each.at > share
    )
    return min((time for time in times if time is not None), default=None)


def _share_end(unread: Unread, share: int) -> int:
    return unread.lines.line_from(min(unread.end, unread.at + max(1, share)), unread.end)


def _end(unread: Unread, until_ms: int | None) -> int:
    """Where the first line after a time begins."""
    if until_ms is None:
        return unread.end
    low, high = unread.at, unread.end
    while low < high:
        middle = (low + high) // 2
        time = unread.lines.time_ms(middle, high)
        if time is None or time > until_ms:
            high = middle
        else:
            low = unread.lines.line_from(middle + 1, unread.end)
    return unread.lines.line_from(low, unread.end)
