"""What one scenario came to, as data: its moments, and its figures over time.

Times are seconds of one monotonic clock. It goes to a file and back, so that tables and pictures
can be made again without measuring again.
"""

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from kafka_lab.series import Series

_SERIES: Final = ("acknowledged", "stored", "available")


@dataclass(frozen=True, slots=True)
class Leak:
    """What one broker let through in a part of the throttled time.

    Attributes:
        seconds: how long that part was.
        bytes: of produce requests appended in it.
        requests: how many those were.
    """

    seconds: float
    bytes: float
    requests: float


@dataclass(slots=True)
class Course:
    """What happened.

    Attributes:
        scenario: its key.
        contender: its key.
        connections: how many producers there were; each has a connection to each broker.
        limit_bytes: available bytes at which a volume violates.
        acknowledged: bytes that producers had acknowledged so far.
        stored: bytes on all volumes together, until space was freed.
        available: of the fullest volume.
        crossed_at: when that reached the limit; None: never.
        freed_at: when its space was freed; None: never.
        longest_throttle_s: the longest throttle time of a client.
        failed_records: records that a client gave up.
        leaks: one for each broker.
        notes: what else has to be known.
    """

    scenario: str
    contender: str
    connections: int
    limit_bytes: int
    acknowledged: Series = field(default_factory=Series)
    stored: Series = field(default_factory=Series)
    available: Series = field(default_factory=Series)
    crossed_at: float | None = None
    freed_at: float | None = None
    longest_throttle_s: float = 0.0
    failed_records: int = 0
    leaks: list[Leak] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def save(self, file: Path) -> None:
        """Write it."""
        document: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in _SERIES:
            document[name] = [[round(at, 3), value] for at, value in document[name]]
        document["leaks"] = [[leak.seconds, leak.bytes, leak.requests] for leak in self.leaks]
        file.write_text(json.dumps(document), encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> "Course":
        """Read it."""
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        for name in _SERIES:
            document[name] = Series((at, value) for at, value in document[name])
        document["leaks"] = [Leak(*each) for each in document["leaks"]]
        return cls(**document)
