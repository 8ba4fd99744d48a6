"""What brokers may let through while a volume fills, in a loop with clients that wait.

``Scene`` is a volume of one broker with clients that send one request in each pause, and a sidecar
that reads the volume once a second: the rule, and what it makes of the disk.
"""

import heapq
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.leak import LEAST, Leak, LeakRules, Leaks
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import reading, remembering, whole
from tests.support.examples import mostly_slow

HORIZON_S = 600.0
RULES = LeakRules()
VALIDITY_S = 300.0
TOTAL = 10**12
FACTORS = VolumeLimit(Rules(MinAvailableBytes(TOTAL - 1), VALIDITY_S), 1.0)
after = remembering(FACTORS)


def _next(leaks: Leaks, memory: Memory, *, throttled: bool, now: float) -> Leaks:
    return RULES.next(leaks, memory, throttled=throttled, validity_s=VALIDITY_S, now=now)


class Scene:
    """Clients that wait, and the volume that they fill; times in seconds, sizes in bytes.

    Attributes:
        leaks: in force.
        changes: how often the share moved.
        longest_s: the longest pause of the last ``run``.
    """

    def __init__(self, connections: int, request: int, room: int) -> None:
        self.leaks = Leaks()
        self.changes = 0
        self.longest_s = 0.0
        self._request = request
        self._room = room
        self._memory = Memory()
        self._now = 0
        self._due = [(0.001 * each, each) for each in range(connections)]

    @property
    def budget(self) -> float:
        """What may land so that the volume is not full within the horizon, bytes per second."""
        return self._room / HORIZON_S

    @property
    def room(self) -> int:
        """What is left of the volume."""
        return self._room

    def give(self, room: int) -> None:
        """The volume has so much left from now on."""
        self._room = room
        self._memory = Memory()

    def run(self, seconds: int) -> float:
        """What lands, bytes per second."""
        landed, self.longest_s = 0, 0.0
        for _ in range(seconds):
            self._now += 1
            took = self._send(float(self._now))
            landed += took
            self._room -= took
            self._see(float(self._now))
        return landed / seconds

    def _send(self, until: float) -> int:
        took = 0
        while self._due and self._due[0][0] < until:
            at, client = heapq.heappop(self._due)
            took += self._request
            pause_s = RULES.pause_s(self.leaks.share)
            self.longest_s = max(self.longest_s, pause_s)
            heapq.heappush(self._due, (at + pause_s, client))
        return took

    def _see(self, now: float) -> None:
        left = max(0, self._room)
        self._memory = FACTORS.fold(
            self._memory, whole(now, [reading(1, now, {"/d": left}, total=TOTAL)])
        )
        before = self.leaks.share
        self.leaks = _next(self.leaks, self._memory, throttled=True, now=now)
        self.changes += self.leaks.share != before


@pytest.mark.parametrize(
    ("connections", "request_bytes", "room"),
    mostly_slow(
        [
            (3, 10**6, 60 * 10**6),
            (10, 10**6, 200 * 10**6),
            (30, 300_000, 200 * 10**6),
            (100, 10**6, 2 * 10**9),
        ]
    ),
)
def test_half_an_hour_later_the_volume_is_not_full(
    connections: int, request_bytes: int, room: int
) -> None:
    """Once it has settled no more lands than lasts for the horizon, and no less than need be."""
    scene = Scene(connections, request_bytes, room)
    for _ in range(3):
        scene.run(180)
        budget = scene.budget
        fill = scene.run(420)
        assert fill <= budget
        # Pauses that are the longest can't be any longer.
        assert scene.longest_s >= 299.0 or fill >= 0.2 * budget
    assert scene.room > 0


@pytest.mark.slow
def test_what_still_passes_is_a_request_of_each_in_the_longest_pause() -> None:
    """The documented floor: 100 connections, requests of 1 MB, pauses of 300 s: 333 kB/s."""
    scene = Scene(100, 10**6, 50 * 10**6)
    scene.run(1200)
    assert 300.0 == RULES.pause_s(scene.leaks.share)
    assert pytest.approx(100 * 1e6 / 300.0, rel=0.05) == scene.run(3600)
    assert 300.0 == scene.longest_s


@pytest.mark.slow
def test_when_there_is_room_again_pauses_are_short_again() -> None:
    """It takes steps of ten at most, each when the pauses before are over."""
    scene = Scene(100, 10**6, 50 * 10**6)
    scene.run(1200)
    scene.give(500 * 10**9)
    scene.run(7200)
    assert {} == scene.leaks.shares


@pytest.mark.slow
def test_the_share_does_not_swing_with_single_requests() -> None:
    """It is judged by a rate that began when all had paused by it, and not before."""
    scene = Scene(3, 10**6, 60 * 10**6)
    scene.run(1800)
    assert scene.changes <= 4


def _filling(now: float, *, left_s: float, over_s: float = 30.0) -> Memory:
    """A volume that is full so many seconds after now, at an even rate of 1,000 bytes/s."""
    left = round(left_s * 1000)
    step = over_s / 10
    return after(
        *(
            whole(at, [reading(1, at, {"/d": round(left + (now - at) * 1000)}, total=TOTAL)])
            for at in (now - over_s + step * each for each in range(11))
        )
    )


