"""What the algorithms that admit controller mutations have in common, and where they differ."""

from collections.abc import Callable
from typing import Final

import pytest

from sidecar.quotas.admission import AT_ONCE, Admission, MutationQuota
from sidecar.quotas.mutations.burst_rate import BurstRate
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.token_bucket import TokenBucket
from usage_pipeline.replay.rate_quota import RateQuota

WINDOW: Final = QuotaWindow(100, 1000)

Make = Callable[[float], MutationQuota]

MAKERS: Final[dict[str, Make]] = {
    "token bucket": lambda rate: TokenBucket(rate, WINDOW, 0),
    "burst-spreading": lambda rate: BurstRate(rate, WINDOW),
    "sampled rate": lambda rate: RateQuota(rate, WINDOW),
}

every_algorithm = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def test_docstring_example() -> None:
    """A bucket of 10 at 5 per second is asked for 25 twice, strict and permissive."""
    strict, permissive = (TokenBucket(5, QuotaWindow(2, 1000), 0) for _ in range(2))
    assert [AT_ONCE, Admission(accepted=False, throttle_ms=3000)] == [
        strict.admit(25, 0, strict=True) for _ in range(2)
    ]
    assert [Admission(accepted=True, throttle_ms=wait_ms) for wait_ms in (3000, 8000)] == [
        permissive.admit(25, 0, strict=False) for _ in range(2)
    ]


@every_algorithm
def test_a_first_request_is_accepted_whole(make: Make) -> None:
    """It is accepted however large it is: a topic has the partitions that it has."""
    assert AT_ONCE == make(5).admit(10_000, 0, strict=True)


@every_algorithm
def test_refusals_add_nothing(make: Make) -> None:
    """Asking again and again does not make the wait longer."""
    quota = make(5)
    quota.admit(700, 0, strict=True)
    refusals = {quota.admit(50, 0, strict=True) for _ in range(5)}
    assert {Admission(accepted=False, throttle_ms=quota.throttle_ms(0))} == refusals


@every_algorithm
def test_permissive_accepts_and_waits(make: Make) -> None:
    """Each request makes the wait longer, and none is refused."""
    quota = make(5)
    admissions = [quota.admit(700, 0, strict=False) for _ in range(3)]
    waits = [admission.throttle_ms for admission in admissions]
    assert all(admission.accepted for admission in admissions)
    assert sorted(set(waits)) == waits
    assert waits[0] > 0


@every_algorithm
def test_the_wait_follows_the_rate(make: Make) -> None:
    """A lower one makes it longer, a higher one ends it; an invalid one is refused."""
    quota = make(5)
    quota.admit(560, 0, strict=True)
    before_ms = quota.throttle_ms(0)
    quota.set_rate(1)
    assert quota.throttle_ms(0) > before_ms > 0
    quota.set_rate(100)
    assert 0 == quota.throttle_ms(1000)
    with pytest.raises(ValueError, match="above 0"):
        quota.set_rate(0)


@every_algorithm
def test_half_the_quota_is_never_throttled(make: Make) -> None:
    """Five mutations come every two seconds at a quota of 5 per second, for five minutes."""
    quota = make(5)
    assert {AT_ONCE} == {quota.admit(5, now_ms, strict=True) for now_ms in range(0, 300_000, 2000)}


@pytest.mark.parametrize(
    ("algorithm", "admitted_ms"),
    [("token bucket", 12_000), ("burst-spreading", 11_000), ("sampled rate", 100_000)],
)
def test_when_a_burst_is_over(algorithm: str, admitted_ms: int) -> None:
    """560 at once at a quota of 5 wait about 12 s: the first ms at which more is accepted.

    The sampled rate takes 101 s where the burst took a second.
    """
    quota = MAKERS[algorithm](5)
    quota.admit(560, 0, strict=True)
    assert pytest.approx(12_000, rel=0.1) == quota.throttle_ms(0)
    admitted = next(now_ms for now_ms in range(200_000) if quota.throttle_ms(now_ms) == 0)
    assert admitted_ms == admitted
