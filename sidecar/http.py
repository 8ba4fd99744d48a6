"""One HTTP request and its whole answer, bounded: the client of peers, tokens and commands.

``_Exchange`` frames both with h11 and has no I/O. ``request`` does it on asyncio, and cancelling it
leaves no socket and no thread; ``request_blocking`` does it on a socket, for commands that start so
often that asyncio is not imported for them. One connection a request, no redirect, no proxy. An
answer that is cut is refused: what was left out could change what is there.

Example: 99 bytes are announced, and the connection ends after 20: AnswerCutError.
"""

import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import h11

LONGEST_ANSWER_BYTES: Final = 64 * 1024

_PIECE: Final = 16 * 1024
"""So many bytes are read at a time: as chunks of one byte they cost h11 50 ms."""


class HttpError(Exception):
    """The request can't be HTTP, or the answer is not."""


class AnswerCutError(HttpError):
    """The answer ends early, or there is none."""


class AnswerTooLongError(HttpError):
    """The answer has more bytes than wanted."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, whole.

    Attributes:
        status: such as 200.
        reason: its words; "" when there are none.
        body: without its framing.
    """

    status: int
    reason: str
    body: bytes


def failure_of(error: Exception, deadline_s: float) -> str:
    """Why a request failed, for a person: of what ``request`` raises, or reading its answer.

    Args:
        error: any of them.
        deadline_s: the request's, seconds.
    """
    if isinstance(error, TimeoutError):
        return f"no answer within {deadline_s:g} s"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return str(error)


class _Exchange:
    """A request and its answer, as bytes.

    Attributes:
        host: whom it goes to.
        port: likewise.
        is_secure: whether over TLS.
        request: all that is to be sent.
    """

    def __init__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, longest: int
    ) -> None:
        """See ``request``."""
        parts = urlsplit(url)
        self.is_secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.is_secure else 80)
        self._connection = h11.Connection(h11.CLIENT)
        self._longest = longest
        self._count = 0
        self._head: h11.Response | None = None
        self._body = bytearray()
        fields = {
            "Host": parts.netloc.rpartition("@")[2],
            "Content-Length": str(len(body)),
            "Connection": "close",
            **headers,
        }
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            head = h11.Request(method=method, target=target, headers=list(fields.items()))
        except h11.LocalProtocolError:
            # Its message repeats the header, which may be a token.
            raise HttpError("the request has characters that HTTP does not allow") from None
        events = (head, h11.Data(data=body), h11.EndOfMessage())
        self.request = b"".join(self._connection.send(event) or b"" for event in events)

    def receive(self, data: bytes) -> Response | None:
        """Takes what came, b"" at the connection's end; the answer, once it is whole.

        Raises:
            HttpError: it is not HTTP, is too long, or ends early.
        """
        self._count += len(data)
        if self._count > self._longest:
            raise AnswerTooLongError("the answer is too long")
        try:
            self._connection.receive_data(data)
            return self._read()
        except h11.RemoteProtocolError as error:
            if data:
                raise HttpError("the answer is not HTTP") from error
            message = "the answer ends early" if self._count else "no answer"
            raise AnswerCutError(message) from error

    def _read(self) -> Response | None:
        while (event := self._connection.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                self._head = event
            elif isinstance(event, h11.Data):
                self._body += event.data
            elif isinstance(event, h11.EndOfMessage) and self._head is not None:
                reason = self._head.reason.decode("latin-1")
                return Response(self._head.status_code, reason, bytes(self._body))
        # h11 would wait for the end of any first line.
        first, _ = self._connection.trailing_data
        if self._head is None and not b"HTTP/".startswith(first[:5]):
            raise HttpError("the answer is not HTTP")
        return None


async def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    ssl_context: ssl.SSLContext,
    body: bytes = b"",
    longest_answer: int = LONGEST_ANSWER_BYTES,
    address: str | None = None,
) -> Response:
    """Send a request and read the answer; the deadline is the caller's ``asyncio.timeout``.

    Args:
        method: such as GET.
        url: http or https.
        headers: besides Host, Content-Length and Connection.
        ssl_context: for https.
        body: what is sent.
        longest_answer: bytes, with its head and framing.
        address: where to connect, one of several that the URL's host has; its certificate is for
            the host.

    Raises:
        OSError: of the network or of TLS.
        HttpError: the request can't be sent, or the answer is not HTTP, too long, or cut.
        ValueError: the URL's host or port can't be one.
    """
    import asyncio  # noqa: PLC0415 - takes longer to import than a blocking command to ask

    exchange = _Exchange(method, url, headers, body, longest_answer)
    reader, writer = await asyncio.open_connection(
        address or exchange.host,
        exchange.port,
        ssl=ssl_context if exchange.is_secure else None,
        server_hostname=exchange.host if exchange.is_secure else None,
        limit=_PIECE,
    )
    try:
        writer.write(exchange.request)
        while (response := exchange.receive(await reader.read(_PIECE))) is None:
            pass
        return response
    finally:
        # Not closed politely: a peer that hangs would be waited for.
        writer.transport.abort()


def request_blocking(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    deadline_s: float,
    ssl_context: ssl.SSLContext | None = None,
    body: bytes = b"",
    longest_answer: int = LONGEST_ANSWER_BYTES,
) -> Response:
    """``request`` without asyncio; the resolver of names alone may outlast the deadline.

    Args:
        method: such as GET.
        url: http or https.
        headers: besides Host, Content-Length and Connection.
        deadline_s: for all of it, seconds.
        ssl_context: for https; None trusts what the machine trusts.
        body: what is sent.
        longest_answer: bytes, with its head and framing.

    Raises:
        TimeoutError: the answer was not whole at the deadline; besides what ``request`` raises.
    """
    ends_at = time.monotonic() + deadline_s
    exchange = _Exchange(method, url, headers, body, longest_answer)
    connection = socket.create_connection((exchange.host, exchange.port), _left(ends_at))
    try:
        if exchange.is_secure:
            context = ssl_context or ssl.create_default_context()
            connection.settimeout(_left(ends_at))
            connection = context.wrap_socket(connection, server_hostname=exchange.host)
        connection.settimeout(_left(ends_at))
        connection.sendall(exchange.request)
        while True:
            connection.settimeout(_left(ends_at))
            response = exchange.receive(connection.recv(_PIECE))
            if response is not None:
                return response
    finally:
        connection.close()


def _left(ends_at: float) -> float:
    left = ends_at - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
