"""Tenants with known traffic: what each of them sends, and when.

Every record is a request of its own, sent at a planned time. No reported wait is longer than the
pause until the next request of the same connection. So the same traffic can be sent again under
other quotas, as if there were no waits. The full plan has 48 s of traffic, with bursts that overlap
the effects of earlier ones. The quick plan has 8 s with one burst of each tenant.

Three more tenants have no quota: a steady one, one with an hourly job and one with a nightly job,
whose hours and nights take seconds. The pipeline recommends their quotas.

Example: alice's three connections send 3 MB each, 0.3 s apart, every 20 s. Under 350 kB/s the first
waits 0 s, the second (600 - 350) / 350 x 10 s less the 0.3 s, the third 15.1 s; under 700 kB/s only
the third waits, for 2.3 s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

_READ: Final = "bob"


@dataclass(frozen=True, slots=True)
class Send:
    """A planned request.

    Attributes:
        at_s: seconds after the start of the round.
        bytes: the size of the value of its only record.
    """

    at_s: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Tenant:
    """A user and client-id, with the requests of each connection."""

    user: str
    client_id: str
    broker: int
    connections: tuple[tuple[Send, ...], ...]

    @property
    def topic(self) -> str:
        """Return the tenant's topic, which has one partition."""
        return f"{self.user}-{self.client_id}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The traffic of a round.

    Attributes:
        round_s: the length of the round.
        drain_s: the time from its end until every window is empty, and every bucket is full under
            doubled quotas.
        senders: the tenants that send, with their requests.
        created_at_s: when ``CREATOR`` creates topics, in seconds after the start of the round.
        advised: the tenants without quotas. Each of their connections is a job.
    """

    round_s: float
    drain_s: float
    senders: tuple[Tenant, ...]
    created_at_s: tuple[float, ...]
    advised: tuple[Tenant, ...]

    @property
    def excessive(self) -> Tenant:
        """Return the steady tenant, with five times its usual rate for 10 s."""
        steady = self.advised[0]
        sends = tuple(
            Send(send.at_s, send.bytes * 5) for send in steady.connections[0] if send.at_s < 11.0
        )
        return replace(steady, connections=(sends,))

    @property
    def read(self) -> Tenant:
        """Return the tenant whose records ``READER`` reads."""
        return next(tenant for tenant in self.senders if tenant.user == _READ)


def _steps(round_s: float, period_s: float) -> tuple[float, ...]:
    """Return times from 1 s on, as many as fit into the round."""
    return tuple(1.0 + number * period_s for number in range(int((round_s - 1.0) / period_s)))


def _senders(round_s: float, alice_s: float, carol_s: float) -> tuple[Tenant, ...]:
    """Return senders: bursts on three connections, a steady one, and a user with two client-ids."""
    # With a delay between them, so that it is known which of them waits longest.
    bursts = tuple(
        tuple(Send(at_s + 0.3 * number, 3_000_000) for at_s in _steps(round_s, alice_s))
        for number in range(3)
    )
    return (
        Tenant("alice", "etl", 0, bursts),
        Tenant(_READ, "web", 1, (_sends(round_s, 0.1, 50_000),)),
        Tenant("carol", "batch", 2, (_sends(round_s, carol_s, 4_000_000),)),
        Tenant("carol", "app", 2, (_sends(round_s, 0.5, 20_000),)),
    )


def _sends(round_s: float, period_s: float, size: int) -> tuple[Send, ...]:
    return tuple(Send(at_s, size) for at_s in _steps(round_s, period_s))


def _advised(round_s: float, hour_s: float) -> tuple[Tenant, ...]:
    hours = tuple(
        tuple(Send(at_s + 0.1 * number, 300_000) for number in range(20))
        for at_s in _steps(round_s, hour_s)
    )
    night = tuple(Send(round_s / 2 + 0.1 * number, 1_000_000) for number in range(60))
    return (
        Tenant("shop", "steady", 0, (_sends(round_s, 0.1, 100_000),)),
        Tenant("shop-stock", "hourly", 1, hours),
        Tenant("shop-backup", "nightly", 2, (night,)),
    )


FULL: Final = Plan(48.0, 25.0, _senders(48.0, 20.0, 15.0), _steps(48.0, 8.0), _advised(48.0, 15.0))
"""A window has 11 s. A bucket that is overdrawn by 21 fills up to 66 at 6 a second in 15 s."""

QUICK: Final = Plan(8.0, 12.0, _senders(8.0, 7.0, 7.0), (1.0, 5.0), _advised(24.0, 7.0))
"""The same in a sixth of the time. A bucket that is overdrawn by 15 is full after 10 s at most."""

READER: Final = Tenant("dave", "reports", 1, ())
"""The tenant that reads the records of ``Plan.read``."""

CREATOR: Final = "erin"
"""The user that creates topics of ``CREATED_PARTITIONS``."""

CREATED_PARTITIONS: Final = 30

QUOTAS: Final[Mapping[tuple[tuple[str, str], ...], Mapping[str, float]]] = {
    (("user", "alice"),): {"producer_byte_rate": 350_000.0},
    (("user", "bob"),): {"producer_byte_rate": 2_000_000.0},
    (("user", "carol"), ("client-id", "batch")): {"producer_byte_rate": 300_000.0},
    (("user", CREATOR),): {"controller_mutation_rate": 3.0},
}
"""Quotas by entity; three of the four entities exceed theirs."""

USERS: Final[Mapping[str, str]] = {
    name: f"{name}-secret"
    for name in ("alice", "bob", "carol", "dave", CREATOR, "shop", "shop-stock", "shop-backup")
}
