"""The lines of a block as rows of numbers: one walk over its bytes, with no value made of them.

Each line's JSON is read byte by byte and as a whole, by the rules of ``line_fields``; a line that is
written otherwise than Kafka does, or that has anything that isn't expected, is left to another
reader, which says what it is. So nothing is guessed: what is read here is what that would read.

Left are, among others: lines of another pattern, of APIs that change topics or quotas, with a field
told twice, a number with an exponent, a string with an escape by number, white space, nesting
beyond ``DEEPEST``, and bytes that aren't UTF-8.

Example: of 4 MB of a busy broker's log 3,700 lines are rows in 6 ms; the one in a thousand that
creates a topic is left.
"""

from datetime import date
from typing import Final

import numpy as np

from sidecar.pipeline.kernels.compiled import merged, walking
from sidecar.pipeline.kernels.json_bytes import (
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    LOOKED_AT,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    literal_end,
    number,
    string_end,
    to_newline,
    word,
)
from sidecar.pipeline.kernels.line_fields import (
    APIS,
    ARGUMENT,
    KIND_BITS,
    NAMES,
    NONE,
    OF_API,
    PLACES,
    REQUIRED,
    RULES,
    UNSET,
    Kind,
    Shape,
    Slot,
    place_of,
)
from sidecar.pipeline.kernels.line_sizes import length_bytes, tell
from sidecar.pipeline.kernels.values import Doubles, Longs
from sidecar.pipeline.rows import LONGEST_QUEUED_MS

DEEPEST: Final = 30
_START: Final = b"[0000-00-00 00:00:00,000] DEBUG Completed request:"
_END: Final = b" (kafka.request.logger)"
_MARK: Final = np.frombuffer(_START, np.uint8)
_MARK_END: Final = np.frombuffer(_END, np.uint8)
_BODY_AT: Final = len(_START)
_AFTER: Final = len(_END)
SHORTEST: Final = len(_START) + len(_END) + len('{"requestHeader":{},"principal":"","localTimeMs":0}')
"""Bytes of a line that is read, at least."""
_LARGEST_INT: Final = 1 << 31
_LARGEST_SIZE: Final = 1 << 40
_POWERS: Final = np.array([10.0**digits for digits in range(23)])
_MOST_EXACT: Final = 1 << 53
_DAYS_TO_MONTH: Final = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal() - 1
_YEARS: Final = (1971, 9998)


@walking
def read_lines(
    block: np.ndarray, rows: Longs, times: Doubles, left: Longs, inside: Longs
) -> tuple[int, int]:
    """Reads the lines of a block.

    Args:
        block: whole lines; the last one may lack its end.
        rows: filled, by ``Slot``; a row for each line that is read, and one more.
        times: the same memory, as doubles.
        left: filled: where each line begins and ends that is left.
        inside: to work with: for each place that a value is in, its shape, whether it is a list,
            that one's kind, and which fields it had or how many elements.

    Returns:
        How many are read, and how many are left.
    """
    found = 0
    others = 0
    start = 0
    while start < block.size:
        end = _line_end(block, start)
        row = rows[found]
        for slot in range(row.size):
            row[slot] = UNSET[slot]
        if (
            _is_usual(block, start, end)
            and _second(block, start, row)
            and _read(block, start + _BODY_AT, end - _AFTER, row, times[found], inside)
            and times[found, Slot.SENDING] + times[found, Slot.QUEUED] <= LONGEST_QUEUED_MS
            and _fits(row[Slot.VERSION])
            and (row[Slot.ACKS] == NONE or _fits(row[Slot.ACKS]))
        ):
            row[Slot.START] = start
            tell(row)
            found += 1
        else:
            left[others, 0] = start
            left[others, 1] = end
            others += 1
        start = end + 1
    return found, others


@walking
def lines_of(block: np.ndarray) -> int:
    """How many lines a block has, at most."""
    lines = 1
    for at in range(block.size):
        lines += block[at] == 0x0A
    return lines


@merged
def _fits(value: int) -> bool:
    return -_LARGEST_INT <= value < _LARGEST_INT


@merged
def _line_end(block: np.ndarray, at: int) -> int:
    while at + LOOKED_AT <= block.size:
        step = to_newline(block, at)
        at += step
        if step < LOOKED_AT:
            return at
    while at < block.size and block[at] != 0x0A:
        at += 1
    return at


@merged
def _is_usual(block: np.ndarray, start: int, end: int) -> bool:
    """Whether it begins and ends as Kafka's lines do."""
    if end - start < SHORTEST:
        return False
    for at in range(_BODY_AT):
        # In the place of a 0 is a digit.
        byte = block[start + at]
        if byte != _MARK[at] and not (_MARK[at] == 0x30 and 0x30 <= byte <= 0x39):
            return False
    return _ends(block, end - _AFTER)


