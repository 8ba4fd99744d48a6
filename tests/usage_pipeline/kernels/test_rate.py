"""The compiled rate equals the daemon's."""

from typing import Final

import pytest
from hypothesis import example, given

from sidecar.quotas.entities import QuotaKey
from sidecar.quotas.rate import QuotaWindow
from tests.support.prediction import Prediction
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
from usage_pipeline.kernels.rate import Samples, rates
from usage_pipeline.kernels.values import Doubles, Longs, Rates, Span
from usage_pipeline.kernels.wait import LONG_MAX, is_limit, waits

BACK_68_YEARS: Final = [Event(at_ms, 9.0, False, True, 1.0) for at_ms in (2**31 * 1000, 0, 0)]
FETCHES: Final = [Event(0, amount, False, True, 100.0) for amount in (900.0, 200.0, 50.0)]


def compiled(seen: Rates, limit: Doubles, most_ms: int) -> list[tuple[float | None, int]]:
    """Returns the rate of each charge where a limit is in force, and its wait."""
    wait_ms: Longs = seen.over_ms.copy()
    waits(seen, limit, most_ms, wait_ms)
    limited = [is_limit(float(each)) for each in limit]
    return [
        (float(rate) if is_throttled else None, int(wait))
        for rate, is_throttled, wait in zip(seen.rate, limited, wait_ms, strict=True)
    ]


def expected(predictions: list[Prediction]) -> list[tuple[float | None, int]]:
    return [(each.rate, each.throttle_ms) for each in predictions]


@pytest.mark.slow
@pytest.mark.parametrize("key", [QuotaKey.PRODUCE, QuotaKey.REQUEST])
@given(events=histories(), window=windows, cut=CUTS)
@example(BACK_68_YEARS, QuotaWindow(), 1)
def test_rates_and_waits_are_the_daemons(
    key: QuotaKey, events: list[Event], window: QuotaWindow, cut: int
) -> None:
    """They agree to the last bit at any times; request time is bounded by the window."""
    charges, limit = arrays(events)
    seen = Rates.none(limit.size)
    span = Span(window.samples, window.window_ms)
    samples = Samples.none(span)
    for rows in parts(limit.size, cut):
        rates(part(charges, rows), limit[rows], False, span, samples, part(seen, rows))
    most_ms = window.window_ms if key is QuotaKey.REQUEST else LONG_MAX
    assert expected(predicted(events, key, window)) == compiled(seen, limit, most_ms)


@given(events=histories(), window=windows, cut=CUTS)
@example(FETCHES, QuotaWindow(), 2)
def test_a_throttled_fetch_is_taken_back(
    events: list[Event], window: QuotaWindow, cut: int
) -> None:
    """The daemon does so too: what comes after it is charged without it."""
    charges, limit = arrays(events)
    seen = Rates.none(limit.size)
    span = Span(window.samples, window.window_ms)
    samples = Samples.none(span)
    for rows in parts(limit.size, cut):
        rates(part(charges, rows), limit[rows], True, span, samples, part(seen, rows))
    assert expected(predicted(events, QuotaKey.FETCH, window)) == compiled(seen, limit, LONG_MAX)
