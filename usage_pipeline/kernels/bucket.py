"""KIP-599's token bucket, strict and permissive: ``quotas.token_bucket`` for arrays.

A charge without a limit empties the place: the next that has one finds a bucket that is full, as in
``quotas.prediction``. One that does not count leaves it as it is.

``used`` is how much of the bucket is gone, as a rate that fills it: at a quota of 5 over 100 s,
560 of 500 tokens used are 5.6 a second, and the wait is 12 s.

Source: Kafka's TokenBucket and ControllerMutationQuotaManager.
"""

import math
from typing import NamedTuple

import numpy as np

from usage_pipeline.kernels.compiled import compiled
from usage_pipeline.kernels.values import ChargeResults, Charges, Doubles, Longs
from usage_pipeline.kernels.wait import is_limit, rounded_ms


class Bucket(NamedTuple):
    """How many tokens there are, NaN before any limit, and when that was: an element each."""

    tokens: Doubles
    updated_ms: Longs

    @classmethod
    def full(cls) -> "Bucket":
        """Nothing was taken yet."""
        return cls(np.full(1, math.nan), np.zeros(1, np.int64))


@compiled
def filled(tokens: float, rate: float, burst: float, since_ms: int) -> float:
    """How many tokens there are so much later."""
    return min(burst, tokens + rate * (since_ms / 1000.0))


@compiled
def wait_for(tokens: float, rate: float) -> int:
    """How long until there are none too few, milliseconds."""
    return rounded_ms(-tokens / rate * 1000) if tokens < 0 else 0


@compiled
def bucket_waits(
    charges: Charges, limit: Doubles, burst_s: float, bucket: Bucket, results: ChargeResults
) -> None:
    """What becomes of each charge.

    Args:
        charges: in their order.
        limit: tokens per second; NaN: none.
        burst_s: how long a bucket takes to fill, seconds.
        bucket: before these, and then after them.
        results: filled, its rate aside; ``used`` is what is gone of the bucket, per second.
    """
    at_ms, amount, strict, counts = charges
    wait_ms, refused, used, _ = results
    tokens = bucket.tokens[0]
    updated_ms = bucket.updated_ms[0]
    for at in range(at_ms.size):
        wait_ms[at] = 0
        refused[at] = False
        used[at] = math.nan
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
        used[at] = (burst - tokens) / burst_s
    bucket.tokens[0] = tokens
    bucket.updated_ms[0] = updated_ms
