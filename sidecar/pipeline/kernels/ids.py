"""KIP-936's producer ids: which are new in a window, and the bucket that new ones take from.

Equal to ``quotas.producer_ids`` with filters that are never wrong: an id is remembered from when it
was new until the filter that it is in is over, half a window at least and a whole one at most.

Example: 50 ids an hour, 11 windows. The first 550 ids pass at once, the 551st waits 72 s.

Source: KIP-936, section "ProducerIdQuotaManager".
"""

import math

import numpy as np

from sidecar.pipeline.kernels.bucket import filled, wait_for
from sidecar.pipeline.kernels.compiled import compiled
from sidecar.pipeline.kernels.values import ChargeResults, Doubles, Flags, Longs, Span
from sidecar.pipeline.kernels.wait import is_limit


@compiled
def new_ids(at_ms: Longs, number: Longs, ids: int, window_ms: int, is_new: Flags) -> None:
    """Which ids are new.

    Args:
        at_ms: when each was allocated; time that runs backwards stands still.
        number: of each id, 0 to ``ids`` - 1: the same for the same id.
        ids: how many there are.
        window_ms: how long one is remembered at most.
        is_new: filled.
    """
    # When the filter opened that an id was put into.
    noted_ms = np.zeros(ids, np.int64)
    was_noted = np.zeros(ids, np.bool_)
    opened_ms = 0
    is_open = False
    now_ms = 0
    for at in range(at_ms.size):
        now_ms = at_ms[at] if at == 0 else max(now_ms, at_ms[at])
        one = number[at]
        is_new[at] = not (was_noted[one] and now_ms <= noted_ms[one] + window_ms)
        if is_new[at]:
            if not is_open or now_ms > opened_ms + window_ms // 2:
                opened_ms = now_ms
                is_open = True
            noted_ms[one] = opened_ms
            was_noted[one] = True


@compiled
def id_waits(
    at_ms: Longs, is_new: Flags, limit: Doubles, span: Span, results: ChargeResults
) -> None:
    """How long the user must wait after each id.

    Args:
        at_ms: when each was allocated.
        is_new: which take a token.
        limit: ids per window; NaN: none.
        span: the bucket holds so many windows' worth.
        results: filled, its rate aside; ``used`` is what is gone of the bucket, as ids per window.
    """
    wait_ms, _, used, _ = results
    window_s = span.window_ms / 1000
    burst_s = span.samples * window_s
    tokens = math.nan
    updated_ms = 0
    now_ms = 0
    for at in range(at_ms.size):
        now_ms = at_ms[at] if at == 0 else max(now_ms, at_ms[at])
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
