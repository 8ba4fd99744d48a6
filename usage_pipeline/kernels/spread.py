"""KIP-599's rate as first proposed, with bursts spread evenly: ``quotas.burst_rate`` for arrays.

Example: with a quota of 5 per second over 100 samples of 1 s, a burst of 560 gives a rate of 5.6
and a wait of 12 s. Then 88 parts of 5.6 remain, a rate of 4.928.

Source: KIP-599, version 15 of its page, "Throttling Algorithm".
"""

import math

import numpy as np

from usage_pipeline.kernels.compiled import compiled
from usage_pipeline.kernels.values import ChargeResults, Charges, Doubles, Longs, Span
from usage_pipeline.kernels.wait import is_limit, rounded_ms

Bursts = tuple[Longs, Doubles, Longs]
"""The windows' numbers, their amounts, and (first kept window, number of windows, newest window,
whether there was a limit)."""


def no_bursts(span: Span) -> Bursts:
    """Make the state without any charge."""
    samples = span.samples + 1
    return np.zeros(samples, np.int64), np.zeros(samples), np.zeros(4, np.int64)


@compiled
def _window_at(bursts: Bursts, now_ms: int, window_ms: int, is_new: bool) -> int:
    """Drop bursts without a remaining part; return the number of the current window."""
    number, _, place = bursts
    samples = number.size - 1
    current = now_ms // window_ms
    if is_new:
        place[1] = 0
    else:
        current = max(current, place[2])
    place[2] = current
    while place[1] > 0 and number[place[0]] <= current - samples:
        place[0] = (place[0] + 1) % number.size
        place[1] -= 1
    return current


@compiled
def _rate_in(bursts: Bursts, at: int, window_ms: int) -> float:
    """Return the rate in a later window if nothing more is recorded."""
    number, amount, place = bursts
    samples = number.size - 1
    gone = at - samples
    parts = 0.0
    for step in range(place[1]):
        slot = (place[0] + step) % number.size
        if number[slot] > gone:
            parts += amount[slot] * (number[slot] - gone)
    return parts / samples / (samples * window_ms / 1000)


@compiled
def _add(bursts: Bursts, amount: float, current: int) -> None:
    number, amounts, place = bursts
    last = (place[0] + place[1] - 1) % number.size
    if place[1] > 0 and number[last] == current:
        # Begin with the newer one, in the same order as that sum.
        amounts[last] = amount + amounts[last]
        return
    slot = (place[0] + place[1]) % number.size
    number[slot] = current
    amounts[slot] = amount
    place[1] += 1


@compiled
def _wait_for(bursts: Bursts, current: int, limit: float, now_ms: int, window_ms: int) -> int:
    rate = _rate_in(bursts, current, window_ms)
    if rate < limit:
        return 0
    samples = bursts[0].size - 1
    wait_ms = rounded_ms((rate - limit) / limit * (samples * window_ms))
    low, high = current, current + samples
    while low < high:
        middle = (low + high) // 2
        if _rate_in(bursts, middle, window_ms) < limit:
            high = middle
        else:
            low = middle + 1
    return max(wait_ms, low * window_ms - now_ms)


@compiled
def spread_waits(
    charges: Charges, limit: Doubles, span: Span, bursts: Bursts, results: ChargeResults
) -> None:
    """Do the same as ``bucket.bucket_waits``; ``compared`` is the spread rate."""
    at_ms, amount, strict, counts = charges
    wait_ms, refused, compared, _ = results
    window_ms = span.window_ms
    is_new = bursts[2][3] == 0
    for at in range(at_ms.size):
        wait_ms[at] = 0
        refused[at] = False
        compared[at] = math.nan
        if not counts[at]:
            continue
        if not is_limit(limit[at]):
            is_new = True
            continue
        current = _window_at(bursts, at_ms[at], window_ms, is_new)
        is_new = False
        compared[at] = _rate_in(bursts, current, window_ms)
        refused[at] = strict[at] and compared[at] >= limit[at]
        if not refused[at]:
            _add(bursts, amount[at], current)
            compared[at] = _rate_in(bursts, current, window_ms)
        if refused[at] or not strict[at]:
            wait_ms[at] = _wait_for(bursts, current, limit[at], at_ms[at], window_ms)
    bursts[2][3] = not is_new
