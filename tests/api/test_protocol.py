"""What is not HTTP, or never ends, on a real connection."""

import asyncio
import contextlib
import json

import pytest

from tests.api.build import FakeSidecar
from tests.api.test_server import ask, serving, waiting_request


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
    """While an answer is under way the connection is cut, and nothing is mixed into it."""
    async with serving(FakeSidecar()) as server:
        reader, writer = await ask(
            server.address,
            waiting_request().replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n")
            + "0\r\n",
        )
        received = asyncio.create_task(all_of(reader))
        with pytest.raises(ConnectionError):
            await send_for_ever(writer, b"X-A: b\r\n" * 1000)
        writer.close()
        assert b"" == await received


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
    chunked = "chunked" in framing
    part = "10000\r\n" + " " * 65_536 + "\r\n" if chunked else " " * 65_536
    sidecar = FakeSidecar()
    before = sidecar.board.snapshot
    async with serving(sidecar) as server:
        reader, writer = await ask(server.address, head + part + (part if chunked else ""))
        async with asyncio.timeout(5):
            answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"application/problem+json" in answer
        writer.close()
    assert sidecar.board.snapshot is before
