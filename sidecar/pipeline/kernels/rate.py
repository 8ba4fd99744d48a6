"""The sampled rate after each charge: ``quotas.rate.Rate`` and a throttled fetch taken back.

What is recorded does not depend on the limit, except for fetches: so one pass serves all limits of
produce and request time, and fetches need one for each.

Example, 11 samples of 1 s: fetches of 900, 200 and 50 bytes at once at a limit of 100. 90 a second
pass, 110 wait and are taken back, and so 95 pass again.

Source: Kafka's Rate, SampledStat and WindowedSum; ClientQuotaManager.unrecordQuotaSensor.
"""

import numpy as np

from sidecar.pipeline.kernels.compiled import compiled
from sidecar.pipeline.kernels.values import Charges, Doubles, Flags, Longs, Rates, Span
from sidecar.pipeline.kernels.wait import is_limit

Ring = tuple[Longs, Longs, Doubles, Longs]
"""When samples opened and were last used, their totals, and (how many there are, which is used)."""


@compiled
def ring(samples: int) -> Ring:
    """No sample yet, and room for one more than asked for."""
    return (
        np.zeros(samples + 1, np.int64),
        np.zeros(samples + 1, np.int64),
        np.zeros(samples + 1, np.float64),
        np.zeros(2, np.int64),
    )


@compiled
def _open(kept: Ring, at: int, now_ms: int) -> None:
    opened, last, total, _ = kept
    opened[at] = now_ms
    last[at] = now_ms
    total[at] = 0.0


@compiled
def record(kept: Ring, window_ms: int, amount: float, now_ms: int) -> None:
    """Counts an amount; a negative one takes back what was counted before."""
    opened, last, total, place = kept
    if place[0] == 0:
        _open(kept, 0, now_ms)
        place[0] = 1
        place[1] = 0
    at = place[1]
    if now_ms - opened[at] >= window_ms:
        at = (at + 1) % total.size
        place[1] = at
        _open(kept, at, now_ms)
        place[0] = max(place[0], at + 1)
    total[at] += amount
    last[at] = now_ms


@compiled
def observe(kept: Ring, window_ms: int, now_ms: int, drops: bool) -> tuple[float, int]:
    """The rate, per second, and what it is taken over, milliseconds.

    Args:
        kept: the samples.
        window_ms: of one sample.
        now_ms: when.
        drops: whether what is too old is dropped, as by Kafka's own look; else nothing changes.
    """
    opened, last, total, place = kept
    samples = total.size - 1
    if place[0] == 0:
        if drops:
            _open(kept, 0, now_ms)
            place[0] = 1
        return 0.0, max((samples - 1) * window_ms, 1)
    too_old_ms = now_ms - samples * window_ms
    found = 0.0
    oldest_ms = now_ms if last[0] <= too_old_ms else opened[0]
    for at in range(place[0]):
        since_ms = opened[at]
        if last[at] <= too_old_ms:
            since_ms = now_ms
            if drops:
                _open(kept, at, now_ms)
        else:
            found += total[at]
        oldest_ms = min(oldest_ms, since_ms)
    over_ms = _over_ms(now_ms - oldest_ms, samples, window_ms)
    return found / (over_ms / 1000.0), over_ms


@compiled
def _over_ms(elapsed_ms: int, samples: int, window_ms: int) -> int:
    # Towards zero, also below it, as Java divides.
    whole = elapsed_ms // window_ms if elapsed_ms >= 0 else -(-elapsed_ms // window_ms)
    missing = max(samples - 1 - whole, 0)
    return max(elapsed_ms + missing * window_ms, 1)


@compiled
def rates(charges: Charges, drops: Flags, span: Span, seen: Rates) -> None:
    """The rate after each charge.

    Args:
        charges: in their order.
        drops: whether its rate is held against a limit; else looking at it leaves no trace.
        span: the quota window.
        seen: filled.
    """
    at_ms, amount, _, counts = charges
    kept = ring(span.samples)
    for at in range(at_ms.size):
        if counts[at]:
            record(kept, span.window_ms, amount[at], at_ms[at])
        seen.rate[at], seen.over_ms[at] = observe(kept, span.window_ms, at_ms[at], drops[at])


@compiled
def fetch_rates(charges: Charges, limit: Doubles, span: Span, seen: Rates) -> None:
    """As ``rates``, with what is over its limit taken back after it was looked at."""
    at_ms, amount, _, counts = charges
    kept = ring(span.samples)
    for at in range(at_ms.size):
        if counts[at]:
            record(kept, span.window_ms, amount[at], at_ms[at])
        held = is_limit(limit[at])
        seen.rate[at], seen.over_ms[at] = observe(kept, span.window_ms, at_ms[at], held)
        if counts[at] and held and seen.rate[at] > limit[at]:
            record(kept, span.window_ms, -amount[at], at_ms[at])
