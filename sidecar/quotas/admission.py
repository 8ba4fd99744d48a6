"""The result of a request for quota, and the interface that the quota algorithms share.

Strict mode is for clients that understand a rejection. A request that comes while the quota is used
up is rejected and not counted. An accepted request may use more than the quota has left. Permissive
mode is for older clients: every request is accepted and counted, and the client waits afterwards.

Example: a bucket has 10 tokens and gets 5 a second; a client asks for 25 tokens twice. In strict
mode the first request is accepted without a wait and leaves -15 tokens; the second is rejected with
a wait of 3 s. In permissive mode both are accepted, with waits of 3 s and 8 s.

Source: KIP-599, "Handling of new Clients" and "Handling of old Clients".
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Admission:
    """The result of one request for quota.

    Attributes:
        accepted: whether the request was accepted and counted.
        throttle_ms: how long the client must wait, in milliseconds. A rejection may have 0, which
            is a wait of less than half a millisecond.
    """

    accepted: bool
    throttle_ms: int


AT_ONCE: Final = Admission(accepted=True, throttle_ms=0)


class MutationQuota(Protocol):
    """A quota in use: its limit, and the amounts counted against it."""

    def admit(self, amount: float, now_ms: int, *, strict: bool) -> Admission:
        """Accept an amount and count it, or reject it."""

    def throttle_ms(self, now_ms: int) -> int:
        """Return how long a client must wait now, in milliseconds; 0 means no wait."""

    def set_rate(self, rate: float) -> None:
        """Set the limit per second for later decisions; raises as ``checked_rate`` does."""


def checked_rate(rate: float) -> float:
    """The rate.

    Raises:
        ValueError: it is not above 0, or not finite: neither has a time to wait.
    """
    if not (rate > 0 and math.isfinite(rate)):
        raise ValueError(f"a quota's rate is above 0 and finite, not {rate}")
    return rate
