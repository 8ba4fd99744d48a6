"""When the next poll is due, and of which brokers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Learned, Memory, Slope
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import (
    NextPoll,
    OwnPolls,
    Release,
    Timing,
    next_followers_poll,
    next_poll,
)
from tests.sidecar.throttle.build import TIMED_OUT, partial, reading, whole

MINUTE = Timing(interval_s=60.0, minimum_s=1.0)
QUICK = Timing(interval_s=60.0, minimum_s=0.1)
LIMIT_BYTES = 1000
TOTAL = 10**6
RATE = 100
factors = VolumeLimit(Rules(MinAvailableBytes(LIMIT_BYTES), 300.0), fallback=1.0)


def filling(left_s: Mapping[int, float | None], *, silent: tuple[int, ...] = ()) -> Memory:
    """Memory at 10 s of brokers whose volumes reach their limit so many seconds later.

    All fill at 100 bytes/s; None is a volume that stands still.
    """
    memory = Memory()
    for at in (0.0, 10.0):
        answers = []
        for key, left in left_s.items():
            free = TOTAL if left is None else LIMIT_BYTES + RATE * (left + 10.0 - at)
            answers.append(reading(key, at, {"/d0": round(free)}, total=TOTAL))
        memory = factors.fold(memory, whole(at, answers, silent=silent))
    return memory


def next_at_10_s(
    memory: Memory, timing: Timing, since_whole_s: float = 0.0, soft_bytes: int | None = None
) -> NextPoll:
    soft_limit = None if soft_bytes is None else MinAvailableBytes(soft_bytes)
    return next_poll(memory, timing, 10.0, since_whole_s, soft_limit=soft_limit)


# One after another: the rules.


STILL = {1: None}
CROWD: Mapping[int, float | None] = dict.fromkeys(range(1000))
"""1,000 brokers whose volumes stand still: each costs 20 ms."""
NEAR = dict.fromkeys(range(500), 1.0)
HUNDRED: Mapping[int, float | None] = dict.fromkeys(range(100))
OBSERVED = Timing(interval_s=60.0, minimum_s=0.1, observers=3)
FIXED = Timing(interval_s=5.0, minimum_s=5.0)
SECOND = Timing(interval_s=1.0, minimum_s=1.0)

Rule = tuple[Mapping[int, float | None], Timing, float, NextPoll]

RULES: Mapping[str, Rule] = {
    # Rule: seconds to the limits, timing, seconds since the last whole poll began, the next poll.
    "half of the nearest volume's time": ({1: 20, 2: 40, 3: None}, MINUTE, 0, NextPoll(10)),
    "at most the interval: far away": ({1: 900}, MINUTE, 0, NextPoll(60)),
    "at most the interval: stands still": (STILL, MINUTE, 0, NextPoll(60)),
    "the interval is from start to start": (STILL, MINUTE, 3, NextPoll(57)),
    "a full one: 0.4 s x brokers": ({1: 0, 2: None, 3: None}, QUICK, 0, NextPoll(1.2)),
    "at least the minimum: close to it": ({1: 0.15, 2: None, 3: None}, QUICK, 0, NextPoll(0.1)),
    "at least the minimum: twice of it": ({1: 0.2, 2: None, 3: None}, QUICK, 0, NextPoll(0.1)),
    "the minimum after a poll longer than the interval": (STILL, MINUTE, 75, NextPoll(1)),
    "a minimum that is the interval: at the limit": ({1: 0}, FIXED, 0, NextPoll(5)),
    "a minimum that is the interval: near": ({1: 3}, FIXED, 0, NextPoll(5)),
    "a minimum that is the interval: nearly as long": ({1: 8}, FIXED, 0, NextPoll(5)),
    "a minimum that is the interval: far away": ({1: 900}, FIXED, 0, NextPoll(5)),
    "a minimum that is the interval: stands still": (STILL, FIXED, 0, NextPoll(5)),
    "1,000 brokers near wait for 20 s": (dict.fromkeys(CROWD, 1), MINUTE, 0, NextPoll(20)),
    "20 s from start to start": (dict.fromkeys(CROWD, 1), MINUTE, 15, NextPoll(5)),
    "the near one alone": ({**CROWD, 7: 8, 8: 30}, MINUTE, 0, NextPoll(4, frozenset({7}))),
    "a full one of 1,000 once in the interval": ({**CROWD, 7: 0}, QUICK, 0, NextPoll(60)),
    "a full one with three observers": (
        {**CROWD, 7: 0},
        OBSERVED,
        0,
        NextPoll(1.6, frozenset({7})),
    ),
    "those as near with it": (
        {**CROWD, 7: 1, 8: 1.9, 9: 2, 10: 2.1},
        MINUTE,
        0,
        NextPoll(1, frozenset({7, 8, 9})),
    ),
    "500 near ones more slowly": ({**CROWD, **NEAR}, MINUTE, 0, NextPoll(10, frozenset(NEAR))),
    "a whole poll that is due sooner": ({**CROWD, 7: 8}, MINUTE, 17, NextPoll(4)),
    "nobody alone where nothing fills": (HUNDRED, SECOND, 0, NextPoll(2)),
    "only what fills alone": ({**HUNDRED, 7: 100}, SECOND, 0, NextPoll(1, frozenset({7}))),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str) -> None:
    """The volumes alone decide: their rates are known and everybody has answered."""
    left_s, timing, since_whole_s, expected = RULES[rule]
    assert expected == next_at_10_s(filling(left_s), timing, since_whole_s)


def test_half_of_what_is_left_by_now() -> None:
    """The time to the limit runs from when the volume was read."""
    memory = filling({1: 20.0})
    assert NextPoll(8.0) == next_poll(memory, MINUTE, 14.0, 0.0)


def test_a_full_broker_that_is_overdue_is_asked_after_the_minimum() -> None:
    """Its 1.2 s have passed since it was read."""
    assert NextPoll(0.1) == next_poll(filling({1: 0.0, 2: None, 3: None}), QUICK, 20.0, 10.0)


def test_unknown_rate_is_asked_again_after_the_minimum() -> None:
    """While a volume's rate is unknown, so is the time until its limit."""
    memory = factors.fold(Memory(), whole(10.0, [reading(1, 10.0, {"/d0": TOTAL}, total=TOTAL)]))
    assert NextPoll(1.0) == next_at_10_s(memory, MINUTE)


