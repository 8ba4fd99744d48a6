"""How far past its limit a volume may get by the rules, whichever sidecars are alive.

Each volume has a replica of every partition, so that it fills with what all clients send together.
A broker looks at its own volume four times a second, whatever sidecars say, and throttles by that.
From the crossing on the volume gets

- the rate x the time until the broker reads its own volumes again and applies the result;
- one request of each connection, which lands before its pause can begin; the same of one broker's
  connections each time that leaders move, since they are new elsewhere;
- by how much the volumes of the other brokers may lag: these throttle when their own volumes are
  at the limit. Volumes differ by a segment of each partition, since retention deletes whole ones;
- what the pauses let through for as long as the volume violates: of each broker the larger of its
  leak budget and connections x bytes of a request / pause.max;
- after its broker was frozen or killed, the rate x that time. What a replica fetches when it is
  back is no more than others have already: no client's byte is admitted by it. So it is a term of
  its own, for the volume of a broker that has not caught up, and counts for no other.

A sidecar that is away, frozen or wrong is in none of them.

Example: 10 MB/s, 1.5 s to look and throttle, 4 MB of requests, volumes that differ by 6 MB, 1 MB/s
let through, 20 s until space is freed: 15 + 4 + 6 + 20 = 45 MB; 145 MB on the volume of a broker
that was frozen for 10 s and has just fetched what it missed.
"""

from dataclasses import dataclass
from typing import Final

FLOOD: Final = 1.42
"""So many times their rate before all clients together send after a release, at most: the ramp."""
OVERHEAD: Final = 1.05
"""What a record takes on disk of its value, indexes included."""


@dataclass(frozen=True, slots=True)
class Clients:
    """All producers of one kind.

    Attributes:
        connections: to all brokers together.
        request_bytes: the largest request of one.
        bytes_per_s: of all together, while nothing throttles them.
    """

    connections: int
    request_bytes: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Rules:
    """What sidecars and callbacks are set to.

    Attributes:
        interval_s: the longest time between two polls.
        deadline_s: of a poll.
        retry_s: of a callback whose sidecar did not answer.
        look_s: from one look of a broker at its own volumes to the next.
        apply_s: from a look to the first pause by it.
        pause_max_s: the longest pause of a client, but for an emergency.
        leak_ratio: what is let through of the rate before, at the least.
    """

    interval_s: float
    deadline_s: float
    retry_s: float
    look_s: float
    apply_s: float
    pause_max_s: float
    leak_ratio: float

    @property
    def heard_s(self) -> float:
        """From a crossing to the first pause by a sidecar's word, at most."""
        return self.interval_s + self.deadline_s + self.retry_s

    @property
    def eyes_s(self) -> float:
        """From a crossing to the first pause by the broker's own volumes, at most."""
        return self.look_s + self.apply_s


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of one cluster.

    Attributes:
        rules: see there.
        clients: of each kind.
        brokers: how many there are.
        apart_bytes: by how much their volumes differ.
    """

    rules: Rules
    clients: tuple[Clients, ...]
    brokers: int
    apart_bytes: int

    @property
    def rate(self) -> float:
        """What a volume gets while nothing is throttled, at most, bytes a second."""
        return FLOOD * OVERHEAD * sum(each.bytes_per_s for each in self.clients)

    @property
    def once(self) -> float:
        """One request of each connection, bytes."""
        return float(sum(each.connections * each.request_bytes for each in self.clients))

    @property
    def leak(self) -> float:
        """What the pauses let through, bytes a second.

        The sum of both terms: brokers share neither connections nor budgets alike.
        """
        return self.rules.leak_ratio * self.rate + self.once / self.rules.pause_max_s

    def bytes(self, violates_s: float, moves: int = 0, behind_s: float = 0.0) -> float:
        """How far past its limit a volume may get, bytes.

        Args:
            violates_s: for how long it is at its limit, seconds.
            moves: how often the leaders of a broker move meanwhile.
            behind_s: for how long its broker was away that has not caught up, seconds.
        """
        return (
            self.rate * (self.rules.eyes_s + behind_s)
            + self.once * (1 + moves / self.brokers)
            + self.apart_bytes
            + self.leak * violates_s
        )

    def __str__(self) -> str:
        return (
            f"{self.rate / 1e6:.1f} MB/s x {self.rules.eyes_s:g} s "
            f"+ {self.once / 1e6:.1f} MB of requests, and a part again for leaders that move "
            f"+ {self.apart_bytes / 1e6:.1f} MB between volumes "
            f"+ {self.leak / 1e6:.2f} MB/s while it violates"
        )
