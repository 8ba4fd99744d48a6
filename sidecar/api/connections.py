"""Limits the number of HTTP connections, and closes idle ones for new ones.

Each connection needs a file, and without free files the sidecar can't ask brokers. So HTTP gets at
most half of the files. When all HTTP connections are taken, the connection that was idle longest is
closed for the new one. If none is idle, the new connection is refused. A reader that waits for a
change is not idle.

Example: of 128 files, 64 are for HTTP. After 200 clients connected and sent nothing, 64 connections
are left, and the next scrape is still answered.
"""

import asyncio
import logging
import resource
from typing import Any, Final, Protocol

_log = logging.getLogger(__name__)

_SHARE: Final = 2
"""HTTP gets one of this number of files; the other files are for brokers and the state."""

_FEWEST: Final = 8
_MOST: Final = 2048
"""Twice the number of readers that may wait. A connection costs some kilobytes."""

_ROOM_AGAIN: Final = 0.75
"""The share of the maximum below which a shortage is over, so that it is not logged repeatedly."""


class Connection(Protocol):
    """A client's connection."""

    @property
    def is_idle(self) -> bool:
        """Whether the connection has no request in progress."""

    def drop(self) -> None:
        """Closes it."""


def most_connections(files: int) -> int:
    """Return the most HTTP connections of a process, by its limit on open files."""
    if files == resource.RLIM_INFINITY:
        return _MOST
    return max(_FEWEST, min(_MOST, files // _SHARE))


class Connections:
    """The open connections of all servers of this process.

    Attributes:
        most: the maximum number of connections.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        # In the order of their last use, the longest idle first.
        self._open: dict[Connection, None] = {}
        self._short = False

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, connection: Connection) -> bool:
        """Count a new connection. Return whether there is room; otherwise the caller refuses it."""
        if len(self._open) >= self.most:
            self._log_shortage()
            idle = next((other for other in self._open if other.is_idle), None)
            if idle is None:
                return False
            self.leave(idle)
            idle.drop()
        self._open[connection] = None
        return True

    def mark_used(self, connection: Connection) -> None:
        """Mark a connection as just used."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def leave(self, connection: Connection) -> None:
        """Count a closed connection; repeated calls have no effect."""
        self._open.pop(connection, None)
        if self._short and len(self._open) < self.most * _ROOM_AGAIN:
            self._short = False
            _log.info("there is room for HTTP connections again: %d are open", len(self._open))

    def _log_shortage(self) -> None:
        if not self._short:
            self._short = True
            _log.warning(
                "all %d HTTP connections are taken (half of the files that this process may open, "
                "at most %d): closing idle ones for those that come; look for clients that leave "
                "connections open",
                self.most,
                _MOST,
            )


_OUT_OF_FILES: Final = "socket.accept() out of system resource"
"""The message that asyncio passes to its exception handler."""

_LOG_EVERY_S: Final = 60.0


class AcceptErrors:
    """A loop's exception handler that logs once a minute that no connection can be accepted.

    asyncio logs each failed attempt with a traceback, thousands a second.
    """

    def __init__(self) -> None:
        self._logged_at: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error that nobody awaited."""
        if context.get("message") != _OUT_OF_FILES:
            loop.default_exception_handler(context)
            return
        now = loop.time()
        if self._logged_at is None or now >= self._logged_at + _LOG_EVERY_S:
            self._logged_at = now
            _log.warning(
                "no HTTP connection can be accepted: %s; raise the limit on open files",
                context.get("exception"),
            )
