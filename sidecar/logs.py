"""Logging to standard error: for people by default, JSON lines on request.

Example: ``2026-11-21T03:12:30.123Z INFO  throttle factor 1.0 (observation): all 6 volumes ...`` or
``{"time": "2026-11-21T03:12:30.123Z", "level": "info", "logger": "sidecar.control.journal", ...}``.
"""

import codecs
import json
import logging
import sys
import time
from typing import Final, Literal, TextIO

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


def set_up(log_format: Literal["text", "json"], level: str, stream: TextIO | None = None) -> None:
    """Sends all logging to a stream.

    Args:
        log_format: "text" for people, or "json".
        level: the lowest level that is logged, such as "info".
        stream: standard error by default.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
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
