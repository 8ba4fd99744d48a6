"""The request log that a sidecar follows: its ids and usage, and what is reported of it."""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sidecar.quotas.entities import LONGEST_USER
from sidecar.requestlog.allocated_ids import producer_id
from sidecar.requestlog.line import Line
from sidecar.requestlog.reader import QUIET_S, SILENT_S, LogReader
from sidecar.requestlog.rejected import RejectedKind
from tests.sidecar.api.build import until
from tests.sidecar.requestlog.lines import BY_HAND

# Threads run in the loop here, so time may move as soon as nothing is ready.
pytestmark = [pytest.mark.looptime(noop_cycles=1), pytest.mark.usefixtures("_inline")]

ANSWER = next(line for line in BY_HAND if b'"producerId":1000001' in line)
"""Id 1000001 is allocated to alice."""


def answer(user: str, producer_id: int) -> bytes:
    return ANSWER.replace(b'"producerId":1000001', b'"producerId":%d' % producer_id).replace(
        b"User:alice", b"User:" + user.encode()
    )


def append(path: Path, *lines: bytes) -> None:
    with path.open("ab") as file:
        file.writelines(line + b"\n" for line in lines)


def move(path: Path) -> None:
    path.rename(path.with_name("aside"))


@asynccontextmanager
async def reading(path: Path) -> AsyncIterator[tuple[LogReader, list[tuple[str, int]]]]:
    """Follows a log until the test is over; the task must not end before."""
    on_allocated: list[tuple[str, int]] = []

    def note(line: Line) -> None:
        each = producer_id(line)
        if each is not None:
            on_allocated.append((line.user, each))

    reader = LogReader(path)
    reader.subscribe(note, lambda: False)
    task = asyncio.create_task(reader.run())
    try:
        yield reader, on_allocated
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.cancelled()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "requests.log"


@pytest.fixture
def empty(path: Path) -> Path:
    """A log that exists and is empty."""
    path.touch()
    return path


async def test_ids_and_usage_come_from_a_log_that_appears_later(path: Path) -> None:
    """They are read from its first line on, and after a rotation from the next one's."""
    async with reading(path) as (reader, on_allocated):
        await asyncio.sleep(0.3)
        assert not reader.exists
        append(path, answer("bob", 1), answer("eve", 2))
        await until(lambda: len(on_allocated) == 2)
        move(path)
        append(path, answer("bob", 3))
        await until(lambda: len(on_allocated) == 3)
        assert [("bob", 1), ("eve", 2), ("bob", 3)] == on_allocated
        assert {"bob": 2, "eve": 1} == {
            user: usage.requests for (user, _), usage in reader.usage.clients().items()
        }
        assert (True, 0) == (reader.exists, reader.behind)


async def test_a_log_that_is_not_there_is_reported_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The message says what to check; another one says that it is there; a rotation has none."""
    caplog.set_level(logging.INFO, "sidecar.requestlog.reader")
    async with reading(path) as (_, on_allocated):
        await asyncio.sleep(0.6)
        (message,) = caplog.messages
        assert f"the request log {path} is not there yet" in message
        assert '"throttle-sidecar request-log"' in message
        append(path, answer("bob", 1))
        await until(lambda: len(on_allocated) == 1)
        assert f"the request log {path} is there now" == caplog.messages[1]
        move(path)
        await asyncio.sleep(0.6)
        append(path, answer("bob", 2))
        await until(lambda: len(on_allocated) == 2)
        assert 2 == len(caplog.messages)


async def test_what_was_there_before_the_start_is_not_counted_again(path: Path) -> None:
    """Otherwise a restart would throttle users for yesterday's ids."""
    append(path, answer("bob", 1))
    async with reading(path) as (reader, on_allocated):
        await until(lambda: reader.exists)
        append(path, answer("bob", 2))
        await until(lambda: len(on_allocated) > 0)
        assert [("bob", 2)] == on_allocated


