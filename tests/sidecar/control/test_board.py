"""The board: which news is a change, who is woken, and what time alone changes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from sidecar.control.board import MOST_CHANGES, Board, PersistedState, Snapshot
from sidecar.throttle.decision import Disabled, Source, VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.leak import LeakRules, Leaks
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import BudgetThrottle, Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Release
from sidecar.volumes import Observation
from tests.sidecar.throttle.build import TIMED_OUT, FakeClock, partial, reading, whole, with_rules

VALIDITY_S = 120.0
factors = VolumeLimit(Rules(MinAvailableBytes(30), VALIDITY_S), fallback=0.5)


def seen(at: float, **available: int) -> Observation:
    """A whole observation of broker 1: log dir -> available bytes of 100."""
    return whole(at, [reading(1, at, available)])


def fold(observation: Observation) -> Callable[[Memory], Memory]:
    return lambda memory: factors.fold(memory, observation)


def failed(memory: Memory) -> Memory:
    return fail(memory, TIMED_OUT)


def overridden(override: Override | None) -> Callable[[Memory], Memory]:
    return lambda memory: replace(memory, override=override)


def loop_time() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def expiring(board: Board) -> AsyncIterator[None]:
    """Runs the block with the board's own task."""
    task = asyncio.create_task(board.publish_expiries(), name="expiries")
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


# The start.


def test_starts_with_the_fallback_in_generation_1() -> None:
    """The first snapshot is the fallback since the start, and not counted as a transition."""
    board = Board(factors, FakeClock(7.0))
    snapshot = board.snapshot
    assert (0.5, Source.FALLBACK) == (snapshot.decision.factor, snapshot.decision.source)
    assert (1, 7.0, 7.0) == (snapshot.generation, snapshot.since, board.now())
    assert 0 == board.tally.fallback_applied
    assert [1] == [change.generation for change in board.changes]


@pytest.mark.parametrize(
    ("effect", "since"),
    [
        ((0.0, Source.OBSERVATION), 3.0),
        ((1.0, Source.OBSERVATION), VALIDITY_S),
        ((0.0, Source.OVERRIDE), VALIDITY_S),
    ],
)
def test_since_goes_on_over_a_restart(effect: tuple[float, Source], since: float) -> None:
    """A valid decision with factor and source as before has been in force since then."""
    memory = factors.fold(Memory(), seen(0.0, d0=30))
    restored = PersistedState(memory, *effect, 3.0)
    snapshot = Board(factors, FakeClock(VALIDITY_S), restored=restored).snapshot
    assert (0.0, since) == (snapshot.decision.factor, snapshot.since)


def test_leaks_move_without_a_change() -> None:
    """While the factor is 0.0 they shrink as the volume fills; at the release they are gone."""
    clock = FakeClock()
    board = Board(factors, clock, leak_rules=LeakRules())
    for second in range(20):
        clock.now = float(second)
        board.observe(seen(clock.now, d0=29 - second))
    assert (2, {1: 0.1}) == (board.snapshot.generation, board.snapshot.leaks.shares)
    board.observe(seen(clock.now, d0=99))
    assert (3, Leaks()) == (board.snapshot.generation, board.snapshot.leaks)


@pytest.mark.parametrize(("at", "shares"), [(VALIDITY_S, {1: 0.1}), (VALIDITY_S + 1.0, {})])
def test_leaks_go_on_over_a_restart(at: float, shares: dict[int, float]) -> None:
    """They are those of the throttle that goes on, and of no other."""
    memory = factors.fold(Memory(), seen(0.0, d0=30))
    restored = PersistedState(memory, 0.0, Source.OBSERVATION, 0.0, {1: 0.1})
    assert shares == Board(factors, FakeClock(at), restored=restored).snapshot.leaks.shares


def test_starts_with_the_fallback_when_the_restored_state_expired() -> None:
    """It expired while nobody published anything: no transition is counted."""
    memory = factors.fold(Memory(), seen(0.0, d0=30))
    restored = PersistedState(memory, 0.0, Source.OBSERVATION, 0.0)
    board = Board(factors, FakeClock(VALIDITY_S + 0.5), restored=restored)
    assert Source.FALLBACK == board.snapshot.decision.source
    assert 0 == board.tally.fallback_applied


