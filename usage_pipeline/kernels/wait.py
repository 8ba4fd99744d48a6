"""How long a client must wait: ``quotas.throttle_time`` for arrays.

Example: 150 a second over 10,000 ms with a limit of 100 gives 5,000 ms.
"""

import math
from typing import Final

from usage_pipeline.kernels.compiled import compiled
from usage_pipeline.kernels.values import Doubles, Longs, Rates

LONG_MAX: Final = (1 << 63) - 1
"""The result of Java's rounding of infinity; as a wait, it has no end."""
_TOO_LONG: Final = 2.0**63


@compiled
def rounded_ms(wait_ms: float) -> int:
    """Round half up to a millisecond, as Java's Math.round does."""
    if not wait_ms < _TOO_LONG:
        return LONG_MAX
    whole = math.floor(wait_ms)
    if wait_ms - whole >= 0.5:
        return int(whole) + 1
    return int(whole)


@compiled
def is_limit(limit: float) -> bool:
    """Whether a limit has an effect: it is above 0 and finite."""
    return 0.0 < limit < math.inf


@compiled
def waits(seen: Rates, limit: Doubles, most_ms: int, wait_ms: Longs) -> None:
    """Compute the waits of charges from their rates.

    Args:
        seen: the rate that includes each charge.
        limit: the limit of each charge; NaN means no limit.
        most_ms: the longest wait.
        wait_ms: filled with the waits, in milliseconds.
    """
    rate, over_ms = seen
    for at in range(limit.size):
        wait_ms[at] = 0
        if is_limit(limit[at]) and rate[at] > limit[at]:
            wait = rounded_ms((rate[at] - limit[at]) / limit[at] * over_ms[at])
            wait_ms[at] = min(wait, most_ms)