@merged
def _ends(block: np.ndarray, at: int) -> bool:
    """Whether a line's end is there."""
    for one in range(_AFTER):
        if block[at + one] != _MARK_END[one]:
            return False
    return True


@merged
def _two(block: np.ndarray, at: int) -> int:
    return (block[at] - 0x30) * 10 + (block[at + 1] - 0x30)


@merged
def _second(block: np.ndarray, start: int, row: Longs) -> bool:
    """A line's time, whose digits are known to be digits; whether there is such a time."""
    year = _two(block, start + 1) * 100 + _two(block, start + 3)
    month = _two(block, start + 6)
    day = _two(block, start + 9)
    hour, minute, second = _two(block, start + 12), _two(block, start + 15), _two(block, start + 18)
    if not _YEARS[0] <= year <= _YEARS[1] or not 1 <= month <= 12:
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


@merged
def _key(block: np.ndarray, at: int, end: int, shape: int) -> tuple[int, int]:
    """A field's name: where its value begins, -1 for none, and its number; 0 for one without."""
    if block[at] != QUOTE:
        return -1, 0
    begun = at + 1
    # None that is looked for has an escape, nor needs one.
    at, escapes = string_end(block, begun, end)
    if at < 0 or escapes > 0 or block[at + 1] != COLON:
        return -1, 0
    if shape == Shape.SKIPPED:
        return at + 2, 0
    length = at - begun
    first = word(block, begun)
    if length < 8:
        first &= (1 << (8 * length)) - 1
    place = _place_of(first, length)
    while NAMES[place, 3] != 0:
        if NAMES[place, 3] >> 8 == length and NAMES[place, 0] == first:
            if (length <= 8 or NAMES[place, 2] == word(block, at - 8)) and (
                length <= 16 or NAMES[place, 1] == word(block, begun + 8)
            ):
                return at + 2, NAMES[place, 3] & 0xFF
        place = (place + 1) % PLACES
    return at + 2, 0


_place_of: Final = merged(place_of)


@walking
def _read(
    block: np.ndarray, at: int, end: int, row: Longs, times: Doubles, inside: Longs
) -> bool:
    """Reads a line's JSON into its row; whether it is as expected."""
    depth = 0
    rule = Kind.OBJECT + ARGUMENT * Shape.LINE
    while True:
        byte = block[at]
        kind = rule & (ARGUMENT - 1)
        argument = rule >> KIND_BITS
        if byte == QUOTE:
            begun = at + 1
            at, escapes = string_end(block, begun, end)
            if at < 0 or not _string(block, kind, argument, begun, at, escapes, row):
                return False
            at += 1
        elif byte == OPEN_OBJECT:
            if kind not in (Kind.ANY, Kind.OBJECT, Kind.TAG, Kind.ANSWER) or depth >= DEEPEST:
                return False
            shape = argument if kind in (Kind.OBJECT, Kind.ANSWER) else Shape.SKIPPED
            if kind == Kind.TAG:
                row[Slot.TAGS] += argument
            elif kind == Kind.ANSWER:
                row[Slot.ANSWERED] = 1
            _opened(shape, row)
            depth += 1
            inside[depth, 0] = shape
            inside[depth, 1] = 0
            inside[depth, 3] = 0
            at += 1
            if block[at] != CLOSE_OBJECT:
                at, rule = _field(block, at, end, row, inside[depth])
                if at < 0:
                    return False
                continue
        elif byte == OPEN_ARRAY:
            if kind not in (Kind.ANY, Kind.LIST, Kind.LIST_OR_NULL) or depth >= DEEPEST:
                return False
            depth += 1
            inside[depth, 0] = argument if kind != Kind.ANY else Shape.SKIPPED
            inside[depth, 1] = 1
            inside[depth, 2] = kind
            inside[depth, 3] = 0
            at += 1
            rule = Kind.ANY + 0 if kind == Kind.ANY else Kind.OBJECT + ARGUMENT * argument
            if block[at] != CLOSE_ARRAY:
                inside[depth, 3] = 1
                continue
        elif byte in (0x74, 0x66, 0x6E):
            if kind == Kind.FLAG and byte != 0x6E:
                row[argument] = byte == 0x74
            elif kind != Kind.ANY and not (
                byte == 0x6E
                and kind in (Kind.STRING_OR_NULL, Kind.LIST_OR_NULL, Kind.TAG, Kind.ANSWER)
            ):
                return False
            at = literal_end(block, at)
            if at < 0:
                return False
        else:
            begun = at
            at, value, scale = number(block, at)
            if at < 0:
                return False
            if kind != Kind.ANY and not _number(kind, argument, value, scale, row, times):
                return False
            if kind == Kind.INT and argument == Slot.API_KEY:
                if row[Slot.API_END] == 0:
                    row[Slot.API] = begun
                    row[Slot.API_END] = at
        while True:
            if depth == 0:
                return at == end and row[Slot.THROTTLE] >= 0
            byte = block[at]
            at += 1
            if inside[depth, 1]:
                if byte == COMMA:
                    inside[depth, 3] += 1
                    list_kind = inside[depth, 2]
                    rule = (
                        Kind.ANY + 0
                        if list_kind == Kind.ANY
                        else Kind.OBJECT + ARGUMENT * inside[depth, 0]
                    )
                    break
                if byte != CLOSE_ARRAY:
                    return False
                _closed(inside[depth], row)
            elif byte == COMMA:
                at, rule = _field(block, at, end, row, inside[depth])
                if at < 0:
                    return False
                break
            else:
                needed = REQUIRED[inside[depth, 0]]
                if byte != CLOSE_OBJECT or inside[depth, 3] & needed != needed:
                    return False
            depth -= 1


