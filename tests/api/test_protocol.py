"""What is not HTTP, or never ends, on a real connection."""

import asyncio
import contextlib
import json

import pytest

from sidecar.api.connections import Connections
from tests.api.build import FakeSidecar, until
from tests.api.test_server import ask, serving, until_tasks, waiting_request


async def problem_from(reader: asyncio.StreamReader) -> dict[str, object]:
    """The problem document that is read before the connection is closed."""
    async with asyncio.timeout(5):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"x-content-type-options: nosniff" in head
    told: dict[str, object] = json.loads(body)
    assert f"HTTP/1.1 {told['status']} {told['title']}".encode() in head
    return told


async def send_for_ever(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Sends until the other end has had enough; 8 MB at most."""
    for _ in range(8_000_000 // len(piece)):
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)


async def all_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection is closed or cut."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(1000):
            received += piece
    return received


@pytest.mark.parametrize("garbage", ["\x16\x03\x01\x02\x00\x01", "hunter2\r\n\r\n", "GET\r\n\r\n"])
async def test_bytes_that_are_not_http(garbage: str) -> None:
    """A problem document, and the connection is closed."""
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, garbage)
        told = await problem_from(reader)
        assert (400, "This is not an HTTP request.") == (told["status"], told["detail"])
        writer.close()


@pytest.mark.parametrize(
    ("request_text", "status"),
    [("CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400), ("GET /" + "a" * 100_000, 431)],
    ids=["connect", "long"],
)
async def test_a_head_that_is_refused_before_its_end(
    request_text: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A problem document and no traceback: nothing that a stranger sends is a bug of ours."""
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, request_text)
        assert status == (await problem_from(reader))["status"]
        writer.close()
    assert [] == [record.getMessage() for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("piece", ["X-A: b\r\n", "X", "X-A: "])
async def test_a_head_that_does_not_end(piece: str) -> None:
    """431 after some hundred KiB, whether as many headers or as one."""
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, "GET / HTTP/1.1\r\nHost: x\r\n" + piece)
        filler = "X-A: b\r\n" * 1000 if piece.endswith("\n") else "b" * 8000
        sending = asyncio.create_task(send_for_ever(writer, filler.encode()))
        async with asyncio.timeout(5):
            head = await reader.readline()
        assert head == b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
        with pytest.raises(ConnectionError):
            await sending
        writer.close()


async def test_trailers_that_do_not_end() -> None:
    """The request that waits is given up with 431."""
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, chunked(waiting_request()) + "0\r\n")
        received = asyncio.create_task(all_of(reader))
        with pytest.raises(ConnectionError):
            await send_for_ever(writer, b"X-A: b\r\n" * 1000)
        writer.close()
        assert (await received).startswith(b"HTTP/1.1 431 ")


async def test_a_head_that_does_not_end_behind_an_answer() -> None:
    """While an answer is under way the connection is cut, and nothing is mixed into it."""
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, waiting_request() + "GET / HTTP/1.1\r\n")
        received = asyncio.create_task(all_of(reader))
        with pytest.raises(ConnectionError):
            await send_for_ever(writer, b"X-A: b\r\n" * 1000)
        writer.close()
        assert b"" == await received


def chunked(request: str) -> str:
    """The request with a body in chunks, before the first of them."""
    return request.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n")


@pytest.mark.parametrize("waits", [True, False])
async def test_a_body_that_nobody_asked_for(waits: bool) -> None:
    """A GET's body is bounded too: 413 if it waits, and a cut once it is answered."""
    request = waiting_request() if waits else "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, chunked(request))
        received = asyncio.create_task(all_of(reader))
        with pytest.raises(ConnectionError):
            await send_for_ever(writer, b"2000\r\n" + b" " * 8192 + b"\r\n")
        writer.close()
        answer = await received
    assert answer.startswith(b"HTTP/1.1 413 " if waits else b"HTTP/1.1 200 ")
    assert 1 == answer.count(b"HTTP/1.1")