@pytest.mark.parametrize(
    "strange",
    [
        b"garbage",
        b"\xff\xfe\x00",
        ANSWER[:-30],
        ANSWER.replace(b'"producerId":1000001', b'"producerId":' + b"9" * 5000),
        ANSWER.replace(b'"producerId":1000001', b'"producerId":"' + b"\xff" + b'"'),
        ANSWER.replace(b'"producerId":1000001', b'"producerId":' + b"[" * 100_000),
        ANSWER.replace(b"User:alice", b"User:\xff"),
        ANSWER.replace(b"User:alice", b"\\ud800"),
        ANSWER.replace(b"User:alice", b"User:" + b"x" * (LONGEST_USER + 1)),
    ],
)
async def test_a_strange_line_throttles_nobody_and_ends_nothing(
    empty: Path, strange: bytes
) -> None:
    """The lines around it count."""
    async with reading(empty) as (reader, on_allocated):
        await until(lambda: reader.exists)
        append(empty, answer("bob", 1), strange, answer("bob", 2))
        await until(lambda: ("bob", 2) in on_allocated)
        assert [("bob", 1), ("bob", 2)] == on_allocated
        assert 3 == sum(reader.usage.rejected.values()) + sum(
            usage.requests for usage in reader.usage.clients().values()
        )


async def test_a_line_of_more_than_4_mib_in_pieces_is_dropped_too(empty: Path) -> None:
    """A container's log has it in pieces, and none of them is long."""
    async with reading(empty) as (reader, on_allocated):
        await until(lambda: reader.exists)
        for size in (5, 3):
            text = answer("bob", size).replace(
                b'"request":{', b'"request":{"a":"%b",' % (b"x" * (size << 20))
            )
            parts = [text[at : at + 65_536] for at in range(0, len(text), 65_536)]
            tags = [*b"P" * (len(parts) - 1), *b"F"]
            head = "2026-11-20T10:00:00.123Z stdout"
            append(
                empty,
                *(
                    f"{head} {tag:c} ".encode() + part
                    for tag, part in zip(tags, parts, strict=True)
                ),
            )
        await until(lambda: len(on_allocated) > 0)
        assert [("bob", 3)] == on_allocated


async def test_what_has_no_name_of_a_user_is_counted_as_nobody(empty: Path) -> None:
    """It is a principal without a type or a name."""
    async with reading(empty) as (reader, on_allocated):
        await until(lambda: reader.exists)
        append(empty, ANSWER.replace(b"User:alice", b"alice"), answer("", 2), answer("é\u202e", 3))
        await until(lambda: len(on_allocated) == 3)
        assert ["", "", "é\u202e"] == [user for user, _ in on_allocated]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
