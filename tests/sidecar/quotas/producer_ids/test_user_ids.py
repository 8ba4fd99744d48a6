"""One user's rate and bucket."""

import math

import pytest

from sidecar.quotas.producer_ids.seen_ids import FilterTerms, Room, SeenIds
from sidecar.quotas.producer_ids.user_ids import ProducerIdStatus, UserIds
from sidecar.quotas.rate import QuotaWindow

HOUR_MS = 3_600_000
WINDOW = QuotaWindow(11, HOUR_MS)


def user_ids(most_throttle_s: float = math.inf) -> UserIds:
    """Nothing is known of the user."""
    seen = SeenIds(FilterTerms(HOUR_MS, 1000, 0.01), Room(1 << 20))
    return UserIds(WINDOW, seen, most_throttle_s)


def limited(limit: float, charged: int = 0, most_throttle_s: float = math.inf) -> UserIds:
    """A user with a limit who was charged so often at 0."""
    user = user_ids(most_throttle_s)
    user.limit_to(limit, 0)
    for _ in range(charged):
        user.charge(0)
    return user


def tokens(user: UserIds, now_ms: int) -> float | None:
    return user.status("ann", now_ms).tokens


def test_initially_there_is_no_limit() -> None:
    """No limit: no tokens, no wait, however many ids there are."""
    user = user_ids()
    user.charge(0)
    assert ProducerIdStatus("ann", None, 0.1, None, 0, 0) == user.status("ann", 0)
    assert user.is_full(0)


def test_docstring_example() -> None:
    """50 an hour with 11 windows: 550 tokens, 0 after 550 ids, 50 an hour later."""
    assert 550.0 == tokens(limited(50), 0)
    user = limited(50, charged=550)
    assert (0.0, 0) == (tokens(user, 0), user.throttle_ms(0))
    assert 50.0 == pytest.approx(tokens(user, HOUR_MS))


def test_wait_is_until_there_is_a_token_for_each_id() -> None:
    """One id over waits 72 s, 1,000 wait as long each; the wait of two passes as time does."""
    assert 72_000 == limited(50, charged=551).throttle_ms(0)
    assert 72_000_000 == limited(50, charged=1550).throttle_ms(0)
    user = limited(50, charged=552)
    assert [144_000, 143_000, 1, 0] == [
        user.throttle_ms(now_ms) for now_ms in (0, 1000, 143_999, 144_000)
    ]


def test_rate_is_per_window() -> None:
    """110 ids are 11 per window over the 10 windows that Kafka's rate starts with."""
    assert 11.0 == pytest.approx(limited(50, charged=110).status("ann", 0).rate)


def test_debt_can_be_bounded() -> None:
    """A user with 100 s to wait is charged no more, not even the rest of the last id."""
    user = limited(50, charged=1550, most_throttle_s=100.0)
    assert 100_000 == user.throttle_ms(0)
    user.charge(45_000)
    assert 100_000 == user.throttle_ms(45_000)


def test_longest_wait_itself_is_charged_no_more() -> None:
    assert 72_000 == limited(50, charged=552, most_throttle_s=72.0).throttle_ms(0)


def test_ids_are_in_the_rate_though_they_are_not_charged() -> None:
    """The rate shows what happens, whatever the bound of the debt."""
    user = limited(50, charged=552, most_throttle_s=1.0)
    assert 55.2 == pytest.approx(user.status("ann", 0).rate)


def test_lowered_limit_lowers_the_burst() -> None:
    """Tokens beyond the new burst are gone at once."""
    user = limited(50)
    user.limit_to(10, 0)
    assert 110.0 == tokens(user, 0)


def test_full() -> None:
    """A bucket is full at first and again when what was taken has come back, not before."""
    assert limited(50).is_full(0)
    user = limited(50, charged=1)
    assert [False, False, True] == [user.is_full(now_ms) for now_ms in (0, 71_999, 72_001)]
    small = limited(0.01, charged=1)
    assert [False, True] == [small.is_full(now_ms) for now_ms in (0, 101 * HOUR_MS)]
