"""The token bucket; that all its numbers are Kafka's is shown in tests/integration."""

import pytest

from sidecar.quotas.admission import Admission
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.token_bucket import TokenBucket

KIP_599 = QuotaWindow(100, 1000)


def test_docstring_example() -> None:
    """KIP-599: of a burst of 500 at 5 per second, 560 leave -60, which takes 12 s."""
    bucket = TokenBucket(5, KIP_599, 0)
    assert Admission(accepted=True, throttle_ms=0) == bucket.admit(560, 0, strict=True)
    assert -60.0 == bucket.tokens(0)
    assert Admission(accepted=False, throttle_ms=12_000) == bucket.admit(1, 0, strict=True)
    assert not bucket.admit(1, 11_999, strict=True).accepted
    assert bucket.admit(1, 12_000, strict=True).accepted


@pytest.mark.parametrize("now_ms", [0, 1, 1_700_000_000_000])
def test_it_starts_full(now_ms: int) -> None:
    """It is full whatever the time is: fullness doesn't come from a large epoch."""
    assert 500.0 == TokenBucket(5, KIP_599, now_ms).tokens(now_ms)
    assert 55.0 == TokenBucket(5, QuotaWindow(), now_ms).tokens(now_ms)


def test_it_has_no_more_than_its_burst() -> None:
    """Neither hours of idleness nor tokens that are returned exceed it."""
    bucket = TokenBucket(5, KIP_599, 0)
    bucket.take(100, 0)
    assert 500.0 == bucket.tokens(36_000_000)
    bucket.take(-1000, 36_000_000)
    assert 500.0 == bucket.tokens(36_000_000)


def test_a_new_rate_counts_from_the_last_event() -> None:
    """A debt of 60 is paid by 6 s at 10 per second, though it was 5 at first, as in Kafka.

    The burst changes with the rate, and tokens beyond it are lost.
    """
    bucket = TokenBucket(5, KIP_599, 0)
    bucket.take(560, 0)
    bucket.set_rate(10)
    assert 0.0 == bucket.tokens(6000)
    assert 1000.0 == bucket.tokens(600_000)
    bucket.set_rate(2)
    assert 200.0 == bucket.tokens(600_000)


def test_time_that_goes_back_takes_what_it_brings_again() -> None:
    """Two steps of the clock cancel out; standing still adds nothing."""
    bucket = TokenBucket(10, QuotaWindow(10, 1000), 10_000)
    assert [90.0, 100.0] == [bucket.tokens(now_ms) for now_ms in (9_000, 10_000)]
    bucket.take(50, 10_000)
    assert [50.0, 40.0, 50.0] == [bucket.tokens(now_ms) for now_ms in (10_000, 9_000, 10_000)]


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_bucket_that_never_fills_is_refused(rate: float) -> None:
    """Its throttle time would be infinite."""
    with pytest.raises(ValueError, match="above 0"):
        TokenBucket(rate, KIP_599, 0)
