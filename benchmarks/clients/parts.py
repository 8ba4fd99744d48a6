"""The parts of the measurement: a short throttle of each client alone, a long one of seven at once.

A throttle of 10 minutes for one client after another would take four hours. But a broker's leak
budget is divided by tag sets, and each client has its own client-id, so all of them are throttled
side by side, and disturb each other by what the machine has for them: with all 19 at once two cores
had nothing left for the controller, and brokers were fenced in the middle. Pauses are of a broker's
clients together: one with requests of 1 MB makes those with 10 kB wait for 4 s as well, instead of
1 s. So clients with large requests have one broker, all others the second.

Example: ``LONG.placed([java, franz_go, aiokafka])`` is ``[[[java, aiokafka], [franz_go]]]``: one
run, of two brokers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.clients.clients import Client

_MIB: Final = 1 << 20
_AT_ONCE: Final = 7


@dataclass(frozen=True, slots=True)
class Part:
    """One part.

    Attributes:
        key: short, for names of files.
        is_shared: whether clients share brokers; else each has a broker of its own.
        throttle_s: how long they are throttled, seconds.
        before_s: at full speed before that: longer than a quota window, which is of 11 s.
        after_s: watched after the release.
        start_timeout_s: until each has had a record acknowledged.
        bytes_per_s: of values, each client's.
        volume_bytes: of each broker's volume: with less than 10 minutes until it is full pauses
            would be those of an emergency. It takes memory as it fills.
    """

    key: str
    is_shared: bool
    throttle_s: float
    before_s: float
    after_s: float
    start_timeout_s: float
    bytes_per_s: int
    volume_bytes: int

    def placed(self, clients: Sequence[Client], abreast: int) -> list[list[list[Client]]]:
        """The runs, one after the other: the clients of each broker.

        Args:
            clients: of which each is in one run.
            abreast: how many brokers at once, where each client has its own.
        """
        if self.is_shared:
            starts = range(0, len(clients), _AT_ONCE)
            return [_apart(clients[start : start + _AT_ONCE]) for start in starts]
        own = [[client] for client in clients]
        return [own[start : start + abreast] for start in range(0, len(own), abreast)]


def _apart(clients: Sequence[Client]) -> list[list[Client]]:
    """Those with large requests on a broker of their own."""
    small = [each for each in clients if not each.has_large_requests]
    large = [each for each in clients if each.has_large_requests]
    return [each for each in (small, large) if each]


SHORT: Final = Part("short", False, 75.0, 14.0, 40.0, 60.0, 2_000_000, 4096 * _MIB)
# A backlog of 10 minutes at 2 MB/s is 1.2 GB, and most clients here keep all of it in memory.
LONG: Final = Part("long", True, 600.0, 30.0, 120.0, 240.0, 1_000_000, 12_288 * _MIB)

PARTS: Final = (SHORT, LONG)
