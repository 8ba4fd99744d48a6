"""When lines were logged: how far the broker's clock is ahead of UTC at each of its seconds.

Lines of the same second share what is costly about it, the calendar and the time zone.

Example: Berlin's clock is 3,600,000 ms ahead at 2026-11-20 23:05:20.
"""

from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

import numpy as np

from sidecar.pipeline.kernels.values import Longs
from sidecar.pipeline.rows import local_us, since_1970_us

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  local times are reckoned as if they were UTC


def ahead_ms(seconds: Longs, zone: tzinfo) -> Longs:
    """How many milliseconds a clock shows more than UTC.

    Args:
        seconds: that it shows, since 1970 as if that were UTC; of the years 1971 to 9998.
        zone: of the clock.
    """
    distinct, which = np.unique(seconds, return_inverse=True)
    each = np.array([_ahead_ms(int(second), zone) for second in distinct], np.int64)
    return each[which]


@lru_cache(maxsize=4096)
def _ahead_ms(second: int, zone: tzinfo) -> int:
    local = _EPOCH + timedelta(seconds=second)
    us = since_1970_us(local, zone)
    if us is None:
        raise ValueError("not of the years 1971 to 9998")
    # Offsets of less than a millisecond are no zone's.
    return (local_us(local) - us) // 1000
