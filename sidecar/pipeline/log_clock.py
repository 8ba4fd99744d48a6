"""When lines were logged: their times, in UTC, and how far the broker's clock is ahead of that.

Lines of the same second share what is costly about it, the calendar and the time zone.

Example: ``[2026-11-20 23:05:20,927`` of Berlin is 22:05:20.927 in UTC, 3,600,000 ms behind.
"""

import re
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Final

from sidecar.pipeline.rows import local_us, since_1970_us

_START: Final = re.compile(rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_SECOND: Final = len("[2026-11-20 23:05:20")
TIME: Final = len("[2026-11-20 23:05:20,927")
"""Bytes of a line before what ends its time."""
_FRACTIONS: Final = {b"%c%03d" % (mark, ms): ms for mark in b",." for ms in range(1000)}


def logged_ms(block: bytes, at: int, zone: tzinfo) -> tuple[int, int] | None:
    """When a line was logged.

    Args:
        block: lines.
        at: where one begins in it.
        zone: of the broker's clock.

    Returns:
        Milliseconds since 1970 in UTC, and how many more the broker's clock shows; None for a time
        that is not written as Kafka writes it, or is none.
    """
    second = _second(block[at : at + _SECOND], zone)
    ms = _FRACTIONS.get(block[at + _SECOND : at + TIME])
    return None if second is None or ms is None else (second[0] + ms, second[1])


@lru_cache(maxsize=4096)
def _second(start: bytes, zone: tzinfo) -> tuple[int, int] | None:
    if _START.fullmatch(start) is None:
        return None
    try:
        local = datetime.fromisoformat(start[1:].decode("ascii"))
    except ValueError:
        return None
    us = since_1970_us(local, zone)
    # Offsets of less than a millisecond are no zone's.
    return None if us is None else (us // 1000, (local_us(local) - us) // 1000)
