"""How long a client must wait once its rate is over the limit.

The wait X makes the observed rate O over the window W the limit T: O x W / (W + X) = T, so
X = (O - T) / T x W, rounded to the nearest millisecond, a half up. For produce and fetch it has no
bound. For request time it is one quota window at most, so that no heartbeat is late for long; what
that lets through is bounded too: a user with C connections and requests of R uses
max(quota, C x R) in each window at most.

Examples: 15 MB/s at a limit of 10 MB/s over 11 s: 5.5 s. Alice at 1 % of a 1 s window may use
10 ms; a request of 100 ms in an otherwise idle window of 10 s is 1 %, so it waits 0; ten of them
are 10 %, and she waits 1 s, not 90.

Source: Kafka's QuotaUtils; KIP-124, "Throttling".
"""

import math
from typing import Final

_LONG_MAX: Final = (1 << 63) - 1
"""What Java's rounding makes of infinity."""


def unbounded_ms(rate: float, limit: float, window_ms: int) -> int:
    """The wait for produce and fetch.

    Brokers up to 4.3 then cut it to the lower 32 bits, and 4.4 to 24.8 days; this does not.

    Args:
        rate: observed, in the limit's unit.
        limit: above 0.
        window_ms: what the rate was taken over, ``Rate.window_ms``.

    Returns:
        Milliseconds; 0 when the rate is not over the limit.
    """
    if rate <= limit:
        return 0
    return rounded_ms((rate - limit) / limit * window_ms)


def bounded_ms(rate: float, limit: float, window_ms: int, most_ms: int) -> int:
    """The wait for request time, ``most_ms`` at most; otherwise as ``unbounded_ms``."""
    return min(unbounded_ms(rate, limit, window_ms), most_ms)


def rounded_ms(wait_ms: float) -> int:
    """To the nearest millisecond, a half up, as Java's Math.round."""
    if math.isinf(wait_ms):
        return _LONG_MAX
    whole = math.floor(wait_ms)
    # Not floor(x + 0.5): that sum rounds, and 0.49999999999999994 would become 1.
    return min(whole + (wait_ms - whole >= 0.5), _LONG_MAX)
