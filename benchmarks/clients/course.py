"""What one client's run came to, as data. Times are seconds since 1970, of one machine's clock.

It goes to a file and back, so that the tables can be made again without measuring again.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Course:
    """What happened.

    Attributes:
        client: its key.
        arm: who throttled, such as "authorizer".
        part: "short" or "long".
        throttle_s: for how long, seconds.
        throttled_at: when the factor became 0.0.
        released_at: when it became 1.0 again.
        ended_at: when the program was told to send nothing more.
        received: bytes that the broker read from its connections in the whole run.
        connections: how many were made in it.
        dialed: (time, connections so far) now and then in the throttle, the first at its beginning.
        refused: produce requests of it that the broker refused; None: nobody counted.
        sent: (time, number) of each record that was handed to the client.
        acknowledged: likewise, of each that the client called written.
        failed: (time, number, error) of each that it called failed.
        landed: (time, partition, number) of each record in the log, in the log's order.
    """

    client: str
    arm: str
    part: str
    throttle_s: float
    throttled_at: float
    released_at: float
    ended_at: float
    received: int = 0
    connections: int = 0
    dialed: list[tuple[float, int]] = field(default_factory=list)
    refused: int | None = None
    sent: list[tuple[float, int]] = field(default_factory=list)
    acknowledged: list[tuple[float, int]] = field(default_factory=list)
    failed: list[tuple[float, int, str]] = field(default_factory=list)
    landed: list[tuple[float, int, int]] = field(default_factory=list)

    def add_reports(self, lines: Iterable[bytes]) -> None:
        """Add what the program reported; its last line may have been cut by its end."""
        for line in lines:
            if not line.startswith(b"{") or not line.endswith(b"}\n"):
                continue
            report = json.loads(line)
            at = report["at"]
            if "sent" in report:
                self.sent.append((at, report["sent"]))
            elif "acknowledged" in report:
                self.acknowledged.append((at, report["acknowledged"]))
            else:
                self.failed.append((at, report["failed"], report["error"]))

    def save(self, file: Path) -> None:
        """Write it."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> "Course":
        """Read it."""
        document = json.loads(file.read_text(encoding="utf-8"))
        for name in ("dialed", "sent", "acknowledged", "failed", "landed"):
            document[name] = [tuple(each) for each in document[name]]
        return cls(**document)
