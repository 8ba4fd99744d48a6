"""Logging to standard error: for people by default, JSON lines on request.

Example: ``2026-11-21T03:12:30.123Z INFO  throttle factor 1.0 (observation): all 6 volumes ...`` or
``{"time": "2026-11-21T03:12:30.123Z", "level": "info", "logger": "sidecar.control.journal", ...}``.

A thread writes the daemon's lines, because standard error may be a pipe that nobody reads. 10,000
lines wait for it, and later ones are counted and lost.
"""

import codecs
import json
import logging
import sys
import time
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from threading import Event
from typing import Final, Literal, TextIO

_log = logging.getLogger(__name__)

_MOST_LINES: Final = 10_000

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

# Looked up at import: Python reads a codec's module from a file, and the message to log can be that
# no more files can be opened.
_ESCAPE: Final = codecs.lookup("unicode_escape").encode


def _timestamp(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def printable(text: str) -> str:
    """Escapes a text from a broker or an operator, so that it stays on its line of the log.

    It can neither begin another line nor control a terminal. Example: a line feed becomes a
    backslash and an n, an escape character a backslash and x1b.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _ESCAPE(each)[0].decode() for each in text)


class TextFormatter(logging.Formatter):
    """One line for people, followed by the traceback of a bug."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats the line."""
        line = f"{_timestamp(record)} {record.levelname:<7} {printable(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object for each line."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats the object, with the call's ``extra``."""
        fields: dict[str, object] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


class _Queued(QueueHandler):
    """Hands each line to a thread that writes it, and never waits."""

    queue: "SimpleQueue[logging.LogRecord | Event]"

    def __init__(self, target: logging.Handler) -> None:
        # Its put may be entered again by a garbage collection that logs; a Queue's would deadlock.
        super().__init__(SimpleQueue())
        self.lost = 0
        _Writer(self, target).start()

    def enqueue(self, record: logging.LogRecord) -> None:
        """Adds a line, or counts it as lost."""
        if self.queue.qsize() < _MOST_LINES:
            self.queue.put(record)
        else:
            self.lost += 1


class _Writer(QueueListener):
    """The thread."""

    def __init__(self, queued: _Queued, target: logging.Handler) -> None:
        super().__init__(queued.queue, target)
        self._queued = queued
        self._reported = 0

    def handle(self, record: logging.LogRecord | Event) -> None:
        """Writes a line, or tells who flushes that all lines before are written.

        When no other line waits, it reports how many were lost.
        """
        flushed = record if isinstance(record, Event) else None
        if not isinstance(record, Event):
            super().handle(record)
        lost = self._queued.lost - self._reported
        if lost and (flushed or self._queued.queue.empty()):
            self._reported += lost
            _log.warning("%d log lines were lost: standard error was not read", lost)
            if flushed:
                # After this line.
                self._queued.queue.put(flushed)
        elif flushed:
            flushed.set()


def set_up(
    log_format: Literal["text", "json"],
    level: str,
    stream: TextIO | None = None,
    *,
    in_thread: bool = False,
) -> None:
    """Sends all logging to a stream.

    Args:
        log_format: "text" for people, or "json".
        level: the lowest level that is logged, such as "info".
        stream: standard error by default.
        in_thread: whether a thread writes the lines. Call ``flush`` before the end then.
    """
    handler: logging.Handler = logging.StreamHandler(stream or sys.stderr)
    if in_thread:
        handler = _Queued(handler)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("sidecar").setLevel(level.upper())
    # aiokafka logs who logged in and how, and repeats failures that our own lines report. uvicorn
    # logs its own start.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.captureWarnings(capture=True)


def flush(timeout_s: float) -> bool:
    """Waits for a thread that writes the lines; returns whether it has written all of them."""
    ends_at = time.monotonic() + timeout_s
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Queued):
            written = Event()
            handler.queue.put(written)
            if not written.wait(max(0.0, ends_at - time.monotonic())):
                return False
    return True
