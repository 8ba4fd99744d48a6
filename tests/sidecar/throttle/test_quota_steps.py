"""Produce quotas that fall and rise in steps: laws, and a simulation of Kafka's quota window."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidecar.quotas.rate import QuotaWindow, Rate
from sidecar.quotas.throttle_time import unbounded_ms
from sidecar.throttle.quota_steps import (
    _LADDER,
    FIRST,
    LONGEST_PAUSE_S,
    SMALLEST_FLOOR,
    STEP_S,
    Held,
    highest_rung,
    is_rung,
    next_quota,
)

FLOOR = 100_000.0
MOST_AT_ONCE = FLOOR
"""The bytes that may land at once under this floor."""


def held(original: float | None, value: float | None, base: float = 20e6) -> Held:
    return Held(original, original or base, value, since=0.0)


def walk(start: Held, factors: Sequence[float], rate: float | None = None) -> list[float | None]:
    """The values while these factors apply for a step each."""
    now, values = STEP_S, [start.value]
    for factor in factors:
        value = next_quota(start, factor, FLOOR, now, rate)
        start = replace(start, value=value, since=now if value != start.value else start.since)
        values.append(value)
        now += STEP_S
    return values


UNLIMITED = float(2**63 - 1)
"""The largest quota that Kafka takes: far above the ladder."""
QUOTAS = st.one_of(st.none(), st.just(UNLIMITED), st.floats(1.0, 1e10).map(round).map(float))
FACTORS = st.floats(0.0, 1.0)


@given(QUOTAS, st.lists(FACTORS, max_size=40), st.one_of(st.none(), st.floats(0.0, 1e9)))
def test_a_quota_is_never_above_the_original_nor_below_the_floor(
    original: float | None, factors: list[float], rate: float | None
) -> None:
    """A lower original stays as it is; every other value is a rung."""
    for value in walk(held(original, original), factors, rate):
        if value == original:
            continue
        assert is_rung(value)
        assert value is not None
        assert FLOOR <= value
        assert original is None or value < original


@given(QUOTAS, st.lists(st.just(0.0) | st.just(0.1), min_size=1, max_size=60))
def test_a_quota_only_falls_while_producers_are_throttled(
    original: float | None, factors: list[float]
) -> None:
    """The factor does not rise, so the quota does not either."""
    falling = sorted(factors, reverse=True)
    walked = walk(held(original, original), falling)
    values = [FIRST * 2 if each is None else each for each in walked]
    assert sorted(values, reverse=True) == values


@given(QUOTAS, st.lists(FACTORS, max_size=30))
@example(UNLIMITED, [0.0] * 30)
def test_a_release_ends_at_the_original_exactly(
    original: float | None, factors: list[float]
) -> None:
    """However far the quota has fallen, and whichever values it had."""
    lowered = walk(held(original, original), factors)[-1]
    assert original == walk(held(original, lowered), [1.0] * 40)[-1]


@given(QUOTAS, st.lists(FACTORS, max_size=30), FACTORS, st.floats(0.0, STEP_S))
def test_two_sidecars_at_once_are_as_one(
    original: float | None, factors: list[float], factor: float, later_s: float
) -> None:
    """Both set the same value, and the second waits a step after it has seen a new one.

    Only to twice a known rate it falls at once.
    """
    now = 1000.0
    value = walk(held(original, original), factors)[-1]
    first = next_quota(held(original, value), factor, FLOOR, now)
    assert first == next_quota(held(original, value), factor, FLOOR, now + later_s)
    if first != value:
        seen = replace(held(original, first), since=now + later_s)
        after = now + STEP_S + later_s - 0.001
        assert first == next_quota(seen, factor, FLOOR, after)
        known = next_quota(seen, factor, FLOOR, after, 1e6)
        assert known == first or 2e6 <= (known or 0.0) < (first or 0.0)


def test_a_rate_that_is_known_later_counts_at_once() -> None:
    """So does a lower one of another sidecar; a higher one changes nothing, nor does the target."""
    lowered = held(None, 30e6)
    assert pytest.approx(6e6, rel=0.011) == next_quota(lowered, 0.0, FLOOR, 0.0, 3e6)
    assert lowered.value == next_quota(lowered, 0.0, FLOOR, 0.0, 18e6)
    assert lowered.value == next_quota(lowered, 1.0, FLOOR, 0.0, 3e6)
    step = next_quota(lowered, 0.0, FLOOR, STEP_S)
    assert step == next_quota(lowered, 0.0, FLOOR, STEP_S, 18e6)
    assert pytest.approx(6e6, rel=0.011) == next_quota(lowered, 0.0, FLOOR, STEP_S, 3e6)
    assert pytest.approx(10e6, rel=0.011) == next_quota(lowered, 0.5, FLOOR, STEP_S, 3e6)
    assert 75e6 < (next_quota(held(1e9, 30e6), 1.0, FLOOR, STEP_S, 3e6) or 0.0)


def test_the_ladder_is_the_same_on_every_machine() -> None:
    """Quotas that another sidecar has set, maybe years ago, are recognised by their numbers."""
    rungs = [_LADDER[at] for at in (0, 1, 2, 1000, -1)]
    assert [10_007, 10_108, 10_210, 210_824_216, 9_991_876_044_703] == rungs
    assert 10_108.0 == highest_rung(10_108.0) == highest_rung(10_209.0)
    assert SMALLEST_FLOOR == 16 << 10
    assert is_rung(next_quota(held(None, None), 0.0, SMALLEST_FLOOR, STEP_S, 1.0))
    assert _LADDER[-1] == next_quota(held(None, None), 0.0, FLOOR, STEP_S, 1e13)
    assert not is_rung(1e14)


def test_a_quota_rises_in_steps() -> None:
    """To three times each, or less; one that was not there ends at twice what clients wrote."""
    low = held(100e6, 1e6)
    assert pytest.approx(3e6, rel=0.011) == next_quota(low, 1.0, FLOOR, STEP_S)
    assert pytest.approx(2e6, rel=0.011) == next_quota(low, 1.0, FLOOR, STEP_S, rise=2.0)
    rung = held(100e6, highest_rung(1e6))
    assert rung.value == next_quota(rung, 1.0, FLOOR, STEP_S, rise=1.0)
    assert next_quota(held(None, 20e6), 1.0, FLOOR, STEP_S) is None
    assert next_quota(held(None, 20e6, base=30e6), 1.0, FLOOR, STEP_S) is None
    assert 20e6 < (next_quota(held(None, 7e6), 1.0, FLOOR, STEP_S) or 0.0)


def test_a_quota_just_above_the_floor_stays() -> None:
    """There is no rung between them, and none above the original is set."""
    just_above = highest_rung(FLOOR) * 1.001
    assert just_above == next_quota(held(just_above, just_above), 0.0, just_above - 1, STEP_S)


def test_the_first_value_is_twice_what_clients_write() -> None:
    """Nobody waits for that; without a known rate, steps begin at the original."""
    _, first, second = walk(held(None, None), [0.0, 0.0], rate=3e6)
    assert first is not None
    assert second is not None
    assert pytest.approx(6e6, rel=0.011) == first
    assert pytest.approx((11 * first + 2 * FLOOR) / 13, rel=0.011) == second
    assert pytest.approx(6e6, rel=0.011) == walk(held(1e9, 1e9), [0.0], rate=3e6)[-1]
    assert pytest.approx(1e9 * 11 / 13, rel=0.011) == walk(held(1e9, 1e9), [0.0])[-1]


def test_a_hundredth_takes_three_minutes_and_the_way_back_half_a_minute() -> None:
    """The docs have these times; a step takes 6 s."""
    values = walk(held(100e6, 100e6), [0.0] * 30)
    assert [85.2e6, 72.7e6] == [round(value or 0.0, -5) for value in values[1:3]]
    assert values[-1] is not None
    assert 1e6 > values[-1]
    assert 100e6 == walk(held(100e6, values[-1]), [1.0] * 6)[-1]


def test_no_number_that_a_person_would_type_is_a_rung() -> None:
    """A quota of an operator is not mistaken for one of ours."""
    typed = {
        unit * count
        for unit in [1000**power for power in range(1, 4)] + [1024**power for power in range(1, 4)]
        for count in [*range(1, 100), *range(100, 1000, 5), 128, 256, 512]
    }
    assert [] == sorted(each for each in typed if each >= SMALLEST_FLOOR and is_rung(each))


class SimulatedBroker:
    """A simulation: one connection under a quota that Kafka's own arithmetic enforces."""

    def __init__(self, start: Held, factors: Sequence[float], rate: float | None = None) -> None:
        self.held, self.factors, self.rate = start, list(factors), rate
        self.window = Rate(QuotaWindow())
        self.now_ms = 30_000
        self.stepped_ms = self.now_ms
        self.longest_ms = 0
        self.landed = 0.0

    def send(self, nbytes: float) -> None:
        """Append a request, and wait as the broker says."""
        self._step()
        self.window.record(nbytes, self.now_ms)
        self.landed += nbytes
        rate, window_ms = self.window.observe(self.now_ms)
        limit = self.held.value
        wait_ms = 0 if limit is None else unbounded_ms(rate, limit, window_ms)
        self.longest_ms = max(self.longest_ms, wait_ms)
        self.idle(max(1, wait_ms))

    def idle(self, ms: int) -> None:
        """Let time pass."""
        self.now_ms += ms

    def _step(self) -> None:
        while self.factors and self.now_ms >= self.stepped_ms + STEP_S * 1000:
            self.stepped_ms += int(STEP_S * 1000)
            now, factor = self.stepped_ms / 1000, self.factors.pop(0)
            value = next_quota(self.held, factor, FLOOR, now, self.rate)
            if value != self.held.value:
                self.held = replace(self.held, value=value, since=now)


