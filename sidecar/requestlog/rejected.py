"""Lines of a request log that can't be read, and why."""

from enum import StrEnum
from typing import Final

import msgspec

LOGGER: Final = "kafka.request.logger"
"""The logger of the request log."""


class RejectedKind(StrEnum):
    """Why a line can't be read."""

    OTHER = "other"
    """The line is of another logger."""
    LAYOUT = "layout"
    """A request, in a layout that is not known."""
    TEXT = "text"
    """A request as Kafka logged it before 2.7, not in JSON."""
    TORN = "torn"
    """The start or the end of the line is missing."""
    DAMAGED = "damaged"
    """The part after "Completed request:" is not JSON."""
    UNEXPECTED = "unexpected"
    """The JSON is not that of a request."""
    TIME = "time"
    """The time can't be parsed."""


class Rejected(msgspec.Struct, frozen=True, gc=False):
    """A line, or a part of it, that can't be read.

    Attributes:
        kind: why it can't be read.
        message: the error, for a person; it contains no text of the line.
    """

    kind: RejectedKind
    message: str
