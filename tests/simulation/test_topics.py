"""What each claim says of a deletion in a world in which sidecars make room."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sidecar.relief import journal
from sidecar.relief.journal import Deleted, Entry
from sidecar.throttle.relief import ReliefClass
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.topics import SimulatedTopics
from tests.simulation.world import Plan, World

SEGMENT = 10_000


@pytest.fixture
def world() -> Iterator[World]:
    """Its "logs" 0 has 100 kB in records of at least 10 B, one batch a second for 100 s."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    world = World(Plan(3, 60.0, relief=True), loop)
    topics = of(world)
    topics.of_class = ReliefClass(("logs",), keep_bytes=20_000, keep_s=40.0)
    for second in range(100):
        loop.now = float(second)
        topics.logs[1].write(100, 1000, loop.now)
    loop.now = 100.0
    topics.groups["etl"][1] = 5000
    try:
        yield world
    finally:
        world.discard()
        asyncio.set_event_loop(None)
        loop.close()


def of(world: World) -> SimulatedTopics:
    """The topics of a world with relief."""
    assert world.topics is not None
    return world.topics


def begin(world: World, to_offset: int) -> None:
    """Sidecar 0 notes a step in its journal."""
    deleted = Deleted("logs", 0, 0, 0, to_offset, 1)
    entry = Entry("begin", "a-1", 0.0, "fake-cluster", 0, "/d", 1, "", (deleted,))
    folder = world.sidecars[0].disk.journals
    folder.mkdir(exist_ok=True)
    journal._append(folder / "relief-20260101.jsonl", entry)


def wrong(world: World, offset: int, topic: str = "logs") -> str:
    """What is wrong with a deletion by sidecar 0 at broker 0."""
    return of(world)._wrong(world.sidecars[0], world.brokers[0], (topic, 0), offset)


def fill(world: World) -> None:
    """Each volume is near its limit."""
    for volume in world.volumes():
        volume.append(volume.available_bytes - volume.limit_bytes - 1, world.now(), "")


def test_a_deletion_that_is_right(world: World) -> None:
    """Records of the last 40 s and 20 kB are kept, the group has read it, and it is journalled."""
    fill(world)
    begin(world, 5000)
    assert "" == wrong(world, 5000)


def test_what_is_wrong_with_a_deletion(world: World) -> None:
    """An undeclared topic, each floor, a group, the journal, and room on every volume."""
    fill(world)
    topics = of(world)
    world.sidecars[0].process = Process("sidecar 0")
    assert "it is not declared" == wrong(world, 1, "orders")
    topics.groups["etl"][1] = 10_000
    assert "it has records that are younger than 40 s" == wrong(world, 6001)
    topics.logs[1].start = 6001
    assert "its journal has no begin of it" == wrong(world, 6001)
    topics.logs[1].start = 0
    topics.of_class = replace(topics.of_class, keep_s=None)
    assert "19900 bytes would be left of 20000" == wrong(world, 8010)
    topics.groups["etl"][1] = 5000
    assert "etl has not read it" == wrong(world, 5001)
    assert "its journal has no begin of it" == wrong(world, 5000)
    world.sidecars[0].process.kill()
    assert "" == wrong(world, 5000)
    begin(world, 4000)
    assert "its journal has no begin of it" == wrong(world, 5000)
    begin(world, 5000)
    for volume in world.volumes():
        volume.free(volume.used_bytes, world.now())
    assert "no volume of it lacked room" == wrong(world, 5000)


def test_another_cluster(world: World) -> None:
    """Its broker answers at a known address."""
    stranger = world.stranger(world.brokers[0])
    found = of(world)._wrong(world.sidecars[0], stranger, ("logs", 0), 1)
    assert "its broker is of another cluster" == found


def test_segments_are_removed_below_the_first_offset(world: World) -> None:
    """By each replica, and their space is free some time later; retention takes the oldest."""
    topics = of(world)
    topics.logs[1].segments = [[each * 1000, SEGMENT] for each in range(10)]
    fill(world)
    volume = world.brokers[2].volume_of(1)
    room, used = topics._room(volume), volume.used_bytes
    topics._start(1, 2500)
    assert room + 25_000 == topics._room(volume)
    world.brokers[2].process.runs = True
    topics._clean()
    assert (80_000, used) == (topics._size(2, 1), volume.used_bytes)
    assert room + 25_000 == topics._room(volume)
    topics.retained(volume, 30_000)
    assert 50_000 == topics._size(2, 1)
    assert 100_000 == topics._size(0, 1)