@pytest.mark.parametrize(
    ("since_s", "expected"), [(0.0, 1.0), (4.0, 1.0), (10.0, 2.5), (240.0, 60.0), (1e6, 60.0)]
)
def test_quarter_of_the_time_since_a_release(since_s: float, expected: float) -> None:
    """A volume that stood still during a throttle may fill again: within minimum and interval."""
    memory = filling({1: None})
    poll = next_poll(memory, MINUTE, 10.0, 0.0, Release(10.0 - since_s, frozenset({1})))
    assert NextPoll(expected) == poll


def test_volume_that_fills_after_a_release_is_not_put_off() -> None:
    """The sooner of the two polls is due."""
    assert NextPoll(2.0) == next_poll(filling({1: 4.0}), MINUTE, 10.0, 0.0, Release(-30.0))


def test_on_the_slope_a_broker_is_asked_every_five_seconds() -> None:
    """Whether its volume fills or not, and alone where many are; the limit may be nearer."""
    slope = Slope(0.5, 0.5, 0.5, 10.0, 0.0, falls=True, learned={(2, "/d0"): Learned(1.0, 1.0)})
    memory = replace(filling({1: None, 2: None}), slope=slope)
    assert NextPoll(5) == next_at_10_s(memory, MINUTE, 1.0)
    assert NextPoll(5, frozenset({2})) == next_at_10_s(replace(filling(CROWD), slope=slope), MINUTE)
    memory = replace(filling({1: 6, 2: None}), slope=slope)
    assert NextPoll(3) == next_at_10_s(memory, MINUTE, 1.0)


