"""The server on a real socket: listening, stopping, and connections that do not end."""

import asyncio
import contextlib
import errno
import os
import signal
import socket
from typing import Any

import httpx
import pytest

from sidecar.api.connections import Connections
from sidecar.api.server import HttpServer, listen_on
from sidecar.errors import ListenError
from sidecar.settings import HostPort
from tests.sidecar.api.build import FakeSidecar, until
from tests.sidecar.api.live import LOOPBACK, URL, ask, serving, until_tasks, waiting_request
from tests.sidecar.kafka.servers import open_sockets
from tests.sidecar.throttle.build import reading, whole
from tests.support.waiting import SEEN_S


async def test_it_listens_from_its_construction_on() -> None:
    """Port 0 takes a free one; who connects before it serves is answered when it does."""
    sidecar = FakeSidecar()
    server = HttpServer(sidecar.app, LOOPBACK, Connections(2048))
    assert server.address.port > 0
    async with httpx.AsyncClient(base_url=f"http://{server.address}") as client:
        early = asyncio.create_task(client.get("/healthz"))
        await asyncio.sleep(0.05)
        task = asyncio.create_task(server.serve())
        assert (await early).status_code == 200
    server.stop()
    await task


def test_an_address_in_use() -> None:
    """It is refused at once, in a line that names address and reason; nothing stays open."""
    sidecar = FakeSidecar()
    first = HttpServer(sidecar.app, LOOPBACK, Connections(2048))
    before = open_sockets()
    with pytest.raises(ListenError) as raised:
        HttpServer(sidecar.app, first.address, Connections(2048))
    assert f"can't listen on {first.address}: address already in use" == str(raised.value)
    assert before == open_sockets()
    first.stop()


@pytest.mark.parametrize("listen", [HostPort("no-such-host.invalid", 0), HostPort("192.0.2.1", 0)])
def test_an_address_that_is_not_ours(listen: HostPort) -> None:
    """The name has no address, or the address is another machine's."""
    with pytest.raises(ListenError, match=f"can't listen on {listen}: "):
        HttpServer(FakeSidecar().app, listen, Connections(2048))


