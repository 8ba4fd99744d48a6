"""Users' allocated producer ids and throttle times in some time, by the brokers' request logs.

Example: two brokers allocated an id each to carol, at 10.2 and 10.7 s: ``allocated`` is 1 at 10.2 s
and 2 at 10.7 s. One throttled her for 1,000 ms with it: ``throttle_ms`` has 1000 for
INIT_PRODUCER_ID.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_lab.series import Series
from sidecar.requestlog.allocated_ids import producer_id
from sidecar.requestlog.line import Line, parse


@dataclass(frozen=True, slots=True)
class LoggedUser:
    """Of one user.

    Attributes:
        allocated: ids so far.
        throttle_ms: API -> the longest throttle time.
    """

    allocated: Series
    throttle_ms: Mapping[str, int]


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
        return sorted(found, key=_logged_s)


def logged_user(lines: Iterable[Line], user: str, begin: float, clock_ahead_s: float) -> LoggedUser:
    """A user's allocated ids and throttle times.

    Args:
        lines: of all brokers, by time.
        user: the principal's name without "User:".
        begin: when nothing had been allocated yet, seconds of the monotonic clock.
        clock_ahead_s: the monotonic clock's seconds less those of the epoch.
    """
    allocated = Series([(begin, 0.0)])
    count = 0
    throttle_ms: dict[str, int] = {}
    for line in lines:
        if line.user == user:
            throttle_ms[line.api] = max(line.throttle_ms, throttle_ms.get(line.api, 0))
            if producer_id(line) is not None:
                count += 1
                # Brokers write local time, as this process has it; two ids of one millisecond are
                # both in the next sample.
                allocated.add(_logged_s(line) + clock_ahead_s, count)
    return LoggedUser(allocated, throttle_ms)


def _logged_s(line: Line) -> float:
    """When a line was logged, seconds of the epoch; Kafka's layout has a time."""
    assert line.time is not None
    return line.time.timestamp()


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
