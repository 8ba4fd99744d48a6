"""What one run came to, as data: another's operations, and the storm's requests.

Times are seconds from the storm's beginning; what came before it has times below 0. It goes to a
file and back, so that the table and the picture can be made again without measuring again.

Example: an operation that was due 5.0 s after the beginning, was answered 0.1 s later, and whose
topic took its first record after 2 s: ``Operation(5.0, 5.1, 7.0)``.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """Somebody else creates a topic of one partition.

    Attributes:
        due: when it was to be sent, seconds.
        answered: when its answer was there, seconds; None: not while it was watched.
        usable: when the first record in the topic was acknowledged, seconds; None likewise.
        error: why it failed; "" if it did not.
    """

    due: float
    answered: float | None = None
    usable: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the storm for new topics.

    Attributes:
        due: when it was to be sent, seconds.
        asked: topics in it.
        admitted: of these, the topics that Kafka was asked for: all of them where nobody is asked
            before.
        created: topics that were created.
        throttled: topics that Kafka rejected for the quota.
        answered: when all of it was over, seconds; None: it has no answer.
        error: what else went wrong; "" if nothing did.
    """

    due: float
    asked: int
    admitted: int = 0
    created: int = 0
    throttled: int = 0
    answered: float | None = None
    error: str = ""


@dataclass(slots=True)
class Course:
    """What happened.

    Attributes:
        contender: its key.
        storm_s: how long the storm was to last, seconds.
        watched_until: when the watching ended, seconds.
        operations: in the order in which they were due.
        requests: likewise.
        notes: what else has to be known.
    """

    contender: str
    storm_s: float
    watched_until: float = 0.0
    operations: list[Operation] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def save(self, file: Path) -> None:
        """Write it."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> "Course":
        """Read it."""
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        document["operations"] = [Operation(**each) for each in document["operations"]]
        document["requests"] = [Request(**each) for each in document["requests"]]
        return cls(**document)
