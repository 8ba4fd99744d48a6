"""Formats figures with their units.

Example: 12,345,678 bytes a second are "12.3 MB/s", 93,784 ms are "1 min 34 s", and a share of
0.0034 is "0.34 %". Unknown figures are "-".
"""

import math
from datetime import UTC, datetime
from typing import Final

UNKNOWN: Final = "-"

_BYTES: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_LEAST_SHARE: Final = 1e-4
_UNITS: Final = {
    "request": "% of a thread",
    "controller_mutation": "partitions/s",
    "producer_ids": "ids/h",
}
"""The units of quotas; produce and fetch have bytes per second."""
_KINDS: Final = {
    "produce": "Produce",
    "fetch": "Fetch",
    "request": "Request time",
    "controller_mutation": "Controller mutations",
    "producer_ids": "Producer ids",
}


def kind(quota_type: str) -> str:
    """Return a quota type's name for a heading."""
    return _KINDS.get(quota_type, quota_type)


def number(value: float | None) -> str:
    """Format a number with three digits, or all digits of an integer."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def size(count: float | None) -> str:
    """Format a number of bytes."""
    if count is None or not math.isfinite(count):
        return UNKNOWN
    power = 0
    while abs(count) >= 999.5 and power < len(_BYTES) - 1:
        count /= 1000
        power += 1
    return f"{number(float(f'{count:.3g}'))} {_BYTES[power]}"


def rate(value: float | None, quota_type: str) -> str:
    """Format a rate in the unit of the quota."""
    if value is None:
        return UNKNOWN
    if quota_type in _UNITS:
        return f"{number(value)} {_UNITS[quota_type]}"
    return f"{size(value)}/s"


def short_rate(value: float, quota_type: str) -> str:
    """Format a rate for an axis, without what the heading says: "40 %" of a thread."""
    return rate(value, quota_type).split(" of ")[0]


def amount(value: float, quota_type: str) -> str:
    """Format a sum: bytes, seconds of threads, partitions or ids."""
    match quota_type:
        case "request":
            return f"{number(value / 100)} s of threads"
        case "controller_mutation":
            return f"{number(value)} partitions"
        case "producer_ids":
            return f"{number(value)} ids"
    return size(value)


def share(value: float | None) -> str:
    """Format a share in percent."""
    if value is not None and 0 < value < _LEAST_SHARE:
        return f"under {_LEAST_SHARE * 100:g} %"
    return UNKNOWN if value is None else f"{number(float(f'{value * 100:.3g}'))} %"


def duration(ms: float | None) -> str:
    """Format milliseconds, with up to two units."""
    if ms is None or not math.isfinite(ms):
        return UNKNOWN
    if ms < 1000:
        return f"{ms:,.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.3g} s"
    seconds = round(ms / 1000)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return hours(seconds / 3600)


def hours(value: float | None) -> str:
    """Format hours; from 48 hours on, in days."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:.3g} h" if value < 48 else f"{value / 24:,.3g} days"


def moment(value: datetime) -> str:
    """Format a time in UTC, to the second."""
    return f"{utc(value):%Y-%m-%d %H:%M:%S}"


def utc(value: datetime) -> datetime:
    """Convert a table's time to UTC; a time without a zone is UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
