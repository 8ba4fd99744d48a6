"""The bound's arithmetic, with its own example."""

import pytest

from tests.chaos.bound import FLOOD, OVERHEAD, Bound, Clients, Rules

RULES = Rules(interval_s=1.0, deadline_s=2.0, retry_s=0.5, pause_max_s=4.0, leak_ratio=0.01)


def test_the_bound_is_rate_times_delays_and_requests_and_leak() -> None:
    """Two kinds of client: 4 and 6 MB/s, with connections of 1 MB and of 0.1 MB a request."""
    bound = Bound(RULES, (Clients(3, 1_000_000, 4e6), Clients(10, 100_000, 6e6)))
    rate = FLOOD * OVERHEAD * 10e6
    assert rate == pytest.approx(bound.rate)
    assert 4e6 == bound.once
    assert 0.01 * rate + 1e6 == pytest.approx(bound.leak)
    assert rate * 3.5 + 4e6 == pytest.approx(bound.bytes(0.0))
    assert bound.bytes(0.0) + 20 * bound.leak == pytest.approx(bound.bytes(20.0))
    assert bound.bytes(20.0) + 5 * rate == pytest.approx(bound.explained(20.0, 5.0))


def test_the_bound_in_words() -> None:
    """With its three terms."""
    bound = Bound(RULES, (Clients(4, 1_000_000, 10e6),))
    assert "12.6 MB/s x 3.5 s + 4.0 MB of requests + 1.13 MB/s while it violates" == str(bound)
