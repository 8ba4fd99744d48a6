"""Whether a client's request is accepted, and how long it must wait: what the algorithms share.

Strict is for clients that understand a refusal: what comes while the quota is used up is refused
and not counted; what is accepted may use up more than is left. Permissive is for older clients: all
is accepted and counted, and the client waits afterwards.

Example: a bucket of 10 tokens at 5 per second, and 25 requested twice. Strict: accepted with no
wait, 15 tokens short; refused, to wait 3 s. Permissive: accepted, to wait 3 s; then 8 s.

Source: KIP-599, "Handling of new Clients" and "Handling of old Clients".
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of one request for quota.

    Attributes:
        accepted: whether it was accepted, and counted.
        throttle_ms: how long the client must wait, milliseconds; a refusal may have 0, which is a
            wait of less than half a millisecond.
    """

    accepted: bool
    throttle_ms: int


AT_ONCE: Final = Admission(accepted=True, throttle_ms=0)


class MutationQuota(Protocol):
    """A quota in use: its limit and what was counted against it."""

    def admit(self, amount: float, now_ms: int, *, strict: bool) -> Admission:
        """Accepts an amount or not, and counts it if so."""

    def throttle_ms(self, now_ms: int) -> int:
        """How long a client must wait now, milliseconds; 0 when it need not."""

    def set_rate(self, rate: float) -> None:
        """A new limit per second for all that is decided from now on; raises ValueError."""


def checked_rate(rate: float) -> float:
    """The rate.

    Raises:
        ValueError: it is not above 0, or not finite: neither has a time to wait.
    """
    if not (rate > 0 and math.isfinite(rate)):
        raise ValueError(f"a quota's rate is above 0 and finite, not {rate}")
    return rate