def test_disabled() -> None:
    """A disabled sidecar publishes 1.0, whatever it observes."""
    board = Board(Disabled(), FakeClock())
    board.observe(seen(0.0, d0=30))
    assert (1.0, Source.DISABLED, 1) == (
        board.snapshot.decision.factor,
        board.snapshot.decision.source,
        board.snapshot.generation,
    )


def test_etags_of_two_starts_differ() -> None:
    """A restart never repeats an ETag; a board's own changes with each generation."""
    clock = FakeClock()
    one, other = Board(factors, clock), Board(factors, clock)
    assert one.etag != other.etag
    assert f"{one.start_id}-1" == one.etag
    one.observe(seen(0.0, d0=99))
    assert f"{one.start_id}-2" == one.etag


# What is a change.


def test_generation_grows_with_each_part_of_the_identity() -> None:
    """Factor, source, override, and the set of violating volumes each begin a generation."""
    clock = FakeClock()
    board = Board(VolumeLimit(Rules(MinAvailableBytes(30), VALIDITY_S), fallback=1.0), clock)
    override = Override(0.0, "maintenance", 0.0, 60.0)
    steps = [
        fold(seen(0.0, d0=99)),  # the source alone: fallback and observation both say 1.0
        fold(seen(0.0, d0=30, d1=99)),  # the factor
        fold(seen(0.0, d0=30, d1=30)),  # the violating volumes alone
        fold(seen(0.0, d0=99, d1=30)),  # others, but as many
        overridden(override),  # the source, and the override
        overridden(replace(override, reason="another")),  # the override alone
        overridden(None),
    ]
    generations = [board.update(step).generation for step in steps]
    assert [2, 3, 4, 5, 6, 7, 8] == generations
    assert list(range(1, 9)) == [change.generation for change in board.changes]
    assert board.snapshot.decision == board.changes[-1].decision


def test_generation_grows_with_the_stop() -> None:
    """It begins, another volume stops too, it is lifted by hand, and ends; 0.0 is since the first.

    Nothing else changes where it begins, and both volumes violate the limit throughout.
    """
    board = Board(with_rules(factors, stop_line=MinAvailableBytes(10)), FakeClock())
    course = [(20, 20), (10, 20), (10, 9), (9, 10), (11, 11), (12, 12)]
    snapshots = [board.observe(seen(0.0, d0=one, d1=other)) for one, other in course]
    assert [2, 3, 4, 4, 4, 5] == [snapshot.generation for snapshot in snapshots]
    assert [False, True, True, True, True, False] == [
        each.decision.stop_line_reached for each in snapshots
    ]
    assert {0.0} == {each.since for each in snapshots}


def test_an_enforcer_takes_back_its_own_throttles_alone() -> None:
    """Alice stays throttled by the other one, and bob is released."""
    board = Board(factors, FakeClock(100.0))
    for enforcer, ends_at in (("one", 200.0), ("other", 150.0)):
        board.throttle_users(enforcer, {"alice": (ends_at, "too much")})
    board.throttle_users("one", {"bob": (200.0, "too much")})
    assert 200.0 == board.snapshot.decision.user_throttles["alice"].ends_at
    decision = board.throttle_users("one", {}, ["alice", "bob"]).decision
    assert {"alice": 0.0} == decision.users
    assert 150.0 == decision.user_throttles["alice"].ends_at


def test_generation_grows_with_the_factors_of_users() -> None:
    """A user's throttle alone begins a generation, a longer one does not."""
    board = Board(factors, FakeClock())
    courses = ({"etl": 60.0}, {"etl": 90.0}, {"web": 60.0})
    updates = [{user: (at, "too many") for user, at in each.items()} for each in courses]
    generations = [board.throttle_users("ids", each).generation for each in updates]
    generations.append(board.throttle_users("ids", {}, ["etl"]).generation)
    assert [2, 2, 3, 4] == generations


def test_generation_stays_while_only_numbers_move() -> None:
    """Free bytes, validity, failures and times are no change, but they are published."""
    clock = FakeClock()
    board = Board(factors, clock)
    board.observe(seen(0.0, d0=20, d1=99))
    for at, free in ((10.0, 19), (20.0, 25)):
        clock.now = at
        board.observe(seen(at, d0=free, d1=50))
    board.fail(TIMED_OUT)
    assert 2 == board.snapshot.generation
    assert 140.0 == board.snapshot.decision.valid_until
    assert 25 == board.snapshot.decision.violations[0].volume.available_bytes
    assert 1 == board.snapshot.memory.failed_polls
    assert 2 == len(board.changes)


