"""A size of a disk at a time, and how its parts are read from text.

Example: in a CSV file, the column ``size_bytes`` has 100 in a row of ``2026-01-05T08:00:00Z``. The
point has the series ``size_bytes``, the time 1767600000.0 and 100 bytes.
"""

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Final

from sidecar.errors import SidecarError

_AVAILABLE: Final = re.compile("avail(?!ability)", re.IGNORECASE)
_TOTAL: Final = re.compile("capacity|size|total", re.IGNORECASE)
_OTHER_UNIT: Final = re.compile(
    r"(?:(?:[\W_][kmgtKMGT]|[a-z][KMGT])[iI]?[bB]|(?i:(?:kilo|mega|giga|tera|[kmgt][ei]bi|[kmgt])"
    r"bytes?|(?:available|avail|capacity|size|total)[kmgt]i?b|pct|percent(?:age)?|ratio)|%)\W*$"
)
"""The end of the name of a value that is not in bytes: total_gb, availGiB, Available (MB)."""
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_FIRST_THOUSANDTHS: Final = 1e11
"""As seconds, that is in the year 5138; as milliseconds, in 1973."""
_UTC_NAMES: Final = ("UTC", "GMT", "Z")
_UTC_END: Final = re.compile(" ?(?:UTC|GMT)$")
"""The end of BusyBox' ``date -u -Is`` and of databases' times."""
_OFFSET: Final = re.compile(r"[+-]\d\d(?:\d\d)?")
_DATE_FORMS: Final = (
    "%a %b %d %H:%M:%S %Y",
    "%a %b %d %I:%M:%S %p %Y",
    "%a %d %b %H:%M:%S %Y",
    "%a %d %b %Y %H:%M:%S",
    "%a %d %b %Y %I:%M:%S %p",
)
"""The output of ``date``, also with -R, in English locales and without its zone."""

NAMES: Final = (
    'a name with "size", "capacity" or "total" is of total bytes, and one with "avail" of available'
    " bytes, unless it ends in another unit, such as gb or pct"
)


class DataError(SidecarError):
    """Data that can't be a history. The message names the file, the line and the field."""


class Kind(StrEnum):
    """What a size is of."""

    TOTAL = "total"
    AVAILABLE = "available"


@dataclass(frozen=True, slots=True)
class Series:
    """Where sizes come from.

    Attributes:
        name: the metric or column; "" if the data has none.
        labels: the labels or columns with their values.
    """

    name: str
    labels: tuple[tuple[str, str], ...]

    @property
    def kind(self) -> Kind | None:
        """What its sizes are of; None for neither of the two, and in another unit than bytes."""
        if _OTHER_UNIT.search(self.name):
            return None
        if _AVAILABLE.search(self.name):
            return Kind.AVAILABLE
        return Kind.TOTAL if _TOTAL.search(self.name) else None

    def __str__(self) -> str:
        labels = ", ".join(f'{label}="{value}"' for label, value in self.labels)
        return f"{self.name}{{{labels}}}"


@dataclass(frozen=True, slots=True)
class Point:
    """A size at a time.

    Attributes:
        series: where it comes from.
        at: epoch seconds.
        size_bytes: the size.
        place: file, line and field, for a person.
    """

    series: Series
    at: float
    size_bytes: int
    place: str


def parse_bytes(text: str, place: str) -> int:
    """Read a number of bytes; decimals are cut off, since an average has some.

    Raises:
        DataError: the text is no finite number of at least 0.
    """
    try:
        value = int(text) if text.isdecimal() else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise DataError(f"{place}: {text!r} is not a number of bytes")
    return int(value)


def parse_time(text: str, zone: tzinfo | None) -> float | datetime | None:
    """Read a time, in epoch seconds; None for a text that is none.

    It may be ISO 8601, epoch seconds, milliseconds, microseconds or nanoseconds, or the output of
    ``date``. A time without an offset from UTC is a datetime of the zone, because the zone may have
    it twice.

    Args:
        text: the time.
        zone: the zone of a time without an offset from UTC; None to refuse it.

    Raises:
        ValueError: the time has no offset from UTC, and there is no zone, or its name is of
            another zone.
    """
    if _NUMBER.fullmatch(text):
        number = float(text)
        for _ in ("milliseconds", "microseconds", "nanoseconds"):
            number = number / 1000 if number >= _FIRST_THOUSANDTHS else number
        return number
    time = _time(text, zone)
    if time is None:
        return None
    if time.tzinfo is not None:
        return time.timestamp()
    if zone is None:
        raise ValueError(
            f"{text!r} has no offset from UTC: give its zone, such as --zone UTC or"
            " --zone Europe/Berlin"
        )
    return time.replace(tzinfo=zone)


def _time(text: str, zone: tzinfo | None) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(_UTC_END.sub("Z", text))
    words = text.replace(",", "").split()
    if len(words) not in (6, 7):
        return None
    name = words.pop(-2 if words[-1].isdecimal() else -1)
    for form in _DATE_FORMS:
        try:
            # The zone comes later.
            time = datetime.strptime(" ".join(words), form)  # noqa: DTZ007
        except ValueError:
            continue
        if name in _UTC_NAMES:
            return time.replace(tzinfo=UTC)
        if _OFFSET.fullmatch(name):
            return datetime.fromisoformat(f"{time.isoformat()}{name}")
        return time if zone is None else _named(time, name, text, zone)
    return None


def _named(time: datetime, name: str, text: str, zone: tzinfo) -> datetime:
    # An hour of autumn is there twice, with two names such as CEST and CET.
    for fold in (0, 1):
        found = time.replace(tzinfo=zone, fold=fold)
        if found.tzname() == name:
            return found
    raise ValueError(
        f"{text!r} is not a time of the zone {zone}: --zone has to be the zone in which date"
        f" printed {name}"
    )
