"""KIP-936's producer ids: which are new in a window, and the bucket that new ones take from.

Equal to ``quotas.producer_ids`` with filters that are never wrong: an id is remembered from when it
was new until the filter that it is in is over, half a window at least and a whole one at most.

Example: 50 ids an hour, 11 windows. The first 550 ids pass at once, the 551st waits 72 s.

Source: KIP-936, section "ProducerIdQuotaManager".
"""

import math
from typing import Final, NamedTuple

from usage_pipeline.kernels.bucket import Bucket, filled, wait_for
from usage_pipeline.kernels.compiled import compiled
from usage_pipeline.kernels.values import ChargeResults, Doubles, Flags, Longs, Span
from usage_pipeline.kernels.wait import is_limit

NEVER: Final = -(1 << 61)
"""Milliseconds since 1970: long before any window."""


class Remembered(NamedTuple):
    """Ids that were seen so far.

    Attributes:
        noted_ms: when the filter opened that an id was put into, by its number; NEVER for none.
        clock: when the newest filter opened, and the latest time that was seen; NEVER for none.
    """

    noted_ms: Longs
    clock: Longs


@compiled
def new_ids(
    at_ms: Longs, number: Longs, window_ms: int, remembered: Remembered, is_new: Flags
) -> None:
    """Which ids are new.

    Args:
        at_ms: when each was allocated; time that runs backwards stands still.
        number: of each id: the same for the same id.
        window_ms: how long one is remembered at most.
        remembered: before these, and then with them.
        is_new: filled.
    """
    noted_ms, clock = remembered
    opened_ms, now_ms = clock[0], clock[1]
    for at in range(at_ms.size):
        now_ms = max(now_ms, at_ms[at])
        one = number[at]
        is_new[at] = now_ms > noted_ms[one] + window_ms
        if is_new[at]:
            if now_ms > opened_ms + window_ms // 2:
                opened_ms = now_ms
            noted_ms[one] = opened_ms
    clock[0], clock[1] = opened_ms, now_ms


@compiled
def id_waits(  # noqa: PLR0917  kernels are called by position
    at_ms: Longs, is_new: Flags, limit: Doubles, span: Span, bucket: Bucket, results: ChargeResults
) -> None:
    """How long the user must wait after each id.

    Args:
        at_ms: when each was allocated.
        is_new: which take a token.
        limit: ids per window; NaN: none.
        span: the bucket holds so many windows' worth.
        bucket: before these, and then after them.
        results: filled, its rate aside; ``used`` is what is gone of the bucket, as ids per window.
    """
    wait_ms, _, used, _ = results
    window_s = span.window_ms / 1000
    burst_s = span.samples * window_s
    tokens = bucket.tokens[0]
    now_ms = bucket.updated_ms[0]
    updated_ms = now_ms
    for at in range(at_ms.size):
        now_ms = max(now_ms, at_ms[at])
        wait_ms[at] = 0
        used[at] = math.nan
        if not is_limit(limit[at]):
            tokens = math.nan
            continue
        rate = limit[at] / window_s
        burst = burst_s * rate
        if math.isnan(tokens):
            tokens = burst
            updated_ms = now_ms
        tokens = filled(tokens, rate, burst, now_ms - updated_ms)
        updated_ms = now_ms
        if is_new[at]:
            tokens = min(burst, tokens - 1)
        wait_ms[at] = wait_for(tokens, rate)
        used[at] = (burst - tokens) / burst_s * window_s
    bucket.tokens[0] = tokens
    bucket.updated_ms[0] = now_ms