def test_since_is_of_factor_and_source() -> None:
    """Another violating volume begins a generation, but 0.0 has been since the first."""
    clock = FakeClock()
    board = Board(factors, clock)
    sinces = []
    for at, free in ((10.0, (99, 99)), (20.0, (30, 99)), (30.0, (30, 30)), (40.0, (99, 99))):
        clock.now = at
        sinces.append(board.observe(seen(at, d0=free[0], d1=free[1])).since)
    assert [10.0, 20.0, 20.0, 40.0] == sinces
    assert [0.0, 10.0, 20.0, 30.0, 40.0] == [change.changed_at for change in board.changes]


def test_release_is_the_last_rise_of_the_factor() -> None:
    """It has the brokers whose volumes violated; another throttle or news don't move it."""
    clock = FakeClock()
    board = Board(factors, clock)
    reported = []
    for available in (99, 30, 31, 40, 20):
        clock.now += 1.0
        board.observe(seen(clock.now, d0=available))
        reported.append(board.snapshot.released)
    # From the fallback of 0.5 to 1.0, throttled, released, news, throttled.
    first, second = Release(1.0), Release(3.0, frozenset({1}))
    assert [first, first, second, second, second] == reported


@pytest.mark.slow
def test_changes_are_the_newest_thousand() -> None:
    """The oldest changes make room."""
    board = Board(factors, FakeClock())
    for turn in range(MOST_CHANGES + 5):
        board.observe(seen(0.0, d0=30 if turn % 2 else 99))
    assert 1000 == len(board.changes)
    generations = [change.generation for change in board.changes]
    assert list(range(7, 1007)) == generations


@pytest.mark.parametrize("observes", [False, True], ids=["enforce", "observe"])
def test_a_change_does_not_grow_with_the_cluster(observes: bool) -> None:
    """Neither with violations nor with throttled users, topics or budgets, in both modes."""
    stopping = with_rules(factors, stop_line=MinAvailableBytes(10))
    board = Board(replace(stopping, is_enforced=not observes), FakeClock())
    board.throttle_users("ids", {f"user {number}": (9.0, "too many") for number in range(30)})
    budgets = {"owner": BudgetThrottle(0.5, ("topic",), 0.0)}
    board.update(lambda memory: replace(memory, budgets=budgets))
    snapshot = board.observe(seen(0.0, **{f"d{number}": 1 for number in range(30)}))
    assert 30 == len(snapshot.decision.decided.violations)
    change = board.changes[-1]
    assert 30 == change.violation_count
    for kept in (change.decision, change.decision.decided):
        assert (20, 20) == (len(kept.violations), len(kept.at_stop_line))
        assert ({}, {}, {}) == (kept.users, kept.user_throttles, kept.budgets)


def test_fallback_is_counted_once_for_each_transition() -> None:
    """The source before was an observation or an override; while it stays, nothing is counted."""
    clock = FakeClock()
    board = Board(factors, clock)
    counts = []

    def then(at: float, news: Callable[[Memory], Memory]) -> None:
        clock.now = at
        board.update(news)
        counts.append(board.tally.fallback_applied)

    then(0.0, failed)
    then(1.0, fold(seen(1.0, d0=99)))
    then(121.0, failed)
    then(122.0, failed)
    then(123.0, failed)
    then(124.0, overridden(Override(0.2, "test", 124.0, 130.0)))
    then(131.0, failed)
    then(132.0, fold(seen(132.0, d0=99)))
    assert [0, 0, 0, 1, 1, 1, 2, 2] == counts


def test_throttles_are_counted() -> None:
    """Each fall from 1 counts; a factor that falls further does not."""
    board = Board(factors, FakeClock())
    counts = []
    for factor in (1.0, 0.5, 0.0, 1.0, 0.0, 0.0, None):
        override = None if factor is None else Override(factor, "test", 0.0, 9.0)
        board.update(overridden(override))
        counts.append(board.tally.throttles)
    assert [0, 1, 1, 1, 2, 2, 2] == counts


def test_a_silent_broker_that_is_no_member_is_no_failure() -> None:
    """A sidecar asks its own broker, which may be fenced."""
    board = Board(factors, FakeClock())
    board.observe(whole(0.0, [reading(1, 0.0)], fenced=[2]))
    board.observe(partial(1.0, silent=[1, 2]))
    assert {TIMED_OUT.kind: 1} == {
        kind: count for kind, count in board.tally.failures.items() if count
    }