@merged
def _field(block: np.ndarray, at: int, end: int, row: Longs, inside: Longs) -> tuple[int, int]:
    """A field's name: where its value begins, -1 for what isn't expected, and its rule."""
    shape = inside[0]
    at, name = _key(block, at, end, shape)
    if at < 0 or name == 0:
        return at, 0
    rule = RULES[shape, name]
    if rule == 0:
        return at, 0
    if inside[3] & (1 << name):
        return -1, 0
    inside[3] |= 1 << name
    if rule & (ARGUMENT - 1) == Kind.OF_API:
        key = row[Slot.API_KEY]
        if key < 0:
            return -1, 0
        rule = OF_API[min(key, APIS), rule >> KIND_BITS]
        if rule < 0:
            return -1, 0
    return at, rule


@merged
def _opened(shape: int, row: Longs) -> None:
    if shape in (Shape.PRODUCE_PARTITION, Shape.FETCHED_PARTITION):
        row[Slot.PARTITIONS] += 1
        row[Slot.RECORDS_LENGTHS] += 1
        row[Slot.ABORTED_LENGTHS] += 1
    elif shape in (Shape.PRODUCE_TOPIC, Shape.FETCHED_TOPIC):
        row[Slot.TOPICS] += 1
        row[Slot.NAMES_LENGTHS] += 1
        row[Slot.PARTITIONS_LENGTHS] += 1


@merged
def _closed(inside: Longs, row: Longs) -> None:
    """A list."""
    elements = inside[3]
    if inside[2] == Kind.LIST_OR_NULL:
        row[Slot.ABORTED] += elements
        row[Slot.ABORTED_LENGTHS] += length_bytes(elements + 1) - 1
    elif inside[0] in (Shape.PRODUCE_PARTITION, Shape.FETCHED_PARTITION):
        row[Slot.PARTITIONS_LENGTHS] += length_bytes(elements + 1) - 1
    elif inside[0] in (Shape.PRODUCE_TOPIC, Shape.FETCHED_TOPIC):
        row[Slot.TOPICS_LENGTHS] = length_bytes(elements + 1)


@merged
def _name_at(block: np.ndarray, at: int, end: int) -> int:
    """Where a principal's name begins, after its type; its end when it has no type."""
    while at < end:
        at += 1
        if block[at - 1] == COLON:
            break
    return at


@merged
def _string(
    block: np.ndarray, kind: int, argument: int, begun: int, end: int, escapes: int, row: Longs) -> bool:
    if kind in (Kind.STRING, Kind.STRING_OR_NULL):
        if argument == Slot.API and begun == end:
            return True
        row[argument] = begun if argument != Slot.USER else _name_at(block, begun, end)
        row[argument + 1] = end
        row[argument + 2] = escapes
        return True
    if kind == Kind.NAME:
        length = end - begun - escapes
        row[Slot.NAMES] += length
        row[Slot.NAMES_LENGTHS] += length_bytes(length + 1) - 1
        return True
    return kind in (Kind.ANY, Kind.TEXT, Kind.ANSWER)


@merged
def _number(
    kind: int, argument: int, value: int, scale: int, row: Longs, times: Doubles
) -> bool:
    if kind == Kind.TIME:
        if value < 0 or value >= _MOST_EXACT or scale == -2:
            return False
        # Correctly rounded: both are exact.
        times[argument] = value / _POWERS[max(scale, 0)]
        return True
    if scale != -1:
        return False
    if kind == Kind.INT:
        row[argument] = value
        return True
    if kind == Kind.SIZE and 0 <= value < _LARGEST_SIZE:
        row[Slot.RECORDS] += value
        row[Slot.RECORDS_LENGTHS] += length_bytes(value + 1) - 1
        return True
    return False
