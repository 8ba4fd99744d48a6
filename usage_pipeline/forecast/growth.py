"""The growth of points since the last change of growth.

The growth is the slope of the line by Theil and Sen: the median of the slopes between any two
points. Up to a third of outliers do not change it. Disks also change their growth, or jump when a
topic is deleted or partitions are moved. The points are therefore split where two lines have at
most half of the total distance of one line. The newer part is split again until no split helps. The
last part determines the future.

- A part has at least three points, so a change counts from the third point after it.
- Noise and daily cycles cause no split, because two lines have nearly the distance of one.
- The uncertainty of points causes no split either. A valley is too high by the bytes written
  between deletion and reading, so even the valleys of regular teeth have steps.

Example: 20 points grow by 1 each, and 10 more by 3 each. One line has a distance of 84, and two
lines have a distance of 0, so the growth is 3 since the 21st point.

Source: Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau" (1968). The repeated
split is binary segmentation.
"""

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST_POINTS: Final = 3
"""The smallest number of points of a part."""
_WON: Final = 0.5


def theil_sen(x: Floats, y: Floats) -> tuple[float, float]:
    """Return slope and value at x = 0 of the line by Theil and Sen.

    Args:
        x: the distinct positions of at least 2 points.
        y: their values.
    """
    first, second = _pairs(len(x))
    slope = float(np.median((y[second] - y[first]) / (x[second] - x[first])))
    return slope, float(np.median(y - slope * x))


@cache
def _pairs(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the indexes of all pairs, cached because they take longer than the slopes."""
    first, second = np.triu_indices(count, 1)
    return first, second


def parts(x: Floats, y: Floats, unsure: float = 0.0) -> tuple[slice, ...]:
    """Split points at changes of growth: at least one part, the newest last.

    Args:
        x: the ascending positions of at least 3 points.
        y: their values.
        unsure: the uncertainty of a point. A line with a smaller average distance is not split.
    """
    starts = [0]
    while len(x) - starts[-1] >= 2 * FEWEST_POINTS:
        at = _change(x[starts[-1] :], y[starts[-1] :], unsure)
        if at is None:
            break
        starts.append(starts[-1] + at)
    return tuple(slice(*ends) for ends in zip(starts, [*starts[1:], len(x)], strict=True))


def _change(x: Floats, y: Floats, unsure: float) -> int | None:
    """Return the first point after the best split; None if no split helps enough."""
    whole = _off(x, y)
    if whole <= unsure * len(x):
        return None
    cuts = range(FEWEST_POINTS, len(x) - FEWEST_POINTS + 1)
    off = [_off(x[:cut], y[:cut]) + _off(x[cut:], y[cut:]) for cut in cuts]
    best = int(np.argmin(off))
    return cuts[best] if off[best] < _WON * whole else None


def _off(x: Floats, y: Floats) -> float:
    """Return the total distance of points from their line."""
    slope, level = theil_sen(x, y)
    return float(np.abs(y - slope * x - level).sum())