@pytest.mark.parametrize(
    ("soft_bytes", "left_s", "expected"),
    [
        # Seconds to the limit; 100 bytes/s, so 10,000 bytes are 90 s more than it.
        (10_000, 110.0, 10.0),
        (10_000, 94.0, 5.0),
        # Below it, and of one that lies below the limit, the limit counts alone.
        (10_000, 80.0, 40.0),
        (500, 20.0, 10.0),
    ],
)
def test_the_soft_limit_is_seen_when_it_is_reached(
    soft_bytes: int, left_s: float, expected: float
) -> None:
    """After half of the time until then, and no sooner than on the slope: every 5 s."""
    memory = filling({1: left_s})
    assert NextPoll(expected) == next_at_10_s(memory, MINUTE, soft_bytes=soft_bytes)


def test_a_volume_that_stands_still_above_the_soft_limit_hastens_nothing() -> None:
    """Nor does one of which no rate is known, beyond what it does without."""
    assert NextPoll(60.0) == next_at_10_s(filling(STILL), MINUTE, soft_bytes=TOTAL - 1)
    memory = factors.fold(Memory(), whole(10.0, [reading(1, 10.0, {"/d0": TOTAL}, total=TOTAL)]))
    assert NextPoll(1.0) == next_at_10_s(memory, MINUTE, soft_bytes=TOTAL - 1)


def test_release_does_not_hasten_failing_polls() -> None:
    """A cluster in trouble is not hammered: the minimum is the soonest for it, too."""
    memory = replace(filling({1: None}), failed_polls=3)
    assert NextPoll(1.0) == next_poll(memory, MINUTE, 10.0, 0.0, Release(10.0, frozenset({1})))
    assert NextPoll(4.0) == next_poll(memory, MINUTE, 10.0, 0.0, Release(-90.0, frozenset({1})))


def test_failed_polls_back_off_up_to_the_interval() -> None:
    """After a failed poll the wait is the minimum, then twice that, and so on."""
    memory = Memory()
    waits = []
    for _ in range(8):
        memory = fail(memory, TIMED_OUT)
        waits.append(next_at_10_s(memory, MINUTE))
    expected = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert [NextPoll(wait) for wait in expected] == waits


def test_failed_poll_does_not_slow_down_what_is_near() -> None:
    """Backing off never waits for longer than the volumes allow."""
    memory = replace(filling({1: 4.0}), failed_polls=7)
    assert NextPoll(2.0) == next_at_10_s(memory, MINUTE)


def test_offline_log_dir_is_not_waited_for() -> None:
    """A log dir that can't be read gets no nearer by reading."""
    memory = factors.fold(
        filling({1: 0.0}), whole(11.0, [reading(1, 11.0, {"/d1": TOTAL}, offline=["/d0"])])
    )
    memory = factors.fold(memory, whole(12.0, [reading(1, 12.0, {"/d1": TOTAL}, offline=["/d0"])]))
    assert NextPoll(60.0) == next_poll(memory, MINUTE, 12.0, 0.0)


def test_fenced_broker_is_not_waited_for() -> None:
    """What a fenced broker retains can't be read."""
    memory = factors.fold(
        filling({1: 0.0, 2: None}),
        whole(11.0, [reading(2, 11.0, {"/d0": TOTAL}, total=TOTAL)], fenced=[1]),
    )
    assert 0.0 == factors.decide(memory, 11.0).factor
    assert NextPoll(60.0) == next_poll(memory, MINUTE, 11.0, 0.0)


def test_broker_that_steers_client_quotas_is_asked_every_5_s() -> None:
    """Quotas rise and fall by its fill rate; one that is not active is not asked."""
    still = filling({1: None, 2: None})
    assert NextPoll(60.0) == next_poll(still, MINUTE, 10.0, 0.0, steering={5000})
    assert NextPoll(5.0) == next_poll(still, MINUTE, 10.0, 0.0, steering={1})
    poll = next_poll(filling(CROWD), MINUTE, 10.0, 0.0, steering={7, 5000})
    assert NextPoll(5.0, frozenset({7})) == poll


# Large clusters.


