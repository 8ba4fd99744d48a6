"""What brokers gave and told users in some time, read from their request logs afterwards.

Example: two brokers gave carol an id each, at 10.2 and 10.7 s: ``given`` is 1 at 10.2 s and 2 at
10.7 s. One told her to wait 1,000 ms with it: ``told_ms`` has 1000 for INIT_PRODUCER_ID.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sidecar.demo.series import Series
from sidecar.requestlog.allocated_ids import producer_id
from sidecar.requestlog.line import Line, parse


@dataclass(frozen=True, slots=True)
class Told:
    """Of one user.

    Attributes:
        given: ids so far.
        told_ms: API -> the longest throttle time.
    """

    given: Series
    told_ms: Mapping[str, int]


class RequestLogs:
    """The request logs of all brokers, from a moment on: initially from that of its making."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._begins = {file: _size(file) for file in files}

    def lines(self) -> list[Line]:
        """All since then, by time."""
        found = []
        for file, begin in self._begins.items():
            if file.exists():
                with file.open("rb") as opened:
                    opened.seek(begin)
                    found += [line for line in map(parse, opened) if isinstance(line, Line)]
        return sorted(found, key=lambda line: line.time)


def told(lines: Iterable[Line], user: str, begin: float, clock_ahead_s: float) -> Told:
    """What a user was given and told.

    Args:
        lines: of all brokers, by time.
        user: the principal's name without "User:".
        begin: when nothing had been given yet, seconds of the monotonic clock.
        clock_ahead_s: the monotonic clock's seconds less those of the epoch.
    """
    given = Series([(begin, 0.0)])
    count = 0
    told_ms: dict[str, int] = {}
    for line in lines:
        if line.user == user:
            told_ms[line.api] = max(line.throttle_ms, told_ms.get(line.api, 0))
            if producer_id(line) is not None:
                count += 1
                # Brokers write local time, as this process has it; two ids of one millisecond are
                # both in the next sample.
                given.add(line.time.timestamp() + clock_ahead_s, count)
    return Told(given, told_ms)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