@pytest.mark.parametrize("number", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
def test_a_name_with_an_address_that_is_not_ours(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left out: in the hosts file of a container without IPv6, localhost is ::1 too."""
    bind, look_up = socket.socket.bind, socket.getaddrinfo

    def bind_ipv4(listening: socket.socket, address: tuple[str, int]) -> None:
        if listening.family == socket.AF_INET6:
            raise OSError(number, os.strerror(number))
        bind(listening, address)

    def both(_: str, *args: Any, **options: Any) -> list[Any]:
        return [each for ip in ("::1", "127.0.0.1") for each in look_up(ip, *args, **options)]

    monkeypatch.setattr(socket.socket, "bind", bind_ipv4)
    monkeypatch.setattr(socket, "getaddrinfo", both)
    before = open_sockets()
    (listening,) = listen_on(HostPort("localhost", 0))
    assert "127.0.0.1" == listening.getsockname()[0]
    listening.close()
    assert before == open_sockets()


def test_a_server_that_never_served() -> None:
    """When it is stopped before it ran, it leaves no socket."""
    before = open_sockets()
    server = HttpServer(FakeSidecar().app, LOOPBACK, Connections(2048))
    assert before != open_sockets()
    server.stop()
    assert before == open_sockets()


async def test_every_address_of_a_name() -> None:
    """Localhost is served on both of its addresses, on one port."""
    sidecar = FakeSidecar()
    server = HttpServer(sidecar.app, HostPort("localhost", 0), Connections(2048))
    task = asyncio.create_task(server.serve())
    found = {info[4][0] for info in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
    async with httpx.AsyncClient() as client:
        for address in found:
            host = HostPort(str(address), server.address.port)
            assert (await client.get(f"http://{host}/healthz")).status_code == 200
    server.stop()
    await task


@pytest.mark.slow
async def test_headers_of_every_answer() -> None:
    """Nothing shows what serves, nothing is sniffed, also where no route answers."""
    async with serving(FakeSidecar()) as server, httpx.AsyncClient() as client:
        for path in (URL, "/nope", "/docs", "/v1/volumes"):
            response = await client.get(f"http://{server.address}{path}")
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "server" not in response.headers
            assert "date" in response.headers


async def test_head_sends_no_body() -> None:
    """It has the length of what GET would send, and no body: the next answer follows at once."""
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(
            server.address,
            f"HEAD {URL} HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        )
        head = await reader.readuntil(b"\r\n\r\n")
        following = await reader.readuntil(b"\r\n\r\n")
        assert b"content-length: 0" not in head
        assert following.startswith(b"HTTP/1.1 200 OK")
        writer.close()


@pytest.mark.slow
async def test_a_change_reaches_waiting_readers() -> None:
    """A hundred of them get it, over real connections."""
    sidecar = FakeSidecar()
    idle = len(asyncio.all_tasks())
    async with serving(sidecar) as server:
        connections = [await ask(server.address, waiting_request()) for _ in range(100)]
        await until_tasks(idle + 300)
        sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})]))
        for reader, writer in connections:
            assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
            writer.close()


@pytest.mark.slow
async def test_it_stops_with_a_hundred_waiting_readers() -> None:
    """All are answered, all is closed, and no socket or task is left."""
    sidecar = FakeSidecar()
    tasks, before = asyncio.all_tasks(), open_sockets()
    server = HttpServer(sidecar.app, LOOPBACK, Connections(2048))
    task = asyncio.create_task(server.serve())
    connections = [await ask(server.address, waiting_request()) for _ in range(100)]
    await until_tasks(len(tasks) + 301)
    sidecar.board.close()
    server.stop()
    # Without ends of its own it would wait for the readers, 300 s.
    async with asyncio.timeout(SEEN_S):
        await task
    for reader, writer in connections:
        assert (await reader.readline()) == b"HTTP/1.1 304 Not Modified\r\n"
        assert b"connection: close" in (await reader.read())
        writer.close()
        await writer.wait_closed()
    assert tasks == asyncio.all_tasks()
    assert before == open_sockets()


@pytest.mark.slow
async def test_it_stops_whatever_the_other_end_does(caplog: pytest.LogCaptureFixture) -> None:
    """Idle, half a request, half a body, an answer that nobody reads, a wait that nobody ended.

    Nothing of that is worth a line in the log.
    """
    sidecar = FakeSidecar()
    dirs = {f"/data/d{number}": 50 for number in range(20_000)}
    sidecar.see(whole(0.0, [reading(1, 0.0, dirs)]))
    tasks, before = asyncio.all_tasks(), open_sockets()
    server = HttpServer(sidecar.app, LOOPBACK, Connections(2048))
    task = asyncio.create_task(server.serve())
    stubborn = [
        "",
        "GET / HT",
        "PUT /v1/override HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cr3t-t0k3n\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
        "GET /v1/volumes HTTP/1.1\r\nHost: x\r\n\r\n",
        waiting_request(),
    ]
    connections = [await ask(server.address, text) for text in stubborn]
    await asyncio.sleep(0.5)
    stuck = len(asyncio.all_tasks() - tasks)
    assert stuck >= 6, "the server, the body, the wait's three tasks and the listing"
    server.stop()
    # They would never let it end.
    async with asyncio.timeout(SEEN_S):
        await task
    assert [] == caplog.records
    for _, writer in connections:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    assert tasks == asyncio.all_tasks()
    assert before == open_sockets()


async def test_a_cancelled_server_leaves_nothing() -> None:
    """When the daemon fails, its server ends with it."""
    sidecar = FakeSidecar()
    tasks, before = asyncio.all_tasks(), open_sockets()
    server = HttpServer(sidecar.app, LOOPBACK, Connections(2048))
    task = asyncio.create_task(server.serve())
    _, writer = await ask(server.address, waiting_request())
    await until_tasks(len(tasks) + 4)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    await until(lambda: tasks == asyncio.all_tasks() and before == open_sockets())


@pytest.mark.slow
async def test_readers_that_go_away_leave_nothing() -> None:
    """A hundred connections are cut while they wait: their tasks end."""
    sidecar = FakeSidecar()
    async with serving(sidecar) as server:
        await asyncio.sleep(0.05)
        idle, before = asyncio.all_tasks(), open_sockets()
        connections = [await ask(server.address, waiting_request()) for _ in range(100)]
        await until_tasks(len(idle) + 300)
        for _, writer in connections:
            writer.transport.abort()
        await until(lambda: idle == asyncio.all_tasks() and before == open_sockets())


async def test_signals_are_not_the_servers() -> None:
    """The daemon's handlers stay while it serves, and a signal alone does not stop it."""
    caught: list[int] = []
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, caught.append, signal.SIGTERM)
    try:
        async with serving(FakeSidecar()) as server, httpx.AsyncClient() as client:
            url = f"http://{server.address}/healthz"
            assert (await client.get(url)).status_code == 200
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.3)
            assert (await client.get(url)).status_code == 200
        assert [signal.SIGTERM] == caught
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
