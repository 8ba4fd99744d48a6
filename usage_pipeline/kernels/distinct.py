"""Numbers the strings of a block, so that each string is made only once.

Example: for 3,700 lines of 40 clients, 40 client-ids are made.
"""

from typing import Final

from usage_pipeline.kernels.bytes_at import word
from usage_pipeline.kernels.compiled import merged, walking
from usage_pipeline.kernels.values import Bytes, Longs

_FACTOR: Final = 0x2545F4914F6CDD1D


@merged
def _part(block: Bytes, at: int, length: int) -> int:
    """Return the next 8 bytes of a string with ``length`` > 0 remaining bytes, or all of them."""
    part = word(block, at)
    if length < 8:
        part &= (1 << (8 * length)) - 1
    return part


@merged
def _hash(block: Bytes, at: int, length: int) -> int:
    value = length
    while length > 0:
        value = (value ^ _part(block, at, length)) * _FACTOR
        value ^= value >> 29
        at += 8
        length -= 8
    return value


@merged
def _same(block: Bytes, first_at: int, other_at: int, length: int) -> bool:
    while length > 0:
        if _part(block, first_at, length) != _part(block, other_at, length):
            return False
        first_at += 8
        other_at += 8
        length -= 8
    return True


@walking
def number_strings(  # noqa: PLR0917  kernels are called by position
    block: Bytes, rows: Longs, slot: int, seen: Longs, numbers: Longs, first: Longs
) -> int:
    """Number the strings of a column in the order of their first occurrence.

    Args:
        block: the bytes; at least 8 more follow each string.
        rows: the rows of ``log_lines``.
        slot: the slot of the strings' first bytes; the next slot has their ends.
        seen: working memory, -1 everywhere; its length is a power of two above the number of rows.
        numbers: filled with the number of each row's string.
        first: filled with the first row of each number.

    Returns:
        The number of different strings.
    """
    count = 0
    mask = seen.size - 1
    for at in range(len(rows)):
        begun = rows[at, slot]
        length = rows[at, slot + 1] - begun
        place = _hash(block, begun, length) & mask
        while seen[place] >= 0:
            other = rows[first[seen[place]], slot]
            other_length = rows[first[seen[place]], slot + 1] - other
            if other_length == length and _same(block, begun, other, length):
                break
            place = (place + 1) & mask
        if seen[place] < 0:
            seen[place] = count
            first[count] = at
            count += 1
        numbers[at] = seen[place]
    return count
