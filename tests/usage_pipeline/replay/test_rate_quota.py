"""A quota on the sampled rate: how Kafka throttles produce, fetch and request time."""

import pytest

from sidecar.quotas.rate import QuotaWindow
from usage_pipeline.replay.rate_quota import RateQuota

WINDOW = QuotaWindow()


def test_docstring_example() -> None:
    """1,500 at once at a limit of 100 are 150 per second over 10 s, and wait 5 s."""
    assert 5000 == RateQuota(100, WINDOW).record(1500, 0)


def test_a_burst_is_refused_until_its_sample_is_dropped() -> None:
    """KIP-599's example: 7 topics of 80 in a second wait 12 s by the answer, 101 s in fact."""
    quota = RateQuota(5, QuotaWindow(100, 1000))
    for number in range(7):
        assert quota.admit(80, number * 999 // 6, strict=True).accepted
    refused = quota.admit(1, 999, strict=True)
    assert not refused.accepted
    assert pytest.approx(12_000, abs=20) == refused.throttle_ms
    assert not quota.admit(1, 999 + refused.throttle_ms, strict=True).accepted
    assert not quota.admit(1, 100_998, strict=True).accepted
    assert quota.admit(1, 100_999, strict=True).accepted


def test_a_limit_can_change_meanwhile() -> None:
    """What was recorded stays and is compared with the new limit."""
    quota = RateQuota(10, WINDOW)
    quota.record_unchecked(150, 0)
    assert 5000 == quota.throttle_ms(0)
    quota.set_rate(20)
    assert 0 == quota.throttle_ms(0)
    quota.set_rate(5)
    assert 20_000 == quota.throttle_ms(0)


def test_a_bound_limits_strict_waits_too() -> None:
    """The throttle time of a refusal is never more than the bound."""
    quota = RateQuota(1, WINDOW, most_ms=700)
    quota.record_unchecked(1000, 0)
    assert 700 == quota.admit(1, 0, strict=True).throttle_ms
