"""The bound on HTTP connections: who makes room for whom, and what the log says of it."""

import asyncio
import errno
import logging
import resource
from dataclasses import dataclass

import pytest

from sidecar.api.connections import AcceptErrors, Connections, most_connections


@dataclass(eq=False)
class FakeConnection:
    """A connection that is idle or not, and remembers that it was dropped."""

    is_idle: bool = True
    dropped: bool = False

    def drop(self) -> None:
        self.dropped = True


@pytest.mark.parametrize(
    ("files", "most"),
    [(128, 64), (1024, 512), (1_048_576, 2048), (10, 8), (resource.RLIM_INFINITY, 2048)],
)
def test_half_of_the_files_are_for_http(files: int, most: int) -> None:
    """HTTP gets half of them, at most 2,048, and never so few that nobody is answered."""
    assert most == most_connections(files)


def test_the_longest_idle_one_makes_room() -> None:
    """Neither one that was used since nor one with a request in progress is closed."""
    connections = Connections(3)
    used, busy, idle, new = (FakeConnection(is_idle) for is_idle in (True, False, True, True))
    for each in (used, busy, idle):
        assert connections.enter(each)
    connections.mark_used(used)
    assert connections.enter(new)
    assert [False, False, True, False] == [each.dropped for each in (used, busy, idle, new)]
    assert 3 == len(connections)


def test_without_an_idle_one_the_new_one_is_refused() -> None:
    """Requests in progress continue."""
    connections = Connections(2)
    busy = [FakeConnection(False), FakeConnection(False)]
    assert all(connections.enter(each) for each in busy)
    assert not connections.enter(FakeConnection())
    assert [False, False] == [each.dropped for each in busy]
    assert 2 == len(connections)


def test_one_line_at_the_beginning_and_one_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """It does not matter how many come meanwhile; leaving twice is harmless."""
    caplog.set_level(logging.INFO)
    connections = Connections(4)
    entered = [FakeConnection() for _ in range(20)]
    for each in entered:
        connections.enter(each)
    for each in entered:
        connections.leave(each)
        connections.leave(each)
    assert [logging.WARNING, logging.INFO] == [record.levelno for record in caplog.records]
    assert "all 4 HTTP connections are taken" in caplog.messages[0]
    assert "there is room for HTTP connections again: 2 are open" == caplog.messages[1]


def out_of_files(loop: asyncio.AbstractEventLoop, handler: AcceptErrors) -> None:
    error = OSError(errno.EMFILE, "Too many open files")
    handler(loop, {"message": "socket.accept() out of system resource", "exception": error})


async def test_a_failed_accept_is_reported_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each minute has one line without a traceback."""
    loop, handler, now = asyncio.get_running_loop(), AcceptErrors(), 1000.0
    monkeypatch.setattr(loop, "time", lambda: now)
    for _ in range(100):
        out_of_files(loop, handler)
    assert 1 == len(caplog.records)
    assert "[Errno 24] Too many open files; raise the limit" in caplog.messages[0]
    assert caplog.records[0].exc_info is None
    now += 60.0
    out_of_files(loop, handler)
    assert 2 == len(caplog.records)


async def test_every_other_error_is_reported_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    """It has its traceback."""
    context = {"message": "bug", "exception": RuntimeError("boom")}
    AcceptErrors()(asyncio.get_running_loop(), context)
    assert ["asyncio"] == [record.name for record in caplog.records]
    assert caplog.records[0].exc_info
