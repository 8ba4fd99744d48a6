"""Whom brokers feed is read while producers are throttled, in virtual time."""

import asyncio

import pytest

from sidecar.control.board import Board
from sidecar.control.feed_watch import EVERY_S, LOOK_S, MOST, FeedWatch
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.readers import Report
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.support.scripted import LIMIT, reading, run_for, whole

pytestmark = pytest.mark.looptime

HIDDEN = Failure(FailureKind.AUTHORIZATION, "broker 2: hidden")


class Rig:
    """A watch of a board that brokers 1 and 2 follow; whom it read, and when."""

    def __init__(self, readers: int = 2) -> None:
        self._clock = asyncio.get_running_loop().time
        self.board = Board(VolumeLimit(Rules(LIMIT, 300.0), 1.0), self._clock)
        self.read: list[tuple[float, int]] = []
        self.fed: dict[int, frozenset[int]] = {1: frozenset({1, 3})}
        self.watch = FeedWatch(self.board, self._fetch)
        for broker_id in range(1, readers + 1):
            self.board.readers.record(Report(broker_id, False, 0), None, self._clock())

    async def _fetch(self, broker_id: int) -> frozenset[int] | Failure:
        self.read.append((self._clock(), broker_id))
        return self.fed.get(broker_id, HIDDEN)

    def throttles(self, *, throttles: bool) -> None:
        """The one volume is full, or has room."""
        now = self._clock()
        self.board.observe(whole(now, reading(now, 1, 0 if throttles else 900)))


async def test_nobody_is_read_while_nobody_is_throttled() -> None:
    """Neither before the first throttle nor after a release."""
    rig = Rig()
    rig.throttles(throttles=False)
    await run_for(300.0, rig.watch.run())
    assert [] == rig.read


async def test_followers_are_read_once_a_minute() -> None:
    """What can't be read is not known; after a release the next throttle is new."""
    rig = Rig()
    rig.throttles(throttles=True)
    task = asyncio.create_task(rig.watch.run())
    await asyncio.sleep(EVERY_S + LOOK_S + 1.0)
    assert [(LOOK_S + at, key) for at in (0.0, EVERY_S) for key in (1, 2)] == rig.read
    assert {1: frozenset({1, 3})} == rig.board.snapshot.memory.feeds
    rig.throttles(throttles=False)
    await asyncio.sleep(LOOK_S)
    rig.throttles(throttles=True)
    rig.read.clear()
    await asyncio.sleep(LOOK_S)
    assert [1, 2] == [key for _, key in rig.read]
    task.cancel()


async def test_a_broker_that_is_gone_may_feed_all() -> None:
    """Its next read fails, and what was known of it is forgotten."""
    rig = Rig(readers=1)
    rig.throttles(throttles=True)
    await run_for(LOOK_S + 1.0, rig.watch.run())
    assert rig.board.snapshot.memory.feeds
    rig.fed.clear()
    await run_for(EVERY_S + 2 * LOOK_S, rig.watch.run())
    assert not rig.board.snapshot.memory.feeds


async def test_anybody_may_claim_to_be_a_follower() -> None:
    """So many are read, and no more."""
    rig = Rig(readers=2 * MOST)
    rig.throttles(throttles=True)
    await run_for(LOOK_S + 1.0, rig.watch.run())
    assert MOST == len(rig.read)
