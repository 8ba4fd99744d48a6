"""Sends one HTTP request and reads the whole answer, up to a size: for peers, tokens and commands.

``_Exchange`` encodes the request and parses the answer with h11, without I/O. ``request`` uses
asyncio; cancelling it leaves no socket and no thread. ``request_blocking`` uses a blocking socket,
for commands that start so often that importing asyncio costs too much. Each request has its own
connection. Redirects and proxies are not followed. An incomplete answer is an error, because the
missing part could change the meaning.

Example: the answer announces 99 bytes, and the connection ends after 20: AnswerCutError.
"""

import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import h11

_NEXT_ADDRESS_S = 0.25
"""When an address of a name has not answered by then, the next one is tried too (RFC 8305)."""
LONGEST_ANSWER_BYTES: Final = 64 * 1024

_PIECE: Final = 16 * 1024
"""Bytes of one read. If they are all chunks of one byte, h11 takes 50 ms for them."""


class HttpError(Exception):
    """The request is not valid HTTP, or the answer is not."""


class AnswerCutError(HttpError):
    """The answer ends early, or is missing."""


class AnswerTooLongError(HttpError):
    """The answer has more bytes than allowed."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer.

    Attributes:
        status: the status code, such as 200.
        reason: the reason phrase; "" if there is none.
        body: the body without its framing.
        date: the header Date; "" without one.
        etag: the header ETag; "" without one.
    """

    status: int
    reason: str
    body: bytes
    date: str = field(default="", compare=False)
    etag: str = field(default="", compare=False)


def failure_of(error: Exception, deadline_s: float) -> str:
    """Describes for a person why a request failed, or why its answer could not be read.

    Args:
        error: an exception of ``request``, or of parsing the answer.
        deadline_s: the deadline of the request, seconds.
    """
    if isinstance(error, TimeoutError):
        return f"no answer within {deadline_s:g} s"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return str(error)


class _Exchange:
    """The bytes of a request and of its answer.

    Attributes:
        host: the host to connect to.
        port: the port to connect to.
        is_secure: whether to use TLS.
        request: the bytes to send.
    """

    def __init__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        longest: int,
        *,
        needs_body: bool = True,
    ) -> None:
        """See ``request`` for the parameters."""
        parts = urlsplit(url)
        self.is_secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.is_secure else 80)
        self._connection = h11.Connection(h11.CLIENT)
        self._longest = longest
        self._needs_body = needs_body
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
            # The exception's message contains the header, which may be a token.
            raise HttpError("the request has characters that HTTP does not allow") from None
        events = (head, h11.Data(data=body), h11.EndOfMessage())
        self.request = b"".join(self._connection.send(event) or b"" for event in events)

    def receive(self, data: bytes) -> Response | None:
        """Takes the next bytes, b"" at the end of the connection.

        Returns:
            The answer when it is whole; None before.

        Raises:
            HttpError: the answer is not HTTP, is too long, or ends early.
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
            is_whole = isinstance(event, h11.EndOfMessage) or not self._needs_body
            if is_whole and self._head is not None:
                reason = self._head.reason.decode("latin-1")
                headers = dict(self._head.headers)
                date, etag = (
                    headers.get(name, b"").decode("latin-1") for name in (b"date", b"etag")
                )
                return Response(self._head.status_code, reason, bytes(self._body), date, etag)
        # h11 would wait for the end of the first line, whatever it contains.
        first, _ = self._connection.trailing_data
        if self._head is None and not b"HTTP/".startswith(first[:5]):
            raise HttpError("the answer is not HTTP")
        return None


def next_address_s(host: str) -> float | None:
    """How long to wait for an address of a host before the next one is tried too, seconds.

    None for an IP address. asyncio races even one address with itself then, and a call that is
    cancelled in between leaves its socket to the garbage collector.
    """
    try:
        ip_address(host)
    except ValueError:
        return _NEXT_ADDRESS_S
    return None


def name_in_certificate(host: str) -> str:
    """The name of a host in certificates and tickets, which have no dot at the end.

    With the dot, a name is looked up as it is, without the search domains of the machine.
    """
    return host.removesuffix(".")


async def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    ssl_context: ssl.SSLContext | None,
    body: bytes = b"",
    longest_answer: int = LONGEST_ANSWER_BYTES,
    address: str | None = None,
    needs_body: bool = True,
) -> Response:
    """Send a request and read the answer; the deadline is the caller's ``asyncio.timeout``.

    Args:
        method: such as GET.
        url: an http or https URL.
        headers: the headers besides Host, Content-Length and Connection.
        ssl_context: for https; None uses the machine's trusted certificates.
        body: the body to send.
        longest_answer: the most bytes of the answer, including its head and framing.
        address: the address to connect to, if the URL's host has several. The certificate must be
            for the host.
        needs_body: whether to read the answer's body; False if its status is enough.

    Raises:
        OSError: the network or TLS failed.
        HttpError: the request is not valid, or the answer is not HTTP, too long, or cut.
        ValueError: the host or port of the URL is not valid.
    """
    import asyncio  # noqa: PLC0415 - importing it takes longer than a blocking request

    exchange = _Exchange(method, url, headers, body, longest_answer, needs_body=needs_body)
    context = None
    if exchange.is_secure:
        context = ssl_context or ssl.create_default_context()
    reader, writer = await asyncio.open_connection(
        address or exchange.host,
        exchange.port,
        ssl=context,
        server_hostname=name_in_certificate(exchange.host) if exchange.is_secure else None,
        limit=_PIECE,
        happy_eyeballs_delay=next_address_s(address or exchange.host),
    )
    try:
        writer.write(exchange.request)
        while (response := exchange.receive(await reader.read(_PIECE))) is None:
            pass
        return response
    finally:
        # Abort: a graceful close would wait for a peer that hangs.
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
    """Like ``request``, without asyncio. Only resolving the host's name can exceed the deadline.

    Args:
        method: such as GET.
        url: an http or https URL.
        headers: the headers besides Host, Content-Length and Connection.
        deadline_s: the deadline for the whole exchange, seconds.
        ssl_context: for https; None uses the machine's trusted certificates.
        body: the body to send.
        longest_answer: the most bytes of the answer, including its head and framing.

    Raises:
        TimeoutError: the answer was not whole at the deadline.
        OSError, HttpError, ValueError: as in ``request``.
    """
    ends_at = time.monotonic() + deadline_s
    exchange = _Exchange(method, url, headers, body, longest_answer)
    connection = _connect(exchange.host, exchange.port, ends_at)
    try:
        if exchange.is_secure:
            context = ssl_context or ssl.create_default_context()
            connection.settimeout(_left(ends_at))
            name = name_in_certificate(exchange.host)
            connection = context.wrap_socket(connection, server_hostname=name)
        connection.settimeout(_left(ends_at))
        connection.sendall(exchange.request)
        while True:
            connection.settimeout(_left(ends_at))
            response = exchange.receive(connection.recv(_PIECE))
            if response is not None:
                return response
    finally:
        connection.close()


def _connect(host: str, port: int, ends_at: float) -> socket.socket:
    """Connect to the first address of a host that answers; they share the time that is left."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failed: OSError = OSError(f"{host} has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        connection = None
        try:
            connection = socket.socket(family, kind, protocol)
            connection.settimeout(_left(ends_at) / (len(addresses) - number))
            connection.connect(address)
        except OSError as error:
            failed = error
            if connection is not None:
                connection.close()
        else:
            return connection
    raise failed


def _left(ends_at: float) -> float:
    left = ends_at - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
