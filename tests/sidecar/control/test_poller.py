"""The poller, in virtual time: when and whom it polls, what it counts, what does not end it."""

import asyncio
import logging
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from sidecar.control.board import Board, Snapshot
from sidecar.control.poller import Poller
from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing
from sidecar.volumes import Failure, FailureKind, Membership, Observation
from tests.support.scripted import (
    LIMIT,
    REFUSED,
    Answer,
    Call,
    ScriptedSource,
    partial,
    reading,
    run_for,
    whole,
)

pytestmark = pytest.mark.looptime

MINUTE_S = 60.0


@dataclass
class Rig:
    """A poller over a scripted source, and all that it publishes and reports."""

    source: ScriptedSource
    board: Board
    poller: Poller
    published: list[tuple[float, Snapshot]]
    durations: list[float] = field(default_factory=list)
    observed: list[tuple[Observation, Snapshot]] = field(default_factory=list)


def rig(
    answer: Answer,
    timing: Timing,
    *,
    validity_s: float = 300.0,
    fallback: float = 1.0,
    factors: VolumeLimit | None = None,
) -> Rig:
    clock = asyncio.get_running_loop().time
    published: list[tuple[float, Snapshot]] = []
    factors = factors or VolumeLimit(Rules(LIMIT, validity_s), fallback)
    board = Board(factors, clock, listeners=(lambda _, after: published.append((clock(), after)),))
    source = ScriptedSource(answer)
    durations: list[float] = []
    observed: list[tuple[Observation, Snapshot]] = []
    poller = Poller(
        source,
        board,
        timing,
        durations.append,
        lambda seen: observed.append((seen, board.snapshot)),
    )
    return Rig(source, board, poller, published, durations, observed)


def playing(*answers: Observation | Failure) -> Answer:
    """A source with these results, one after the other."""
    script = iter(answers)

    async def play(_: Call) -> Observation | Failure:
        return next(script)

    return play


async def idle(call: Call) -> Observation:
    return whole(call.at, reading(call.at, 1, 500))


async def refused(call: Call) -> Failure:
    return REFUSED


async def test_observations_are_announced_once_published_and_failures_are_not() -> None:
    """Observations are announced in order; so a slow listener delays no throttle."""

    async def now_and_then(call: Call) -> Observation | Failure:
        return await (refused if call.at == 1 else idle)(call)

    it = rig(now_and_then, Timing(MINUTE_S, 1.0))
    await run_for(200, it.poller.run())
    calls = [call.at for call in it.source.calls]
    assert 1 in calls
    succeeded = [at for at in calls if at != 1]
    assert succeeded == [seen.observed_at for seen, _ in it.observed]
    assert succeeded == [published.memory.brokers[1].read_at for _, published in it.observed]


