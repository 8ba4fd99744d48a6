"""What a quota does to its charges, summed: how many wait, how long, how near it they come.

Near is 80 % of the quota or more; over is above it, or where the quota is already used up at it.

Example: charges that leave rates of 70, 80, 100 and 150 at a quota of 100: 3 are near, 1 is over.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from usage_pipeline.kernels.compiled import compiled
from usage_pipeline.kernels.values import ChargeResults, Doubles, Longs
from usage_pipeline.kernels.wait import LONG_MAX, is_limit

EVENTS: Final = 0
THROTTLED: Final = 1
TOTAL_MS: Final = 2
MAX_MS: Final = 3
NEAR: Final = 4
OVER: Final = 5
COUNTS: Final = 6
"""How many counts there are; those above are their places."""

_NEAR: Final = 0.8


class Sums(NamedTuple):
    """A row for each entity: counts, the highest rate, and the last limit, NaN for none."""

    counts: Longs
    peaks: Doubles
    last: Doubles

    @classmethod
    def none(cls, entities: int) -> "Sums":
        """Nothing yet."""
        return cls(
            np.zeros((entities, COUNTS), np.int64),
            np.zeros(entities),
            np.full(entities, math.nan),
        )

    def grown(self, entities: int) -> "Sums":
        """With room for more of them."""
        more = entities - self.peaks.size
        if not more:
            return self
        return Sums(
            np.pad(self.counts, ((0, more), (0, 0))),
            np.pad(self.peaks, (0, more)),
            np.pad(self.last, (0, more), constant_values=math.nan),
        )


@compiled
def tally(entity: Longs, results: ChargeResults, limit: Doubles, over_at: bool, sums: Sums) -> None:
    """Adds charges to the sums of their entities.

    Args:
        entity: of each charge, a row of the sums.
        results: what became of it.
        limit: of each charge; NaN: none.
        over_at: whether a quota is used up at it already, not only above it.
        sums: added to.
    """
    wait_ms, refused, used, rate = results
    counts, peaks, last = sums
    for at in range(entity.size):
        row = counts[entity[at]]
        row[EVENTS] += 1
        peaks[entity[at]] = max(peaks[entity[at]], rate[at])
        if not is_limit(limit[at]):
            last[entity[at]] = math.nan
            continue
        last[entity[at]] = limit[at]
        if wait_ms[at] > 0 or refused[at]:
            row[THROTTLED] += 1
        # Waits without an end may come together, and must not become a negative sum.
        row[TOTAL_MS] += min(wait_ms[at], LONG_MAX - row[TOTAL_MS])
        row[MAX_MS] = max(row[MAX_MS], wait_ms[at])
        if used[at] >= _NEAR * limit[at]:
            row[NEAR] += 1
        if used[at] > limit[at] or (over_at and used[at] == limit[at]):
            row[OVER] += 1
