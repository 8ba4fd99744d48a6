"""Reads the request log of the broker beside this sidecar, for whoever subscribes to its lines.

The log is empty until ``kafka.request.logger`` is at DEBUG, and a file that is not there is no
fault. A log that can't be read is reported once, and again when it can.

Example: alice's INIT_PRODUCER_ID is answered with id 1000001: subscribers are called with the line
a quarter of a second later at most, or as much later as the log is behind.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final

from sidecar.quotas.entities import LONGEST_USER
from sidecar.requestlog.client_usage import Usage
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.tail import Tail, follow
from sidecar.requestlog.tail_read import TailCounts, TailRead

_log = logging.getLogger(__name__)

SILENT_S: Final = 90.0
"""A log at DEBUG has lines more often than this, since polls of the sidecar are in it too."""


class LogReader:
    """Follows one log.

    Attributes:
        path: the file.
        usage: who used what since the start.
        behind: bytes that are not read yet.
        exists: whether there is a file.
    """

    def __init__(self, path: Path) -> None:
        """Nothing is read yet; ``path`` need not be there."""
        self.path = path
        self.usage = Usage()
        self.behind = 0
        self.exists = False
        self._subscribers: list[Callable[[Line], None]] = []
        self._needs: list[Callable[[], bool]] = []
        self._tail = Tail(path)
        self._failure: str | None = None
        self._absent: bool | None = None
        self._silent_since: float | None = None
        self._silence_logged = False

    def subscribe(self, on_line: Callable[[Line], None], is_needed: Callable[[], bool]) -> None:
        """Adds a subscriber.

        Args:
            on_line: called with each line whose user's name has at most ``LONGEST_USER``
                characters; must not raise.
            is_needed: whether somebody may be throttled by what the log reports.
        """
        self._subscribers.append(on_line)
        self._needs.append(is_needed)

    @property
    def counts(self) -> TailCounts:
        """What was read and dropped."""
        return self._tail.counts

    async def run(self) -> None:
        """Reads until cancelled."""
        async with aclosing(follow(self._tail)) as reads:
            async for read in reads:
                self._take(read)

    def _take(self, read: TailRead) -> None:
        self.behind, self.exists = read.behind, read.there
        if read.failure != self._failure:
            self._log_failure(read.failure)
        elif read.failure is None:
            self._log_absence()
            self._log_silence()
        for bytes_ in read.lines:
            line = parse(bytes_)
            self.usage.record(line)
            if isinstance(line, Line) and len(line.user) <= LONGEST_USER:
                for on_line in self._subscribers:
                    on_line(line)

    def _log_absence(self) -> None:
        # A rotation is no news: from then on the log is only between two files.
        if self._absent is None and not self.exists:
            _log.info(
                "the request log %s is not there yet, so nothing of this broker's requests is seen;"
                ' "throttle-sidecar request-log" turns it on and shows where it is',
                self.path,
            )
        elif self._absent and self.exists:
            _log.info("the request log %s is there now", self.path)
        self._absent = self._absent is not False and not self.exists

    def _log_silence(self) -> None:
        # A broker at DEBUG writes a line for each of our own polls.
        is_needed = self.exists and any(needs() for needs in self._needs)
        if self._silence_logged or self.counts.lines or not is_needed:
            self._silent_since = None
            return
        now = asyncio.get_running_loop().time()
        if self._silent_since is None:
            self._silent_since = now
        elif now >= self._silent_since + SILENT_S:
            self._silence_logged = True
            _log.warning(
                "the request log %s is there, but nothing was written to it for %g s: while "
                "kafka.request.logger is not at DEBUG no request is counted, and nobody is "
                'throttled for any; "throttle-sidecar request-log status" shows its level',
                self.path,
                SILENT_S,
            )

    def _log_failure(self, failure: str | None) -> None:
        if failure is None:
            _log.info("the request log %s can be read again", self.path)
        else:
            _log.warning("the request log %s can't be read: %s", self.path, failure)
        self._failure = failure
