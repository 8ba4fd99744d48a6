"""KIP-936's producer ids: which ids are new in a window, and the token bucket for new ids.

The result equals that of ``quotas.producer_ids`` with filters without errors. An id is remembered
until its filter expires, at least half a window and at most a whole one.

Example: with 50 ids an hour and 11 windows, the first 550 ids pass at once, and id 551 waits 72 s.

Source: KIP-936, section "ProducerIdQuotaManager".
"""

import math
from typing import Final, NamedTuple

from usage_pipeline.kernels.bucket import Bucket, filled, wait_for
from usage_pipeline.kernels.compiled import compiled
from usage_pipeline.kernels.values import ChargeResults, Doubles, Flags, Longs, Span
from usage_pipeline.kernels.wait import is_limit

NEVER: Final = -(1 << 61)
"""A time long before any window."""


class Remembered(NamedTuple):
    """The ids so far.

    Attributes:
        noted_ms: by an id's number, when the filter that contains it opened; NEVER if none does.
        clock: when the newest filter opened, and the latest time so far; NEVER at the start.
    """

    noted_ms: Longs
    clock: Longs


@compiled
def new_ids(
    at_ms: Longs, number: Longs, window_ms: int, remembered: Remembered, is_new: Flags
) -> None:
    """Find the new ids.

    Args:
        at_ms: when each id was allocated; if time goes backwards, it stands still.
        number: the number of each id, the same for equal ids.
        window_ms: the longest time that an id is remembered.
        remembered: the state before these ids; it is updated.
        is_new: filled.
    """
    noted_ms, clock = remembered
    opened_ms, now_ms = clock[0], clock[1]
    for at in range(at_ms.size):
        now_ms = max(now_ms, at_ms[at])
        id_number = number[at]
        is_new[at] = now_ms > noted_ms[id_number] + window_ms
        if is_new[at]:
            if now_ms > opened_ms + window_ms // 2:
                opened_ms = now_ms
            noted_ms[id_number] = opened_ms
    clock[0], clock[1] = opened_ms, now_ms


@compiled
def id_waits(  # noqa: PLR0917  kernels are called by position
    at_ms: Longs, is_new: Flags, limit: Doubles, span: Span, bucket: Bucket, results: ChargeResults
) -> None:
    """Compute how long the user must wait after each id.

    Args:
        at_ms: when each id was allocated.
        is_new: which ids take a token.
        limit: ids per window; NaN means no limit.
        span: the windows whose tokens the bucket holds.
        bucket: the state before these ids; it is updated.
        results: filled, except for the rate; ``compared`` is the used part in ids per window.
    """
    wait_ms, _, compared, _ = results
    window_s = span.window_ms / 1000
    burst_s = span.samples * window_s
    tokens = bucket.tokens[0]
    now_ms = bucket.updated_ms[0]
    updated_ms = now_ms
    for at in range(at_ms.size):
        now_ms = max(now_ms, at_ms[at])
        wait_ms[at] = 0
        compared[at] = math.nan
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
        compared[at] = (burst - tokens) / burst_s * window_s
    bucket.tokens[0] = tokens
    bucket.updated_ms[0] = now_ms
