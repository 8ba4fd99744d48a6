"""The slope between the soft limit and the limit: where it is, and how it moves."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.throttle.decision import Decision, Source, VolumeLimit
from sidecar.throttle.fill import WINDOW_S, Fill, Mark
from sidecar.throttle.limits import MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Learned, Memory, Slope, VolumeState
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import STEP, TURN_S, SlopeRules, next_slope
from sidecar.volumes import Volume
from tests.sidecar.throttle.build import partial, reading, whole, with_rules
from tests.sidecar.throttle.slope_loop import MB, Loop, last, turns
from tests.support.examples import mostly_rare

GB = 1000 * MB
LIMIT, SOFT = MinAvailableBytes(10 * GB), MinAvailableBytes(40 * GB)
RULES = SlopeRules(SOFT)
SLOW = SlopeRules(MinAvailableBytes(40), horizon_s=1800.0)


def state(
    available: float, rate: float | None, at: float = 100.0, log_dir: str = "/d"
) -> VolumeState:
    """A volume of 100 GB that has filled by so much for long."""
    volume = Volume(1, log_dir, 100 * GB, round(available))
    used = volume.used_bytes
    marks: tuple[Mark, ...] = (Mark(at, used),)
    if rate is not None:
        marks = (Mark(at - 2 * WINDOW_S, round(used - 2 * WINDOW_S * rate)), *marks)
    fill = Fill(marks, rate, rate)
    return VolumeState(volume, at, LIMIT.judge(volume), online=True, fill=fill)


def factor(available: float, rate: float | None, before: Slope | None = None) -> float:
    """Where it is after one look."""
    found = next_slope(before, [state(available, rate)], RULES, 1.0, 100.0)
    return 1.0 if found is None else found.factor


def test_the_modules_example() -> None:
    """25 GB available, 18 MB/s: 0.62, so 0.65."""
    assert 0.65 == factor(25 * GB, 18 * MB)
    # 15 GB last half an hour at 8.3 MB/s.
    assert 1.0 == factor(25 * GB, 8.3 * MB)
    assert 1.0 == factor(25 * GB, -5 * MB)


def test_it_begins_at_the_soft_limit_without_a_jump() -> None:
    """Above it nothing is; below it the first step is one, however fast the volume fills."""
    assert next_slope(None, [state(40 * GB + 1, GB)], RULES, 1.0, 100.0) is None
    assert 1.0 == factor(40 * GB, GB)
    assert next_slope(None, [state(40 * GB, GB)], RULES, 1.0, 100.0) is not None
    ratio = SlopeRules(MinAvailableRatio(0.29))
    assert next_slope(None, [state(29 * GB, GB)], ratio, 1.0, 100.0) is not None
    assert 1.0 - STEP == factor(39.6 * GB, GB)


def test_the_mean_factor_follows_while_a_rise_waits() -> None:
    """Otherwise the rates of the wait would be compared with the factor before it."""
    fallen = Slope(0.5, 0.5, 1.0, 90.0, 90.0, falls=True)
    waiting = next_slope(fallen, [state(39 * GB, 0.0)], RULES, 0.5, 100.0)
    assert waiting is not None
    assert (0.5, True) == (waiting.factor, 0.5 < waiting.mean < 1.0)


def test_it_ends_at_the_limit_without_a_jump() -> None:
    """A volume that does not fill is at the smallest step, just above it."""
    assert STEP == factor(10 * GB + 1, -5 * MB)
    assert 0.1 == factor(10 * GB + 0.3 * GB, -5 * MB)


@given(
    st.floats(10.0, 40.0),
    st.floats(0.0, 30.0),
    st.floats(-1e9, 1e9),
    st.floats(0.01, 1.0),
    st.floats(0.0, 1e9),
)
def test_it_is_monotone_in_free_space(
    gigabytes: float, more: float, rate: float, mean: float, first_rate: float
) -> None:
    """With more available, and all else the same, no smaller factor is wanted."""
    before = Slope(
        1.0,
        1.0,
        mean,
        100.0,
        0.0,
        falls=False,
        learned={(1, "/d"): Learned(first_rate, first_rate)},
    )
    wide = min(40.0, gigabytes + more)
    assert factor(gigabytes * GB, rate, before) <= factor(wide * GB, rate, before)


@given(st.floats(10.0, 40.0), st.none() | st.floats(-1e9, 1e9), st.floats(0.01, 1.0))
def test_it_is_a_step(gigabytes: float, rate: float | None, mean: float) -> None:
    """Between the smallest and 1.0."""
    before = Slope(0.5, 0.5, mean, 90.0, 0.0, falls=True)
    found = factor(gigabytes * GB, rate, before)
    assert STEP <= found <= 1.0
    assert found == pytest.approx(round(found / STEP) * STEP)


def test_a_late_observation_is_no_time_to_rise_in() -> None:
    """An observer's that comes to a sidecar after it was frozen may be minutes old."""
    factors = VolumeLimit(Rules(MinAvailableBytes(10), 300.0, slope=SLOW), 1.0)
    memory, now = Memory(), 500.0
    for step in range(20):
        now += 5.0
        memory = factors.fold(memory, whole(now, [reading(1, now, {"/d": 40 - step})]))
    before = factors.decide(memory, now).factor
    memory = factors.fold(memory, whole(now - 400.0, [reading(1, now - 400.0, {"/d": 90})]))
    assert memory.slope is not None
    assert now == memory.slope.at
    memory = factors.fold(memory, whole(now + 1.0, [reading(1, now + 1.0, {"/d": 21})]))
    assert before == factors.decide(memory, now + 1.0).factor < 0.9


