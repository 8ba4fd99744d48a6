"""The error of forecasts of known history.

The newest fifth, third and half of a history are excluded in turn. A saw is fitted to the rest, and
its floor is compared with the real floor in the excluded part.

Example: the saw has a floor of 60.2 GB at an hour when the real floor was 60.0 GB, so the error is
0.2 GB. The result is the median of all errors.
"""

from typing import Final

import numpy as np

from usage_pipeline.forecast.growth import Floats
from usage_pipeline.forecast.sawtooth import Refused, fit, teeth

_HELD_OUT: Final = (0.2, 1 / 3, 0.5)


def backtest_error(hours: Floats, used_bytes: Floats) -> float | None:
    """Return the median error in bytes; None if no part of the history can be fitted.

    Args:
        hours: the times of the readings, ascending.
        used_bytes: the used bytes of the readings.
    """
    valleys = teeth(hours, used_bytes).valleys
    shown = valleys if len(valleys) else np.arange(len(hours))
    errors = [np.empty(0)]
    for share in _HELD_OUT:
        cut = hours[-1] - share * (hours[-1] - hours[0])
        head = hours <= cut
        saw = fit(hours[head], used_bytes[head])
        # Retention has not deleted in this part yet, so its floor is unknown.
        if isinstance(saw, Refused) or bool(saw.teeth) != bool(len(valleys)):
            continue
        held_out = shown[hours[shown] > cut]
        errors.append(np.abs(saw.floor_at(hours[held_out]) - used_bytes[held_out]))
    every = np.concatenate(errors)
    return float(np.median(every)) if len(every) else None
