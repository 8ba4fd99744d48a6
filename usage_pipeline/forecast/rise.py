"""The present rise of a disk's usage, which a forecast by weeks would miss.

A disk may begin to fill now, as when traffic multiplies or partitions are moved to it. The rate is
the median of three steps of 20 minutes, so a single jump changes the level but not the rate.

Teeth and daily bursts are fast rises too. The gain of a rise is therefore what exceeds half of the
present rate, added up since it was last zero. A rise is unusual if it gains a quarter more than any
earlier one. Steps count up to the present rate, because a faster rise that is over does not go on.

Example: a disk grew by 0.2 GB an hour, and then by 30 GB an hour for 2 h. The rate is 30 GB an
hour. Half of that is 15, so the gain is 30 GB, and no earlier rise gained anything.

Source: Page, "Continuous Inspection Schemes" (1954), for the cumulative sum.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from usage_pipeline.forecast.growth import Floats

OUTGROWN: Final = 1.25
"""An unusual rise exceeds all others by a quarter, because noise exceeds them by less."""
_STEP_H: Final = 1 / 3
_STEPS: Final = 3
_GOES_ON: Final = 3.0
_SOON_H: Final = 24.0


@dataclass(frozen=True, slots=True)
class Rise:
    """The present rise.

    Attributes:
        rate: its rate at the last reading, bytes an hour; 0 or less if usage does not rise.
        hours: how long it has lasted.
        gain_bytes: what it has gained over half of that rate.
        most_bytes: the largest such gain of earlier rises.
    """

    rate: float = 0.0
    hours: float = 0.0
    gain_bytes: float = 0.0
    most_bytes: float = 0.0

    def hours_to(self, missing_bytes: float) -> float:
        """Return the hours until an unusual rise adds these bytes; inf if it does not.

        It is expected to go on for at most a day, and thrice as long as it has lasted.
        """
        if self.rate <= 0.0 or self.gain_bytes <= OUTGROWN * self.most_bytes:
            return math.inf
        hours = missing_bytes / self.rate
        return hours if hours <= min(_SOON_H, _GOES_ON * self.hours) else math.inf


def present_rise(hours: Floats, used_bytes: Floats) -> Rise:
    """Return the rise at the last reading.

    Args:
        hours: the times of at least 2 readings, ascending.
        used_bytes: the used bytes of the readings.
    """
    step_h = max(_STEP_H, float(np.median(np.diff(hours))))
    at = np.arange(hours[-1], hours[0], -step_h)[::-1]
    steps = np.diff(np.interp(at, hours, used_bytes)) / step_h
    if len(steps) < _STEPS:
        return Rise()
    rate = float(np.median(steps[-_STEPS:]))
    # The gain of a faster rise, as of moved partitions, would outlast many of the teeth after it.
    at_most = np.minimum(steps, rate)
    total = np.concatenate([[0.0], np.cumsum(at_most - rate / 2)]) * step_h
    gains = total - np.minimum.accumulate(total)
    began = int(np.flatnonzero(gains == 0.0)[-1])
    return Rise(rate, float(at[-1] - at[began]), float(gains[-1]), float(gains[: began + 1].max()))
