"""What one arm came to, as data: its limits, and its figures over time.

Times are seconds of one monotonic clock, samples one a second. It goes to a file and back, so that
the table and the picture can be made again without measuring again.
"""

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from kafka_lab.series import Series

_SERIES: Final = ("acknowledged", "available", "factor")


@dataclass(slots=True)
class Course:
    """What happened.

    Attributes:
        arm: its key.
        bytes_per_s: what the producers write while nothing throttles them.
        cleaned_per_s: what is freed, bytes/s.
        horizon_s: the setting.
        soft_bytes: available bytes at which the slope begins; where it would, in an arm without.
        limit_bytes: available bytes at which the volume violates.
        acknowledged: bytes that producers had acknowledged so far.
        available: bytes of the volume.
        factor: the one in force, by the sidecar.
        crossed_at: when the volume was at the soft limit first; None: never.
        longest_throttle_s: the longest throttle time of a client.
        failed_records: records that a client gave up.
        notes: what else has to be known.
    """

    arm: str
    bytes_per_s: float
    cleaned_per_s: float
    horizon_s: float
    soft_bytes: int
    limit_bytes: int
    acknowledged: Series = field(default_factory=Series)
    available: Series = field(default_factory=Series)
    factor: Series = field(default_factory=Series)
    crossed_at: float | None = None
    longest_throttle_s: float = 0.0
    failed_records: int = 0
    notes: list[str] = field(default_factory=list)

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