def test_an_unknown_rate_moves_nothing() -> None:
    """As after a restart, until there are two readings."""
    before = Slope(0.5, 0.5, 0.5, 100.0, 0.0, falls=True)
    assert 0.5 == factor(25 * GB, None, before)
    assert 1.0 == factor(25 * GB, None)


def test_it_falls_at_once_and_rises_by_and_by() -> None:
    """A minute after it began to fall, by 0.2 a minute; above the soft limit at once."""
    slope = next_slope(None, [state(25 * GB, 18 * MB, 0.0)], RULES, 1.0, 0.0)
    assert slope is not None
    factors = {}
    for now in range(1, 200):
        slope = next_slope(slope, [state(25 * GB, -MB, now)], RULES, slope.factor, now)
        assert slope is not None
        factors[now] = slope.factor
    assert 0.65 == factors[59]
    assert [0.65, 0.65, 0.7] == [factors[now] for now in (60, 73, 76)]
    assert all(one <= other <= one + STEP + 0.001 for one, other in pairwise(factors.values()))
    assert 0.9 <= factors[199]
    low = Slope(0.3, 0.3, 0.3, 0.0, 0.0, falls=True)
    assert next_slope(low, [state(41 * GB, MB, 59.0)], RULES, 0.3, 59.0) is not None
    assert next_slope(low, [state(41 * GB, MB, 60.0)], RULES, 0.3, 60.0) is None


def test_a_volume_that_goes_up_and_down_turns_it_once_a_minute() -> None:
    """It crosses the soft limit every five seconds."""
    slope: Slope | None = None
    course = []
    for now in range(0, 1200, 5):
        gigabytes = 38 if now % 10 else 41
        in_force = slope.factor if slope else 1.0
        slope = next_slope(slope, [state(gigabytes * GB, GB, now)], RULES, in_force, now)
        course.append(slope.factor if slope else 1.0)
    rises = [number for number, (one, other) in enumerate(pairwise(course)) if other > one]
    assert rises
    assert min(later - earlier for earlier, later in pairwise(rises)) * 5 >= TURN_S


def test_the_smallest_of_all_volumes_counts() -> None:
    """And a volume whose soft limit lies at its limit or below has no slope."""
    both = [state(25 * GB, 18 * MB, log_dir="/a"), state(39.9 * GB, GB, log_dir="/b")]
    found = next_slope(None, both, RULES, 1.0, 100.0)
    assert found is not None
    assert 0.65 == found.factor
    narrow = SlopeRules(MinAvailableRatio(0.05))
    assert next_slope(None, [state(4 * GB, MB)], narrow, 1.0, 100.0) is None
    assert next_slope(None, [state(10 * GB, MB)], SlopeRules(LIMIT), 1.0, 100.0) is None


