"""One request and its answer over the loop's connections; as the quota callback sends it.

It reads what the sidecar's server sends, in chunks or with a length, and nothing else: with h11 an
hour would take longer.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, whole.

    Attributes:
        status: such as 200.
        headers: by name in lower case.
        body: without its framing.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


async def http_get(
    url: str, headers: Mapping[str, str], timeout_s: float, method: str = "GET", body: bytes = b""
) -> Answer | None:
    """The answer; None when there is none in time, or no whole one."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    host, port = parts.hostname, parts.port
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    fields = {"Host": parts.netloc, "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    exchange = _Exchange(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + body)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            await loop.create_connection(lambda: exchange, host, port)
            return await exchange.answered
    except (OSError, TimeoutError):
        return None
    finally:
        if exchange.transport is not None:
            exchange.transport.abort()


class _Exchange(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self.answered: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.WriteTransport | None = None
        self._request = request
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        answer = _read(self._received)
        if answer is not None and not self.answered.done():
            self.answered.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answered.done():
            self.answered.set_result(None)


def _read(received: bytes) -> Answer | None:
    """What was received as an answer; None while it is not whole."""
    head, ends, body = received.partition(b"\r\n\r\n")
    if not ends:
        return None
    first, *fields = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)
    }
    status = int(first.split()[1])
    if "transfer-encoding" in headers:
        whole = _joined(body)
        return Answer(status, headers, whole) if whole is not None else None
    length = 0 if status == 304 else int(headers["content-length"])
    return Answer(status, headers, body[:length]) if len(body) >= length else None


def _joined(chunks: bytes) -> bytes | None:
    """The content of chunks; None without the last one, which is empty."""
    if not chunks.endswith(b"0\r\n\r\n"):
        return None
    joined, at = [], 0
    while chunks[at : at + 1] != b"0":
        ends = chunks.index(b"\r\n", at)
        length = int(chunks[at:ends], 16)
        joined.append(chunks[ends + 2 : ends + 2 + length])
        at = ends + 2 + length + 2
    return b"".join(joined)
