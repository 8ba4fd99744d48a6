"""uvicorn's HTTP protocol with what it lacks: problem+json, and an end to all that has none.

uvicorn answers bytes that are not HTTP with plain text, reads the head of a request for as long as
the client sends one, waits for a first byte, for a body and for an answer to be read without a
deadline, and disconnects only the last of pipelined requests when its client is gone. Here what
arrives is bounded in bytes and time, and the number of connections too (``connections.py``).

Example: 320 KiB of headers are answered with 431 and the connection is closed; a head that is not
there after 10 s with 408.
"""

import asyncio
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from sidecar.api.body_limit import LARGEST_BODY, TOO_LARGE
from sidecar.api.connections import Connections
from sidecar.api.problems import problem

_MOST_PENDING: Final = 64 * 1024
"""Bytes; the loop hands over at most 256 KiB more at once."""

_PATIENCE_S: Final = 10.0
"""For a head from the connection or its first byte on, and for a body from its head on."""

_UNREAD_S: Final = 30.0
"""For a client that has stopped reading an answer: three times Prometheus's scrape time-out."""

_MOST_AHEAD: Final = 16
"""Requests behind one that is not answered yet."""


class SidecarProtocol(HttpToolsProtocol):
    """One client's connection.

    Attributes:
        all_connections: this and the others, which have a common bound.
    """

    all_connections: ClassVar[Connections]

    _pending = 0
    _body_bytes = 0
    _answering: RequestResponseCycle | None = None
    _in_head = False
    _in_body = False
    _in_next_part = False
    _timer: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Counts the connection, and waits for a head."""
        super().connection_made(transport)
        if self.all_connections.enter(self):
            self._expect()
        else:
            self._refuse(503, "Too many connections are open; try again.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends what is under way: uvicorn ends the last request only, not the one in front."""
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
        """Whether no request is under way, or what is left of it is for the client to read."""
        if self.transport.is_closing():
            return True
        return not self._in_head and not self._in_body and not self._is_answering

    def drop(self) -> None:
        """Closes an idle connection, also one whose client does not read its last answer."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parses what arrived, and counts it until it was good for something."""
        self.all_connections.used(self)
        self._pending += len(data)
        super().data_received(data)
        if self._pending > _MOST_PENDING:
            self._refuse(431, "The head of the request is too large.")
        # Only here: most requests come in one piece, and have nothing to wait for.
        if self._in_head or self._in_body:
            if self._in_next_part:
                self._expect()
        elif self._timer is None and not self._is_answering:
            # An empty line ended uvicorn's own wait, and began no request.
            self._expect()
        self._in_next_part = False

    def pause_writing(self) -> None:
        """Gives the client its time to read."""
        super().pause_writing()
        self._unread = self.loop.call_later(_UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Ends that time."""
        self._has_read()
        super().resume_writing()

    def on_message_begin(self) -> None:
        """Waits for the head."""
        self._in_head = self._in_next_part = True
        self._body_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Starts the request, if its head is one."""
        self._pending = 0
        self._in_head = False
        if self.transport.is_closing():
            # The parser goes on to the end of what arrived.
            return
        if self.parser.get_http_version() == "1.1" and _hosts(self.headers) != 1:
            self._refuse(400, "A request needs one Host header (RFC 9112, section 3.2).")
            return
        self._in_body = self._in_next_part = True
        super().on_headers_complete()
        if len(self.pipeline) > _MOST_AHEAD:
            self.transport.abort()
        elif self.pipeline:
            # uvicorn stops reading now, and without reading nobody sees that the client is gone.
            self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        """Takes a piece of the body, whether or not the request has a use for one."""
        self._pending = 0
        self._body_bytes += len(body)
        if self._body_bytes > LARGEST_BODY:
            self._refuse(413, TOO_LARGE)
        elif not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Waits for nothing but the answer."""
        self._in_body = False
        self._expect_nothing()
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Counts as a use: what is idle is so from here on."""
        self.all_connections.used(self)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - ours says more
        """Answers bytes that are not HTTP."""
        self._refuse(400, "This is not an HTTP request.")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 - uvicorn's own type of an app
        self._answering = cycle
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
            # What follows a request whose answer takes its time is not even read.
            self._expect()
        else:
            self._refuse(408, "The request did not come to its end in 10 s.")

    def _refuse(self, status: int, detail: str) -> None:
        if self.transport.is_closing():
            return
        answering = self._answering
        if answering is not None and (self._is_answering or self._in_body):
            if answering.response_started or answering is not self.cycle or self._in_head:
                # The client would read a second answer as a part of the first, or as the next one.
                self.transport.abort()
                return
            # What the app makes of its request now goes nowhere.
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


def protocol_of(connections: Connections) -> type[SidecarProtocol]:
    """The protocol whose connections count among these."""

    class _Counted(SidecarProtocol):
        all_connections = connections

    return _Counted
