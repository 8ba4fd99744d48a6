"""KIP-599's token bucket, strict and permissive: ``quotas.token_bucket`` for arrays.

After a charge without a limit, the next charge with a limit finds a full bucket, as in
``tests/support/prediction.py``. A charge that does not count leaves the bucket unchanged.

``compared`` is the used part of the bucket, expressed as a rate. With a quota of 5 over 100 s, 560
used tokens of 500 are 5.6 a second, and the wait is 12 s.

Source: Kafka's TokenBucket and ControllerMutationQuotaManager.
"""

import math
from typing import NamedTuple

import numpy as np

from usage_pipeline.kernels.compiled import compiled
from usage_pipeline.kernels.values import ChargeResults, Charges, Doubles, Longs
from usage_pipeline.kernels.wait import is_limit, rounded_ms


class Bucket(NamedTuple):
    """The number of tokens (NaN before any limit), and its time: one element each."""

    tokens: Doubles
    updated_ms: Longs

    @classmethod
    def full(cls) -> "Bucket":
        """Make a bucket without any charge."""
        return cls(np.full(1, math.nan), np.zeros(1, np.int64))


@compiled
def filled(tokens: float, rate: float, burst: float, since_ms: int) -> float:
    """Return the number of tokens at a later time."""
    return min(burst, tokens + rate * (since_ms / 1000.0))


@compiled
def wait_for(tokens: float, rate: float) -> int:
    """Return the milliseconds until the number of tokens is 0 again."""
    return rounded_ms(-tokens / rate * 1000) if tokens < 0 else 0


@compiled
def bucket_waits(
    charges: Charges, limit: Doubles, burst_s: float, bucket: Bucket, results: ChargeResults
) -> None:
    """Compute the result of each charge.

    Args:
        charges: the charges, in the order of time.
        limit: tokens per second; NaN means no limit.
        burst_s: how long an empty bucket takes to fill, in seconds.
        bucket: the state before the charges; it is updated.
        results: filled, except for the rate; ``compared`` is the bucket's used part, per second.
    """
    at_ms, amount, strict, counts = charges
    wait_ms, refused, compared, _ = results
    tokens = bucket.tokens[0]
    updated_ms = bucket.updated_ms[0]
    for at in range(at_ms.size):
        wait_ms[at] = 0
        refused[at] = False
        compared[at] = math.nan
        if not counts[at]:
            continue
        if not is_limit(limit[at]):
            tokens = math.nan
            continue
        burst = burst_s * limit[at]
        if math.isnan(tokens):
            tokens = burst
            updated_ms = at_ms[at]
        tokens = filled(tokens, limit[at], burst, at_ms[at] - updated_ms)
        updated_ms = at_ms[at]
        if strict[at] and tokens < 0:
            refused[at] = True
        else:
            tokens = min(burst, tokens - amount[at])
        if refused[at] or not strict[at]:
            wait_ms[at] = wait_for(tokens, limit[at])
        compared[at] = (burst - tokens) / burst_s
    bucket.tokens[0] = tokens
    bucket.updated_ms[0] = updated_ms
