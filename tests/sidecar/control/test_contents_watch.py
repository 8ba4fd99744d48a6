"""What lies on volumes is read while they throttle, or soon will, in virtual time."""

import asyncio
from collections.abc import Mapping

import pytest

from sidecar.control.board import Board
from sidecar.control.contents_watch import LOOK_S, MOST, ContentsWatch
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind, Membership, Observation
from tests.support.scripted import LIMIT, reading, run_for, whole

pytestmark = pytest.mark.looptime

SILENT = Failure(FailureKind.TIMEOUT, "broker 1: no answer within 10 s")
INTERVAL_S = 60.0


class Rig:
    """A watch of a board with one volume on each broker; whom it read, and when."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self.board = Board(VolumeLimit(Rules(LIMIT, 300.0), 1.0, is_of_volumes=True), self._clock)
        self.read: list[tuple[float, int]] = []
        self.topics: Mapping[str, frozenset[str]] | Failure = {"/data/d0": frozenset("a")}
        self.watch = ContentsWatch(self.board, self._fetch, INTERVAL_S)

    async def _fetch(self, broker_id: int) -> Mapping[str, frozenset[str]] | Failure:
        self.read.append((self._clock(), broker_id))
        return self.topics

    def see(self, *available: int) -> None:
        """The volumes of brokers 1, 2 and so on have these bytes available."""
        now = self._clock()
        readings = [reading(now, n, free) for n, free in enumerate(available, 1)]
        self.board.observe(whole(now, *readings))


@pytest.mark.slow
async def test_nobody_is_read_while_all_have_room() -> None:
    """Neither before the first throttle nor after a release."""
    rig = Rig()
    rig.see(900, 900)
    await run_for(300.0, rig.watch.run())
    assert [] == rig.read


async def test_a_full_volume_is_read_at_each_interval() -> None:
    """Its broker alone; the topics are published by a new generation, once."""
    rig = Rig()
    rig.see(0, 900)
    assert (2, None) == (rig.board.snapshot.generation, rig.board.snapshot.decision.topics)
    await run_for(INTERVAL_S + LOOK_S + 1.0, rig.watch.run())
    assert [(0.0, 1), (INTERVAL_S, 1)] == [(at - at % LOOK_S, broker) for at, broker in rig.read]
    assert (3, ("a",)) == (rig.board.snapshot.generation, rig.board.snapshot.decision.topics)


async def test_a_volume_that_is_full_all_of_a_sudden_is_read_at_once() -> None:
    """A change is not waited for; nobody is throttled before it is read."""
    rig = Rig()
    rig.see(900, 900)
    task = asyncio.create_task(rig.watch.run())
    await asyncio.sleep(LOOK_S / 2)
    rig.see(0, 900)
    before = rig.board.snapshot.decision.topics
    await asyncio.sleep(0.02)
    task.cancel()
    assert [1] == [broker_id for _, broker_id in rig.read]
    assert [(), ("a",)] == [before, rig.board.snapshot.decision.topics]


async def test_a_board_that_is_closed_does_not_make_it_spin() -> None:
    """Others get their turn until the end."""
    rig = Rig()
    rig.board.close()
    await run_for(1.0, rig.watch.run())


async def test_what_can_not_be_read_ends_nothing() -> None:
    """What was known counts on; the broker is not asked again before the interval."""
    rig = Rig()
    rig.see(0)
    await rig.watch.look()
    rig.topics = SILENT
    await run_for(INTERVAL_S + 1.0, rig.watch.run())
    assert 2 == len(rig.read)
    assert ("a",) == rig.board.snapshot.decision.topics


async def test_so_many_are_read_at_once() -> None:
    """The others come at the next looks."""
    rig = Rig()
    rig.see(*([0] * (MOST + 5)))
    await rig.watch.look()
    assert MOST == len(rig.read)
    await rig.watch.look()
    await rig.watch.look()
    assert list(range(1, MOST + 6)) == sorted(broker_id for _, broker_id in rig.read)


async def test_of_these_few_wait_for_an_answer_at_a_time() -> None:
    """Brokers that are slow are not asked all at once."""
    rig = Rig()
    rig.see(*([0] * MOST))
    waiting = most = 0

    async def slow(broker_id: int) -> Mapping[str, frozenset[str]] | Failure:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(1.0)
        waiting -= 1
        return SILENT

    rig.watch.fetch = slow
    await rig.watch.look()
    assert 5 == most


async def test_a_volume_that_is_full_again_is_read_at_once() -> None:
    """Also when less than an interval has passed since it was before."""
    rig = Rig()
    for available in (0, 900, 0):
        rig.see(available)
        await rig.watch.look()
    assert [1, 1] == [broker_id for _, broker_id in rig.read]


async def test_what_lies_on_a_fenced_broker_is_known_on() -> None:
    """It can't be read, and its full volume throttles all the same."""
    rig = Rig()
    rig.see(0, 900)
    await rig.watch.look()
    now = asyncio.get_running_loop().time()
    members = Membership("cluster", {2: "b2:9092"}, {1: "b1:9092"})
    rig.board.observe(Observation(now, "poll", members, {2: reading(now, 2, 0)}))
    rig.topics = {"/data/d0": frozenset("b")}
    await rig.watch.look()
    assert ("a", "b") == rig.board.snapshot.decision.topics
