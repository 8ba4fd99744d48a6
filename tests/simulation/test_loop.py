"""Virtual time, and processes that are frozen and killed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.simulation.loop import DeadlockError, Process, VirtualLoop
from tests.simulation.net import Network


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
