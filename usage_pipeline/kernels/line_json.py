# ruff: noqa: PLR0917  kernels are called by position
"""Reads a line's JSON into a row of numbers, by the rules of ``line_fields``.

One loop reads nested values. A stack of at most ``DEEPEST`` entries has the current position. Each
entry has the shape, whether it is a list, the list's kind, and the fields or the number of elements
so far.

Example: in a PRODUCE with ``{"acks":1,"timeoutMs":30000,"topicData":[]}``, ACKS becomes 1, the
timeout is skipped, and TOPICS_LENGTHS is 1.
"""

from typing import Final

import numpy as np

from usage_pipeline.kernels.bytes_at import QUOTE, word
from usage_pipeline.kernels.compiled import merged, walking
from usage_pipeline.kernels.json_bytes import (
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    OPEN_ARRAY,
    OPEN_OBJECT,
    literal_end,
    number,
    string_end,
)
from usage_pipeline.kernels.line_fields import (
    APIS,
    ARGUMENT,
    KIND_BITS,
    NAMES,
    OF_API,
    PLACES,
    REQUIRED,
    RULES,
    Kind,
    Shape,
    Slot,
    place_of,
)
from usage_pipeline.kernels.line_sizes import length_bytes
from usage_pipeline.kernels.values import Bytes, Doubles, Longs

DEEPEST: Final = 30
_LARGEST_SIZE: Final = 1 << 40
_POWERS: Final = np.array([10.0**digits for digits in range(23)])
_MOST_EXACT: Final = 1 << 53
_place_of: Final = merged(place_of)


@merged
def _key(block: Bytes, at: int, end: int, shape: int) -> tuple[int, int]:
    """Read a field's name; return where its value begins (-1: no field) and its number or 0."""
    if block[at] != QUOTE:
        return -1, 0
    begun = at + 1
    # None of these names has an escape.
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
        if (
            NAMES[place, 3] >> 8 == length
            and NAMES[place, 0] == first
            and (length <= 8 or NAMES[place, 2] == word(block, at - 8))
            and (length <= 16 or NAMES[place, 1] == word(block, begun + 8))
        ):
            return at + 2, NAMES[place, 3] & 0xFF
        place = (place + 1) % PLACES
    return at + 2, 0


@merged
def _field(block: Bytes, at: int, end: int, row: Longs, inside: Longs) -> tuple[int, int]:
    """Read a field's name; return where its value begins (-1: not expected) and its rule."""
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
def _name_at(block: Bytes, at: int, end: int) -> int:
    """Return where a principal's name begins, after its type; the end if it has no type."""
    while at < end:
        at += 1
        if block[at - 1] == COLON:
            break
    return at


@merged
def _string(
    block: Bytes, kind: int, argument: int, begun: int, end: int, escapes: int, row: Longs
) -> bool:
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
def _number(kind: int, argument: int, value: int, scale: int, row: Longs, times: Doubles) -> bool:
    if kind == Kind.TIME:
        if value < 0 or value >= _MOST_EXACT or scale == -2:
            return False
        # The quotient is correctly rounded, because both numbers are exact.
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


@walking
def read_json(  # noqa: C901, PLR0911, PLR0912, PLR0915  one loop and no calls: values nest
    block: Bytes, at: int, end: int, row: Longs, times: Doubles, inside: Longs
) -> bool:
    """Read a line's JSON into its row; return whether it has the expected form."""
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
            if kind == Kind.INT and argument == Slot.API_KEY and row[Slot.API_END] == 0:
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