class TestDecisions:
    rules = VolumeLimit(Rules(LIMIT, 300.0, slope=RULES), 0.0)

    def decided(self, *gigabytes: float, step_s: float = 10.0) -> list[Decision]:
        """One volume, at these sizes."""
        memory, found = Memory(), []
        for number, each in enumerate(gigabytes):
            now = number * step_s
            seen = reading(1, now, {"/d": round(each * GB)}, total=100 * GB)
            memory = self.rules.fold(memory, whole(now, [seen]))
            found.append(self.rules.decide(memory, now))
        return found

    def test_the_factor_is_the_slopes_until_the_limit(self) -> None:
        """It says so; at the limit producers are throttled, and it is on no slope."""
        free, slowed, full = self.decided(41, 36, 10)
        assert (1.0, False) == (free.factor, free.is_sloped)
        assert slowed.is_sloped
        assert 0.0 < slowed.factor < 1.0
        assert Source.OBSERVATION is slowed.source
        assert () == slowed.violations
        assert (
            "36.0 GB of 100.0 GB available (36.0%), at or below the soft limit of 40.0 GB"
            in slowed.reason
        )
        assert slowed.reason.endswith(": the factor falls until the limit of 10.0 GB")
        assert (0.0, False) == (full.factor, full.is_sloped)

    def test_above_the_soft_limit_it_lasts_until_it_may_rise(self) -> None:
        """A minute after it began to fall; the reason is not a volume's any more."""
        _, slowed, rising, *_, free = self.decided(41, 36, 41, 41, 41, 41, 41, 41)
        assert slowed.factor == rising.factor < 1.0
        assert rising.reason.startswith("every volume has more than 40.0 GB available; ")
        assert (1.0, False) == (free.factor, free.is_sloped)

    def test_without_a_soft_limit_nothing_is_slowed(self) -> None:
        """As the proposal has it."""
        plain = with_rules(self.rules, slope=None)
        seen = [
            reading(1, at, {"/d": round(gb * GB)}, total=100 * GB) for at, gb in ((0, 36), (9, 11))
        ]
        memory = Memory()
        for each in seen:
            memory = plain.fold(memory, whole(each.read_at, [each]))
        assert 1.0 == plain.decide(memory, 9.0).factor

    def test_a_soft_limit_that_is_taken_away_slows_nobody(self) -> None:
        """Whatever an earlier run left: neither before the next observation nor after it."""
        memory = Memory()
        for now, gigabytes in ((0.0, 20), (1.0, 15)):
            seen = reading(1, now, {"/d": gigabytes * GB}, total=100 * GB)
            memory = self.rules.fold(memory, whole(now, [seen]))
        assert self.rules.decide(memory, 1.0).is_sloped
        plain = with_rules(self.rules, slope=None)
        decision = plain.decide(memory, 1.0)
        assert (1.0, False) == (decision.factor, decision.is_sloped)
        seen = reading(1, 2.0, {"/d": 15 * GB}, total=100 * GB)
        memory = plain.fold(memory, whole(2.0, [seen]))
        assert memory.slope is None
        assert 1.0 == plain.decide(memory, 2.0).factor

    def test_what_is_only_observed_is_the_first_step_again_and_again(self) -> None:
        """Nobody is slowed, so the rate says nothing of the factor: it goes by the free space."""
        open_loop = replace(self.rules, is_enforced=False)
        memory, factors = Memory(), []
        for number in range(60):
            now, available = 10.0 * number, 25 * GB - number * 180 * MB
            seen = reading(1, now, {"/d": available}, total=100 * GB)
            memory = open_loop.fold(memory, whole(now, [seen]))
            factors.append(open_loop.decide(memory, now).decided.factor)
        # 14.4 GB are left at the end, of which 4.4 last half an hour at 2.4 MB/s.
        assert (0.4, 0.4) == (min(factors), factors[-1])

    def test_it_moves_with_partial_observations(self) -> None:
        """A broker whose volume is on the slope is asked alone in between."""
        memory = Memory()
        for now, gigabytes in ((0.0, 36.0), (10.0, 35.9)):
            seen = reading(1, now, {"/d": round(gigabytes * GB)}, total=100 * GB)
            memory = self.rules.fold(memory, whole(now, [seen, reading(2, now)]))
        before = self.rules.decide(memory, 10.0).factor
        seen = reading(1, 20.0, {"/d": 20 * GB}, total=100 * GB)
        memory = self.rules.fold(memory, partial(20.0, [seen]))
        assert self.rules.decide(memory, 20.0).factor < before


