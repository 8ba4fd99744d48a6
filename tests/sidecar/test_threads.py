"""Disks and name servers that hang do not stop each other."""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from sidecar.daemon import daemon
from sidecar.history import Folder, History
from sidecar.kafka.largest_topics import topics_by_log_dir
from sidecar.producer_ids.quota_file import IdQuotaFile
from sidecar.requestlog.tail import Tail, follow
from sidecar.settings import Settings
from sidecar.threads import OwnThreads, SharedCalls, run_main
from tests.sidecar.kafka.servers import admin, bootstrap
from tests.support.fake_broker import FakeCluster
from tests.support.scripted import reading, whole

PATIENCE_S = 3.0


@pytest.fixture
async def names_hang() -> AsyncIterator[threading.Event]:
    """Look-ups of names fill the loop's pool until the event is set."""
    gate = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    hanging = loop.run_in_executor(None, gate.wait)
    yield gate
    gate.set()
    await hanging


@pytest.mark.usefixtures("names_hang")
async def test_a_history_is_written_while_names_hang(tmp_path: Path) -> None:
    """The observation is in the file."""
    history = History(Folder(tmp_path, "k", 1 << 20), lambda steady_s: steady_s)
    history.record(whole(0.0, reading(0.0, 1, 5)))
    await asyncio.wait_for(history.flush(), PATIENCE_S)
    assert 1 == history.counts.written


@pytest.mark.usefixtures("names_hang")
async def test_a_request_log_is_read_while_names_hang(tmp_path: Path) -> None:
    """Its lines are returned, from another thread than the loop's."""
    log = tmp_path / "requests.log"
    log.write_bytes(b"a\n")
    async with aclosing(follow(Tail(log, from_start=True))) as reads:
        read = await asyncio.wait_for(anext(reads), PATIENCE_S)
    assert (b"a",) == read.lines


@pytest.mark.slow
@pytest.mark.usefixtures("names_hang")
async def test_a_quota_file_is_followed_while_names_hang(tmp_path: Path) -> None:
    """A change is used."""
    path = tmp_path / "quotas.toml"
    path.write_text("[default]\nproducer_ids_rate = 5\n")
    file = IdQuotaFile(path)
    changed = asyncio.Event()
    task = asyncio.create_task(file.run(lambda _quotas: changed.set()))
    await asyncio.wait_for(changed.wait(), PATIENCE_S)
    task.cancel()


@pytest.mark.usefixtures("names_hang")
async def test_topics_are_decoded_while_names_hang() -> None:
    """The throttle of a volume's topics needs them."""
    async with FakeCluster().add(1) as cluster:
        reading_topics = topics_by_log_dir(admin(bootstrap(cluster)), 0, PATIENCE_S)
        assert isinstance(await asyncio.wait_for(reading_topics, PATIENCE_S), dict)


async def test_names_are_looked_up_while_a_disk_hangs(tmp_path: Path) -> None:
    """A read that hangs is in no thread of the loop's pool."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    reading_pipe = asyncio.create_task(OwnThreads("disk").call(pipe.read_bytes))
    async with asyncio.timeout(PATIENCE_S):
        assert await loop.getaddrinfo("localhost", 80)
        assert not reading_pipe.done()
        await asyncio.to_thread(pipe.write_bytes, b"it is back")
        assert b"it is back" == await reading_pipe


async def test_an_exception_of_the_call_is_raised() -> None:
    """A result, or an error, comes back as from any other call."""
    threads = OwnThreads("test")
    assert (1, 2) == await threads.call(divmod, 5, 3)
    with pytest.raises(ZeroDivisionError):
        await threads.call(divmod, 5, 0)


class TestSharedCalls:
    async def test_a_caller_gets_the_result_of_a_call_that_another_gave_up(self) -> None:
        """However many attempts there are, a disk that hangs has one thread."""
        gate, begun = threading.Event(), []

        def read(number: int) -> int:
            begun.append(number)
            gate.wait()
            return number

        calls = SharedCalls("test")
        for number in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(calls.call("file", read, number), 0.01)
        waiting = [asyncio.ensure_future(calls.call("file", read, number)) for number in (5, 6)]
        other = asyncio.ensure_future(calls.call("other", read, 7))
        await asyncio.sleep(0.01)
        gate.set()
        assert [0, 0, 7] == await asyncio.wait_for(asyncio.gather(*waiting, other), PATIENCE_S)
        assert [0, 7] == begun
        assert 8 == await calls.call("file", read, 8)

    async def test_a_call_that_nobody_can_share_waits_for_the_one_before_it(self) -> None:
        """Such as a step of a login, which belongs to one connection."""
        gate, begun = threading.Event(), []

        def step(number: int) -> int:
            begun.append(number)
            return gate.wait() and 1 // number

        calls = SharedCalls("test")
        for number in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(calls.call_after("kafka@b1", step, number), 0.01)
        waiting = [calls.call_after("kafka@b1", step, number) for number in (1, -1)]
        gate.set()
        assert [1, -1] == await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)
        assert [0, 1, -1] == begun

    @pytest.mark.parametrize(("late_s", "expected"), [(60.0, [0, 2]), (0.0, [1, 2])])
    async def test_a_result_that_came_late_is_for_the_next_caller(
        self, late_s: float, expected: list[int]
    ) -> None:
        """Once, and only where that was asked for."""
        calls = SharedCalls("late result", late_s)
        await give_up(calls, lambda: 0)
        assert expected == [await calls.call("name", int, number) for number in (1, 2)]

    async def test_a_failure_that_came_late_is_for_nobody(self) -> None:
        """The next caller asks again."""
        calls = SharedCalls("late failure", 60.0)
        await give_up(calls, lambda: 1 // 0)
        assert 2 == await calls.call("name", int, 2)


async def give_up(calls: SharedCalls, fn: Callable[[], int]) -> None:
    """Makes a call, which ends after its caller has given up."""
    gate = threading.Event()
    before = set(threading.enumerate())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(calls.call("name", lambda: gate.wait() and fn()), 0.01)
    gate.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names that are looked up; look-ups hang, and end with the test."""
    gate, names = threading.Event(), []
    look_up = socket.getaddrinfo

    def hang(host: str, *args: Any, **options: Any) -> Any:
        names.append(host)
        gate.wait()
        return look_up("127.0.0.1", *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    yield names
    gate.set()


@pytest.mark.parametrize("is_daemon", [False, True])
def test_names_that_hang_delay_no_login_and_no_end(
    *, is_daemon: bool, hanging: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps of aiokafka's logins are in the pool, which waits for its threads at the end."""
    results: list[str] = []

    async def main(*_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in range(2 * 40):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(loop.getaddrinfo(f"b{number % 40}", 9092), 0.001)
        step = loop.run_in_executor(None, lambda: "logged in")
        results.append(await asyncio.wait_for(step, PATIENCE_S))

    if is_daemon:
        monkeypatch.setattr(daemon, "_run", main)
        monkeypatch.setattr(daemon, "collect_garbage_rarely", lambda: None)
        assert 0 == daemon.run(Settings(), Settings)
    else:
        run_main(main())
    assert ["logged in"] == results
    assert [f"b{number}" for number in range(40)] == hanging