REQUESTS = st.lists(
    st.tuples(st.sampled_from([1.0, 0.5, 0.1, 0.02]), st.integers(1, 200), st.integers(0, 14_000)),
    min_size=1,
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(REQUESTS, st.one_of(st.just([0.0] * 60), st.lists(FACTORS, max_size=60)))
@example([(1.0, 200, 0)] * 40, [0.0] * 60)
@example([(1.0, 60, 11_000)] * 40, [0.0] * 60)
def test_no_wait_is_longer_than_the_bound_whatever_a_connection_sends(
    bursts: list[tuple[float, int, int]], factors: list[float]
) -> None:
    """Bursts of requests of any allowed size, with any time between them, at any factors."""
    broker = SimulatedBroker(held(5e6, 5e6), factors)
    for _ in range(15):
        broker.send(MOST_AT_ONCE)
    for share, count, idle_ms in bursts:
        for _ in range(count):
            broker.send(share * MOST_AT_ONCE)
        broker.idle(idle_ms)
    assert LONGEST_PAUSE_S * 1000 >= broker.longest_ms


@pytest.mark.parametrize("nbytes", [16_000.0, MOST_AT_ONCE])
def test_a_producer_without_a_quota_is_held(nbytes: float) -> None:
    """It wants 3 MB/s. In the third minute it lands a tenth; in the fifth it is at the floor."""
    broker = SimulatedBroker(held(None, None), [0.0] * 60, rate=3e6)
    due_ms, minutes = float(broker.now_ms), [0.0]
    while len(minutes) < 6:
        due_ms = max(due_ms + nbytes / 3000, broker.now_ms)
        broker.idle(int(due_ms) - broker.now_ms)
        broker.send(nbytes)
        if broker.now_ms >= 30_000 + 60_000 * len(minutes):
            minutes.append(broker.landed)
    rates = [(after - before) / 60 for before, after in pairwise(minutes)]
    assert 0.1 * 3e6 > rates[2]
    assert 1.3 * FLOOR > rates[4]
    assert LONGEST_PAUSE_S * 1000 >= broker.longest_ms


class MeasuredBroker(SimulatedBroker):
    """The same; its samples are read every 3 s once they are whole, and count 3 s later."""

    def __init__(self, start: Held, factors: Sequence[float], rate: float) -> None:
        super().__init__(start, factors, rate)
        self.read_ms = self.now_ms + 12_000
        self.highest = 0.0

    def _step(self) -> None:
        while self.now_ms >= self.read_ms + 3_000:
            self.read_ms += 3_000
            self.rate = self.highest or self.rate
            self.highest = max(self.highest, self.window.observe(self.read_ms)[0])
        super()._step()


@pytest.mark.slow
@pytest.mark.parametrize("more", [1.0, 6.0])
@pytest.mark.parametrize("more_at_s", [5.1, *(14.1 + each / 2 for each in range(9)), 21.1, 40.1])
def test_a_rate_that_is_known_later_makes_nobody_wait_for_longer(
    more: float, more_at_s: float
) -> None:
    """A producer of 3 MB/s beside five others, which then writes six times as much.

    The quota falls at 18 s. Twelve times as much, from 15.1 s on, would wait for 10 s.
    """
    broker = MeasuredBroker(held(None, None), [0.0] * 60, rate=18e6)
    began, due_ms, landed = broker.now_ms, float(broker.now_ms), [0.0]
    while len(landed) < 5:
        rate = 3e6 * (more if broker.now_ms >= began + 1000 * more_at_s else 1.0)
        due_ms = max(due_ms + 1000 * MOST_AT_ONCE / rate, broker.now_ms)
        broker.idle(int(due_ms) - broker.now_ms)
        broker.send(MOST_AT_ONCE)
        if broker.now_ms >= began + 30_000 * len(landed):
            landed.append(broker.landed)
    assert LONGEST_PAUSE_S * 1000 >= broker.longest_ms
    # By fill rates, all of it would land in the second minute too.
    assert more > 1.0 or 0.5 > (landed[4] - landed[2]) / landed[1] / 2