def test_broker_whose_volume_had_violated_is_asked_alone_after_the_release() -> None:
    """What may fill again is read before the whole poll; not the silent 8, nor 9, which fills."""
    memory = factors.fold(filling({**CROWD, 9: 70.0}), partial(5.0, silent=[8]))
    poll = next_poll(memory, MINUTE, 10.0, 0.0, Release(2.0, frozenset({7, 8})))
    assert NextPoll(2.0, frozenset({7})) == poll
    assert NextPoll(20.0) == next_poll(memory, MINUTE, 10.0, 0.0, Release(-70.0, frozenset({7})))


def test_broker_that_left_is_not_asked_after_the_release() -> None:
    """Only active brokers are asked, whoever's volume it was."""
    poll = next_poll(filling(CROWD), MINUTE, 10.0, 0.0, Release(2.0, frozenset({5000})))
    assert NextPoll(20.0) == poll


def test_broker_of_unknown_rate_is_not_asked_alone() -> None:
    """All rates are unknown at first: that must not make one great partial poll."""
    answers = [reading(key, 10.0, {"/d0": TOTAL}, total=TOTAL) for key in range(1000)]
    memory = factors.fold(Memory(), whole(10.0, answers))
    assert NextPoll(20.0) == next_at_10_s(memory, MINUTE)


def test_offline_log_dir_is_not_asked_for_alone() -> None:
    """A log dir that can't be read is no reason to ask its broker more often than all."""
    memory = factors.fold(
        filling({**HUNDRED, 7: 100.0}),
        partial(10.0, [reading(7, 10.0, offline=["/d0"])]),
    )
    assert NextPoll(2.0) == next_at_10_s(memory, SECOND)


def test_after_a_failed_whole_poll_what_is_near_is_asked_alone() -> None:
    """A list of brokers that did not come does not hide the volume near its limit."""
    memory = fail(filling({**CROWD, 7: 8.0}), TIMED_OUT)
    assert NextPoll(4.0, frozenset({7})) == next_at_10_s(memory, MINUTE)
    assert NextPoll(8.0, frozenset({7})) == next_at_10_s(replace(memory, failed_polls=4), MINUTE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own_broker", "left_s", "expected"),
    [
        (7, 2.0, (1.0, frozenset({7}))),
        (8, 2.0, (20.0, frozenset({7}))),
        (7, 0.0, (2.0, frozenset({7}))),
        (8, 0.0, (60.0, frozenset({7, 8}))),
    ],
    ids=["own near", "other near", "own full", "other full"],
)
def test_a_follower_polls_its_own_broker_more_often(
    own_broker: int, left_s: float, expected: tuple[float, frozenset[int]]
) -> None:
    """All 1,000 sidecars may poll a broker that no observer sees, but only one has it beside it."""
    polls = OwnPolls(own_broker, asked_at={7: 10.0, 8: 10.0}, read_at={7: 10.0})
    memory = filling({**CROWD, 7: left_s})
    timing = replace(OBSERVED, observers=4)
    assert expected == next_followers_poll(memory, timing, 10.0, polls)


def test_a_follower_polls_a_broker_at_once_that_nobody_has_asked() -> None:
    """The list of brokers has it, and no answer."""
    memory = factors.fold(Memory(), replace(whole(10.0, silent=[1]), answers={}))
    expected = (0.0, frozenset({1}))
    assert expected == next_followers_poll(memory, OBSERVED, 10.0, OwnPolls(None, {}, {}))


@pytest.mark.parametrize(("brokers", "expected_s"), [(3, 0.1), (1000, 20.0)])
def test_a_follower_without_observers_asks_again_after_the_spacing(
    brokers: int, expected_s: float
) -> None:
    """The observers' reading is old, and its own poll at 90 s got no list of brokers."""
    answers = [reading(key, 10.0, {"/d0": TOTAL}, total=TOTAL) for key in range(brokers)]
    memory = factors.fold(Memory(), whole(10.0, answers))
    polls = OwnPolls(None, dict.fromkeys(range(brokers), 90.0), {})
    delay_s, _ = next_followers_poll(memory, OBSERVED, 90.0, polls)
    assert pytest.approx(expected_s) == delay_s


