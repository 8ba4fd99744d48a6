"""Simulated producers: what they want to write, and what they do when they are told to wait.

A patient one (Java) waits on its connection. One that dials anew (librdkafka) gives a connection up
after its time-out, and the next request goes over a new one, which no pause mutes. A hasty one
opens a connection for every request.

A client that had to wait has a backlog, which it then sends as fast as ``CATCH_UP`` allows.

Example: 2 MB/s in requests of 500 kB are four requests a second; after a pause of 5 s twenty more
wait to be sent.
"""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CATCH_UP: Final = 4.0
"""So many times its rate a client sends while it has a backlog."""
LONGEST_BACKLOG_S: Final = 30.0
"""What is older is given up (delivery.timeout.ms)."""


class Patience(StrEnum):
    """What a client does when it is told to wait."""

    PATIENT = "patient"
    DIALS_ANEW = "dials anew"
    HASTY = "hasty"


SOCKET_TIMEOUT_S: Final = 60.0
"""librdkafka's socket.timeout.ms."""
RETRY_BACKOFF_S: Final = 0.1
"""retry.backoff.ms, of clients without an exponential one."""


@dataclass(slots=True)
class Client:
    """A producer to one partition.

    Attributes:
        number: differs for each.
        patience: its kind.
        bytes_per_s: what it wants to write.
        request_bytes: what one request has.
        partition: to which.
        connection: the number of its connection; another one after each dial.
        sent_until: until when everything it wanted to write is written, seconds.
        longest_pause_s: the longest that it was told to wait.
        written_bytes: what was appended, since the start.
    """

    number: int
    patience: Patience
    bytes_per_s: float
    request_bytes: int
    partition: int
    connection: int = 0
    sent_until: float = 0.0
    longest_pause_s: float = 0.0
    written_bytes: int = 0

    def next_s(self, now: float) -> float:
        """How long until its next request, when nothing mutes it, seconds."""
        self.sent_until = max(self.sent_until, now - LONGEST_BACKLOG_S)
        each_s = self.request_bytes / self.bytes_per_s
        return max(self.sent_until + each_s - now, each_s / CATCH_UP)

    def dials(self) -> None:
        """It is about to send a request."""
        if self.patience is Patience.HASTY:
            self.connection += 1

    def refused_s(self, muted_s: float) -> float:
        """How long it says nothing when a request was refused, and its connection is muted."""
        return 0.0 if self.patience is Patience.HASTY else max(muted_s, RETRY_BACKOFF_S)

    def wrote(self) -> None:
        """A request was appended."""
        self.sent_until += self.request_bytes / self.bytes_per_s
        self.written_bytes += self.request_bytes

    def waits_s(self, pause_s: float) -> float:
        """How long it says nothing when it is told to wait; it may have another connection then."""
        self.longest_pause_s = max(self.longest_pause_s, pause_s)
        if self.patience is Patience.HASTY:
            return 0.0
        if self.patience is Patience.DIALS_ANEW and pause_s > SOCKET_TIMEOUT_S:
            self.connection += 1
            return SOCKET_TIMEOUT_S
        return pause_s


def clients(chance: random.Random, partitions: int, *, hasty: bool) -> list[Client]:
    """One of each kind or two, with rates that fill a small volume within minutes."""
    kinds = [Patience.PATIENT, Patience.DIALS_ANEW, *([Patience.HASTY] if hasty else [])]
    rates = [chance.uniform(0.3e6, 3e6) for _ in kinds]
    return [
        _client(chance, number, kind, rate, partitions)
        for number, (kind, rate) in enumerate(zip(kinds, rates, strict=True))
    ]


def hasty_client(chance: random.Random, number: int, partitions: int) -> Client:
    """One more, of those that open a connection for every request."""
    return _client(chance, number, Patience.HASTY, chance.uniform(0.3e6, 3e6), partitions)


def _client(
    chance: random.Random, number: int, kind: Patience, rate: float, partitions: int
) -> Client:
    # One to three requests a second: smaller ones would only take longer to simulate.
    request_bytes = int(rate / chance.uniform(1.0, 3.0))
    return Client(number, kind, rate, request_bytes, chance.randrange(partitions))
