"""How fast volumes fill while clients write in bursts."""

import pytest

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.fill_rates import SLOW_S, FillRates
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.peak import PEAK_S
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import reading, remembering, whole

DECIDER = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0)


def test_a_wait_of_all_clients_is_no_low_fill_rate() -> None:
    """After 5 s without a byte, the rate of 20 s counts; a higher one of 5 s counts at once."""
    remember, rates, used = remembering(DECIDER), FillRates(), 0
    observed, seen = [], []
    for at in range(60):
        used += 100 if at < 30 else 0 if at < 40 else 400
        observed.append(
            whole(float(at), [reading(1, float(at), {"/d": 10**6 - used}, total=10**6)])
        )
        rates.note(remember(*observed), float(at))
        seen.append(rates.of((1, "/d")))
    assert 100.0 == seen[29]
    assert 100.0 * (SLOW_S - 10) / SLOW_S == pytest.approx(seen[39], rel=0.15)
    assert 400.0 == seen[45]
    assert 0.0 == rates.of((1, "/other"))
    for later in (90.0, 120.0):
        observed.append(whole(later, [reading(1, later, {"/d": 10**6 - used}, total=10**6)]))
        rates.note(remember(*observed), later)
    assert 0.0 == rates.of((1, "/d"))


@pytest.mark.slow
def test_a_copied_file_counts_less_over_a_minute() -> None:
    """1,000 bytes/s for 10 s, after a minute and before one in which nothing is written."""
    remember, rates, observed = remembering(DECIDER), FillRates(), []
    for at in range(0, 130, 2):
        used = 1_000 * min(10, max(0, at - 60))
        observed.append(
            whole(float(at), [reading(1, float(at), {"/d": 10**6 - used}, total=10**6)])
        )
        rates.note(remember(*observed), float(at))
    assert {1: 1_000.0} == rates.highest(128.0)
    assert {1: pytest.approx(1_000.0 / 6, rel=0.1)} == rates.lasting(128.0)


def test_a_burst_before_a_broker_was_lost_does_not_go_on() -> None:
    """100 bytes/s for 5 s, and then no reading: its rate over a minute counts from 20 s on."""
    remember, rates = remembering(DECIDER), FillRates()
    observed = []
    for at in (5.0 * number for number in range(14)):
        left = {"/d": 10**6 - 100 * max(0, int(at) - 60)}
        observed.append(whole(at, [reading(1, at, left, total=10**6)]))
        rates.note(remember(*observed), at)
    assert 100.0 == rates.of((1, "/d"), SLOW_S)
    assert 500.0 / 60 == pytest.approx(rates.of((1, "/d"), SLOW_S + 1), rel=0.1)


def test_the_highest_rate_of_a_broker_counts_for_a_quarter_of_an_hour() -> None:
    """That of all its volumes together, also after the broker has left."""
    remember, rates = remembering(DECIDER), FillRates()
    observed = []
    for at in range(0, 60, 10):
        left = {"/d": 10**6 - 100 * at, "/e": 10**6 - 50 * at}
        observed.append(whole(float(at), [reading(1, float(at), left, total=10**6)]))
        rates.note(remember(*observed), float(at))
    observed.append(whole(60.0, [reading(2, 60.0, {"/d": 10**6}, total=10**6)]))
    rates.note(remember(*observed), 60.0)
    assert {1: 150.0, 2: 0.0} == rates.highest(60.0)
    rates.note(remember(*observed), 51.0 + PEAK_S)
    assert {2: 0.0} == rates.highest(51.0 + PEAK_S)