def test_a_follower_polls_its_own_broker_that_observers_do_not_list() -> None:
    """Once in each interval, until an answer makes it a member; before any list it polls nobody."""
    memory = filling({1: None})
    polls = OwnPolls(7, {1: 10.0, 7: 10.0}, {})
    expected = (60.0, frozenset({7}))
    assert expected == next_followers_poll(memory, OBSERVED, 10.0, polls)
    assert (math.inf, frozenset()) == next_followers_poll(Memory(), OBSERVED, 10.0, polls)


def test_a_follower_polls_a_broker_in_each_interval_that_has_fallen_silent() -> None:
    """Its last reading would ask for an earlier poll, but it may hold up each one."""
    memory = factors.fold(filling({1: 5.0}), partial(20.0, silent=[1]))
    polls = OwnPolls(None, {1: 20.0}, {1: 10.0})
    expected = (60.0, frozenset({1}))
    assert expected == next_followers_poll(memory, OBSERVED, 20.0, polls)


@pytest.mark.parametrize(
    ("interval_s", "expected"), [(0.1, 2.0), (1.0, 2.0), (5.0, 5.0), (10.0, 10.0), (3600.0, 10.0)]
)
def test_longest_deadline(interval_s: float, expected: float) -> None:
    """A short interval shortens the deadline, but never to nothing."""
    assert expected == Timing(interval_s, interval_s).deadline_s


@pytest.mark.parametrize(
    ("delay_s", "expected"), [(0.1, 1.0), (1.0, 1.0), (4.0, 4.0), (10.0, 10.0), (60.0, 10.0)]
)
def test_deadline_after_a_wait(delay_s: float, expected: float) -> None:
    """A poll that comes soon does not wait long for a broker that hangs."""
    assert expected == MINUTE.deadline_after(delay_s)


def test_deadline_after_a_long_wait_is_within_the_interval() -> None:
    """It is never longer than the longest deadline."""
    assert 5.0 == Timing(5.0, 1.0).deadline_after(20.0)


# Any memory.

kinds = st.sampled_from(["still", "filling", "violating", "emptying", "new", "silent", "offline"])


@example(
    brokers={0: "silent"},
    others=50,
    failed_polls=0,
    seconds=(0.1, 0.1),
    age_s=0.0,
    since_whole_s=0.0,
    released_s=0.0,
)
@given(
    brokers=st.dictionaries(st.integers(0, 5), kinds, max_size=6),
    others=st.sampled_from([0, 1, 50, 400]),
    failed_polls=st.sampled_from([0, 0, 1, 5, 2000]),
    seconds=st.sampled_from([(60.0, 1.0), (60.0, 0.1), (5.0, 5.0), (0.1, 0.1), (3600.0, 0.1)]),
    age_s=st.floats(0.0, 5000.0),
    since_whole_s=st.floats(0.0, 5000.0),
    released_s=st.none() | st.floats(0.0, 5000.0),
)
def test_wait_is_within_bounds(
    *,
    brokers: dict[int, str],
    others: int,
    failed_polls: int,
    seconds: tuple[float, float],
    age_s: float,
    since_whole_s: float,
    released_s: float | None,
) -> None:
    """The wait is at least the minimum, at most the interval or 20 ms for each broker, and > 0."""
    timing = Timing(*seconds)
    free = {"still": (5000, 5000), "filling": (9000, 5000), "violating": (1000, 900)}
    free |= {"emptying": (5000, 9000), "new": (5000, 5000), "offline": (5000, 5000)}
    silent = [key for key, kind in brokers.items() if kind == "silent"]
    silent += range(100, 100 + others)
    memory = Memory()
    for poll, at in enumerate((0.0, 10.0)):
        answers = [
            reading(key, at, {f"/d{poll if kind == 'new' else 0}": free[kind][poll]}, total=TOTAL)
            if poll == 0 or kind != "offline"
            else reading(key, at, offline=["/d0"])
            for key, kind in brokers.items()
            if kind != "silent"
        ]
        memory = factors.fold(memory, whole(at, answers, silent=silent))
    memory = replace(memory, failed_polls=failed_polls)
    now = 10.0 + age_s
    back = frozenset() if released_s is None else frozenset({0, 1, 7})
    released = None if released_s is None else Release(now - released_s, back)
    poll_next = next_poll(memory, timing, now, since_whole_s, released)
    active = set(brokers) | set(silent)
    spacing_s = 0.02 * len(active)
    assert timing.minimum_s <= poll_next.delay_s <= max(timing.interval_s, spacing_s)
    assert poll_next.delay_s > 0
    if poll_next.brokers is None:
        assert spacing_s <= since_whole_s + poll_next.delay_s + 1e-9
    else:
        assert poll_next.brokers
        # A broker that was released may have fallen silent since.
        assert poll_next.brokers <= active - (set(silent) - back)
        assert 0.02 * len(poll_next.brokers) <= poll_next.delay_s


