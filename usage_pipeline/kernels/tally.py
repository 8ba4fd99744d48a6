"""Adds up the effect of a quota: how many charges wait, how long, and how near the quota they come.

A charge is near the quota at 80 % or more. It is over the quota above it, or at it for quotas that
are used up then. The longest waits are kept with their times, one for each ten minutes.

Example: with a quota of 100, charges give rates of 70, 80, 100 and 150. 3 are near, and 1 is over.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from usage_pipeline.kernels.compiled import compiled
from usage_pipeline.kernels.values import ChargeResults, Charges, Doubles, Longs
from usage_pipeline.kernels.wait import LONG_MAX, is_limit

EVENTS: Final = 0
THROTTLED: Final = 1
TOTAL_MS: Final = 2
MAX_MS: Final = 3
NEAR: Final = 4
OVER: Final = 5
COUNTS: Final = 6
"""The number of counts; the names above are their indexes."""

WAIT_MS: Final = 0
AT_MS: Final = 1
MOMENTS: Final = 3
"""The number of longest waits with their times; the names above are the indexes of each."""

_NEAR: Final = 0.8
_MOMENT_MS: Final = 600_000


class Sums(NamedTuple):
    """A row for each entity.

    Attributes:
        counts: the counts.
        amounts: the amount of all charges, and of the charges that waited or were rejected.
        peaks: the highest rate.
        last: the last limit; NaN for none.
        moments: the longest waits, of different ten minutes, in descending order; 0 for none.
    """

    counts: Longs
    amounts: Doubles
    peaks: Doubles
    last: Doubles
    moments: Longs

    @classmethod
    def none(cls, entities: int) -> "Sums":
        """Nothing yet."""
        return cls(
            np.zeros((entities, COUNTS), np.int64),
            np.zeros((entities, 2)),
            np.zeros(entities),
            np.full(entities, math.nan),
            np.zeros((entities, MOMENTS, 2), np.int64),
        )

    def grown(self, entities: int) -> "Sums":
        """Return sums with room for more entities."""
        if entities == self.peaks.size:
            return self
        # With numpy's pad, half of the time of many small groups was spent here.
        sums = Sums.none(entities)
        for new, old in zip(sums, self, strict=True):
            new[: len(old)] = old
        return sums


@compiled
def note_wait(moments: Longs, at_ms: int, wait_ms: int) -> None:
    """Keep a wait if it is one of the longest.

    Args:
        moments: the longest waits of an entity, as in ``Sums``; they are updated.
        at_ms: the time of the charge.
        wait_ms: its wait.
    """
    place = MOMENTS - 1
    if wait_ms <= moments[place, WAIT_MS]:
        return
    for other in range(MOMENTS):
        is_same = moments[other, AT_MS] // _MOMENT_MS == at_ms // _MOMENT_MS
        if moments[other, WAIT_MS] > 0 and is_same:
            place = other
            break
    if wait_ms <= moments[place, WAIT_MS]:
        return
    while place > 0 and moments[place - 1, WAIT_MS] < wait_ms:
        moments[place] = moments[place - 1]
        place -= 1
    moments[place, WAIT_MS] = wait_ms
    moments[place, AT_MS] = at_ms


@compiled
def tally(  # noqa: PLR0917  kernels are called by position
    entity: Longs,
    charges: Charges,
    limit: Doubles,
    results: ChargeResults,
    over_at: bool,
    sums: Sums,
) -> None:
    """Add charges to the sums of their entities.

    Args:
        entity: for each charge, the row of its entity in the sums.
        charges: the charges; their times are in milliseconds since 1970.
        limit: the limit of each charge; NaN means no limit.
        results: the result of each charge.
        over_at: whether a charge at the limit is over it.
        sums: the sums; they are updated.
    """
    at_ms, amount, _, _ = charges
    wait_ms, refused, compared, rate = results
    counts, amounts, peaks, last, moments = sums
    for at in range(entity.size):
        row = counts[entity[at]]
        row[EVENTS] += 1
        amounts[entity[at], 0] += amount[at]
        peaks[entity[at]] = max(peaks[entity[at]], rate[at])
        if not is_limit(limit[at]):
            last[entity[at]] = math.nan
            continue
        last[entity[at]] = limit[at]
        if wait_ms[at] > 0 or refused[at]:
            row[THROTTLED] += 1
            amounts[entity[at], 1] += amount[at]
        # Several unbounded waits must not overflow to a negative sum.
        row[TOTAL_MS] += min(wait_ms[at], LONG_MAX - row[TOTAL_MS])
        row[MAX_MS] = max(row[MAX_MS], wait_ms[at])
        note_wait(moments[entity[at]], at_ms[at], wait_ms[at])
        if compared[at] >= _NEAR * limit[at]:
            row[NEAR] += 1
        if compared[at] > limit[at] or (over_at and compared[at] == limit[at]):
            row[OVER] += 1
