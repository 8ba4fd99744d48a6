"""The smallest parts of JSON in a block of bytes: strings, numbers, literals and field names.

Only JSON in Kafka's form, without white space, is read. Anything else gives -1 and is left to
another reader. A string is read as a whole, so its content can never be taken for a field, not even
``","acks":0``.

At least 16 bytes must follow the passed end, because bytes are read 16 at a time. That end is 23
bytes before a line's last byte.

Example: in ``"clientId":"etl","x`` the name ends before the colon, and the string that begins at 12
ends at 15.

Source: RFC 8259, which is stricter than most readers.
"""

from typing import Final

from usage_pipeline.kernels.bytes_at import BACKSLASH, LOOKED_AT, QUOTE, to_special, word
from usage_pipeline.kernels.compiled import merged
from usage_pipeline.kernels.values import Bytes

COMMA: Final = 0x2C
MINUS: Final = 0x2D
POINT: Final = 0x2E
ZERO: Final = 0x30
NINE: Final = 0x39
COLON: Final = 0x3A
OPEN_ARRAY: Final = 0x5B
CLOSE_ARRAY: Final = 0x5D
OPEN_OBJECT: Final = 0x7B
CLOSE_OBJECT: Final = 0x7D

DIGITS: Final = 18
"""The most digits that are read; a longer number is skipped."""


@merged
def _character(block: Bytes, at: int) -> int:
    """Return the length of a non-ASCII character in UTF-8; 0 if it is not valid."""
    byte = block[at]
    if not 0xC2 <= byte <= 0xF4:
        return 0
    taken = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    for offset in range(1, taken):
        if block[at + offset] & 0xC0 != 0x80:
            return 0
    after = block[at + 1]
    # Overlong forms, surrogates, and code points beyond Unicode's range.
    wrong = (
        (byte == 0xE0 and after < 0xA0)
        or (byte == 0xED and after > 0x9F)
        or (byte == 0xF0 and after < 0x90)
        or (byte == 0xF4 and after > 0x8F)
    )
    return 0 if wrong else taken


@merged
def string_end(block: Bytes, at: int, end: int) -> tuple[int, int]:
    """Find the end of a string.

    Args:
        block: the bytes.
        at: the string's first byte, after its quote.
        end: the end of the line.

    Returns:
        The position of its closing quote, and the number of escapes, which take 2 bytes for 1.
    """
    escapes = 0
    while at < end:
        step = to_special(block, at)
        at += step
        if step == LOOKED_AT:
            continue
        byte = block[at]
        if at >= end:
            break
        if byte == QUOTE:
            return at, escapes
        if byte == BACKSLASH:
            # " \ / b f n r t; an escape by number is left to the other reader.
            mark = block[at + 1]
            if not (mark in (QUOTE, BACKSLASH) or mark in (0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74)):
                break
            at += 2
            escapes += 1
        else:
            taken = _character(block, at)
            if taken == 0:
                break
            at += taken
    return -1, 0


@merged
def number(block: Bytes, at: int) -> tuple[int, int, int]:
    """Read a number without an exponent.

    Returns:
        Its end; its digits as an integer; how many digits follow the point, or -1 for an integer
        and -2 for a number with more than ``DIGITS`` digits.
    """
    negative = block[at] == MINUS
    if negative:
        at += 1
    begun = at
    value = 0
    while ZERO <= block[at] <= NINE:
        value = value * 10 + (block[at] - ZERO)
        at += 1
    digits = at - begun
    if digits == 0 or (digits > 1 and block[begun] == ZERO):
        return -1, 0, 0
    scale = -1
    if block[at] == POINT:
        at += 1
        begun = at
        while ZERO <= block[at] <= NINE:
            value = value * 10 + (block[at] - ZERO)
            at += 1
        scale = at - begun
        digits += scale
        if scale == 0:
            return -1, 0, 0
    if block[at] in (0x45, 0x65):
        return -1, 0, 0
    if digits > DIGITS:
        scale = -2
    return at, -value if negative else value, scale


@merged
def literal_end(block: Bytes, at: int) -> int:
    """Return the end of ``true``, ``false`` or ``null``."""
    mask = 0xFFFFFFFF
    read = word(block, at)
    if read & mask == 0x65757274 or read & mask == 0x6C6C756E:
        return at + 4
    return at + 5 if read & 0xFFFFFFFFFF == 0x65736C6166 else -1
