"""Reads the request log of the broker beside this sidecar, and passes its lines to subscribers.

The log is empty until ``kafka.request.logger`` is at DEBUG. A missing file is not an error. If the
file, or most of its requests, can't be read, the reader logs that once, and logs again when it can.

Example: a broker answers alice's INIT_PRODUCER_ID with id 1000001. The reader calls its subscribers
with that line within a quarter of a second, unless it still has older bytes to read.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sidecar.quotas.entities import LONGEST_USER
from sidecar.requestlog.client_usage import Usage
from sidecar.requestlog.layout import Layout
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.rejected import RejectedKind
from sidecar.requestlog.tail import THREADS, Tail
from sidecar.requestlog.tail_read import TailCounts, TailRead, TailSettings

_log = logging.getLogger(__name__)

SILENT_S: Final = 90.0
"""At DEBUG the log gets its first line within this time: the sidecar polls when it starts."""
QUIET_S: Final = 900.0
"""Later it gets lines more often than this, even of an idle broker, unless polls are further
apart."""


class LogReader:
    """Follows one request log.

    Attributes:
        path: the file.
        usage: what each client used since the start.
        behind: how many bytes of the file are not read yet.
        exists: whether the file exists.
    """

    def __init__(self, path: Path, pattern: str | None = None) -> None:
        """Starts without reading; the file ``path`` need not exist.

        Args:
            path: the file.
            pattern: as for ``Layout``.
        """
        self.path = path
        self.usage = Usage()
        self.behind = 0
        self.exists = False
        self._subscribers: list[Callable[[Line], None]] = []
        self._needs: list[Callable[[], bool]] = []
        self._tail = Tail(path)
        self._layout = Layout(pattern, TailSettings().longest_line)
        self._unreadable_logged = False
        self._failure: str | None = None
        self._absent: bool | None = None
        self._silent_since: float | None = None

    def subscribe(self, on_line: Callable[[Line], None], is_needed: Callable[[], bool]) -> None:
        """Adds a subscriber.

        Args:
            on_line: called with each line whose user name has at most ``LONGEST_USER``
                characters. It must not raise.
            is_needed: whether the subscriber may throttle clients because of these lines.
        """
        self._subscribers.append(on_line)
        self._needs.append(is_needed)

    @property
    def counts(self) -> TailCounts:
        """How much was read and dropped."""
        return self._tail.counts

    async def run(self) -> None:
        """Reads until cancelled. After an exception, another run continues at the same position."""
        try:
            while True:
                read = await THREADS.call(self._tail.read)
                self._take(read)
                if not read.more:
                    await asyncio.sleep(self._tail.idle_s)
        finally:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                self._tail.close()

    def _take(self, read: TailRead) -> None:
        self.behind, self.exists = read.behind, read.there
        if read.failure != self._failure:
            self._log_failure(read.failure)
        elif read.failure is None:
            self._log_absence()
            self._log_silence(is_silent=not read.lines)
        for bytes_ in read.lines:
            line = parse(bytes_, self._layout)
            self.usage.record(line)
            if isinstance(line, Line) and len(line.user) <= LONGEST_USER:
                for on_line in self._subscribers:
                    on_line(line)
        if self.usage.is_unreadable != self._unreadable_logged:
            self._log_unreadable()

    def _log_absence(self) -> None:
        # Log only the first absence: later ones are rotations, between two files.
        if self._absent is None and not self.exists:
            _log.info(
                "the request log %s is not there yet, so the sidecar sees no request of this "
                'broker; "throttle-sidecar request-log" turns the log on and shows its path',
                self.path,
            )
        elif self._absent and self.exists:
            _log.info("the request log %s is there now", self.path)
        self._absent = self._absent is not False and not self.exists

    def _log_silence(self, *, is_silent: bool) -> None:
        # At DEBUG, the broker writes a line for each poll of this sidecar.
        if not (is_silent and self.exists and any(needs() for needs in self._needs)):
            self._silent_since = None
            return
        now = asyncio.get_running_loop().time()
        longest_s = QUIET_S if self.counts.lines else SILENT_S
        if self._silent_since is None:
            self._silent_since = now
        elif now >= self._silent_since + longest_s:
            # This silence is not logged again.
            self._silent_since = math.inf
            _log.warning(
                "the request log %s is there, but nothing was written to it for %g s; while "
                "kafka.request.logger is not at DEBUG, the sidecar counts no request and throttles "
                'no user for requests; "throttle-sidecar request-log status" shows the level',
                self.path,
                longest_s,
            )

    def _log_unreadable(self) -> None:
        self._unreadable_logged = self.usage.is_unreadable
        if not self.usage.is_unreadable:
            _log.info("most requests in the request log %s can be read again", self.path)
            return
        kinds = {kind: count for kind, count in self.usage.rejected.items() if count}
        kinds.pop(RejectedKind.OTHER, None)
        _log.warning(
            "most requests in the request log %s can't be read, so the sidecar does not count them "
            "and throttles no user for them; lines that can't be read, by reason: %s; "
            "docs/request-log.md has the layouts that are read",
            self.path,
            ", ".join(f"{kind} {count}" for kind, count in kinds.items()),
        )

    def _log_failure(self, failure: str | None) -> None:
        if failure is None:
            _log.info("the request log %s can be read again", self.path)
        else:
            _log.warning("the request log %s can't be read: %s", self.path, failure)
        self._failure = failure
