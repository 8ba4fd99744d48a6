"""Disks and name servers that hang do not stop each other."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path

import pytest

from sidecar.history import Folder, History
from sidecar.kafka.largest_topics import topics_of
from sidecar.producer_ids.quota_file import IdQuotaFile
from sidecar.requestlog.tail import Tail, follow
from sidecar.threads import OwnThreads
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
        reading_topics = topics_of(admin(bootstrap(cluster)), 0, PATIENCE_S)
        assert isinstance(await asyncio.wait_for(reading_topics, PATIENCE_S), set)


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
