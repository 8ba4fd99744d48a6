"""One HTTP request, small enough to be cancelled and bounded.

An asyncio client for token endpoints and other sidecars: no redirect, no proxy, one connection per
request, a bounded answer. Cancelling it leaves no socket and no thread.
"""

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import httptools

LONGEST_ANSWER_BYTES = 64 * 1024


class HttpError(Exception):
    """The answer is not HTTP, or is too long."""


class _Answer:
    """What httptools tells of the answer."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.complete = False

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.complete = True


async def post(
    url: str, *, headers: Mapping[str, str], body: bytes, ssl_context: ssl.SSLContext
) -> tuple[int, bytes]:
    """POST a body and read the answer, of at most 64 KiB; see ``request``."""
    return await request("POST", url, headers=headers, body=body, ssl_context=ssl_context)


async def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    ssl_context: ssl.SSLContext,
    body: bytes = b"",
    longest_answer: int = LONGEST_ANSWER_BYTES,
) -> tuple[int, bytes]:
    """Send a request and read the answer.

    Args:
        method: such as GET.
        url: http or https.
        headers: besides Host, Content-Length and Connection.
        ssl_context: for https.
        body: what is sent.
        longest_answer: bytes, with its head.

    Returns:
        The status and the body.

    Raises:
        OSError: of the network or of TLS.
        HttpError: the answer is not HTTP, too long, or ends early.
    """
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    reader, writer = await asyncio.open_connection(
        parts.hostname,
        parts.port or (443 if secure else 80),
        ssl=ssl_context if secure else None,
        limit=LONGEST_ANSWER_BYTES,
    )
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {parts.netloc.rpartition('@')[2]}",
            f"Content-Length: {len(body)}",
            "Connection: close",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        writer.write("\r\n".join((*lines, "", "")).encode("latin-1") + body)
        return await _read_answer(reader, longest_answer)
    finally:
        # Not closed politely: a peer that hangs would be waited for.
        writer.transport.abort()


async def _read_answer(reader: asyncio.StreamReader, longest: int) -> tuple[int, bytes]:
    answer = _Answer()
    parser = httptools.HttpResponseParser(answer)
    length = 0
    while not answer.complete:
        data = await reader.read(LONGEST_ANSWER_BYTES)
        length += len(data)
        if length > longest:
            raise HttpError("the answer is too long")
        try:
            parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise HttpError("the answer is not HTTP") from error
        if not data:
            break
    if not length:
        raise HttpError("no answer")
    return parser.get_status_code(), bytes(answer.body)