def test_docstring_example() -> None:
    """Full in 20 s: a tenth is the largest step. Full in 200 s when judged: a sixth of that."""
    leaks = Leaks(0.0)
    for now in (11.0, 12.0):
        leaks = _next(leaks, _filling(now, left_s=20.0), throttled=True, now=now)
    assert {1: 0.1} == leaks.shares
    assert 40.0 == RULES.pause_s(leaks.share)
    assert 80.0 == RULES.window_s(leaks)
    for now, share in ((135.9, 0.1), (136.0, 0.1 / 6)):
        memory = _filling(now, left_s=200.0, over_s=100.0)
        leaks = _next(leaks, memory, throttled=True, now=now)
        assert pytest.approx(share) == leaks.share
    assert pytest.approx(240.0) == RULES.pause_s(leaks.share)


@pytest.mark.parametrize(("left_s", "share"), [(33.9, 0.1), (34.1, 0.4), (590.0, 590 / 1200)])
def test_a_step_is_small_while_there_is_time_for_another(left_s: float, share: float) -> None:
    """Pauses of 10 s are judged after 4 + 3 x 10 s: a volume that is full before needs a tenth."""
    leaks = _next(Leaks(0.0), _filling(12.0, left_s=left_s), throttled=True, now=12.0)
    assert pytest.approx(share) == leaks.share


@given(
    share=st.floats(LEAST, 1.0),
    soon=st.floats(0.0, 5000.0),
    later=st.floats(0.0, 5000.0),
)
def test_a_volume_that_is_full_sooner_never_gets_more(
    share: float, soon: float, later: float
) -> None:
    """A share stays within its bounds, and is monotone in the time that is left."""
    before = Leaks(0.0, {1: Leak(share, 0.0)})
    now, over_s = 2000.0, 1000.0
    found = [
        _next(
            before,
            _filling(now, left_s=left, over_s=over_s),
            throttled=True,
            now=now,
        )
        for left in sorted((soon, later))
    ]
    assert LEAST <= found[0].share <= found[1].share <= 1.0
    assert share / 10.001 <= found[0].share
    assert all(leaks.share <= max(share, LEAST) * 10.001 for leaks in found)


def test_nothing_read_changes_nothing() -> None:
    """A sidecar that can't see does not let more through, nor less."""
    before = Leaks(0.0, {1: Leak(0.1, 0.0)})
    now = 10_000.0
    memory = _filling(now - VALIDITY_S - 1.0, left_s=20.0)
    assert before == _next(before, memory, throttled=True, now=now)
    assert before == _next(before, Memory(), throttled=True, now=now)


def test_a_rate_from_before_the_throttle_does_not_count() -> None:
    """A broker fell silent as the throttle began: nobody knows whether its volume still fills.

    Until its readings are too old, nobody pauses for longer, and nobody may let more through.
    """
    filling = [
        reading(1, at, {"/d": round(200_000 - 6000 * at)}, total=TOTAL) for at in (-20, -10, 0)
    ]
    memory = after(*(whole(each.read_at, [each]) for each in filling))
    whole_budget, tenth = Leaks(0.0), Leaks(0.0, {2: Leak(0.1, 0.0)})
    for at in range(1, 290):
        now = float(at)
        memory = FACTORS.fold(
            memory, whole(now, [reading(2, now, {"/d": TOTAL - 2}, total=TOTAL)], silent=[1])
        )
        whole_budget = _next(whole_budget, memory, throttled=True, now=now)
        tenth = _next(tenth, memory, throttled=True, now=now)
        assert {} == whole_budget.shares
        assert {2: 0.1} == tenth.shares


def test_a_release_ends_it() -> None:
    """The next throttle begins with the whole budget, and is judged anew."""
    memory = _filling(1000.0, left_s=20.0)
    before = Leaks(0.0, {1: Leak(0.1, 0.0)})
    assert Leaks() == _next(before, memory, throttled=False, now=1000.0)
    again = _next(Leaks(), memory, throttled=True, now=1001.0)
    assert (1001.0, {}) == (again.throttled_at, again.shares)


def test_a_restart_goes_on_from_the_share() -> None:
    """It is judged again when its pauses are over."""
    resumed = RULES.resumed({1: 0.1}, 1000.0)
    assert {1: 0.1} == resumed.shares
    for now, share in ((1159.0, 0.1), (1160.0, 0.01)):
        memory = _filling(now, left_s=1.0, over_s=100.0)
        resumed = _next(resumed, memory, throttled=True, now=now)
        assert pytest.approx(share) == resumed.share


@pytest.mark.parametrize(
    ("feeds", "fewer"),
    [
        ({}, {1, 2, 3}),
        ({1: {2}, 2: {1, 2}, 3: {3}}, {2}),
        ({1: {2}, 2: set(), 3: set()}, set()),
        ({3: {2}}, {1, 2}),
    ],
)
def test_only_brokers_that_feed_the_volume(feeds: dict[int, set[int]], fewer: set[int]) -> None:
    """A broker of which that is not known may feed it."""
    times = [970.0 + 3.0 * each for each in range(11)]
    memory = after(
        *(
            whole(
                at,
                [
                    reading(1, at, {"/d": round(20_000 + (1000.0 - at) * 1000)}, total=TOTAL),
                    *(reading(broker, at, {"/d": 10**9}, total=TOTAL) for broker in (2, 3)),
                ],
            )
            for at in times
        )
    )
    memory = replace(memory, feeds={key: frozenset(fed) for key, fed in feeds.items()})
    leaks = _next(Leaks(0.0), memory, throttled=True, now=1000.0)
    assert fewer == set(leaks.shares)
