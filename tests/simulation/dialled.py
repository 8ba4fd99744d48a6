"""What clients land that open a connection for every request, where brokers have the authorizer.

In one throttle of one broker such a client lands its share of the leak budget: one request while
nothing is owed, and no more than ``LEAK_RATIO`` of the rate before. That rate is at most what all
clients send together that have a backlog.

So past the limit of a volume it lands one request for each throttle of each leader that it has
meanwhile: another leader, a broker that was restarted, and an override that has ended begin one
anew. That is counted, not bounded: the other claims say when a broker has to throttle.

Example: 2 MB/s in requests of 1 MB, all clients together 6 MB/s: in a throttle of a minute it lands
1 MB + 0.01 x 4 x 6 MB/s x 60 s = 15.4 MB at most, where pauses alone let 480 MB pass.
"""

from collections.abc import Sequence
from typing import Final

from tests.simulation.clients import CATCH_UP, Client, Patience
from tests.simulation.volumes import Volume

LEAK_RATIO: Final = 0.01

Throttle = tuple[int, float, int]
"""A leader's number, when its process started, and which throttle of that it is."""


def leaks(clients: Sequence[Client], for_s: float) -> float:
    """What all of them together may leak in some time, bytes."""
    return LEAK_RATIO * CATCH_UP * sum(each.bytes_per_s for each in clients) * for_s


class Dialled:
    """What such clients landed in throttles."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients
        self._in_throttle: dict[tuple[int, int], tuple[Throttle, float, int]] = {}
        self._past: dict[tuple[int, Volume], tuple[float, set[Throttle]]] = {}

    def landed(self, client: Client, throttle: Throttle, now: float) -> str:
        """A request of any client is appended in a throttle; what is wrong, in words, or ""."""
        if client.patience is not Patience.HASTY:
            return ""
        key = client.number, throttle[0]
        last, since, nbytes = self._in_throttle.get(key, (None, now, 0))
        if last != throttle:
            since, nbytes = now, 0
        nbytes += client.request_bytes
        self._in_throttle[key] = throttle, since, nbytes
        may_be = client.request_bytes + leaks(self._clients, now - since)
        if nbytes <= may_be:
            return ""
        return (
            f"client {client.number} dials anew, and landed {nbytes} bytes on broker {throttle[0]}"
            f" in {now - since:.1f} s of a throttle; {may_be:.0f} may be"
        )

    def past(self, client: Client, throttle: Throttle, volume: Volume, since: float) -> None:
        """It lands on a volume that violates since some moment."""
        key = client.number, volume
        if key not in self._past or self._past[key][0] != since:
            self._past[key] = since, set()
        self._past[key][1].add(throttle)

    def at_first(self, client: Client, volume: Volume, since: float | None) -> int:
        """What it may land on that volume while it owes nothing, bytes."""
        began, throttles = self._past.get((client.number, volume), (since, set[Throttle]()))
        return client.request_bytes * len(throttles) if began == since else 0