@pytest.mark.parametrize(
    ("own_broker", "fenced", "counted"),
    [(2, {}, 4), (2, {2: "b2:9092"}, 0), (2, None, 0), (1, {}, 0), (None, {}, 0)],
)
async def test_an_own_broker_that_no_list_has_is_told(
    own_broker: int | None,
    fenced: dict[int, str] | None,
    counted: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Four polls count it, and the log has it once; the factor is not changed by it."""

    async def without(call: Call) -> Observation:
        members = Membership("cluster", {1: "b1:9092"}, fenced)
        return Observation(call.at, "poll", members, {1: reading(call.at, 1, 500)})

    it = rig(without, Timing(MINUTE_S, 1.0))
    it.poller.own_broker = own_broker
    await run_for(130, it.poller.run())
    assert counted == it.board.tally.failures[FailureKind.INCOMPLETE]
    assert min(1, counted) == caplog.text.count(
        "broker 2 beside this sidecar is in no list of brokers, so its volumes are not read"
    )
    assert (Source.OBSERVATION, 1.0) == (
        it.board.snapshot.decision.source,
        it.board.snapshot.decision.factor,
    )


class TestWhenItLooks:
    async def test_an_idle_cluster_is_polled_at_the_interval_once_its_rates_are_known(self) -> None:
        """The second poll comes after the minimum, since no rate is known before it."""
        it = rig(idle, Timing(MINUTE_S, 1.0))
        await run_for(200, it.poller.run())
        assert [0, 1, 61, 121, 181] == [call.at for call in it.source.calls]
        assert {None} == {call.brokers for call in it.source.calls}

    async def test_the_wait_is_half_of_what_the_nearest_volume_has_left(self) -> None:
        """10 bytes/s from 1,000 to the limit of 100: read at 1/2, 3/4, 7/8 of what is left."""

        async def fills(call: Call) -> Observation:
            return whole(call.at, reading(call.at, 1, round(1000 - 10 * call.at), 1000))

        it = rig(fills, Timing(MINUTE_S, 1.0))
        await run_for(84, it.poller.run())
        # At 1 s there are 89 s left, so the next is 44.5 s later, and so on.
        expected = [0, 1, 45.5, 67.75, 78.875]
        assert expected == pytest.approx([call.at for call in it.source.calls], abs=0.2)

    async def test_a_volume_that_begins_to_steer_client_quotas_is_read_soon(self) -> None:
        """Not only after the poll that was planned before."""
        it = rig(idle, Timing(MINUTE_S, 1.0))

        async def steer() -> None:
            await asyncio.sleep(70.0)
            it.board.readers.steering = frozenset({1})

        async with asyncio.TaskGroup() as group:
            group.create_task(steer())
            await run_for(90, it.poller.run())
        calls = [call.at for call in it.source.calls]
        assert [0, 1, 61] == calls[:3]
        assert 77 >= calls[3]
        assert [5, 5] == [after - before for before, after in pairwise(calls[3:])]

    async def test_failed_polls_come_again_after_the_minimum_doubled_each_time(self) -> None:
        """A sidecar that can't see polls again soon, but not for ever at the minimum."""
        it = rig(refused, Timing(10.0, 1.0))
        await run_for(40, it.poller.run())
        assert [0, 1, 3, 7, 15, 25, 35] == [call.at for call in it.source.calls]

    async def test_polls_never_overlap(self) -> None:
        """A poll that takes longer than the interval delays the next one."""

        async def slow(call: Call) -> Observation:
            await asyncio.sleep(1.75)
            return whole(call.at + 1.75, reading(call.at + 1.75, 1, 500))

        it = rig(slow, Timing(0.5, 0.5))
        await run_for(10, it.poller.run())
        assert [0, 2.25, 4.5, 6.75, 9] == [call.at for call in it.source.calls]
        assert 1 == it.source.most_running
        assert [1.75] * 4 == it.durations

    async def test_a_hung_source_is_cut_off_a_second_after_its_deadline(self) -> None:
        """The source must meet the deadline; the poller does not depend on it."""

        async def hangs(call: Call) -> Observation:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

        it = rig(hangs, Timing(MINUTE_S, 1.0))
        await run_for(12.5, it.poller.run())
        assert [(0, 10.0), (12, 10.0)] == [(call.at, call.timeout_s) for call in it.source.calls]
        assert [11.0] == it.durations
        failure = it.board.snapshot.memory.failure
        assert Failure(FailureKind.TIMEOUT, "the poll did not end within 10 s") == failure
        assert 1 == it.board.tally.failures[FailureKind.TIMEOUT]

    async def test_a_poll_that_comes_soon_has_a_short_deadline_unless_the_last_failed(self) -> None:
        """A hung broker does not delay the others' news, nor is a slow cluster never seen."""

        async def second_fails(call: Call) -> Observation:
            if call.at == 1:
                raise TimeoutError
            return whole(call.at, reading(call.at, 1, 500))

        it = rig(second_fails, Timing(MINUTE_S, 1.0))
        await run_for(3.5, it.poller.run())
        seen = [(call.at, call.timeout_s) for call in it.source.calls]
        assert [(0, 10.0), (1, 1.0), (2, 10.0)] == seen[:3]
        assert 1 == it.board.tally.failures[FailureKind.TIMEOUT]

    async def test_a_short_interval_leaves_a_poll_two_seconds(self) -> None:
        """With an interval of 100 ms a broker may still take 1.9 s to answer."""

        async def slow(call: Call) -> Observation:
            await asyncio.sleep(1.9)
            return whole(call.at + 1.9, reading(call.at + 1.9, 1, 50))

        it = rig(slow, Timing(0.1, 0.1))
        await run_for(1.95, it.poller.run())
        assert 2.0 == it.source.calls[0].timeout_s
        assert 0.0 == it.board.snapshot.decision.factor


class TestAfterARelease:
    """Interval 60 s: the volume stood still while producers were throttled, its rate is useless."""

    async def test_a_volume_that_fills_again_is_caught_soon_after_its_limit(self) -> None:
        """Full until 100 s, then 160 bytes are free; from 106 s on 10 bytes/s are written."""

        async def full_again(call: Call) -> Observation:
            free = 50 if call.at < 100 else 160 - round(10 * max(0.0, call.at - 106))
            return whole(call.at, reading(call.at, 1, max(0, free)))

        it = rig(full_again, Timing(MINUTE_S, 1.0))
        await run_for(130, it.poller.run())
        effects = [(at, snapshot.decision.factor) for at, snapshot in it.published]
        changes = [later for earlier, later in pairwise(effects) if earlier[1] != later[1]]
        (released, _), (throttled, _) = changes
        assert 100 == released
        # At 112 s 100 bytes are free, which is the limit.
        assert 112 <= throttled <= 113

    async def test_a_volume_that_stays_still_is_asked_less_and_less(self) -> None:
        """It is asked after a quarter of the time since the release, up to the interval."""

        async def room(call: Call) -> Observation:
            return whole(call.at, reading(call.at, 1, 50 if call.at < 10 else 500))

        it = rig(room, Timing(MINUTE_S, 1.0))
        await run_for(500, it.poller.run())
        since = [call.at - 10 for call in it.source.calls if call.at >= 10]
        assert [0, 1, 2, 3, 4, 5, 6.25] == since[:7]
        assert 30 > len(since)
        assert MINUTE_S == since[-1] - since[-2]

    async def test_the_end_of_an_override_is_a_release(self) -> None:
        """No poll brought it: the next one, not due before 61 s, comes the minimum after it."""
        it = rig(idle, Timing(MINUTE_S, 1.0))

        async def override() -> None:
            await asyncio.sleep(2)
            it.board.set_override(Override(0.0, "try", 2.0, 30.0))
            await it.board.publish_expiries()

        await run_for(34.5, it.poller.run(), override())
        assert [0, 1, 31, 32, 33, 34] == pytest.approx([c.at for c in it.source.calls], abs=0.01)

    async def test_other_changes_neither_hasten_nor_put_off_the_next_poll(self) -> None:
        """Somebody who sets an override each half second does not keep it from polling."""
        it = rig(idle, Timing(MINUTE_S, 1.0))

        async def meddle() -> None:
            while True:
                await asyncio.sleep(0.5)
                now = it.board.now()
                it.board.set_override(Override(1.0, f"at {now}", now, now + 1000))

        await run_for(130, it.poller.run(), meddle())
        assert [0, 1, 61, 121] == [call.at for call in it.source.calls]


class TestABug:
    """A source raises what it should not."""

    async def test_it_is_logged_once_with_its_traceback_and_polling_goes_on(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The same exception again is no news."""

        async def breaks(call: Call) -> Observation:
            raise ZeroDivisionError("a bug")

        it = rig(breaks, Timing(10.0, 1.0))
        with caplog.at_level(logging.DEBUG, "sidecar.control.poller"):
            await run_for(20, it.poller.run())
        assert [0, 1, 3, 7, 15] == [call.at for call in it.source.calls]
        assert 5 == it.board.tally.failures[FailureKind.UNEXPECTED]
        loud = [record for record in caplog.records if record.levelno > logging.DEBUG]
        assert ["a poll failed because of a bug in the sidecar; please report this"] == [
            record.getMessage() for record in loud
        ]
        assert loud[0].exc_info is not None
        assert ZeroDivisionError is loud[0].exc_info[0]

    async def test_it_is_logged_again_when_it_comes_back_or_is_another(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It fails twice alike, then a poll works, then it fails alike, then otherwise."""
        script = iter([KeyError("a"), KeyError("a"), None, KeyError("a"), OSError("b")])

        async def breaks(call: Call) -> Observation:
            if (error := next(script, None)) is not None:
                raise error
            return whole(call.at, reading(call.at, 1, 500))

        it = rig(breaks, Timing(1.0, 1.0))
        await run_for(6, it.poller.run())
        logged = [record.exc_info[0] for record in caplog.records if record.exc_info]
        assert [KeyError, KeyError, OSError] == logged

    async def test_the_factor_computed_before_it_is_used_for_its_validity(self) -> None:
        """A bug is a failed poll like any other."""

        async def breaks_later(call: Call) -> Observation:
            if call.at > 0:
                raise ZeroDivisionError
            return whole(call.at, reading(call.at, 1, 50))

        it = rig(breaks_later, Timing(10.0, 10.0), validity_s=30)
        await run_for(29, it.poller.run())
        assert (0.0, Source.OBSERVATION) == effect(it.board)

    async def test_a_bug_in_what_is_made_of_an_observation_is_one_too(self) -> None:
        """The source is not the only one that may have a bug; polling goes on."""

        class Broken(VolumeLimit):
            def fold(self, memory: Memory, observation: Observation) -> Memory:
                raise ZeroDivisionError

        it = rig(idle, Timing(10.0, 1.0), factors=Broken(Rules(LIMIT, 300.0), 1.0))
        await run_for(4, it.poller.run())
        assert [0, 1, 3] == [call.at for call in it.source.calls]
        assert 3 == it.board.tally.failures[FailureKind.UNEXPECTED]
        assert 3 == it.board.snapshot.memory.failed_polls


def effect(board: Board) -> tuple[float, Source]:
    decision = board.snapshot.decision
    return decision.factor, decision.source


class TestWhatItCounts:
    async def test_failed_polls_and_failed_brokers_by_kind(self) -> None:
        """A poll without a list of brokers is one failure, each silent broker of another is one."""
        silent = {2: Failure(FailureKind.TIMEOUT, "slow"), 3: REFUSED}
        incomplete = whole(2, reading(2, 1, 500), failed=silent)
        script = playing(REFUSED, Failure(FailureKind.TLS, "no"), incomplete)
        it = rig(script, Timing(MINUTE_S, 1.0))
        for _ in range(3):
            await it.poller.poll(None, 10.0)
        counted = {kind: n for kind, n in it.board.tally.failures.items() if n}
        # The last one is incomplete besides: brokers 2 and 3 were never seen.
        expected = {
            FailureKind.CONNECT: 2,
            FailureKind.TLS: 1,
            FailureKind.TIMEOUT: 1,
            FailureKind.INCOMPLETE: 1,
        }
        assert expected == counted
        assert it.board.tally.succeeded_at is None

    async def test_each_volume_that_begins_to_violate(self) -> None:
        """Two of three volumes violate; readings that find it again count nothing."""
        full = {"/data/d0": 100, "/data/d1": 0, "/data/d2": 101}
        script = playing(
            whole(0, reading(0, 1, full), reading(0, 2, 500)),
            whole(1, reading(1, 1, full), reading(1, 2, 500)),
            whole(2, reading(2, 2, 500), failed={1: REFUSED}),
            partial(3, reading(3, 1, full)),
            partial(4, reading(4, 1, {"/data/d0": 101, "/data/d1": 0, "/data/d2": 100})),
        )
        it = rig(script, Timing(MINUTE_S, 1.0))
        counts = []
        for brokers in (None, None, None, frozenset({1}), frozenset({1})):
            await it.poller.poll(brokers, 10.0)
            counts.append(it.board.tally.limit_violated)
        assert [2, 2, 2, 2, 3] == counts

    async def test_when_it_last_polled_and_when_that_last_succeeded(self) -> None:
        """A failed poll moves only the first, and a partial one does not count as a success."""
        seen = whole(0, reading(0, 1, 500)), REFUSED, partial(2, reading(2, 1, 500)), REFUSED
        it = rig(playing(*seen), Timing(MINUTE_S, 1.0))
        reported = []
        for brokers in (None, None, frozenset({1}), frozenset({1})):
            await it.poller.poll(brokers, 10.0)
            reported.append((it.board.tally.polled_at, it.board.tally.succeeded_at))
            await asyncio.sleep(1)
        assert [(0, 0), (1, 0), (2, 0), (3, 0)] == reported
        assert 1 == it.board.snapshot.memory.failed_polls


class TestPartialPolls:
    """1,000 brokers: a whole poll never comes sooner than 20 s after the last."""

    BROKERS = 1000
    NEAR = 7
    FULL_AT = 90.0
    """10 bytes/s from 1,000 bytes to the limit of 100."""

    async def answer(self, call: Call) -> Observation:
        left = max(0, round(1000 - 10 * call.at))
        if call.brokers is not None:
            answers = [reading(call.at, broker_id, left) for broker_id in call.brokers]
            return partial(call.at, *answers)
        return whole(
            call.at,
            *(
                reading(call.at, broker_id, left if broker_id == self.NEAR else 500)
                for broker_id in range(self.BROKERS)
            ),
        )

    async def test_the_broker_near_its_limit_is_asked_alone_between_whole_polls(self) -> None:
        """Nobody else is asked, and whole polls keep their distance."""
        it = rig(self.answer, Timing(MINUTE_S, 1.0))
        await run_for(150, it.poller.run())
        wholes = [call.at for call in it.source.calls if call.brokers is None]
        alone = [call for call in it.source.calls if call.brokers is not None]
        assert all(20 <= later - earlier for earlier, later in pairwise(wholes))
        assert {frozenset({self.NEAR})} == {call.brokers for call in alone}
        gaps = [later.at - earlier.at for earlier, later in pairwise(it.source.calls)]
        assert 1.0 <= min(gaps)

    @pytest.mark.slow
    async def test_what_it_says_alone_is_published(self) -> None:
        """The limit is seen within the minimum of 1 s, though whole polls are 20 s apart."""
        it = rig(self.answer, Timing(MINUTE_S, 1.0))
        await run_for(150, it.poller.run())
        zero = [at for at, snapshot in it.published if snapshot.decision.factor == 0.0]
        assert self.FULL_AT <= zero[0] <= self.FULL_AT + 1.0
        asked = {call.at: call.brokers for call in it.source.calls}
        assert frozenset({self.NEAR}) == asked[zero[0]]

    async def test_one_that_fails_does_not_make_the_poll_a_failed_one(self) -> None:
        """The factor, the failed polls and the validity stay; it is counted by its kind."""

        async def answer(call: Call) -> Observation | Failure:
            return await self.answer(call) if call.brokers is None else REFUSED

        it = rig(answer, Timing(MINUTE_S, 1.0))
        await run_for(80, it.poller.run())
        alone = [call for call in it.source.calls if call.brokers is not None]
        assert len(alone) == it.board.tally.failures[FailureKind.CONNECT] > 0
        assert (1.0, Source.OBSERVATION) == effect(it.board)
        assert 0 == it.board.snapshot.memory.failed_polls


class TestTheProposalsLife:
    """Proposal 047's own example: validity 2 min, fallback 0.0, one poll a minute."""

    async def lives(self) -> Rig:
        async def play(call: Call) -> Observation | Failure:
            if call.at in (0, 4 * MINUTE_S):
                return whole(call.at, reading(call.at, 1, 500))
            return REFUSED

        it = rig(play, Timing(MINUTE_S, MINUTE_S), validity_s=2 * MINUTE_S, fallback=0.0)
        await run_for(4.5 * MINUTE_S, it.poller.run(), it.board.publish_expiries())
        assert [0, 60, 120, 180, 240] == [call.at for call in it.source.calls]
        return it

    async def test_what_each_minutes_poll_publishes(self) -> None:
        """The factor is 1.0 at 0, 1 and 2, falls back at 3, and is 1.0 again at 4."""
        it = await self.lives()
        at_polls = {
            at: (snapshot.decision.factor, snapshot.decision.source)
            for at, snapshot in it.published
            if at % MINUTE_S == 0
        }
        assert {
            0: (1.0, Source.OBSERVATION),
            60: (1.0, Source.OBSERVATION),
            120: (1.0, Source.OBSERVATION),
            180: (0.0, Source.FALLBACK),
            240: (1.0, Source.OBSERVATION),
        } == at_polls

    async def test_the_expiry_is_published_when_it_comes_without_a_poll(self) -> None:
        """The fallback comes a moment after minute 2, before the poll of minute 3, counted once."""
        it = await self.lives()
        changes = [
            (change.changed_at, change.decision.factor, change.decision.source)
            for change in it.board.changes
        ]
        expected = [
            (0, 0.0, Source.FALLBACK),
            (0, 1.0, Source.OBSERVATION),
            (pytest.approx(120.001), 0.0, Source.FALLBACK),
            (240, 1.0, Source.OBSERVATION),
        ]
        assert expected == changes
        assert [1, 2, 3, 4] == [change.generation for change in it.board.changes]
        assert 1 == it.board.tally.fallback_applied


@pytest.mark.slow
async def test_it_waits_while_others_poll_for_it() -> None:
    """Its first poll after that is a whole one, at once, and it says when the next is to come."""

    async def has_room(call: Call) -> Observation:
        return whole(call.at, reading(call.at, 1, 900))

    r = rig(has_room, Timing(MINUTE_S, 1.0))
    wanted = [True]
    planned: list[float] = []
    r.poller.is_wanted = lambda: wanted[0]
    r.poller.planned = planned.append
    task = asyncio.create_task(r.poller.run())
    await asyncio.sleep(2.0)
    first = len(r.source.calls)
    assert planned[-1] > 2.0
    wanted[0] = False
    await asyncio.sleep(10 * MINUTE_S)
    whole_polls = [call for call in r.source.calls[first:] if call.brokers is None]
    assert len(whole_polls) <= 1, "what was planned may still come"
    before = len(r.source.calls)
    wanted[0] = True
    await asyncio.sleep(1.0)
    task.cancel()
    assert before + 1 == len(r.source.calls)
    assert None is r.source.calls[-1].brokers
