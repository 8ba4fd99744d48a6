"""uvicorn's HTTP protocol with two things it lacks: problem+json, and an end to what is no request.

uvicorn answers bytes that are not HTTP with plain text, and reads the head of a request for as
long as the client sends one. Here what arrives without completing a head or a piece of a body is
bounded.

Example: 320 KiB of headers are answered with 431 and the connection is closed.
"""

from typing import Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sidecar.api.problems import problem

_MOST_PENDING: Final = 64 * 1024
"""Bytes; the loop hands over at most 256 KiB more at once."""


class SidecarProtocol(HttpToolsProtocol):
    """One client's connection."""

    _pending = 0

    def data_received(self, data: bytes) -> None:
        """Parses what arrived, and counts it until it was good for something."""
        self._pending += len(data)
        super().data_received(data)
        if self._pending > _MOST_PENDING and not self.transport.is_closing():
            self._refuse(431, "The head of the request is too large.")

    def on_headers_complete(self) -> None:
        """Starts the request."""
        self._pending = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Takes a piece of the body."""
        self._pending = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - ours says more
        """Answers bytes that are not HTTP."""
        self._refuse(400, "This is not an HTTP request.")

    def _refuse(self, status: int, detail: str) -> None:
        # None, against its declared type, until the first request has a head that is one.
        cycle = getattr(self, "cycle", None)
        if cycle is not None and not cycle.response_complete:
            # Another answer is under way on this connection: a second would be taken for its part.
            self.transport.abort()
            return
        response = problem(status, detail, headers={"Connection": "close"})
        headers = [*self.server_state.default_headers, *response.raw_headers]
        lines = [b"%b: %b\r\n" % header for header in headers]
        head = STATUS_LINE[status]
        self.transport.write(b"".join((head, *lines, b"\r\n", bytes(response.body))))
        self.transport.close()
