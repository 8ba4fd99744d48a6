"""Prepares every request before its route: treats HEAD as GET, and limits the stated length.

A body with too large a stated length is refused before any of it is read. Any other body is refused
as soon as it becomes too large (``protocol.py``).

Example: a request with Content-Length: 65537 is answered with 413.
"""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sidecar.api.problems import problem

LARGEST_BODY: Final = 64 * 1024
"""In bytes. The only kind of body has about a hundred."""

TOO_LARGE: Final = "The body is too large: at most 64 KiB are read."


class BodyLimitMiddleware:
    """The outermost part of the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the server passes nothing else (``server.py``)."""
        if _stated_length(scope) > LARGEST_BODY:
            await problem(413, TOO_LARGE)(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            # A copy, because the server needs its own scope to know that it must send no body.
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


def _stated_length(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "0")
    # int() refuses more than 4,300 digits.
    return int(length[:20]) if length.isascii() and length.isdigit() else 0
