"""Whom brokers feed is read while producers are throttled, in virtual time."""

import asyncio
from collections.abc import Sequence

import pytest

from sidecar.control.board import Board
from sidecar.control.feed_watch import AT_ONCE, EVERY_S, LOOK_S, MOST, ROUND_S, FeedWatch
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.readers import Report
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.support.scripted import LIMIT, REFUSED, reading, run_for, whole

pytestmark = pytest.mark.looptime

HIDDEN = Failure(FailureKind.AUTHORIZATION, "broker 2: hidden")


class Rig:
    """A watch of a board that brokers 1 and 2 follow; whom it read, and when."""

    def __init__(self, readers: int = 2) -> None:
        self._clock = asyncio.get_running_loop().time
        self.board = Board(VolumeLimit(Rules(LIMIT, 300.0), 1.0), self._clock)
        self.read: list[tuple[float, int]] = []
        self.fed: dict[int, frozenset[int]] = {1: frozenset({1, 3})}
        self.takes_s: dict[int, float] = {}
        self.watch = FeedWatch(self.board, self._fetch)
        self.brokers = range(1, readers + 1)
        for broker_id in self.brokers:
            self.reports(broker_id)

    async def _fetch(self, broker_id: int) -> frozenset[int] | Failure:
        self.read.append((self._clock(), broker_id))
        await asyncio.sleep(self.takes_s.get(broker_id, 0.0))
        return self.fed.get(broker_id, HIDDEN)

    def reports(self, broker_id: int) -> None:
        """A client says that it is this broker's callback."""
        self.board.readers.record(Report(broker_id, False, 0), None, self._clock())

    def throttles(self, *, throttles: bool, failed: Sequence[int] = ()) -> None:
        """The volumes are full, or have room."""
        now = self._clock()
        available = 0 if throttles else 900
        readings = (reading(now, each, available) for each in self.brokers if each not in failed)
        self.board.observe(whole(now, *readings, failed=dict.fromkeys(failed, REFUSED)))


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


async def test_all_followers_are_read() -> None:
    """A sidecar for the whole cluster has as many followers as brokers."""
    rig = Rig(readers=MOST)
    rig.fed = {each: frozenset({each}) for each in rig.brokers}
    rig.throttles(throttles=True)
    await run_for(LOOK_S + 1.0, rig.watch.run())
    assert rig.fed == rig.board.snapshot.memory.feeds


async def test_anybody_may_claim_to_be_a_follower() -> None:
    """Only brokers of the cluster are read, and not more than this."""
    rig = Rig(readers=MOST + 5)
    rig.reports(0)
    rig.reports(MOST + 6)
    rig.throttles(throttles=True)
    await run_for(LOOK_S + 1.0, rig.watch.run())
    assert list(range(1, MOST + 1)) == sorted(key for _, key in rig.read)


async def test_a_few_are_read_at_once_and_for_a_bounded_time() -> None:
    """A broker that was not read in time may feed all."""
    rig = Rig(readers=2 * AT_ONCE)
    rig.fed = {each: frozenset({each}) for each in rig.brokers}
    rig.throttles(throttles=True)
    task = asyncio.create_task(rig.watch.run())
    await asyncio.sleep(LOOK_S + 1.0)
    rig.takes_s = dict.fromkeys(rig.brokers, 2 * ROUND_S)
    rig.read.clear()
    await asyncio.sleep(EVERY_S + ROUND_S)
    assert AT_ONCE == len(rig.read)
    assert not rig.board.snapshot.memory.feeds
    task.cancel()


async def test_brokers_that_hang_delay_no_others() -> None:
    """Those that did not answer the last poll are read last."""
    rig = Rig(readers=3 * AT_ONCE)
    rig.fed = {each: frozenset({each}) for each in rig.brokers}
    hung = range(1, 2 * AT_ONCE + 1)
    rig.takes_s = dict.fromkeys(hung, 2 * ROUND_S)
    rig.throttles(throttles=True, failed=hung)
    await run_for(LOOK_S + ROUND_S + 1.0, rig.watch.run())
    assert set(rig.brokers) - set(hung) == rig.board.snapshot.memory.feeds.keys()
