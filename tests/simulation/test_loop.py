"""Virtual time, and processes that are frozen and killed."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine
from inspect import CORO_CLOSED, CORO_SUSPENDED, getcoroutinestate
from types import CoroutineType
from typing import Any

import pytest

from tests.simulation import world
from tests.simulation.faults import Fault, Kind
from tests.simulation.loop import DeadlockError, Process, VirtualLoop
from tests.simulation.net import Network
from tests.simulation.world import Plan


def run(part: Callable[[VirtualLoop], Awaitable[None]]) -> float:
    """Runs a part in a loop of its own, and returns how much time passed in it."""
    loop = VirtualLoop()
    loop.network = Network(loop)

    async def whole() -> None:
        await part(loop)

    try:
        loop.run_until_complete(whole())
    finally:
        loop.close()
    return loop.now


def test_a_sleep_takes_its_time_and_no_more() -> None:
    """A day is over at once."""

    async def part(_: VirtualLoop) -> None:
        await asyncio.sleep(86_400.0)

    assert 86_400.0 == run(part)


def test_who_waits_for_nothing_is_found() -> None:
    """Nothing is left that could wake it."""

    async def part(_: VirtualLoop) -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError):
        run(part)


def test_a_frozen_process_continues_when_it_is_thawed() -> None:
    """It sleeps for a second, is frozen from 0.5 s to 9 s, and continues then."""
    woke: list[float] = []

    async def part(loop: VirtualLoop) -> None:
        process = Process("one")

        async def sleep() -> None:
            await asyncio.sleep(1.0)
            woke.append(loop.now)

        task = process.start(sleep(), "sleeps")
        await asyncio.sleep(0.5)
        process.freeze()
        await asyncio.sleep(8.5)
        process.thaw()
        await task

    run(part)
    assert [9.0] == woke


def test_a_task_that_was_due_when_its_process_was_frozen_continues() -> None:
    """It was woken a moment before the freeze, and another task thaws it."""
    woke: list[float] = []

    async def part(loop: VirtualLoop) -> None:
        process = Process("one")
        event = asyncio.Event()

        async def wait() -> None:
            await event.wait()
            woke.append(loop.now)

        task = process.start(wait(), "waits")
        await asyncio.sleep(1.0)
        event.set()
        process.freeze()
        await asyncio.sleep(8.0)
        process.thaw()
        await task

    run(part)
    assert [9.0] == woke


def test_a_killed_process_does_nothing_any_more() -> None:
    """Not even what would clean up."""
    done: list[str] = []

    async def part(_: VirtualLoop) -> None:
        process = Process("one")

        async def sleep() -> None:
            try:
                await asyncio.sleep(1.0)
            finally:
                done.append("cleaned up")

        tasks.append(process.start(sleep(), "sleeps"))
        await asyncio.sleep(0.5)
        process.kill()
        await asyncio.sleep(5.0)
        assert not done

    # Retained: a coroutine that is collected runs what cleans up.
    tasks: list[asyncio.Task[None]] = []
    run(part)


@pytest.mark.parametrize("is_mended", [False, True])
def test_between_hosts_that_are_cut_off_nothing_arrives(*, is_mended: bool) -> None:
    """When the cut is mended, what was lost arrives in its order."""
    received: list[bytes] = []

    async def part(loop: VirtualLoop) -> None:
        one, other = Process("one"), Process("other")

        async def serve() -> None:
            async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writers.append(writer)
                while data := await reader.read(100):
                    received.append(data)

            await asyncio.start_server(on_client, "other", 1)

        async def send() -> None:
            _, writer = await asyncio.open_connection("other", 1)
            writers.append(writer)
            for text in (b"a", b"b", b"c"):
                writer.write(text)
                await asyncio.sleep(1.0)

        await other.start(serve(), "serves")
        task = one.start(send(), "sends")
        await asyncio.sleep(0.5)
        both_ways = [("one", "other"), ("other", "one")]
        loop.network.cut(both_ways)
        await task
        if is_mended:
            loop.network.mend(both_ways)
        await asyncio.sleep(1.0)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(1.0)

    writers: list[asyncio.StreamWriter] = []
    run(part)
    assert b"".join(received) == (b"abc" if is_mended else b"a")


def test_what_was_killed_is_ended_with_the_world() -> None:
    """However often it awaits at its end; else the collector ends it, in any other test."""
    inner: list[Coroutine[None, None, None]] = []

    async def ends_slowly() -> None:
        try:
            await asyncio.sleep(9.0)
        finally:
            try:
                await asyncio.sleep(1.0)
            finally:
                await asyncio.sleep(1.0)

    async def swallows() -> None:
        inner.append(ends_slowly())
        try:
            await inner[0]
        except RuntimeError:
            await asyncio.sleep(1.0)

    async def part(loop: VirtualLoop) -> None:
        process = Process("one")
        task = process.start(swallows(), "swallows")
        await asyncio.sleep(1.0)
        process.kill()
        await asyncio.sleep(10.0)
        assert [CORO_SUSPENDED] * 2 == [getcoroutinestate(each) for each in coroutines(task)]
        loop.end()
        assert [CORO_CLOSED] * 2 == [getcoroutinestate(each) for each in coroutines(task)]

    def coroutines(task: asyncio.Task[None]) -> list[Any]:
        return [task.get_coro(), *inner]

    run(part)


@pytest.mark.slow
def test_a_world_leaves_nothing_that_was_killed() -> None:
    """No coroutine of its daemons is left in the midst of something."""
    world.run(Plan(6, 20.0, faults=[Fault(10.0, 2.0, Kind.SIDECAR_KILLED, 1)], calms=False))
    left = [each for each in gc.get_objects() if type(each) is CoroutineType]
    names = [each.__qualname__ for each in left if getcoroutinestate(each) == CORO_SUSPENDED]
    assert not {"serve", "supervise", "SimulatedSidecar._run"}.intersection(names)
