"""How far off a forecast of a disk was on history that it was not shown.

The newest fifth, third and half of a history are left out in turn; a saw is fitted to the rest, and
what retention really left in that part is compared with what the saw says it would be.

Example: the floor was said to be 60.2 GB at an hour when it was 60.0 GB: an error of 0.2 GB. The
result is the median of all.
"""

from typing import Final

import numpy as np

from usage_pipeline.forecast.growth import Floats
from usage_pipeline.forecast.sawtooth import Refused, fit, teeth

_HELD_OUT: Final = (0.2, 1 / 3, 0.5)


def backtest_error(hours: Floats, used: Floats) -> float | None:
    """The median error on tails left out, bytes; None when no part of the history can be fitted.

    Args:
        hours: of the readings, ascending.
        used: bytes.
    """
    valleys = teeth(hours, used).valleys
    shown = valleys if len(valleys) else np.arange(len(hours))
    errors = [np.empty(0)]
    for share in _HELD_OUT:
        cut = hours[-1] - share * (hours[-1] - hours[0])
        head = hours <= cut
        saw = fit(hours[head], used[head])
        # Of a head that retention has not cut yet nothing can be said of what it leaves.
        if isinstance(saw, Refused) or bool(saw.teeth) != bool(len(valleys)):
            continue
        held_out = shown[hours[shown] > cut]
        errors.append(np.abs(saw.floor_at(hours[held_out]) - used[held_out]))
    every = np.concatenate(errors)
    return float(np.median(every)) if len(every) else None
