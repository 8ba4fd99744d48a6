"""The tenants of the generated cluster, and the kinds and rates of their requests.

A flow is one client's requests of one kind to one broker. Its share is relative to all lines. Its
rate follows the time of day and has bursts. Both depend only on the clock, so they are the same on
all brokers and for all sizes.

Example: alice's orders-writer has 22 % of the lines, and every 10 minutes a burst of 40 s with
three times the rate.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from usage_pipeline.sample.shapes import (
    BROKER_HEARTBEAT,
    METADATA,
    OFFSET_COMMIT,
    Draw,
    Shape,
    fetch,
    fixed,
    init_producer_id,
    produce,
)

Floats = npt.NDArray[np.float64]
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Flow:
    """One client's requests of one kind.

    Attributes:
        user: the user's name without "User:".
        client_id: the client-id as the client sends it.
        share: the share of lines, relative to the other flows.
        records: about how many bytes of records a request has; 0 for requests without records.
        shape: the form of the lines.
        draw: draws the parts that differ between lines.
        listener: the listener to which the client connects.
        protocol: the protocol of that listener.
        software: the name and version of the client.
        burst_every_s: the interval between bursts; 0 without bursts.
        burst_s: the duration of a burst.
        burst: the rate in a burst, as a multiple of the usual rate.
        brokers: the brokers that the client contacts; None for all.
        clients: the number of client-ids that share the lines; 0 for a single one. The number of
            a client is appended to ``client_id``, and the number of its user to ``user``.
    """

    user: str
    client_id: str
    share: float
    records: int
    shape: Shape
    draw: Draw
    listener: str = "CLIENT"
    protocol: str = "SASL_SSL"
    software: tuple[str, str] = ("apache-kafka-java", "4.1.0")
    burst_every_s: int = 0
    burst_s: int = 0
    burst: float = 1.0
    brokers: tuple[int, ...] | None = None
    clients: int = 0

    @property
    def is_exempt(self) -> bool:
        """Return whether no request quota applies: to acks=0 and to replicas."""
        return self.shape.response == '""' or self.listener == "REPLICATION"

    def activity(self, second: Floats) -> Floats:
        """Return the rate at some seconds since 1970, as a multiple of its mean."""
        day = 1.0 + 0.4 * np.sin(2 * math.pi * (second / _DAY_S) - 2.0)
        if not self.burst_every_s:
            return day
        shift = sum(map(ord, self.user + self.client_id))
        bursting = (second + shift) % self.burst_every_s < self.burst_s
        mean = 1.0 + (self.burst - 1.0) * self.burst_s / self.burst_every_s
        return day * np.where(bursting, self.burst, 1.0) / mean


_RDKAFKA: Final = ("librdkafka", "2.6.0")


def flows(brokers: int, clients: int = 0) -> tuple[Flow, ...]:
    """Return all flows of a cluster, and flows of small tenants with this number of client-ids."""
    small = tuple(replace(flow, clients=clients) for flow in _SMALL_TENANTS if clients)
    return (*_TENANTS, *_replicas(brokers), *small)


_TENANTS: Final = (
    Flow(
        *("alice", "orders-writer", 22, 24_000),
        *produce("orders", 12, -1, partitions=2),
        burst_every_s=600,
        burst_s=40,
        burst=3.0,
    ),
    Flow(*("alice", "orders-audit", 4, 6_000), *produce("audit", 11, 1)),
    Flow(*("bob", "orders-etl", 14, 60_000), *fetch("orders", 17)),
    Flow(
        *("carol", "nightly-export", 8, 200_000),
        *fetch("orders", 12),
        software=_RDKAFKA,
        burst_every_s=900,
        burst_s=120,
        burst=5.0,
    ),
    Flow(*("edge", "telemetry", 12, 800), *produce("metrics", 9, 0), software=_RDKAFKA),
    Flow(
        *("edge", 'sensors "north"', 6, 1_200),
        *produce("metrics", 13, 1),
        burst_every_s=300,
        burst_s=20,
        burst=6.0,
    ),
    Flow(*("dave", "", 3, 9_000), *produce("clicks", 7, -1), software=_RDKAFKA),
    # Its lines have about 8 kB, because a request of many partitions is logged with all of them.
    Flow(*("heidi", "mirror", 0.4, 400_000), *produce("mirrored", 11, -1, partitions=40)),
    Flow(*("bob", "orders-etl", 2, 0), *fixed(OFFSET_COMMIT)),
    Flow(*("alice", "orders-writer", 0.4, 0), *init_producer_id(5)),
    Flow(
        *("frank", "Büro 100%", 0.8, 0),
        *init_producer_id(4),
        burst_every_s=1200,
        burst_s=30,
        burst=8,
    ),
    Flow(*("frank", "Büro 100%", 1.5, 0), *fixed(METADATA), software=_RDKAFKA),
)


_SMALL_TENANTS: Final = (
    Flow(*("tenant-", "app-", 40, 4_000), *produce("shared", 12, -1)),
    Flow(*("tenant-", "app-", 20, 8_000), *fetch("shared", 17)),
)


def _replicas(brokers: int) -> tuple[Flow, ...]:
    followers = tuple(
        Flow(
            "ANONYMOUS",
            f"broker-{replica}-fetcher-0",
            18 / max(1, brokers - 1),
            30_000,
            *fetch("orders", 18, replica),
            listener="REPLICATION",
            protocol="SSL",
            brokers=tuple(other for other in range(brokers) if other != replica),
        )
        for replica in range(brokers)
        if brokers > 1
    )
    heartbeats = Flow(
        *("ANONYMOUS", "1", 1.0, 0),
        *fixed(BROKER_HEARTBEAT),
        listener="CONTROLLER",
        protocol="SSL",
        brokers=(0,),
    )
    return (*followers, heartbeats)
