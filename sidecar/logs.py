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

# Looked up now: a codec's module is read from a file, and what is to be told may be that there are
# no files left.
_ESCAPE: Final = codecs.lookup("unicode_escape").encode


def _timestamp(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def printable(text: str) -> str:
    """A text on one line: what a broker or an operator said begins no other and drives no terminal.

    Example: a line feed comes out as a backslash and an n, an escape as a backslash and x1b.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _ESCAPE(each)[0].decode() for each in text)


class TextFormatter(logging.Formatter):
    """One line for a person, and the traceback of a bug after it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = f"{_timestamp(record)} {record.levelname:<7} {printable(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The object, with what the call gave as ``extra``."""
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
        log_format: for people or for machines.
        level: the least level that is shown, as in ``info``.
        stream: standard error unless given.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("sidecar").setLevel(level.upper())
    # aiokafka tells who logged in with what and repeats what our own lines say of a failure;
    # uvicorn tells of its own start.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.captureWarnings(capture=True)