# Lives in virtual time.


@dataclass
class Simulation:
    """A cluster whose volumes fill evenly, polled as the schedule says by polls that take no time.

    Attributes:
        left_s: broker -> seconds from the start until its volume is at its limit; inf stands still.
        rates: broker -> bytes per second.
    """

    left_s: Mapping[int, float]
    rates: Mapping[int, int]
    timing: Timing
    now: float = 0.0
    memory: Memory = field(default_factory=Memory)
    whole_polls: list[float] = field(default_factory=list)
    asked_alone: list[frozenset[int]] = field(default_factory=list)

    def run_until_caught(self) -> float:
        """Polls until a volume violates; returns the seconds since it reached its limit."""
        brokers: frozenset[int] | None = None
        while True:
            answers = [
                reading(key, self.now, {"/d0": self.free(key)}, total=10**18)
                for key in (self.left_s if brokers is None else brokers)
            ]
            if brokers is None:
                self.whole_polls.append(self.now)
                observation = whole(self.now, answers)
            else:
                self.asked_alone.append(brokers)
                observation = partial(self.now, answers)
            self.memory = factors.fold(self.memory, observation)
            violations = factors.decide(self.memory, self.now).violations
            if violations:
                return self.now - self.left_s[violations[0].volume.broker_id]
            since_whole_s = self.now - self.whole_polls[-1]
            poll = next_poll(self.memory, self.timing, self.now, since_whole_s)
            self.now += poll.delay_s
            brokers = poll.brokers

    def free(self, broker_id: int) -> int:
        left = self.left_s[broker_id] - self.now
        if left == math.inf:
            return TOTAL
        return LIMIT_BYTES + math.ceil(left * self.rates[broker_id])


@pytest.mark.slow
@given(
    st.floats(0.01, 2_000.0),
    st.integers(10_000, 10**10),
    st.sampled_from([MINUTE, QUICK, Timing(5.0, 5.0), Timing(3600.0, 1.0)]),
)
def test_even_filling_is_caught_within_the_minimum(
    left_s: float, rate: int, timing: Timing
) -> None:
    """A volume that fills evenly is caught at most the minimum, times its rate, past its limit.

    And without haste: a poll each interval, and as many as it takes to halve that down to the
    minimum.
    """
    simulation = Simulation({1: left_s, 2: math.inf}, {1: rate, 2: 0}, timing)
    late_s = simulation.run_until_caught()
    assert 0.0 <= late_s <= timing.minimum_s + 0.001
    halvings = math.log2(timing.interval_s / timing.minimum_s)
    assert len(simulation.whole_polls) <= left_s / timing.interval_s + halvings + 6
    assert [] == simulation.asked_alone


@pytest.mark.slow
def test_in_1000_brokers_the_near_one_is_caught_within_the_minimum() -> None:
    """Between whole polls 20 s apart the near broker is asked alone, and caught as in three."""
    left_s = dict.fromkeys(range(1000), math.inf) | {7: 130.0}
    simulation = Simulation(left_s, dict.fromkeys(left_s, 0) | {7: 10**6}, QUICK)
    late_s = simulation.run_until_caught()
    assert 0.0 <= late_s <= QUICK.minimum_s
    apart = [later - earlier for earlier, later in pairwise(simulation.whole_polls)]
    assert all(gap >= 20.0 - 1e-9 for gap in apart)
    assert {frozenset({7})} == set(simulation.asked_alone)