STILL = {
    "18 MB/s beside 4 MB/s": Loop(),
    "a horizon of half an hour": Loop(horizon_s=1800.0, minutes=60.0),
    "100 clients": Loop(clients=100, request_bytes=0.1 * MB),
    "200 MB/s": Loop(bytes_per_s=200 * MB, deleted_per_s=40 * MB, clients=10, width_bytes=20 * GB),
    "polled every second": Loop(poll_s=1.0),
    "polled every 30 s, heard 5 s later": Loop(poll_s=30.0, delay_s=5.0, width_bytes=5 * GB),
    "deleted every minute": Loop(deletes_every_s=60.0),
    "half of it is deleted": Loop(deleted_per_s=9 * MB),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", mostly_rare(STILL, 3))
def test_it_comes_to_rest_above_the_limit(what: str) -> None:
    """In the last ten minutes the factor turns once or twice, by two steps at most."""
    seen = STILL[what].run()
    assert min(each.left_bytes for each in seen) > 0
    end = last(seen)
    assert turns(end) <= 2
    assert max(each.factor for each in end) - min(each.factor for each in end) <= 2 * STEP + 0.001


@pytest.mark.slow
@pytest.mark.parametrize(
    "loop",
    mostly_rare(
        [
            Loop(deleted_per_s=14 * MB, width_bytes=5 * GB, minutes=60.0),
            Loop(
                demand=lambda now: (9 if now < 900 else 36) * MB, width_bytes=5 * GB, minutes=60.0
            ),
            Loop(deletes_every_s=300.0, width_bytes=5 * GB, minutes=60.0),
        ]
    ),
)
def test_it_does_not_swing_where_it_can_t_rest(loop: Loop) -> None:
    """It turns no more than once a minute, by some steps, and no volume is at its limit."""
    seen = loop.run()
    assert min(each.left_bytes for each in seen) > 0
    end = last(seen)
    assert turns(end) <= 20
    assert max(each.factor for each in end) - min(each.factor for each in end) <= 0.25


@pytest.mark.slow
def test_it_is_free_again_when_producers_want_less() -> None:
    """Less than is deleted: the factor rises to 1.0."""
    seen = Loop(demand=lambda now: (18 if now < 900 else 2) * MB, minutes=45.0).run()
    assert {1.0} == {each.factor for each in last(seen, 5.0)}


@pytest.mark.slow
def test_without_a_cleaner_it_buys_time() -> None:
    """2 GB last 111 s at 18 MB/s; with a horizon of half an hour five times as long and more."""
    seen = Loop(deleted_per_s=0.0, horizon_s=1800.0).run()
    reached = next(each.at for each in seen if each.left_bytes <= 0)
    assert reached > 5 * 111


@pytest.mark.parametrize(
    "why", ["fenced", "not listed", "back but silent", "offline", "unreadable"]
)
def test_a_volume_that_is_not_read_on_the_slope_holds_the_factor(why: str) -> None:
    """A rolling restart must not undo the soft limit, nor must a log dir without sizes.

    The volume has emptied for over a minute before, so by its old fill rate the factor would rise.
    """
    factors = VolumeLimit(Rules(MinAvailableBytes(10), 300.0, slope=SLOW), 1.0)
    memory = Memory()
    now = 0.0
    for step in range(34):
        now, free = 5.0 * step, 40 - step if step < 20 else step
        seen = [reading(1, now, {"/d": 90}), reading(2, now, {"/d": free})]
        memory = factors.fold(memory, whole(now, seen))
    before = factors.decide(memory, now).factor
    assert before < 1.0
    for poll in range(50):
        now += 5.0
        other = reading(1, now, {"/d": 90})
        away = {
            "fenced": whole(now, [other], fenced=[2]),
            "not listed": whole(now, [other], fenced=None),
            "back but silent": whole(now, [other], silent=[2])
            if poll
            else whole(now, [other], fenced=[2]),
            "offline": whole(now, [other, reading(2, now, offline=["/d"])]),
            "unreadable": whole(now, [other, reading(2, now, unreadable=["/d"])]),
        }
        memory = factors.fold(memory, away[why])
        decision = factors.decide(memory, now)
        assert before == decision.factor
        assert "broker 2 /d has 33 B" in decision.reason
        assert " when last read, and " in decision.reason
    back = whole(now + 5.0, [reading(1, now, {"/d": 90}), reading(2, now, {"/d": 90})])
    memory = factors.fold(memory, back)
    assert 1.0 == factors.decide(memory, now + 5.0).factor
