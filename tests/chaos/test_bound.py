"""The bound's arithmetic, with its own example."""

import pytest

from tests.chaos.bound import FLOOD, OVERHEAD, Bound, Clients, Rules

RULES = Rules(
    interval_s=1.0,
    deadline_s=2.0,
    retry_s=0.5,
    look_s=1.0,
    apply_s=0.5,
    pause_max_s=4.0,
    leak_ratio=0.01,
)


def test_the_bound_is_rate_times_eyes_and_requests_and_leak() -> None:
    """Two kinds of client: 4 and 6 MB/s, with connections of 1 MB and of 0.1 MB a request."""
    clients = (Clients(3, 1_000_000, 4e6), Clients(10, 100_000, 6e6))
    bound = Bound(RULES, clients, brokers=3, apart_bytes=6_000_000)
    rate = FLOOD * OVERHEAD * 10e6
    assert rate == pytest.approx(bound.rate)
    assert 4e6 == bound.once
    assert 0.01 * rate + 1e6 == pytest.approx(bound.leak)
    assert rate * 1.5 + 4e6 + 6e6 == pytest.approx(bound.bytes(0.0))
    assert bound.bytes(0.0) + 20 * bound.leak == pytest.approx(bound.bytes(20.0))


def test_what_a_broker_missed_and_leaders_that_moved_count_by_themselves() -> None:
    """Ten seconds away are ten of the rate, two moves of three brokers' leaders 2/3 of requests."""
    bound = Bound(RULES, (Clients(3, 1_000_000, 10e6),), brokers=3, apart_bytes=0)
    assert bound.bytes(20.0) + 10 * bound.rate == pytest.approx(bound.bytes(20.0, behind_s=10.0))
    assert bound.bytes(20.0) + 2e6 == pytest.approx(bound.bytes(20.0, moves=2))


def test_sidecars_that_are_away_are_in_no_term() -> None:
    """However long a sidecar takes: a broker reads its own volumes."""
    deaf = Rules(600.0, 600.0, 600.0, 1.0, 0.5, 4.0, 0.01)
    assert (3.5, 1800.0, 1.5) == (RULES.heard_s, deaf.heard_s, deaf.eyes_s)
    clients = (Clients(3, 1_000_000, 10e6),)
    assert Bound(RULES, clients, 3, 0).bytes(9.0) == Bound(deaf, clients, 3, 0).bytes(9.0)


def test_the_bound_in_words() -> None:
    """With its four terms."""
    bound = Bound(RULES, (Clients(4, 1_000_000, 10e6),), brokers=3, apart_bytes=6_000_000)
    assert (
        "14.9 MB/s x 1.5 s + 4.0 MB of requests, and a part again for leaders that move "
        "+ 6.0 MB between volumes + 1.15 MB/s while it violates" == str(bound)
    )
