"""Encodes a day and a broker in one number, and a file and a position in another.

Example: day 20,000 since 1970 of broker 7 is (20,000 << 31) | 7.
"""

from datetime import date, timedelta
from typing import Final

BROKER_BITS: Final = 31
"""The bits of the broker; the day is above them."""
LINE_BITS: Final = 44
"""The bits of a position in a file (16 TB); the file's number is above them."""
_EPOCH: Final = date(1970, 1, 1)


def place_of(day: date, broker: int) -> int:
    """Encode a day and a broker."""
    return ((day - _EPOCH).days << BROKER_BITS) | broker


def broker_of(place: int) -> int:
    """Return the broker."""
    return place & ((1 << BROKER_BITS) - 1)


def day_of(place: int) -> date:
    """Return the day."""
    return _EPOCH + timedelta(days=place >> BROKER_BITS)
