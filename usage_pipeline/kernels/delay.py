"""The lowest rates under which usage that queues waits no longer than some times.

A throttled client keeps what it can't send, and sends it later. So under a rate, a second's usage
comes after all earlier usage that still waits, and what waits then, divided by the rate, is the
delay. A time W is met if no span of L seconds has more usage than the rate serves in L + W seconds.

Example: 4 MB/s for 7,200 s and a delay of 30 s need 28,800 / 7,230 = 3.98 MB/s. Under 2.67 MB/s,
9,600 MB wait in the end, for an hour. A single second of 310 MB needs 310 / 31 = 10 MB/s.

The lowest rate is the largest such quotient. Dinkelbach's iteration finds it in a few steps: from a
rate, take the span that exceeds it most, and continue from the quotient of that span.

Source: W. Dinkelbach, On Nonlinear Fractional Programming, Management Science 13 (1967).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from usage_pipeline.kernels.values import Doubles, Longs

_STEPS_S: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0)
_ENOUGH: Final = 1 + 1e-9


def delays_until(longest_s: float) -> tuple[float, ...]:
    """Return the delays of which rates are taken, seconds, ascending; the longest is the last."""
    return (*(each for each in _STEPS_S if each < longest_s), longest_s)


def rates_within(second: Longs, amount: Doubles, delays_s: Sequence[float]) -> list[float]:
    """Return the lowest rate of each delay, in amounts per second; 0 without any amount.

    Args:
        second: seconds, each once, ascending.
        amount: the amount of each second, at least 0.
        delays_s: delays in seconds, at least 0, ascending.
    """
    used = amount > 0
    if not used.any():
        return [0.0] * len(delays_s)
    since = (second[used] - second[used][0]).astype(np.float64)
    until = np.cumsum(amount[used])
    spans = (since, until - amount[used], until)
    rates: list[float] = []
    rate = 0.0
    # The shortest delay needs the highest rate, so the rates ascend.
    for delay_s in reversed(delays_s):
        rate = _rate_within(*spans, delay_s, rate)
        rates.append(rate)
        # At a higher rate, nothing waits in a second in which nothing waits now.
        waits = _waiting(*spans, rate) > 0
        if delay_s > 0 and waits.any():
            spans = (spans[0][waits], spans[1][waits], spans[2][waits])
    return rates[::-1]


def _rate_within(
    since: Doubles, before: Doubles, until: Doubles, delay_s: float, rate: float
) -> float:
    while True:
        end = int(np.argmax(_waiting(since, before, until, rate)))
        start = int(np.argmin((before - rate * since)[: end + 1]))
        length = since[end] + 1 - since[start]
        higher = float((until[end] - before[start]) / (length + delay_s))
        if higher <= rate * _ENOUGH:
            return max(rate, higher)
        rate = higher


def _waiting(since: Doubles, before: Doubles, until: Doubles, rate: float) -> Doubles:
    """Return the amount that waits after each second; below 0 if there is room for more."""
    waiting: Doubles = until - rate * (since + 1) - np.minimum.accumulate(before - rate * since)
    return waiting
