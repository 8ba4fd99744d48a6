"""Contents are read only while a page is open, from a broker once a minute at most."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from sidecar.control.volume_contents import (
    EVERY_S,
    RETENTION_S,
    Contents,
    ContentsResult,
    VolumeContents,
)
from sidecar.kafka.largest_topics import LogDirTopics
from sidecar.throttle.growth import Placement
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.growth.build import contents_of
from tests.sidecar.throttle.build import FakeClock

NOTHING = {"/a": LogDirTopics(0, 0, ())}


class Brokers:
    """Brokers that are asked.

    Attributes:
        asked: their ids, in order.
        answer: what each says.
        at_once: how many are asked beside each other now, and at most.
    """

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.answer: ContentsResult = NOTHING
        self.at_once = [0, 0]

    async def ask(self, broker_id: int) -> ContentsResult:
        self.asked.append(broker_id)
        self.at_once = [self.at_once[0] + 1, max(self.at_once[1], self.at_once[0] + 1)]
        await asyncio.sleep(0)
        self.at_once[0] -= 1
        return self.answer


class Scene:
    """Contents whose task runs."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.brokers = Brokers()
        self.contents = VolumeContents(self.brokers.ask, self.clock)

    async def request(self, *broker_ids: int) -> list[Contents | None]:
        """Takes what is there, then lets the requested brokers be asked."""
        found = [self.contents.request(broker_id) for broker_id in broker_ids]
        for _ in range(20):
            await asyncio.sleep(0)
        return found


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    started = Scene()
    task = asyncio.create_task(started.contents.run())
    yield started
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_nobody_looks(scene: Scene) -> None:
    """No broker is asked."""
    for scene.clock.now in (0.0, 100.0, 1000.0):
        await scene.request()
    assert [] == scene.brokers.asked


async def test_the_first_request_has_nothing_yet(scene: Scene) -> None:
    """The broker is asked, and the next request has its answer."""
    scene.clock.now = 5.0
    assert [None] == await scene.request(2)
    assert [Contents(NOTHING, 5.0)] == await scene.request(2)
    assert [2] == scene.brokers.asked


async def test_once_a_minute(scene: Scene) -> None:
    """The number of requests does not matter, nor whether the broker answered."""
    assert 60.0 == EVERY_S
    for scene.brokers.answer in (NOTHING, Failure(FailureKind.TIMEOUT, "no answer")):
        scene.brokers.asked = []
        begin = scene.clock.now
        for scene.clock.now in (begin, begin + 1, begin + EVERY_S - 0.1):
            await scene.request(1, 1, 1)
        assert [1] == scene.brokers.asked
        scene.clock.now = begin + EVERY_S
        await scene.request(1)
        assert [1, 1] == scene.brokers.asked
        scene.clock.now = begin + 2 * EVERY_S


async def test_one_broker_at_a_time(scene: Scene) -> None:
    """A full cluster is not asked everywhere at once."""
    await scene.request(1, 2, 3)
    assert [1, 2, 3] == scene.brokers.asked
    assert 1 == scene.brokers.at_once[1]


async def test_a_failure_is_reported(scene: Scene) -> None:
    """The page shows the broker's failure."""
    failure = Failure(FailureKind.AUTHENTICATION, "the file /p can't be read")
    scene.brokers.answer = failure
    await scene.request(1)
    (found,) = await scene.request(1)
    assert Contents(failure, 0.0) == found


async def test_what_is_old_is_forgotten(scene: Scene) -> None:
    """A page that is opened an hour later begins anew."""
    await scene.request(1)
    scene.clock.now = RETENTION_S
    assert [Contents(NOTHING, 0.0)] == await scene.request(1)
    scene.clock.now = 2 * RETENTION_S + 1
    assert [None] == await scene.request(1)


async def test_without_parts_only_what_arrives_is_read(scene: Scene) -> None:
    """Not even that if nobody requests it. Once parts are requested, the next reading has them."""
    asked: list[Sequence[str]] = []
    arriving = {("orders", 0): (2, 1)}

    async def place(_: int, topics: Sequence[str]) -> Placement:
        asked.append(topics)
        return Placement(arriving=arriving)

    scene.contents.place = place
    scene.brokers.answer = {"/a": contents_of(100, {"orders": 60})}
    scene.clock.now = -EVERY_S
    scene.contents.request(1, in_parts=False, arriving=False)
    await scene.request()
    assert [] == asked
    for scene.clock.now in (0.0, EVERY_S):
        scene.contents.request(1, in_parts=False)
        await scene.request()
    found = scene.contents.known(1)
    assert found is not None
    assert (arriving, {}, None) == (found.arriving, found.splits, found.split_at)
    await scene.request(1)
    await asyncio.sleep(0.1)
    (found,) = await scene.request(1)
    assert found is not None
    assert [0] == [each.growth_bytes for each in found.splits.values()]
    assert [[], [], ["orders"]] == asked


async def test_who_needs_parts_does_not_wait_for_the_next_minute(scene: Scene) -> None:
    """A budget has read the broker without parts; once read with parts, it is not read again."""
    scene.contents.request(1, in_parts=False, arriving=False)
    await scene.request()
    scene.clock.now = 10.0
    await scene.request(1)
    assert 2 == len(scene.brokers.asked)
    scene.clock.now = 12.0
    await scene.request(1)
    assert 2 == len(scene.brokers.asked)
