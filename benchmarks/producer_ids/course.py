"""What was measured of one variant, as data. It is written to a file and read from it.

Times are seconds of one monotonic clock; figures count from the beginning of the cluster.
"""

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from kafka_lab.series import Series

_SERIES: Final = ("allocated", "counted", "neighbour")


@dataclass(slots=True)
class Course:
    """What happened while one user's clients opened ids.

    Attributes:
        variant: its key.
        brokers: how many there were.
        clients: how many clients the user had.
        began_at: when they began.
        settled_at: from here on it is measured.
        ended_at: when it was over.
        throttled_at: when every sidecar throttled the user; None: never.
        allocated: ids that brokers allocated to the user so far, by their request logs.
        counted: ids that all brokers together remember, by their metric ProducerIdCount.
        neighbour: bytes of another user that brokers acknowledged so far.
        throttle_ms: API -> the longest throttle time in an answer to the user.
        neighbour_throttled_ms: the longest of the neighbour.
    """

    variant: str
    brokers: int
    clients: int
    began_at: float
    settled_at: float
    ended_at: float
    throttled_at: float | None = None
    allocated: Series = field(default_factory=Series)
    counted: Series = field(default_factory=Series)
    neighbour: Series = field(default_factory=Series)
    throttle_ms: dict[str, int] = field(default_factory=dict)
    neighbour_throttled_ms: int = 0

    def save(self, file: Path) -> None:
        """Write it."""
        document: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in _SERIES:
            document[name] = [[round(at, 3), value] for at, value in document[name]]
        file.write_text(json.dumps(document), encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> "Course":
        """Read it."""
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        for name in _SERIES:
            document[name] = Series((at, value) for at, value in document[name])
        return cls(**document)
