"""Reads the lines of a block into rows of numbers, in one pass and without making Python values.

Each line's JSON is read completely, by the rules of ``line_fields``. A line in a form that Kafka
does not write, or with anything unexpected, is left to another reader. Nothing is guessed: the
result for a line is the same as that of the other reader.

These lines, among others, are left: lines of another pattern, of APIs that change topics or quotas,
with a repeated field, a number with an exponent, a string with an escape by number, white space,
nesting beyond ``line_json.DEEPEST``, or bytes that are not UTF-8.

Example: 3,700 lines (4 MB) of a busy broker's log become rows in 6 ms. One line in a thousand,
which creates a topic, is left.
"""

from datetime import date
from typing import Final

import numpy as np

from usage_pipeline.kernels.bytes_at import LOOKED_AT, NEWLINE, to_newline
from usage_pipeline.kernels.compiled import merged, walking
from usage_pipeline.kernels.line_fields import NONE, UNSET, Slot
from usage_pipeline.kernels.line_json import read_json
from usage_pipeline.kernels.line_sizes import fill_sizes
from usage_pipeline.kernels.values import Bytes, Doubles, Longs

_START: Final = b"[0000-00-00 00:00:00,000] DEBUG Completed request:"
_END: Final = b" (kafka.request.logger)"
_MARK: Final = np.frombuffer(_START, np.uint8)
_MARK_END: Final = np.frombuffer(_END, np.uint8)
_BODY_AT: Final = len(_START)
_AFTER: Final = len(_END)
SHORTEST: Final = (
    len(_START) + len(_END) + len('{"requestHeader":{},"principal":"","localTimeMs":0}')
)
"""The shortest line that is read, in bytes."""
LONGEST_QUEUED_MS: Final = 1e12
"""The longest time in the response queue and of sending for which a charge's time is known."""
_LARGEST_INT: Final = 1 << 31
_DAYS_TO_MONTH: Final = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal() - 1
YEARS: Final = (1971, 9998)
"""The first and the last year whose times are valid in every zone."""


@walking
def lines_of(block: Bytes) -> int:
    """Return the largest possible number of lines of a block."""
    lines = 1
    for at in range(block.size):
        lines += block[at] == NEWLINE
    return lines


@merged
def _fits(value: int) -> bool:
    return -_LARGEST_INT <= value < _LARGEST_INT


@merged
def _line_end(block: Bytes, at: int) -> int:
    while at + LOOKED_AT <= block.size:
        step = to_newline(block, at)
        at += step
        if step < LOOKED_AT:
            return at
    while at < block.size and block[at] != NEWLINE:
        at += 1
    return at


@merged
def _is_plain(block: Bytes, start: int, end: int) -> bool:
    """Whether the line begins and ends like Kafka's lines."""
    if end - start < SHORTEST:
        return False
    for at in range(_BODY_AT):
        # A digit must be in the place of each 0.
        byte = block[start + at]
        if byte != _MARK[at] and not (_MARK[at] == 0x30 and 0x30 <= byte <= 0x39):
            return False
    return _ends(block, end - _AFTER)


@merged
def _ends(block: Bytes, at: int) -> bool:
    """Whether the line has its end."""
    for offset in range(_AFTER):  # noqa: SIM110  a kernel has no all()
        if block[at + offset] != _MARK_END[offset]:
            return False
    return True


@merged
def _two(block: Bytes, at: int) -> int:
    value: int = (block[at] - 0x30) * 10 + (block[at + 1] - 0x30)
    return value


@merged
def _second(block: Bytes, start: int, row: Longs) -> bool:
    """Return a line's time, whose digits were checked, and whether that time exists."""
    year = _two(block, start + 1) * 100 + _two(block, start + 3)
    month = _two(block, start + 6)
    day = _two(block, start + 9)
    hour, minute, second = _two(block, start + 12), _two(block, start + 15), _two(block, start + 18)
    if not YEARS[0] <= year <= YEARS[1] or not 1 <= month <= 12:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = _DAYS_TO_MONTH[month] - _DAYS_TO_MONTH[month - 1] + (1 if leap and month == 2 else 0)
    if not 1 <= day <= days or hour > 23 or minute > 59 or second > 59:
        return False
    before = year - 1
    ordinal = before * 365 + before // 4 - before // 100 + before // 400
    ordinal += _DAYS_TO_MONTH[month - 1] + day - 1 + (1 if leap and month > 2 else 0)
    row[Slot.SECOND] = (ordinal - _EPOCH_DAY) * 86_400 + hour * 3600 + minute * 60 + second
    row[Slot.MS] = (block[start + 21] - 0x30) * 100 + _two(block, start + 22)
    return True


@walking
def read_lines(
    block: Bytes, rows: Longs, times: Doubles, left: Longs, inside: Longs
) -> tuple[int, int]:
    """Read the lines of a block.

    Args:
        block: complete lines; the last one may lack its newline.
        rows: filled, by ``Slot``; it has a row for each line that is read, and one more.
        times: the same memory, as doubles.
        left: filled with the beginning and the end of each line that is left.
        inside: working memory, a stack with an entry for each open object or list: its shape,
            whether it is a list, the list's kind, and its fields or number of elements so far.

    Returns:
        How many lines were read, and how many were left.
    """
    read = 0
    others = 0
    start = 0
    while start < block.size:
        end = _line_end(block, start)
        row = rows[read]
        for slot in range(row.size):
            row[slot] = UNSET[slot]
        if (
            _is_plain(block, start, end)
            and _second(block, start, row)
            and read_json(block, start + _BODY_AT, end - _AFTER, row, times[read], inside)
            and times[read, Slot.SENDING] + times[read, Slot.QUEUED] <= LONGEST_QUEUED_MS
            and _fits(row[Slot.VERSION])
            and (row[Slot.ACKS] == NONE or _fits(row[Slot.ACKS]))
        ):
            row[Slot.START] = start
            fill_sizes(row)
            read += 1
        else:
            left[others, 0] = start
            left[others, 1] = end
            others += 1
        start = end + 1
    return read, others
