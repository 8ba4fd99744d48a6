"""When lines were logged: how far the broker's clock is ahead of UTC at each of its seconds.

Lines of the same hour share what is costly about it, the calendar and the time zone: a clock that
is as far ahead at the end of an hour as at its start was so all the time.

A clock that is put back shows some times twice, which are called doubled here; ``second_pass`` says
of which of the two a line is.

Example: Berlin's clock is 3,600,000 ms ahead at 2026-11-20 23:05:20, and in all of that hour. On
2026-03-29 it shows 02:30 at no time; that hour of its clock is reckoned by the second. On
2026-10-25 it shows 02:30 first when it is 7,200,000 ms ahead, and an hour later 3,600,000.
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
"""Zones are put back at a quarter of an hour, and for as much at least."""
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  local times are reckoned as if they were UTC


@dataclass(frozen=True, slots=True)
class Doubled:
    """What a clock shows twice: seconds since 1970 as if it were UTC's.

    Attributes:
        start: the first one.
        end: the first one after it.
    """

    start: int
    end: int


def ahead_ms(seconds: Longs, zone: tzinfo, fold: int = 0) -> Longs:
    """How many milliseconds a clock shows more than UTC.

    Args:
        seconds: that it shows, since 1970 as if that were UTC; of the years 1971 to 9998.
        zone: of the clock.
        fold: of doubled times the first pass, 0, or the second, 1.
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
    """Which of some times a clock shows twice; None: none of them.

    Args:
        seconds: as of ``ahead_ms``.
        zone: of the clock.
    """
    if not len(seconds):
        return None
    first, last = int(seconds.min()) // _HOUR_S, int(seconds.max()) // _HOUR_S
    # Lines of a block are of an hour or two, so this is quicker than to look at each of them.
    hours = range(first, last + 1) if last - first < len(seconds) else np.unique(seconds // _HOUR_S)
    if not any(_has_doubled(int(hour), zone) for hour in hours):
        return None
    return np.asarray(ahead_ms(seconds, zone, 0) > ahead_ms(seconds, zone, 1))


def doubled(second: int, zone: tzinfo) -> Doubled:
    """What a clock shows twice together with a time that it shows twice."""
    longest_s = (_ahead_ms(second, zone, 0) - _ahead_ms(second, zone, 1)) // 1000
    around = np.arange(second - longest_s, second + longest_s + 1, dtype=np.int64)
    found = around[ahead_ms(around, zone, 0) > ahead_ms(around, zone, 1)]
    return Doubled(int(found[0]), int(found[-1]) + 1)


@lru_cache(maxsize=4096)
def _has_doubled(hour: int, zone: tzinfo) -> bool:
    first = hour * _HOUR_S
    looked_at = (*range(first, first + _HOUR_S, _LOOKED_AT_S), first + _HOUR_S - 1)
    return any(_ahead_ms(one, zone, 0) > _ahead_ms(one, zone, 1) for one in looked_at)


@lru_cache(maxsize=4096)
def _ahead_ms(second: int, zone: tzinfo, fold: int) -> int:
    local = (_EPOCH + timedelta(seconds=second)).replace(fold=fold)
    us = since_1970_us(local, zone)
    if us is None:
        raise ValueError("not of the years 1971 to 9998")
    # Offsets of less than a millisecond are no zone's.
    return (local_us(local) - us) // 1000