def test_listeners_see_before_and_after() -> None:
    """Each listener is called after each publication, a change or not, with both snapshots."""
    heard: list[tuple[Snapshot | None, Snapshot]] = []
    published: list[Snapshot] = []

    def listen(before: Snapshot | None, after: Snapshot) -> None:
        heard.append((before, after))
        published.append(board.snapshot)

    board = Board(factors, FakeClock(), listeners=(listen, listen))
    first = board.snapshot
    second = board.observe(seen(0.0, d0=99))
    third = board.observe(seen(0.0, d0=98))
    assert [(first, second)] * 2 + [(second, third)] * 2 == heard
    assert [second, second, third, third] == published


def test_news_that_fails_changes_nothing() -> None:
    """When folding raises, what was published stays, and no listener is called."""
    heard: list[Snapshot] = []
    board = Board(factors, FakeClock(), listeners=(lambda _, after: heard.append(after),))
    before = board.snapshot

    def broken(memory: Memory) -> Memory:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        board.update(broken)
    assert before is board.snapshot
    assert [] == heard


# Waiting for a change.


@pytest.mark.looptime
async def test_a_step_of_a_budget_wakes_readers_and_is_no_change() -> None:
    """Whoever reads the list of changes sees only decisions; the factor for all is still 1.0."""
    board = Board(factors, loop_time)
    board.observe(seen(loop_time(), a=50))
    changes = len(board.changes)
    for factor, generation in ((0.5, 3), (0.5, 3), (0.45, 4)):
        waiter = asyncio.create_task(board.wait_for_change(generation - 1, 60.0))
        await asyncio.sleep(0)
        budget = {"etl": BudgetThrottle(factor, ("t",), loop_time())}
        began = loop_time()
        board.update(lambda memory, budget=budget: replace(memory, budgets=budget))  # type: ignore[misc]
        assert (generation, 1.0) == ((await waiter).generation, board.snapshot.decision.factor)
        assert began == loop_time(), "at once"
    assert changes == len(board.changes)


@pytest.mark.looptime
async def test_waiters_are_woken_by_a_change() -> None:
    """A hundred readers get a change when it is published, and not before."""
    board = Board(factors, loop_time)

    async def wait() -> tuple[float, int]:
        snapshot = await board.wait_for_change(1, 60.0)
        return loop_time(), snapshot.generation

    readers = [asyncio.create_task(wait()) for _ in range(100)]
    await asyncio.sleep(10.0)
    board.fail(TIMED_OUT)  # no change
    await asyncio.sleep(10.0)
    assert not any(reader.done() for reader in readers)
    board.observe(seen(20.0, d0=99))
    assert {(20.0, 2)} == set(await asyncio.gather(*readers))


@pytest.mark.looptime
async def test_waiter_gives_up_when_the_time_is_over() -> None:
    """It gets what is published then, with the numbers that have moved."""
    board = Board(factors, loop_time)
    waiter = asyncio.create_task(board.wait_for_change(1, 5.0))
    await asyncio.sleep(1.0)
    board.fail(TIMED_OUT)
    snapshot = await waiter
    assert (5.0, 1) == (loop_time(), snapshot.generation)
    assert 1 == snapshot.memory.failed_polls


@pytest.mark.looptime
async def test_waiter_that_is_behind_or_has_no_time_does_not_wait() -> None:
    """Another generation is a change already, also one from before a restart; 0 s are one read."""
    board = Board(factors, loop_time)
    for generation, wait_s in ((0, 60.0), (2, 60.0), (99, 60.0), (1, 0.0)):
        assert board.snapshot is await board.wait_for_change(generation, wait_s)
    assert 0.0 == loop_time()


@pytest.mark.looptime
async def test_closing_wakes_everyone_for_good() -> None:
    """Those who wait and those who come later are woken, before a change after it and after one."""
    board = Board(factors, loop_time)
    waiters = [asyncio.create_task(board.wait_for_change(1, 60.0)) for _ in range(3)]
    await asyncio.sleep(1.0)
    board.close()
    assert board.closed
    await asyncio.gather(*waiters)
    await board.wait_for_change(1, 60.0)
    board.observe(seen(1.0, d0=99))
    assert 2 == (await board.wait_for_change(2, 60.0)).generation
    assert 1.0 == loop_time()


