"""What is not HTTP, or never ends, on a real connection."""

import asyncio
import contextlib
import json
import socket

import pytest

from sidecar.api.connections import Connections
from sidecar.metrics.board_collector import build_registry
from sidecar.throttle.memory import Override
from tests.sidecar.api.build import FakeSidecar, until
from tests.sidecar.api.live import (
    HEALTH,
    HEALTHY,
    ask,
    asking,
    serving,
    until_tasks,
    waiting_request,
)
from tests.sidecar.throttle.build import reading, whole
from tests.support.waiting import SEEN_S


async def problem_from(reader: asyncio.StreamReader) -> dict[str, object]:
    """The problem document that is read before the connection is closed."""
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"x-content-type-options: nosniff" in head
    document: dict[str, object] = json.loads(body)
    assert f"HTTP/1.1 {document['status']} {document['title']}".encode() in head
    return document


async def send_for_ever(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Sends until the other end has had enough; 8 MB at most."""
    for _ in range(8_000_000 // len(piece)):
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)


async def all_of(reader: asyncio.StreamReader) -> bytes:
    """All bytes that come until the connection is closed or cut."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(1000):
            received += piece
    return received


@pytest.mark.parametrize("garbage", ["\x16\x03\x01\x02\x00\x01", "hunter2\r\n\r\n", "GET\r\n\r\n"])
async def test_bytes_that_are_not_http(garbage: str) -> None:
    """The answer is a problem document, and the connection is closed."""
    async with asking(garbage) as (reader, _):
        document = await problem_from(reader)
    assert (400, "This is not an HTTP request.") == (document["status"], document["detail"])


@pytest.mark.parametrize(
    ("request_text", "status"),
    [("CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400), ("GET /" + "a" * 100_000, 431)],
    ids=["connect", "long"],
)
async def test_a_head_that_is_refused_before_its_end(
    request_text: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It gets a problem document and no traceback: what a stranger sends is no bug of ours."""
    async with asking(request_text) as (reader, _):
        assert status == (await problem_from(reader))["status"]
    assert [] == [record.getMessage() for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("piece", ["X-A: b\r\n", "X", "X-A: "])
async def test_a_head_that_does_not_end(piece: str) -> None:
    """The answer is 431 after some hundred KiB, whether they are many headers or one."""
    async with asking("GET / HTTP/1.1\r\nHost: x\r\n" + piece) as (reader, writer):
        filler = "X-A: b\r\n" * 1000 if piece.endswith("\n") else "b" * 8000
        sending = asyncio.create_task(send_for_ever(writer, filler.encode()))
        assert b"HTTP/1.1 431 Request Header Fields Too Large\r\n" == await reader.readline()
        with pytest.raises(ConnectionError):
            await sending


async def test_trailers_that_do_not_end() -> None:
    """The request that waits is ended with 431."""
    assert (await answer_to_endless(chunked(waiting_request()) + "0\r\n")).startswith(
        b"HTTP/1.1 431 "
    )


async def test_a_head_that_does_not_end_behind_an_answer() -> None:
    """While an answer is being sent the connection is cut, and nothing is mixed into it."""
    assert b"" == await answer_to_endless(waiting_request() + "GET / HTTP/1.1\r\n")


async def answer_to_endless(begun: str, piece: bytes = b"X-A: b\r\n" * 1000) -> bytes:
    """The answer to a request that begins like this and then has pieces without end."""
    async with asking(begun) as (reader, writer):
        received = asyncio.create_task(all_of(reader))
        with pytest.raises(ConnectionError):
            await send_for_ever(writer, piece)
        return await received


def chunked(request: str) -> str:
    """The request with a body in chunks, before the first of them."""
    return request.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n")


@pytest.mark.parametrize("waits", [True, False])
async def test_a_body_that_nobody_asked_for(waits: bool) -> None:
    """A GET's body is bounded too: 413 if it waits, and a cut once it is answered."""
    request = chunked(waiting_request() if waits else HEALTH)
    answer = await answer_to_endless(request, b"2000\r\n" + b" " * 8192 + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 413 " if waits else b"HTTP/1.1 200 ")
    assert 1 == answer.count(b"HTTP/1.1")


@pytest.mark.parametrize("hosts", ["", "Host: a\r\nHost: b\r\n"], ids=["none", "two"])
async def test_a_request_without_one_host(hosts: str) -> None:
    """The answer is 400, by RFC 9112, section 3.2; also behind a good request."""
    async with asking(HEALTH) as (reader, writer):
        await reader.readuntil(HEALTHY)
        writer.write(f"GET /healthz HTTP/1.1\r\n{hosts}\r\n".encode())
        document = await problem_from(reader)
    assert 400 == document["status"]
    assert "one Host header" in str(document["detail"])


async def test_http_1_0_needs_no_host() -> None:
    """HTTP/1.0 has no such header."""
    async with asking("GET /healthz HTTP/1.0\r\n\r\n") as (reader, _):
        assert (await all_of(reader)).startswith(b"HTTP/1.1 200 OK\r\n")


PUT = (
    "PUT /v1/override HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cr3t-t0k3n\r\n"
    "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("", b""),
        ("GET /", b"HTTP/1.1 408 "),
        ("GET /healthz HTTP/1.1\r\nHost: x\r\nX", b"HTTP/1.1 408 "),
        (PUT, b"HTTP/1.1 408 "),
    ],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
async def test_what_does_not_come_to_its_end(
    said: str, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is closed after its timeout; a request that had begun gets 408."""
    monkeypatch.setattr("sidecar.api.protocol._PATIENCE_S", 0.05)
    sidecar = FakeSidecar()
    before = sidecar.board.snapshot
    async with asking(said, sidecar) as (reader, _):
        received = await all_of(reader)
    assert received.startswith(answer)
    assert bool(answer) == bool(received)
    assert sidecar.board.snapshot is before


@pytest.mark.slow
async def test_a_reader_that_waits_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its wait nor half a head behind it counts as a request that does not come."""
    monkeypatch.setattr("sidecar.api.protocol._PATIENCE_S", 0.05)
    async with asking(waiting_request(1) + "GET /heal") as (reader, _):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 304 ")
        assert (await all_of(reader)).startswith(b"HTTP/1.1 408 ")


@pytest.mark.slow
@pytest.mark.parametrize("later", [False, True])
async def test_a_client_that_goes_with_a_request_behind_one_that_waits(later: bool) -> None:
    """Its waiting reader goes too: uvicorn alone would leave it for 300 s.

    The same when the second comes while the first already waits: reading goes on.
    """
    async with asking(waiting_request() * (1 if later else 2)) as (_, writer):
        await until_tasks(5)
        waiting = len(asyncio.all_tasks())
        if later:
            writer.write(waiting_request().encode())
            await asyncio.sleep(0.1)
        writer.transport.abort()
        await until(lambda: len(asyncio.all_tasks()) < waiting - 1)


@pytest.mark.slow
async def test_requests_ahead_are_bounded() -> None:
    """Sixteen behind one that waits are queued and answered, one more cuts the connection."""
    async with asking(waiting_request(1) + 16 * HEALTH) as (reader, _):
        for _ in range(16):
            await reader.readuntil(HEALTHY)
    async with asking(waiting_request() + 17 * HEALTH) as (reader, _):
        assert b"" == await all_of(reader)


async def test_nothing_is_done_behind_a_request_that_is_refused() -> None:
    """Requests in the same packet are lost with the connection."""
    clear = "DELETE /v1/override HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cr3t-t0k3n\r\n\r\n"
    sidecar = FakeSidecar()
    before = sidecar.board.set_override(Override(0.5, "a migration", 0.0, 3600.0))
    async with asking("GET / HTTP/1.1\r\n\r\n" + clear, sidecar) as (reader, _):
        assert 400 == (await problem_from(reader))["status"]
    assert sidecar.board.snapshot is before


async def test_an_empty_line_after_an_answer_is_no_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It buys the connection a head's time, not an endless one."""
    monkeypatch.setattr("sidecar.api.protocol._PATIENCE_S", 0.05)
    async with asking(HEALTH) as (reader, writer):
        await reader.readuntil(HEALTHY)
        writer.write(b"\r\n")
        assert b"" == await all_of(reader)


def listing(available_bytes: int = 50) -> FakeSidecar:
    """A sidecar whose list of volumes is larger than a socket's buffer: some 9 MB."""
    sidecar = FakeSidecar()
    dirs = {f"/data/d{number}": available_bytes for number in range(40_000)}
    sidecar.see(whole(0.0, [reading(1, 0.0, dirs)]))
    return sidecar


VOLUMES = "GET /v1/volumes HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.slow
async def test_an_answer_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is cut after the time for it, and what made the answer ends."""
    monkeypatch.setattr("sidecar.api.protocol._UNREAD_S", 0.2)
    connections = Connections(4)
    async with serving(listing(), connections) as server:
        idle = asyncio.all_tasks()
        with socket.create_connection(server.address) as client:
            client.sendall(VOLUMES.encode())
            await until(lambda: len(connections) == 1)
            await until(lambda: len(connections) == 0)
            await until(lambda: idle >= asyncio.all_tasks())


@pytest.mark.slow
async def test_an_answer_that_is_read_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads on gets all of it, however long the whole takes."""
    monkeypatch.setattr("sidecar.api.protocol._UNREAD_S", 1.5)
    request = VOLUMES.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
    async with asking(request, listing()) as (reader, _):
        received, last, began = 0, b"", asyncio.get_running_loop().time()
        while piece := await reader.read(500_000):
            received += len(piece)
            last = piece
            await asyncio.sleep(0.06)
        assert last.endswith((b"]}", b"0\r\n\r\n"))
        assert 1.5 < asyncio.get_running_loop().time() - began, f"{received} bytes were too few"


async def test_idle_connections_make_room_for_one_that_asks() -> None:
    """Every connection is taken by who says nothing, and still the next request is answered."""
    connections = Connections(4)
    async with serving(FakeSidecar(), connections) as server:
        idle = [await ask(server.address, "") for _ in range(10)]
        await until(lambda: len(connections) == 4)
        reader, writer = await ask(server.address, HEALTH)
        async with asyncio.timeout(SEEN_S):
            assert b"HTTP/1.1 200 OK\r\n" == await reader.readline()
        for each in (writer, *(other for _, other in idle)):
            each.close()


@pytest.mark.slow
async def test_an_idle_connection_gives_its_file_back_at_once() -> None:
    """A client that does not read gets no more: what was sent to it is not retained."""
    async with serving(listing(available_bytes=5), Connections(1)) as server:
        unread, writer = await ask(
            server.address, "GET /v1/throttle-factor HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        head = await unread.readuntil(b"\r\n\r\n")
        reader, other = await ask(server.address, "GET /healthz HTTP/1.0\r\n\r\n")
        assert (await all_of(reader)).startswith(b"HTTP/1.1 200 ")
        async with asyncio.timeout(SEEN_S):
            body = await all_of(unread)
        for each in (writer, other):
            each.close()
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    assert 0 < len(body) < length


async def test_readers_that_wait_make_no_room() -> None:
    """The one that comes gets 503, and they go on waiting."""
    connections = Connections(2)
    async with serving(FakeSidecar(), connections) as server:
        waiting = [await ask(server.address, waiting_request()) for _ in range(2)]
        await until_tasks(7)
        reader, writer = await ask(server.address, HEALTH)
        assert 503 == (await problem_from(reader))["status"]
        assert not any(other.at_eof() for other, _ in waiting)
        for each in (writer, *(other for _, other in waiting)):
            each.close()


async def test_a_request_to_upgrade_to_http_2_is_answered() -> None:
    """Java's client offers h2c on each request; it gets HTTP/1.1, twice on one connection."""
    upgrade = (
        "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        "Upgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n\r\n"
    )
    async with asking(upgrade) as (reader, writer):
        for _ in range(2):
            assert b"HTTP/1.1 200 OK\r\n" == await reader.readline()
            await reader.readuntil(HEALTHY)
            writer.write(upgrade.encode())


@pytest.mark.parametrize("framing", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
async def test_a_body_that_is_too_large(framing: str) -> None:
    """The answer is 413 over a real connection, before it is read whole."""
    head = (
        "PUT /v1/override HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cr3t-t0k3n\r\n"
        f"Content-Type: application/json\r\n{framing}\r\n\r\n"
    )
    in_chunks = "chunked" in framing
    part = "10000\r\n" + " " * 65_536 + "\r\n" if in_chunks else " " * 65_536
    sidecar = FakeSidecar()
    before = sidecar.board.snapshot
    # One byte more than the limit, and not the end.
    async with asking(head + part + ("1\r\n \r\n" if in_chunks else ""), sidecar) as (reader, _):
        answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"application/problem+json" in answer
    assert sidecar.board.snapshot is before


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/metrics", "/v1/volumes", "/healthz", "/nothing"])
async def test_http_1_0_gets_no_chunks(path: str) -> None:
    """An answer in pieces is sent whole, with its length, and the connection is closed."""
    board = FakeSidecar()
    sidecar = FakeSidecar(board=board.board, registry=build_registry(board.board, board.wall))
    async with asking(f"GET {path} HTTP/1.0\r\n\r\n", sidecar) as (reader, _):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    assert f"content-length: {len(body)}" in head.decode().lower()
    assert body
