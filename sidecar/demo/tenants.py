"""Tenants whose traffic is known: what each of them sends, and when.

Every record is a request of its own, sent at a time that was fixed before. No wait that a broker
tells is longer than the pause until the same connection's next request: so the same traffic comes
again under other quotas, as if nobody had been told to wait.

Example: alice's three connections send 3 MB each, 0.3 s apart, every 20 s. Under 350 kB/s the first
waits 0 s, the second (600 - 350) / 350 x 10 s less the 0.3 s, the third 15.1 s; under 700 kB/s only
the third waits, for 2.3 s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

ROUND_S: Final = 48.0
"""What one round of all traffic takes."""


@dataclass(frozen=True, slots=True)
class Send:
    """A request that is sent.

    Attributes:
        at_s: after the round's begin, seconds.
        bytes: of its one record's value.
    """

    at_s: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who sends.

    Attributes:
        user: who it logs in as.
        client_id: what it calls itself.
        broker: where its topic is.
        connections: what each of them sends.
    """

    user: str
    client_id: str
    broker: int
    connections: tuple[tuple[Send, ...], ...]

    @property
    def topic(self) -> str:
        """Its own, with one partition."""
        return f"{self.user}-{self.client_id}"


def _every(period_s: float, size: int, first_s: float = 1.0) -> tuple[Send, ...]:
    count = int((ROUND_S - first_s) / period_s)
    return tuple(Send(first_s + number * period_s, size) for number in range(count))


SENDERS: Final = (
    # One after the other, so that it is known whose wait is the longest.
    Tenant("alice", "etl", 0, tuple(_every(20.0, 3_000_000, 1.0 + 0.3 * n) for n in range(3))),
    Tenant("bob", "web", 1, (_every(0.1, 50_000),)),
    Tenant("carol", "batch", 2, (_every(15.0, 4_000_000),)),
    Tenant("carol", "app", 2, (_every(0.5, 20_000),)),
)
"""In bursts on three connections, steadily, and one user with two client-ids."""

READ: Final = SENDERS[1]
"""Whose records are read."""

READER: Final = Tenant("dave", "reports", 1, ())
"""Reads them."""

CREATOR: Final = "erin"
"""Creates topics of 30 partitions every 8 s."""

CREATED_PARTITIONS: Final = 30
CREATED_EVERY_S: Final = 8.0

QUOTAS: Final[Mapping[tuple[tuple[str, str], ...], Mapping[str, float]]] = {
    (("user", "alice"),): {"producer_byte_rate": 350_000.0},
    (("user", "bob"),): {"producer_byte_rate": 2_000_000.0},
    (("user", "carol"), ("client-id", "batch")): {"producer_byte_rate": 300_000.0},
    (("user", CREATOR),): {"controller_mutation_rate": 3.0},
}
"""Entity -> quotas; three of the four are over theirs."""

USERS: Final[Mapping[str, str]] = {
    name: f"{name}-secret" for name in ("alice", "bob", "carol", "dave", CREATOR)
}