@pytest.mark.looptime
async def test_cancelled_waiter_is_cancelled() -> None:
    """Cancellation is not taken for the end of the time."""
    board = Board(factors, loop_time)
    waiter = asyncio.create_task(board.wait_for_change(1, 60.0))
    await asyncio.sleep(1.0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter


# What time alone changes.


@pytest.mark.looptime
async def test_expiry_is_published_right_after_the_boundary() -> None:
    """The fallback comes when the validity ends, not at the next poll, and is counted once."""
    board = Board(factors, loop_time)
    board.observe(seen(0.0, d0=99))
    async with expiring(board):
        await asyncio.sleep(VALIDITY_S)
        assert 2 == board.snapshot.generation
        snapshot = await board.wait_for_change(2, 60.0)
        assert VALIDITY_S < loop_time() <= VALIDITY_S + 0.005
        assert Source.FALLBACK == snapshot.decision.source
        board.fail(TIMED_OUT)
        await asyncio.sleep(1000.0)
    assert 1 == board.tally.fallback_applied
    assert 3 == board.snapshot.generation


@pytest.mark.looptime
async def test_a_stop_ends_right_after_the_boundary() -> None:
    """The fallback is 0.0 too; it stops nobody."""
    stopping = VolumeLimit(Rules(MinAvailableBytes(30), VALIDITY_S, MinAvailableBytes(10)), 0.0)
    board = Board(stopping, loop_time)
    board.observe(seen(0.0, d0=10))
    async with expiring(board):
        await asyncio.sleep(VALIDITY_S)
        assert board.snapshot.decision.stop_line_reached
        snapshot = await board.wait_for_change(2, 60.0)
        assert VALIDITY_S < loop_time() <= VALIDITY_S + 0.005
    assert (0.0, False) == (snapshot.decision.factor, snapshot.decision.stop_line_reached)


@pytest.mark.looptime
async def test_news_move_the_boundary() -> None:
    """A newer observation is valid for longer; a failed poll changes no boundary."""
    board = Board(factors, loop_time)
    board.observe(seen(0.0, d0=99))
    async with expiring(board):
        await asyncio.sleep(100.0)
        board.observe(seen(100.0, d0=99))
        await asyncio.sleep(50.0)
        board.fail(TIMED_OUT)
        assert 2 == board.snapshot.generation
        await board.wait_for_change(2, 600.0)
        assert 220.0 < loop_time() <= 220.005


@pytest.mark.looptime
async def test_news_bring_the_boundary_nearer() -> None:
    """A short override that comes while a long validity is waited for ends in time."""
    board = Board(factors, loop_time)
    board.observe(seen(0.0, d0=99))
    async with expiring(board):
        await asyncio.sleep(10.0)
        board.set_override(Override(0.2, "test", 10.0, 15.0))
        snapshot = await board.wait_for_change(3, 600.0)
        assert 15.0 < loop_time() <= 15.005
        assert Source.OBSERVATION == snapshot.decision.source


@pytest.mark.looptime
async def test_violations_under_an_override_expire_in_time() -> None:
    """Their expiry is a change of its own, before the override's end is another."""
    board = Board(factors, loop_time)
    board.observe(seen(0.0, d0=30))
    board.set_override(Override(1.0, "test", 0.0, 300.0))
    async with expiring(board):
        snapshot = await board.wait_for_change(3, 600.0)
        assert 120.0 < loop_time() <= 120.005
        assert () == snapshot.decision.violations
        assert 0 == board.tally.fallback_applied
        await board.wait_for_change(4, 600.0)
        assert 300.0 < loop_time() <= 300.005
    assert 1 == board.tally.fallback_applied


@pytest.mark.looptime
async def test_time_alone_publishes_nothing_else() -> None:
    """While nothing can change, nothing is published; news starts the clock again."""
    heard: list[float] = []
    board = Board(factors, loop_time, listeners=(lambda *_: heard.append(loop_time()),))
    async with expiring(board):
        await asyncio.sleep(1000.0)
        assert [] == heard
        board.observe(seen(1000.0, d0=99))
        await asyncio.sleep(1000.0)
    assert [1000.0, pytest.approx(1120.0, abs=0.005)] == heard


async def test_expiry_that_was_slept_through_is_published_at_once() -> None:
    """After the machine slept, the steady clock is past the boundary and the timer is not."""
    clock = FakeClock()
    board = Board(factors, clock)
    board.observe(seen(0.0, d0=99))
    clock.now = 5000.0
    async with expiring(board):
        assert Source.FALLBACK == board.snapshot.decision.source