@pytest.mark.parametrize("hosts", ["", "Host: a\r\nHost: b\r\n"], ids=["none", "two"])
async def test_a_request_without_one_host(hosts: str) -> None:
    """400, as RFC 9112, section 3.2, has it; also behind a good request."""
    good = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, good)
        await reader.readuntil(b'{"status":"ok"}')
        writer.write(f"GET /healthz HTTP/1.1\r\n{hosts}\r\n".encode())
        told = await problem_from(reader)
        assert 400 == told["status"]
        assert "one Host header" in str(told["detail"])
        writer.close()


async def test_http_1_0_needs_no_host() -> None:
    """As it has none."""
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, "GET /healthz HTTP/1.0\r\n\r\n")
        assert (await all_of(reader)).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()


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
    """The connection is closed after the time that is given; a request that had begun gets 408."""
    monkeypatch.setattr("sidecar.api.protocol._PATIENCE_S", 0.05)
    sidecar = FakeSidecar()
    before = sidecar.board.snapshot
    async with serving(sidecar) as server:
        reader, writer = await ask(server.address, said)
        async with asyncio.timeout(5):
            received = await all_of(reader)
        assert received.startswith(answer)
        assert bool(answer) == bool(received)
        writer.close()
    assert sidecar.board.snapshot is before


async def test_a_reader_that_waits_is_given_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its wait nor half a head behind it counts as a request that does not come."""
    monkeypatch.setattr("sidecar.api.protocol._PATIENCE_S", 0.05)
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, waiting_request(1) + "GET /heal")
        async with asyncio.timeout(5):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 304 ")
            assert (await all_of(reader)).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_a_client_that_goes_with_a_request_behind_one_that_waits() -> None:
    """Its waiting reader goes too: uvicorn alone would hold it up to 300 s."""
    sidecar = FakeSidecar()
    async with serving(sidecar) as server:
        _, writer = await ask(server.address, waiting_request() + waiting_request())
        await until_tasks(5)
        waiting = len(asyncio.all_tasks())
        writer.transport.abort()
        await until(lambda: len(asyncio.all_tasks()) < waiting - 1)


async def test_idle_connections_make_room_for_one_that_asks() -> None:
    """With every connection taken by who says nothing, the next request is answered."""
    connections = Connections(4)
    async with serving(FakeSidecar(), connections) as server:
        idle = [await ask(server.address, "") for _ in range(10)]
        await until(lambda: len(connections) == 4)
        reader, writer = await ask(server.address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(5):
            assert b"HTTP/1.1 200 OK\r\n" == await reader.readline()
        for each in (writer, *(other for _, other in idle)):
            each.close()


async def test_readers_that_wait_make_no_room() -> None:
    """The one that comes gets 503, and they go on waiting."""
    connections = Connections(2)
    async with serving(FakeSidecar(), connections) as server:
        waiting = [await ask(server.address, waiting_request()) for _ in range(2)]
        await until_tasks(7)
        reader, writer = await ask(server.address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        told = await problem_from(reader)
        assert 503 == told["status"]
        assert not any(other.at_eof() for other, _ in waiting)
        for each in (writer, *(other for _, other in waiting)):
            each.close()


async def test_a_request_to_upgrade_to_http_2_is_answered() -> None:
    """Java's client offers h2c on each request; it gets HTTP/1.1, twice on one connection."""
    upgrade = (
        "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        "Upgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n\r\n"
    )
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(server.address, upgrade)
        for _ in range(2):
            async with asyncio.timeout(5):
                assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
                await reader.readuntil(b'{"status":"ok"}')
            writer.write(upgrade.encode())
        writer.close()


@pytest.mark.parametrize("framing", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
async def test_a_body_that_is_too_large(framing: str) -> None:
    """413 over a real connection, before it is read whole."""
    head = (
        "PUT /v1/override HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cr3t-t0k3n\r\n"
        f"Content-Type: application/json\r\n{framing}\r\n\r\n"
    )
    in_chunks = "chunked" in framing
    part = "10000\r\n" + " " * 65_536 + "\r\n" if in_chunks else " " * 65_536
    sidecar = FakeSidecar()
    before = sidecar.board.snapshot
    async with serving(sidecar) as server:
        reader, writer = await ask(server.address, head + part + (part if in_chunks else ""))
        async with asyncio.timeout(5):
            answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"application/problem+json" in answer
        writer.close()
    assert sidecar.board.snapshot is before
