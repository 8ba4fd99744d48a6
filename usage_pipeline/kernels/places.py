"""A day and a broker in one number, and a file and a place in it in another.

Example: day 20,000 since 1970 of broker 7 is (20,000 << 31) | 7.
"""

from datetime import date, timedelta
from typing import Final

BROKER_BITS: Final = 31
"""Of a place; above them is the day."""
LINE_BITS: Final = 44
"""Of a line: 16 TB; above them is the file's number."""
_EPOCH: Final = date(1970, 1, 1)


def place_of(day: date, broker: int) -> int:
    """A day and a broker."""
    return ((day - _EPOCH).days << BROKER_BITS) | broker


def broker_of(place: int) -> int:
    """Whose charges they are."""
    return place & ((1 << BROKER_BITS) - 1)


def day_of(place: int) -> date:
    """On which day."""
    return _EPOCH + timedelta(days=place >> BROKER_BITS)
