"""Converts a broker's local times to UTC: the offset of its clock at each second.

The calendar and the time zone are costly to compute, so lines of the same hour share the result. If
the offset is the same at the start and at the end of an hour, it applies to the whole hour.

A clock that is put back shows some times twice. These are called repeated times here.
``second_pass`` finds out to which of the two passes a line belongs.

Example: Berlin's clock is 3,600,000 ms ahead of UTC at 2026-11-20 23:05:20 and in that whole hour.
On 2026-03-29 it never shows 02:30, so the offset in that hour is computed for each second. On
2026-10-25 it shows 02:30 twice, first 7,200,000 ms ahead of UTC and an hour later 3,600,000 ms
ahead.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

import numpy as np

from usage_pipeline.ingest.rows import local_us, since_1970_us
from usage_pipeline.kernels.values import Flags, Longs

_HOUR_S: Final = 3600
_LOOKED_AT_S: Final = 900
"""Clocks are put back at full quarters of an hour, by at least a quarter of an hour."""
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  local times are reckoned as if they were UTC


@dataclass(frozen=True, slots=True)
class Doubled:
    """A range of repeated times: local seconds since 1970, as if they were UTC.

    Attributes:
        start: the first repeated second.
        end: the first second after the range.
    """

    start: int
    end: int


def ahead_ms(seconds: Longs, zone: tzinfo, fold: int = 0) -> Longs:
    """Return by how many milliseconds a clock is ahead of UTC.

    Args:
        seconds: local seconds since 1970, as if they were UTC; in the years 1971 to 9998.
        zone: the clock's time zone.
        fold: for repeated times, the first pass (0) or the second (1).
    """
    hours, which = np.unique(seconds // _HOUR_S, return_inverse=True)
    firsts = (hours * _HOUR_S).tolist()
    starts = np.array([_ahead_ms(first, zone, fold) for first in firsts], np.int64)
    ends = np.array([_ahead_ms(first + _HOUR_S - 1, zone, fold) for first in firsts], np.int64)
    ahead = starts[which]
    for at in np.flatnonzero((starts != ends)[which]).tolist():
        ahead[at] = _ahead_ms(int(seconds[at]), zone, fold)
    return ahead


def is_doubled(seconds: Longs, zone: tzinfo) -> Flags | None:
    """Return the range of repeated times among some times, or None.

    Args:
        seconds: as for ``ahead_ms``.
        zone: the clock's time zone.
    """
    if not len(seconds):
        return None
    first, last = int(seconds.min()) // _HOUR_S, int(seconds.max()) // _HOUR_S
    # A block covers an hour or two, so this is quicker than checking each line.
    hours = range(first, last + 1) if last - first < len(seconds) else np.unique(seconds // _HOUR_S)
    if not any(_has_doubled(int(hour), zone) for hour in hours):
        return None
    return np.asarray(ahead_ms(seconds, zone, 0) > ahead_ms(seconds, zone, 1))


def doubled(second: int, zone: tzinfo) -> Doubled:
    """Return the range of repeated times that contains a repeated time."""
    longest_s = (_ahead_ms(second, zone, 0) - _ahead_ms(second, zone, 1)) // 1000
    around = np.arange(second - longest_s, second + longest_s + 1, dtype=np.int64)
    repeated = around[ahead_ms(around, zone, 0) > ahead_ms(around, zone, 1)]
    return Doubled(int(repeated[0]), int(repeated[-1]) + 1)


@lru_cache(maxsize=4096)
def _has_doubled(hour: int, zone: tzinfo) -> bool:
    first = hour * _HOUR_S
    looked_at = (*range(first, first + _HOUR_S, _LOOKED_AT_S), first + _HOUR_S - 1)
    return any(_ahead_ms(second, zone, 0) > _ahead_ms(second, zone, 1) for second in looked_at)


@lru_cache(maxsize=4096)
def _ahead_ms(second: int, zone: tzinfo, fold: int) -> int:
    local = (_EPOCH + timedelta(seconds=second)).replace(fold=fold)
    us = since_1970_us(local, zone)
    if us is None:
        raise ValueError("not of the years 1971 to 9998")
    # No time zone has an offset with a fraction of a millisecond.
    return (local_us(local) - us) // 1000
