"""What points grow by, and since when: a line through what came after the last change.

The line is by Theil and Sen: the median of the slopes between any two points, which a third of
strange ones does not move. Growth changes, though, and disks step: a topic is deleted, partitions
are moved. So points are parted where two lines lie at most half as far from them, in all, as one
does; the newer part is parted again, until nothing is won by it. What is read off for the future is
asked of the last part.

- A part has three points at least: a change is known when three came after it.
- Noise and daily swings are no change: two lines lie nearly as far from them as one.
- Nor is what points are unsure by: a valley is as much too high as is written until it is read, and
  so the valleys of regular teeth have steps of their own.

Example: 20 points that grow by 1 each and 10 more by 3 each: one line is 84 off in all, two lines
are 0 off, so the growth is 3, since the 21st point.

Source: Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau" (1968); parting in
two, again and again, is binary segmentation.
"""

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST_POINTS: Final = 3
"""Of a part."""
_WON: Final = 0.5


def theil_sen(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope and value at x = 0 of the line by Theil and Sen.

    Args:
        x: of 2 points at least, no two the same.
        y: of the same points.
    """
    first, second = _pairs(len(x))
    slope = float(np.median((y[second] - y[first]) / (x[second] - x[first])))
    return slope, float(np.median(y - slope * x))


@cache
def _pairs(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Indexes of any two; they take longer to make than the slopes."""
    first, second = np.triu_indices(count, 1)
    return first, second


def parts(x: Floats, y: Floats, unsure: float = 0.0) -> tuple[slice, ...]:
    """Between which changes points lie: at least one part, the newest last.

    Args:
        x: of 3 points at least, ascending.
        y: of the same points.
        unsure: how far each may be off: a line that is no farther off, on average, is not parted.
    """
    starts = [0]
    while len(x) - starts[-1] >= 2 * FEWEST_POINTS:
        at = _change(x[starts[-1] :], y[starts[-1] :], unsure)
        if at is None:
            break
        starts.append(starts[-1] + at)
    return tuple(slice(*ends) for ends in zip(starts, [*starts[1:], len(x)], strict=True))


def _change(x: Floats, y: Floats, unsure: float) -> int | None:
    """The first point after the change that explains most; None when none explains enough."""
    whole = _off(x, y)
    if whole <= unsure * len(x):
        return None
    cuts = range(FEWEST_POINTS, len(x) - FEWEST_POINTS + 1)
    off = [_off(x[:cut], y[:cut]) + _off(x[cut:], y[cut:]) for cut in cuts]
    best = int(np.argmin(off))
    return cuts[best] if off[best] < _WON * whole else None


def _off(x: Floats, y: Floats) -> float:
    """How far points lie from their line, in all."""
    slope, level = theil_sen(x, y)
    return float(np.abs(y - slope * x - level).sum())
