"""What can be read of a request log, for the person who sets it up.

Example: a log of Strimzi's Kafka 4.0 has 3 requests from 05:06:07 on. All are read, and their times
are in whole seconds and without an offset.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sidecar.requestlog.layout import MARK, Layout, Request
from sidecar.requestlog.line import read
from sidecar.requestlog.rejected import Rejected, RejectedKind

MOST_UNREAD: Final = 0.05
"""The share of requests that may be missing from a log that is read."""
COMPRESSED: Final = re.compile(
    rb"\x1f\x8b|\x28\xb5\x2f\xfd|\xfd7zXZ|BZh\d1AY|PK\x03\x04|\x04\x22\x4d\x18"
)
"""The first bytes of gzip, zstd, xz, bzip2, zip and lz4."""
_LOOKED_AT: Final = 1000
_SHOWN: Final = 120
_NUMBER: Final = re.compile(rb"\d+")


@dataclass(slots=True)
class Examined:
    """A log, line by line.

    Attributes:
        read: the number of requests that could be read.
        rejected: the number of other lines, by kind and reason.
        forms: what is around the first requests, with ``%d`` for the time.
        first: the earliest time; None if no line has a time.
        last: the latest time.
        with_offset: how many of the times have an offset from UTC.
        in_whole_seconds: whether the layout has no fraction of a second; None if that is not known.
        without_time: how many requests have no date and time.
    """

    read: int = 0
    rejected: Counter[tuple[RejectedKind, str]] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    first: datetime | None = None
    last: datetime | None = None
    with_offset: int = 0
    in_whole_seconds: bool | None = None
    without_time: int = 0

    @property
    def others(self) -> int:
        """The number of lines of other loggers."""
        return sum(n for (kind, _), n in self.rejected.items() if kind is RejectedKind.OTHER)

    @property
    def unread(self) -> int:
        """The number of requests that could not be read."""
        return self.rejected.total() - self.others

    @property
    def is_readable(self) -> bool:
        """Whether the log has requests, and at most ``MOST_UNREAD`` of them could not be read."""
        return self.read > 0 and self.unread <= MOST_UNREAD * (self.read + self.unread)


def examine(lines: Iterable[bytes], pattern: str | None = None) -> Examined:
    """Examines the lines of a log, with or without their ends.

    Args:
        lines: the lines.
        pattern: as for ``Layout``.
    """
    found = Examined()
    layout = Layout(pattern)
    for line in lines:
        request = layout.find(line)
        parsed = read(request)
        if isinstance(parsed, Rejected):
            found.rejected[parsed.kind, parsed.message] += 1
            continue
        found.read += 1
        if found.read <= _LOOKED_AT:
            found.forms[_form(line.rstrip(b"\r\n"), request)] += 1
        time = parsed.time
        if time is None:
            found.without_time += 1
            continue
        found.with_offset += time.tzinfo is not None
        # Times with and without an offset can't be compared, so a mixed log shows the first's kind.
        if found.first is None or found.last is None:
            found.first = found.last = time
        elif (found.first.tzinfo is None) == (time.tzinfo is None):
            found.first, found.last = min(found.first, time), max(found.last, time)
    found.in_whole_seconds = layout.in_whole_seconds
    return found


def _form(line: bytes, request: Request | Rejected) -> str:
    """What is around a request, with 0 for other numbers; it has no name of a client."""
    if line.startswith(b"{"):
        return "a JSON object"
    if MARK not in line:
        return "in pieces"
    head, _, rest = line.partition(MARK)
    time = b"" if isinstance(request, Rejected) else request[0]
    before, found, after = head.rpartition(time) if time else (head, b"", b"")
    tail = rest[rest.rfind(b"}") + 1 :]
    start, middle, end = (
        _NUMBER.sub(b"0", part).decode("utf-8", "replace")[:_SHOWN]
        for part in (before, after, tail)
    )
    return f"{start}{'%d' if found else ''}{middle}{MARK.decode()}{{…}}{end}"
