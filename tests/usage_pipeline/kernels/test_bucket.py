"""The compiled token bucket equals the daemon's."""

import math
from typing import Final

import pytest
from hypothesis import example, given

from sidecar.quotas.entities import QuotaKey
from sidecar.quotas.rate import QuotaWindow
from tests.usage_pipeline.kernels.histories import (
    CUTS,
    Event,
    arrays,
    histories,
    part,
    parts,
    predicted,
    windows,
)
from usage_pipeline.kernels.bucket import Bucket, bucket_waits
from usage_pipeline.kernels.values import ChargeResults

DRAINED: Final = [Event(0, 1100.0, True, True, 100.0), Event(0, 5.0, True, True, 100.0)]
"""A bucket that has just no tokens is not used up yet."""


@pytest.mark.slow
@given(events=histories(), window=windows, cut=CUTS)
@example(DRAINED, QuotaWindow(), 1)
def test_waits_and_refusals_are_the_daemons(
    events: list[Event], window: QuotaWindow, cut: int
) -> None:
    """Charges are strict and permissive; quotas change, end and come back to a full bucket."""
    charges, limit = arrays(events)
    results = ChargeResults.none(limit.size)
    burst_s, bucket = window.samples * (window.window_ms / 1000.0), Bucket.full()
    for rows in parts(limit.size, cut):
        bucket_waits(part(charges, rows), limit[rows], burst_s, bucket, part(results, rows))
    expected = [
        (each.throttle_ms, not each.accepted)
        for each in predicted(events, QuotaKey.CONTROLLER_MUTATION, window)
    ]
    assert expected == list(zip(results.wait_ms, results.refused, strict=True))


def test_what_is_used_is_a_rate() -> None:
    """560 of 500 tokens at 5 a second are 5.6 and wait 12 s; without a quota nothing is used."""
    charges, limit = arrays(
        [Event(0, 560.0, False, True, 5.0), Event(0, 1.0, False, True, None)],
    )
    results = ChargeResults.none(2)
    bucket_waits(charges, limit, 100.0, Bucket.full(), results)
    assert [12_000, 0] == list(results.wait_ms)
    assert 5.6 == results.compared[0]
    assert math.isnan(results.compared[1])
