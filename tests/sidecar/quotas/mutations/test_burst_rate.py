"""The rate that spreads a burst over the previous windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.quotas.admission import Admission
from sidecar.quotas.mutations.burst_rate import BurstRate
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.throttle_time import unbounded_ms

KIP_599 = QuotaWindow(100, 1000)


@pytest.mark.parametrize("phase_ms", [0, 300, 999])
def test_docstring_example(phase_ms: int) -> None:
    """KIP-599's example: a burst waits 12 s and is then accepted, wherever in a window it came."""
    quota = BurstRate(5, KIP_599)
    for _ in range(7):
        assert quota.admit(80, phase_ms, strict=True).accepted
    assert pytest.approx(5.6) == quota.rate(phase_ms)
    assert Admission(accepted=False, throttle_ms=12_000) == quota.admit(1, phase_ms, strict=True)
    assert pytest.approx(4.928) == quota.rate(12_000)
    assert quota.admit(1, phase_ms + 12_000, strict=True).accepted


def test_it_is_the_rate_of_parts_in_each_window() -> None:
    """A burst of 100 over 4 windows loses a quarter with each, and is gone after the fourth."""
    quota = BurstRate(1000, QuotaWindow(4, 500))
    quota.admit(100, 0, strict=True)
    rates = [quota.rate(now_ms) for now_ms in (0, 499, 500, 1000, 1500, 2000, 9000)]
    assert [50.0, 50.0, 37.5, 25.0, 12.5, 0.0, 0.0] == rates


def test_at_the_quota_is_not_below_it() -> None:
    """Exactly the quota is refused, until the next window opens: a wait of 0 would be untrue."""
    quota = BurstRate(5, KIP_599)
    quota.admit(500, 250, strict=True)
    assert Admission(accepted=False, throttle_ms=750) == quota.admit(1, 250, strict=True)
    assert quota.admit(1, 1000, strict=True).accepted


def test_what_is_gone_by_then_makes_no_wait_shorter() -> None:
    """After 10 windows a burst's parts are 0, not less: 12.5 alone take 3 windows to be below 1."""
    quota = BurstRate(1, QuotaWindow(10, 1000))
    quota.admit(0.1, 0, strict=True)
    quota.admit(12.5, 9000, strict=True)
    assert 3000 == quota.throttle_ms(9000)
    assert [1.0, 0.875] == [quota.rate(now_ms) for now_ms in (11_999, 12_000)]


def test_time_that_goes_back_stands_still() -> None:
    """At an earlier time the decision is that of the latest time seen."""
    quota = BurstRate(5, KIP_599)
    quota.admit(560, 50_000, strict=True)
    assert pytest.approx(5.6) == quota.rate(10_000)
    quota.admit(560, 10_000, strict=False)
    assert pytest.approx(11.2) == quota.rate(50_000)
    assert 0.0 == quota.rate(150_000)


@pytest.mark.parametrize("rate", [0, -5, float("inf"), float("nan")])
def test_a_quota_that_has_no_wait_is_refused(rate: float) -> None:
    """It is also refused as a change of a valid one."""
    with pytest.raises(ValueError, match="above 0"):
        BurstRate(rate, KIP_599)
    quota = BurstRate(5, KIP_599)
    with pytest.raises(ValueError, match="above 0"):
        quota.set_rate(rate)


small_windows = st.builds(QuotaWindow, st.integers(1, 20), st.sampled_from([1, 100, 1000]))
histories = st.lists(st.tuples(st.floats(0, 1000), st.integers(0, 5000)), min_size=1, max_size=40)


@given(small_windows, st.floats(0.1, 100), histories)
def test_the_wait_that_is_reported_is_enough(
    window: QuotaWindow, limit: float, history: list[tuple[float, int]]
) -> None:
    """Whoever waits that long is accepted; the wait is never shorter than by the KIP's formula."""
    quota = BurstRate(limit, window)
    now_ms = 0
    for amount, gap_ms in history:
        now_ms += gap_ms
        reported_ms = quota.admit(amount, now_ms, strict=False).throttle_ms
        rate = quota.rate(now_ms)
        assert (rate >= limit) == (reported_ms > 0)
        assert reported_ms >= unbounded_ms(rate, limit, window.span_ms)
    assert quota.admit(1, now_ms + quota.throttle_ms(now_ms), strict=True).accepted


@given(small_windows, histories)
def test_it_equals_that_of_a_ring_of_samples(
    window: QuotaWindow, history: list[tuple[float, int]]
) -> None:
    """Parts put into each window one by one, as the KIP describes it, sum up to the same rate."""
    quota = BurstRate(1e9, window)
    parts: dict[int, float] = {}
    now_ms = 0
    for amount, gap_ms in history:
        now_ms += gap_ms
        quota.admit(amount, now_ms, strict=True)
        current = now_ms // window.window_ms
        spread = range(current - window.samples + 1, current + 1)
        for number in spread:
            parts[number] = parts.get(number, 0.0) + amount / window.samples
        expected = sum(parts.get(number, 0.0) for number in spread) / (window.span_ms / 1000)
        assert pytest.approx(expected) == quota.rate(now_ms)
