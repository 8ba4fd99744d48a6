"""When lines were logged: how far the broker's clock is ahead of UTC at each of its seconds.

Lines of the same hour share what is costly about it, the calendar and the time zone: a clock that
is as far ahead at the end of an hour as at its start was so all the time.

Example: Berlin's clock is 3,600,000 ms ahead at 2026-11-20 23:05:20, and in all of that hour. On
2026-03-29 it shows 02:30 at no time; that hour of its clock is reckoned by the second.
"""

from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

import numpy as np

from sidecar.pipeline.kernels.values import Longs
from sidecar.pipeline.rows import local_us, since_1970_us

_HOUR_S: Final = 3600
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  local times are reckoned as if they were UTC


def ahead_ms(seconds: Longs, zone: tzinfo) -> Longs:
    """How many milliseconds a clock shows more than UTC.

    Args:
        seconds: that it shows, since 1970 as if that were UTC; of the years 1971 to 9998.
        zone: of the clock.
    """
    hours, which = np.unique(seconds // _HOUR_S, return_inverse=True)
    firsts = (hours * _HOUR_S).tolist()
    starts = np.array([_ahead_ms(first, zone) for first in firsts], np.int64)
    ends = np.array([_ahead_ms(first + _HOUR_S - 1, zone) for first in firsts], np.int64)
    ahead = starts[which]
    for at in np.flatnonzero((starts != ends)[which]).tolist():
        ahead[at] = _ahead_ms(int(seconds[at]), zone)
    return ahead


@lru_cache(maxsize=4096)
def _ahead_ms(second: int, zone: tzinfo) -> int:
    local = _EPOCH + timedelta(seconds=second)
    us = since_1970_us(local, zone)
    if us is None:
        raise ValueError("not of the years 1971 to 9998")
    # Offsets of less than a millisecond are no zone's.
    return (local_us(local) - us) // 1000
