"""How many HTTP connections there may be, and which one makes room for the next.

Each costs a file, and without files no broker can be asked. So there are fewer than half of them:
when they are all taken the one that was idle longest is closed for the one that comes, and only if
none is idle is the new one refused. A reader that waits for a change is not idle.

Example: of 128 files 64 are for HTTP; 200 connections that say nothing leave 64, and the next
scrape is answered.
"""

import asyncio
import logging
import resource
from typing import Any, Final, Protocol

_log = logging.getLogger(__name__)

_SHARE: Final = 2
"""One in so many of the process's files is for HTTP; the others are for brokers and the state."""

_FEWEST: Final = 8
_MOST: Final = 2048
"""Twice as many as readers may wait; one costs some kilobytes."""

_ROOM_AGAIN: Final = 0.75
"""Of the most: below it the shortage is over, so that one at the edge is logged once."""


class Connection(Protocol):
    """A client's connection."""

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is under way."""

    def drop(self) -> None:
        """Closes it."""


def most_connections(files: int) -> int:
    """How many HTTP connections a process may have by its limit on open files."""
    if files == resource.RLIM_INFINITY:
        return _MOST
    return max(_FEWEST, min(_MOST, files // _SHARE))


class Connections:
    """The open connections of all servers of this process.

    Attributes:
        most: how many there may be.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        # By their last use, the longest unused first.
        self._open: dict[Connection, None] = {}
        self._short = False

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, connection: Connection) -> bool:
        """Counts a new one; whether there is room for it: if not, refuse it."""
        if len(self._open) >= self.most:
            self._log_shortage()
            idle = next((other for other in self._open if other.is_idle), None)
            if idle is None:
                return False
            self.leave(idle)
            idle.drop()
        self._open[connection] = None
        return True

    def used(self, connection: Connection) -> None:
        """Marks one as used just now."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def leave(self, connection: Connection) -> None:
        """Counts one that is closed; more than once is harmless."""
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
"""What asyncio says to its exception handler."""

_LOG_EVERY_S: Final = 60.0


class AcceptErrors:
    """A loop's exception handler that logs once a minute that no connection can be accepted.

    asyncio logs each failed attempt with a traceback, thousands a second.
    """

    def __init__(self) -> None:
        self._logged_at: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Logs an error that nobody awaited."""
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
