"""How far past its limit a volume may get by the rules, where every part sees.

Each volume has a replica of every partition, so that it fills with what all clients send together.
From the crossing on it gets

- the rate x the delays that the rules allow: until the next poll (the interval), until a poll ends
  that waits for a broker's answer in vain (its deadline), until a callback asks its sidecar again
  (its retry);
- one request of each connection, which lands before its pause can begin;
- what the pauses let through for as long as the volume violates: of each broker the larger of its
  leak budget and connections x bytes of a request / pause.max.

Where a broker that runs does not throttle for longer than that, since its sidecar or its callback
is blind, no rule bounds it yet: ``explained`` adds the rate x that time, which says whether
anything else was amiss.

Example: 10 MB/s, delays of 3.5 s, 4 MB of requests, 1 MB/s let through, 20 s until space is freed:
35 + 4 + 20 = 59 MB; with a broker that did not throttle for 5 s, 109 MB.
"""

from dataclasses import dataclass
from typing import Final

FLOOD: Final = 1.2
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
        pause_max_s: the longest pause of a client, but for an emergency.
        leak_ratio: what is let through of the rate before, at the least.
    """

    interval_s: float
    deadline_s: float
    retry_s: float
    pause_max_s: float
    leak_ratio: float

    @property
    def delays_s(self) -> float:
        """From a crossing to the first pause, at most."""
        return self.interval_s + self.deadline_s + self.retry_s


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of one cluster.

    Attributes:
        rules: see there.
        clients: of each kind.
    """

    rules: Rules
    clients: tuple[Clients, ...]

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

    def bytes(self, violates_s: float) -> float:
        """How far past its limit a volume may get that violates for so long, bytes."""
        return self.rate * self.rules.delays_s + self.once + self.leak * violates_s

    def explained(self, violates_s: float, unthrottled_s: float) -> float:
        """The same with a broker that does not throttle for so long beyond the delays."""
        return self.bytes(violates_s) + self.rate * unthrottled_s

    def __str__(self) -> str:
        return (
            f"{self.rate / 1e6:.1f} MB/s x {self.rules.delays_s:.1f} s "
            f"+ {self.once / 1e6:.1f} MB of requests "
            f"+ {self.leak / 1e6:.2f} MB/s while it violates"
        )