async def test_what_is_no_log_is_reported_once(
    path: Path, make: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """A folder and a pipe nobody writes to are reported; another line says that there is a log."""
    caplog.set_level(logging.INFO, "sidecar.requestlog.reader")
    make(path)
    async with reading(path) as (reader, on_allocated):
        await asyncio.sleep(0.6)
        assert 1 == len(caplog.messages)
        assert f"the request log {path} can't be read: not a regular file" == caplog.messages[0]
        move(path)
        append(path, answer("bob", 1))
        await until(lambda: reader.exists)
        append(path, answer("bob", 2))
        await until(lambda: ("bob", 2) in on_allocated)
        assert 2 == len(caplog.messages)
        assert "can be read again" in caplog.messages[1]


@pytest.mark.slow
async def test_a_long_backlog_does_not_block_the_loop(empty: Path) -> None:
    """Of 10,000 ids at once all are read, and other tasks run meanwhile."""
    async with reading(empty) as (reader, on_allocated):
        await until(lambda: reader.exists)
        append(empty, *[answer("bob", number) for number in range(10_000)])
        turns = 0
        while len(on_allocated) < 10_000:
            assert turns < 10_000
            await asyncio.sleep(0.001)
            turns += 1
        assert turns > 10
        assert 0 == reader.usage.rejected[RejectedKind.TORN]


async def follow_for_long(path: Path, *, is_needed: bool = True) -> None:
    """Follows until an empty log must be reported."""
    reader = LogReader(path)
    reader.subscribe(lambda _: None, lambda: is_needed)
    task = asyncio.create_task(reader.run())
    await asyncio.sleep(3 * SILENT_S)
    task.cancel()


@pytest.fixture
def _inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads don't live in the loop's time."""

    async def inline(function: Callable[..., object], *args: object) -> object:
        return function(*args)

    monkeypatch.setattr(asyncio, "to_thread", inline)


@pytest.mark.slow
async def test_a_log_to_which_nothing_is_written_is_reported_once(
    empty: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is reported where ids are to be throttled by it: its logger is not at DEBUG."""
    await follow_for_long(empty, is_needed=False)
    assert [] == caplog.records
    await follow_for_long(empty)
    assert ["WARNING"] == [record.levelname for record in caplog.records]
    assert "not at DEBUG" in caplog.text


@pytest.mark.slow
async def test_each_silence_of_a_log_is_reported_once(
    empty: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A restart sets the broker's logger back; a missing log is reported as such.

    An idle broker whose sidecar polls each 5 minutes writes only then.
    """
    reader = LogReader(empty)
    reader.subscribe(lambda _: None, lambda: True)
    task = asyncio.create_task(reader.run())
    await asyncio.sleep(1)
    for silences in (1, 2):
        for _ in range(2):
            append(empty, ANSWER)
            await asyncio.sleep(0.7 * QUIET_S)
        assert silences - 1 == len(caplog.records)
        await asyncio.sleep(0.4 * QUIET_S)
        assert silences == len(caplog.records)
        assert f"nothing was written to it for {QUIET_S:g} s" in caplog.text
    task.cancel()


async def test_requests_that_cant_be_read_are_reported_once(
    empty: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A few torn lines are not; most requests are, and that they can be read again."""
    caplog.set_level(logging.INFO, "sidecar.requestlog.reader")
    async with reading(empty) as (reader, on_allocated):
        await until(lambda: reader.exists)
        append(empty, *[ANSWER[:-9]] * 10, *[b"another logger's"] * 50)
        await until(lambda: reader.usage.rejected[RejectedKind.OTHER] == 50)
        assert [] == caplog.messages
        append(empty, *[b"[layout] of=mine " + ANSWER] * 30)
        await until(lambda: len(caplog.messages) > 0)
        (message,) = caplog.messages
        assert f"most requests in the request log {empty} can't be read" in message
        assert "torn 10;" in message
        assert reader.usage.is_unreadable
        requests = [b'"correlationId":%d,' % number for number in range(41)]
        append(empty, *(ANSWER.replace(b'"correlationId":3,', each) for each in requests))
        await until(lambda: len(on_allocated) == 41)
        await until(lambda: len(caplog.messages) == 2)
        assert f"most requests in the request log {empty} can be read again" == caplog.messages[1]


@pytest.mark.parametrize(("place", "expected"), [("thread", OSError), ("subscriber", RuntimeError)])
async def test_a_run_after_an_exception_continues_at_the_same_position(
    empty: Path, place: str, expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A started-again reader reads what was appended meanwhile, and its counts go on."""
    users: list[str] = []

    def note(line: Line) -> None:
        if line.user == "poison":
            raise RuntimeError("no line of this test")
        users.append(line.user)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    reader = LogReader(empty)
    reader.subscribe(note, lambda: False)
    task = asyncio.create_task(reader.run())
    await until(lambda: reader.exists)
    append(empty, answer("bob", 1))
    await until(lambda: "bob" in users)
    with monkeypatch.context() as failing:
        if place == "thread":
            failing.setattr(threading.Thread, "start", refuse)
        else:
            append(empty, answer("poison", 2))
        with pytest.raises(expected):
            await task
    append(empty, answer("eve", 3))
    task = asyncio.create_task(reader.run())
    await until(lambda: "eve" in users)
    assert ["bob", "eve"] == users
    assert 2 + (place == "subscriber") == reader.counts.lines
    task.cancel()
    await asyncio.wait([task])
    assert not reader._tail.read().there
