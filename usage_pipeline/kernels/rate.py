"""The sampled rate after each charge: ``quotas.rate.Rate``, with throttled fetches taken back.

Except for fetches, the recorded amounts do not depend on the limit. One pass is therefore enough
for all limits of produce and request time, but fetches need a pass for each limit.

Example with 11 samples of 1 s and a limit of 100: fetches of 900, 200 and 50 bytes come at once.
The first gives a rate of 90 and passes. The second gives 110, waits, and is taken back. The third
gives 95 and passes.

Source: Kafka's Rate, SampledStat and WindowedSum; ClientQuotaManager.unrecordQuotaSensor.
"""

from typing import Final, NamedTuple

import numpy as np

from usage_pipeline.kernels.compiled import compiled, inlined
from usage_pipeline.kernels.values import Charges, Doubles, Longs, Rates, Span
from usage_pipeline.kernels.wait import is_limit

_EVER: Final = 1 << 62
_INT_MAX: Final = (1 << 31) - 1

# The state consists of the samples' totals and an array of times and numbers. The array has for
# each sample when it opened and when it was last used, followed by the four elements below. (There
# are two arrays instead of a tuple, because unpacking a tuple costs ten times as much as the
# arithmetic.)
_COUNT: Final = -4
"""The number of samples."""
_USED: Final = -3
"""The current sample."""
_OLDEST_MS: Final = -2
"""When the oldest sample opened."""
_UNUSED_MS: Final = -1
"""When the least recently used sample was used last, except the current one; most checks need only
this."""


class Samples(NamedTuple):
    """The state so far, so that charges may come in parts."""

    total: Doubles
    marks: Longs

    @classmethod
    def none(cls, span: Span) -> "Samples":
        """Nothing yet."""
        return cls(np.zeros(span.samples + 1), np.zeros(2 * span.samples + 6, np.int64))


@compiled
def _open(marks: Longs, total: Doubles, at: int, now_ms: int) -> None:
    marks[at] = now_ms
    marks[total.size + at] = now_ms
    total[at] = 0.0


@compiled
def _note(marks: Longs, total: Doubles) -> None:
    """Find the oldest and the least recently used sample after samples opened."""
    marks[_OLDEST_MS] = marks[0]
    marks[_UNUSED_MS] = _EVER
    for at in range(marks[_COUNT]):
        marks[_OLDEST_MS] = min(marks[_OLDEST_MS], marks[at])
        if at != marks[_USED]:
            marks[_UNUSED_MS] = min(marks[_UNUSED_MS], marks[total.size + at])


@inlined
def record(marks: Longs, total: Doubles, window_ms: int, amount: float, now_ms: int) -> None:
    """Record an amount. A negative amount takes back an earlier one."""
    at = marks[_USED]
    if marks[_COUNT] == 0:
        marks[_COUNT] = 1
        _open(marks, total, 0, now_ms)
        _note(marks, total)
    elif now_ms - marks[at] >= window_ms:
        at = (at + 1) % total.size
        marks[_USED] = at
        marks[_COUNT] = max(marks[_COUNT], at + 1)
        _open(marks, total, at, now_ms)
        _note(marks, total)
    total[at] += amount
    marks[total.size + at] = now_ms


@inlined
def observe(
    marks: Longs, total: Doubles, window_ms: int, now_ms: int, drops: bool
) -> tuple[float, int]:
    """Return the rate per second, and the milliseconds over which it is taken.

    Args:
        marks: the times of the samples.
        total: the total of each sample.
        window_ms: the window of a sample.
        now_ms: the time.
        drops: whether to drop old samples, as Kafka does when it checks; if not, nothing changes.
    """
    samples = total.size - 1
    if marks[_COUNT] == 0:
        if drops:
            marks[_COUNT] = 1
            _open(marks, total, 0, now_ms)
            _note(marks, total)
        return 0.0, max((samples - 1) * window_ms, 1)
    too_old_ms = now_ms - samples * window_ms
    if marks[_UNUSED_MS] <= too_old_ms or marks[total.size + marks[_USED]] <= too_old_ms:
        return _observe_each(marks, total, window_ms, now_ms, drops)
    # Add the samples in the order of the ring, to round as Kafka does.
    summed = 0.0
    for at in range(marks[_COUNT]):
        summed += total[at]
    over_ms = _over_ms(now_ms - marks[_OLDEST_MS], samples, window_ms)
    return summed / (over_ms / 1000.0), over_ms


@compiled
def _observe_each(
    marks: Longs, total: Doubles, window_ms: int, now_ms: int, drops: bool
) -> tuple[float, int]:
    """Do the work of ``observe`` if a sample is too old."""
    samples = total.size - 1
    too_old_ms = now_ms - samples * window_ms
    summed = 0.0
    oldest_ms = _EVER
    for at in range(marks[_COUNT]):
        since_ms = marks[at]
        if marks[total.size + at] <= too_old_ms:
            since_ms = now_ms
            if drops:
                _open(marks, total, at, now_ms)
        else:
            summed += total[at]
        oldest_ms = min(oldest_ms, since_ms)
    if drops:
        _note(marks, total)
    over_ms = _over_ms(now_ms - oldest_ms, samples, window_ms)
    return summed / (over_ms / 1000.0), over_ms


@inlined
def _over_ms(elapsed_ms: int, samples: int, window_ms: int) -> int:
    # Divide towards zero, also for negative numbers, as Java does.
    whole = elapsed_ms // window_ms if elapsed_ms >= 0 else -(-elapsed_ms // window_ms)
    missing = max(samples - 1 - whole, 0)
    if missing > _INT_MAX:
        return 1  # The number overflows in Java, and the time stays negative.
    return max(elapsed_ms + missing * window_ms, 1)


@compiled
def rates(  # noqa: PLR0917  kernels are called by position
    charges: Charges, limit: Doubles, takes_back: bool, span: Span, samples: Samples, seen: Rates
) -> None:
    """Compute the rate after each charge.

    Args:
        charges: the charges, in the order of time.
        limit: the limit of each charge. A rate that is compared with a limit drops old samples.
        takes_back: whether to take a charge back if it exceeds its limit, as of fetches.
        span: the quota window.
        samples: the state before the charges; it is updated.
        seen: filled.
    """
    at_ms, amount, _, counts = charges
    rate, over_ms = seen
    _, window_ms = span
    total, marks = samples
    for at in range(at_ms.size):
        if counts[at]:
            record(marks, total, window_ms, amount[at], at_ms[at])
        has_limit = is_limit(limit[at])
        rate[at], over_ms[at] = observe(marks, total, window_ms, at_ms[at], has_limit)
        if takes_back and counts[at] and has_limit and rate[at] > limit[at]:
            record(marks, total, window_ms, -amount[at], at_ms[at])
