"""What one broker of a large cluster is asked, by the schedules of all sidecars together."""

import math
from collections.abc import Collection

import pytest

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import (
    NextPoll,
    OwnPolls,
    Timing,
    next_followers_poll,
    next_poll,
)
from tests.sidecar.throttle.build import TIMED_OUT, partial, reading, whole
from tests.support.examples import mostly_rare, mostly_slow

LIMIT_BYTES = 1000
TOTAL = 10**6
FULL = 0
"""The broker whose volume fills, or is full."""
factors = VolumeLimit(Rules(MinAvailableBytes(LIMIT_BYTES), 300.0), fallback=1.0)


class Polling:
    """One sidecar that polls a cluster where the volume of one broker is full, or fills.

    Attributes:
        asked: when it asked that broker, seconds.
        whole_at: when its last whole poll was.
        now: when its next poll is due.
    """

    def __init__(self, brokers: int, timing: Timing, *, left_s: float) -> None:
        self.brokers = range(brokers)
        self.timing = timing
        self.left_s = left_s
        self.asked: list[float] = []
        self.memory = Memory()
        self.now = self.whole_at = 0.0

    def available(self, broker_id: int, now: float) -> int:
        """A volume that fills does so by 100 bytes/s; a full one stays full."""
        if broker_id != FULL:
            return TOTAL // 2
        return LIMIT_BYTES + math.ceil(100 * (self.left_s - now)) if self.left_s else 500

    def observe(self, brokers: Collection[int] | None) -> None:
        """Poll now: all brokers, or some."""
        asked = self.brokers if brokers is None else brokers
        answers = [
            reading(each, self.now, {"/d0": self.available(each, self.now)}, total=TOTAL)
            for each in asked
        ]
        if brokers is None:
            self.whole_at = self.now
        if FULL in asked:
            self.asked.append(self.now)
        observation = (whole if brokers is None else partial)(self.now, answers)
        self.memory = factors.fold(self.memory, observation)

    def run(self, until_s: float) -> None:
        """Poll until the next poll is due later than that."""
        brokers: Collection[int] | None = None
        while self.now < until_s:
            self.observe(brokers)
            plan = next_poll(self.memory, self.timing, self.now, self.now - self.whole_at)
            brokers = plan.brokers
            self.now += plan.delay_s


def requests_per_s(brokers: int, observers: int | None) -> float:
    """The requests that a full broker gets in ten minutes of throttle, each second."""
    timing = Timing(60.0, 1.0, observers)
    one = Polling(brokers, timing, left_s=0.0)
    one.run(600.0)
    if observers is None:
        return len(one.asked) * brokers / 600.0
    return len(one.asked) * observers / 600.0 + own_polls(one, timing) / 60.0


def own_polls(observer: Polling, timing: Timing) -> int:
    """How often the sidecar beside the full broker asks it in a minute, beside its observers."""
    observer.observe(None)
    memory, now = observer.memory, observer.now
    ends_at, asked_at, count = now + 60.0, -math.inf, 0
    while True:
        polls = OwnPolls(FULL, {FULL: asked_at}, {FULL: asked_at})
        delay_s, asked = next_followers_poll(memory, timing, now, polls)
        now += delay_s
        if now > ends_at:
            return count
        assert frozenset({FULL}) == asked
        answer = reading(FULL, now, {"/d0": 500}, total=TOTAL)
        memory = factors.fold(memory, partial(now, [answer]))
        asked_at, count = now, count + 1


@pytest.mark.slow
@pytest.mark.parametrize("brokers", mostly_rare([10, 100, 1000], 2))
def test_a_full_broker_is_asked_three_times_a_second_at_most(brokers: int) -> None:
    """By its three observers and its own sidecar together, during the whole throttle."""
    assert requests_per_s(brokers, 3) <= 3.0


@pytest.mark.slow
@pytest.mark.parametrize("brokers", [3, 10, 100, 1000])
def test_without_observers_a_throttle_adds_no_requests(brokers: int) -> None:
    """Each sidecar asks it once in each interval, as before, or all ask 3 times a second."""
    assert requests_per_s(brokers, None) <= max(3.0, brokers / 60.0 + 0.1)


@pytest.mark.parametrize("lost_s", mostly_slow([4.0, 1.0]))
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_missed_deadline_near_the_limit_costs_two_seconds(lost_s: float, is_whole: bool) -> None:
    """Of 1,000 brokers, the near one is asked alone again; also after a list that did not come."""
    one = Polling(1000, Timing(60.0, 1.0, 3), left_s=70.0)
    one.run(66.0)
    one.now += lost_s
    if is_whole:
        one.memory = fail(one.memory, TIMED_OUT)
    else:
        one.memory = factors.fold(one.memory, partial(one.now, silent=[FULL]))
    plan = next_poll(one.memory, one.timing, one.now, lost_s)
    assert plan.delay_s <= 2.0
    assert frozenset({FULL}) == plan.brokers


def test_a_silent_broker_is_asked_more_and_more_rarely() -> None:
    """Each wait is as long as the broker was silent, so that one that hangs is not hammered."""
    one = Polling(1000, Timing(60.0, 1.0, 3), left_s=70.0)
    one.run(66.0)
    waits = []
    for _ in range(4):
        one.now += 1.0
        one.memory = factors.fold(one.memory, partial(one.now, silent=[FULL]))
        plan = next_poll(one.memory, one.timing, one.now, 0.0)
        waits.append(plan.delay_s)
        one.now += plan.delay_s
    assert pytest.approx([1.0, 2.0, 5.0, 11.0], rel=0.1) == waits


def test_an_unreadable_log_dir_does_not_hide_the_volume_beside_it() -> None:
    """The broker answers, so its volume near the limit is polled alone as without that log dir."""
    one = Polling(1000, Timing(60.0, 1.0, 3), left_s=70.0)
    one.run(60.0)
    for at in (60.0, 61.0):
        answer = reading(FULL, at, {"/d0": one.available(FULL, at)}, total=TOTAL, unreadable=["/x"])
        one.memory = factors.fold(one.memory, partial(at, [answer]))
    assert one.memory.brokers[FULL].failure is not None
    plan = next_poll(one.memory, one.timing, 61.0, 1.0)
    assert NextPoll(4.5, frozenset({FULL})) == plan
