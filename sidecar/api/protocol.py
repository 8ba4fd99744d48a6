"""uvicorn's HTTP protocol with limits on sizes and times, and with problem+json.

uvicorn answers bytes that are not HTTP with plain text. It reads the head of a request without a
limit. It has no deadline for a first byte, for a body, or for a client to read an answer. If a
client leaves, uvicorn ends only the last of its pipelined requests. This protocol adds these
limits, and limits the number of connections (``connections.py``).

Example: 320 KiB of headers are answered with 431, and the connection is closed. A head that is not
complete after 10 s is answered with 408.
"""

import asyncio
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from sidecar.api.body_limit import LARGEST_BODY, TOO_LARGE
from sidecar.api.connections import Connection, Connections
from sidecar.api.problems import problem
from sidecar.api.whole_answers import whole_answers

_MOST_PENDING: Final = 64 * 1024
"""The most bytes of a head. The loop passes at most 256 KiB more at once."""

_PATIENCE_S: Final = 10.0
"""The time for a head since the connection or its first byte, and for a body since its head."""

_UNREAD_S: Final = 30.0
"""The time for a client to read an answer: three times Prometheus's scrape time-out."""

_PROBES: Final = (b"/healthz", b"/readyz")
"""What the kubelet requests, which can't present a certificate."""

_NO_CERTIFICATE: Final = (
    "This sidecar requires a client certificate: present one of a CA in the sidecar's "
    "SIDECAR_HTTP_SSL_CLIENT_CA_FILE."
)

_MOST_AHEAD: Final = 16
"""The most pipelined requests that wait behind the current one."""


class SidecarProtocol(HttpToolsProtocol):
    """One client's connection.

    Attributes:
        all_connections: all connections, which have a common limit.
        requires_certificate: whether all but probes need a client certificate.
        handshake: the connection as it was counted during its TLS handshake; None without TLS.
    """

    all_connections: ClassVar[Connections]
    requires_certificate: ClassVar[bool] = False
    handshake: Connection | None = None

    _pending = 0
    _body_bytes = 0
    _answering: RequestResponseCycle | None = None
    _in_head = False
    _in_body = False
    _in_next_part = False
    _is_anonymous = False
    _timer: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Count the connection, and wait for a head."""
        super().connection_made(transport)
        if self.handshake is not None:
            self.all_connections.leave(self.handshake)
        if self.requires_certificate:
            over = transport.get_extra_info("ssl_object")
            self._is_anonymous = over.getpeercert(binary_form=True) is None
        if self.all_connections.enter(self):
            self._expect()
        else:
            self._refuse(503, "Too many connections are open; try again.")

    def connection_lost(self, exc: Exception | None) -> None:
        """End all requests in progress; uvicorn ends only the last request."""
        self._expect_nothing()
        self._has_read()
        self.all_connections.leave(self)
        answering = self._answering
        if answering is not None and not answering.response_complete:
            answering.disconnected = True
            answering.message_event.set()
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress, except answers that the client has yet to read."""
        if self.transport.is_closing():
            return True
        return not self._in_head and not self._in_body and not self._is_answering

    def drop(self) -> None:
        """Close an idle connection, also if its client does not read the last answer."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse the bytes that arrived, and count them until they complete a head."""
        self.all_connections.mark_used(self)
        self._pending += len(data)
        super().data_received(data)
        if self._pending > _MOST_PENDING:
            self._refuse(431, "The head of the request is too large.")
        # Only here, because most requests come in one piece and need no timer.
        if self._in_head or self._in_body:
            if self._in_next_part:
                self._expect()
        elif self._timer is None and not self._is_answering:
            # An empty line ended uvicorn's own wait, but it began no request.
            self._expect()
        self._in_next_part = False

    def pause_writing(self) -> None:
        """Start the time for the client to read."""
        super().pause_writing()
        self._unread = self.loop.call_later(_UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the time for the client to read."""
        self._has_read()
        super().resume_writing()

    def on_message_begin(self) -> None:
        """Wait for the rest of the head."""
        self._in_head = self._in_next_part = True
        self._body_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start the request if its head is valid."""
        self._pending = 0
        self._in_head = False
        if self.transport.is_closing():
            # The parser continues to the end of the bytes that arrived.
            return
        if self.parser.get_http_version() == "1.1" and _hosts(self.headers) != 1:
            self._refuse(400, "A request needs one Host header (RFC 9112, section 3.2).")
            return
        if self._is_anonymous and self.url.partition(b"?")[0] not in _PROBES:
            self._refuse(403, _NO_CERTIFICATE)
            return
        self._in_body = self._in_next_part = True
        super().on_headers_complete()
        if len(self.pipeline) > _MOST_AHEAD:
            self.transport.abort()
        elif self.pipeline:
            # uvicorn stops reading now, but only reading shows that the client has left.
            self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, even if the request does not need it."""
        self._pending = 0
        self._body_bytes += len(body)
        if self._body_bytes > LARGEST_BODY:
            self._refuse(413, TOO_LARGE)
        elif not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the timer of the body, since the request is complete."""
        self._in_body = False
        self._expect_nothing()
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Mark the connection as used, since it is idle from now on."""
        self.all_connections.mark_used(self)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - ours says more
        """Answer bytes that are not HTTP."""
        self._refuse(400, "This is not an HTTP request.")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 - uvicorn's own type of an app
        self._answering = cycle
        if self.parser.get_http_version() == "1.0":
            app = whole_answers(app)
        super()._start_asgi_task(cycle, app)

    @property
    def _is_answering(self) -> bool:
        return self._answering is not None and not self._answering.response_complete

    def _expect(self) -> None:
        self._expect_nothing()
        self._timer = self.loop.call_later(_PATIENCE_S, self._nothing_came)

    def _expect_nothing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _has_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _nothing_came(self) -> None:
        if not self._in_head and not self._in_body:
            self.transport.close()
        elif self._is_answering and (self._in_head or self._answering is not self.cycle):
            # Bytes behind a request that is not answered yet are not even read.
            self._expect()
        else:
            self._refuse(408, "The request was not complete after 10 s.")

    def _refuse(self, status: int, detail: str) -> None:
        if self.transport.is_closing():
            return
        answering = self._answering
        if answering is not None and (self._is_answering or self._in_body):
            if answering.response_started or answering is not self.cycle or self._in_head:
                # The client would take a second answer for a part of the first, or for the next
                # answer.
                self.transport.abort()
                return
            # The app's answer to this request is no longer sent.
            answering.disconnected = True
            answering.message_event.set()
        response = problem(status, detail, headers={"Connection": "close"})
        headers = [*self.server_state.default_headers, *response.raw_headers]
        lines = [b"%b: %b\r\n" % header for header in headers]
        head = STATUS_LINE[status]
        self.transport.write(b"".join((head, *lines, b"\r\n", bytes(response.body))))
        self.transport.close()


def _hosts(headers: list[tuple[bytes, bytes]]) -> int:
    return sum(name == b"host" for name, _ in headers)


def protocol_of(
    connections: Connections, *, requires_certificate: bool = False
) -> type[SidecarProtocol]:
    """Return the protocol, which counts its connections among the given ones.

    Args:
        connections: all connections.
        requires_certificate: whether all but probes need a client certificate.
    """
    needs = requires_certificate

    class _Counted(SidecarProtocol):
        all_connections = connections
        requires_certificate = needs

    return _Counted
