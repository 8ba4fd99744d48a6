"""How long a client must wait when its rate is over the limit.

The wait X lowers the observed rate O over the window W to the limit T: O x W / (W + X) = T. So X =
(O - T) / T x W, rounded half up to a millisecond. For produce and fetch the wait has no bound. For
request time it is at most one quota window, so that heartbeats are not late for long. The excess is
bounded too: a user with C connections and requests of R uses at most max(quota, C x R) in each
window.

Examples: 15 MB/s with a limit of 10 MB/s over 11 s gives 5.5 s. Alice's quota is 1 % of a 1 s
window, which is 10 ms. One request of 100 ms in an otherwise idle window of 10 s is 1 %, so she
does not wait. Ten such requests are 10 %, and she waits 1 s instead of 90 s.

Source: Kafka's QuotaUtils; KIP-124, "Throttling".
"""

import math
from typing import Final

_LONG_MAX: Final = (1 << 63) - 1
"""The result of Java's rounding of infinity."""


def unbounded_ms(rate: float, limit: float, window_ms: int) -> int:
    """Return the wait for produce and fetch.

    Brokers up to 4.3 cut it to its lower 32 bits, and 4.4 limits it to 24.8 days; this function
    does neither.

    Args:
        rate: the observed rate, in the limit's unit.
        limit: above 0.
        window_ms: the time over which the rate was taken, ``Rate.window_ms``.

    Returns:
        Milliseconds; 0 if the rate is not over the limit.
    """
    if rate <= limit:
        return 0
    return rounded_ms((rate - limit) / limit * window_ms)


def bounded_ms(rate: float, limit: float, window_ms: int, most_ms: int) -> int:
    """Return the wait for request time: that of ``unbounded_ms``, but at most ``most_ms``."""
    return min(unbounded_ms(rate, limit, window_ms), most_ms)


def rounded_ms(wait_ms: float) -> int:
    """Round half up to a millisecond, as Java's Math.round does."""
    if math.isinf(wait_ms):
        return _LONG_MAX
    whole = math.floor(wait_ms)
    # Not floor(x + 0.5): that sum rounds, and 0.49999999999999994 would become 1.
    return min(whole + (wait_ms - whole >= 0.5), _LONG_MAX)
