"""The compiled spread rate equals the daemon's."""

import pytest
from hypothesis import given

from sidecar.quotas.entities import QuotaKey
from sidecar.quotas.mutations.burst_rate import BurstRate
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
from usage_pipeline.kernels.spread import no_bursts, spread_waits
from usage_pipeline.kernels.values import ChargeResults, Span


@pytest.mark.slow
@given(events=histories(), window=windows, cut=CUTS)
def test_waits_and_refusals_are_the_daemons(
    events: list[Event], window: QuotaWindow, cut: int
) -> None:
    """Charges are strict and permissive; quotas change, end and come back to an empty rate."""
    charges, limit = arrays(events)
    results = ChargeResults.none(limit.size)
    span = Span(window.samples, window.window_ms)
    bursts = no_bursts(span)
    for rows in parts(limit.size, cut):
        spread_waits(part(charges, rows), limit[rows], span, bursts, part(results, rows))
    predictions = predicted(
        events, QuotaKey.CONTROLLER_MUTATION, window, lambda rate, _now_ms: BurstRate(rate, window)
    )
    expected = [(each.throttle_ms, not each.accepted) for each in predictions]
    assert expected == list(zip(results.wait_ms, results.refused, strict=True))


def test_what_is_used_is_the_spread_rate() -> None:
    """560 at 5 a second over 100 s are 5.6 and wait 12 s; a permissive charge then finds 4.928."""
    charges, limit = arrays(
        [Event(0, 560.0, False, True, 5.0), Event(12_000, 0.0, False, True, 5.0)]
    )
    results = ChargeResults.none(2)
    spread_waits(charges, limit, Span(100, 1000), no_bursts(Span(100, 1000)), results)
    assert [12_000, 0] == list(results.wait_ms)
    assert [5.6, 4.928] == [round(float(each), 12) for each in results.compared]
