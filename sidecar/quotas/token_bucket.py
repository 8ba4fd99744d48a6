"""The token bucket of KIP-599 as it was adopted: how Kafka throttles controller mutations.

The bucket has up to ``burst`` tokens, samples x window x rate in Kafka, and is refilled at
``rate``. What is accepted takes its tokens and may leave less than none; the quota is used up while
there are less than none, and the wait is until there are none: -tokens / rate.

Example: a quota of 5 per second with 100 samples of 1 s is a burst of 500. A burst of 560 leaves
-60 tokens: wait 60 / 5 = 12 s.

It starts full. (Kafka's starts at 0 tokens in 1970, and is full by the first refill.) A new rate
counts from the last event on, not from when it was set, as Kafka's; a clock that goes backwards
takes away the tokens that it brings again.

Source: Kafka's TokenBucket, StrictControllerMutationQuota, PermissiveControllerMutationQuota and
ControllerMutationQuotaManager.
"""

from typing import Self

from sidecar.quotas.admission import AT_ONCE, Admission, checked_rate
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.throttle_time import rounded_ms


class TokenBucket:
    """Tokens that are taken and come back. Initially it is full.

    Args:
        rate: tokens per second, above 0.
        burst: how many it has at most, above 0; a new rate fills it in the same time.
        now_ms: when it starts.

    Raises:
        ValueError: one of the first two is not above 0, or not finite.
    """

    __slots__ = ("_burst", "_burst_s", "_rate", "_tokens", "_updated_ms")

    def __init__(self, rate: float, burst: float, now_ms: int) -> None:
        self._rate = checked_rate(rate)
        self._burst = checked_rate(burst)
        self._burst_s = burst / rate
        self._tokens = burst
        self._updated_ms = now_ms

    @classmethod
    def over(cls, window: QuotaWindow, rate: float, now_ms: int) -> Self:
        """As Kafka's: its burst is what comes in all windows of a quota together."""
        burst_s = window.samples * (window.window_ms / 1000.0)
        bucket = cls(rate, burst_s * rate, now_ms)
        # Not divided back from the burst: that rounds, and a new rate would show it.
        bucket._burst_s = burst_s
        return bucket

    def __repr__(self) -> str:
        return (
            f"TokenBucket({self._tokens} of {self._burst} tokens at {self._updated_ms} ms, "
            f"{self._rate} per second)"
        )

    def set_rate(self, rate: float) -> None:
        """A new rate, and the burst that fills in the same time as before."""
        self._rate = checked_rate(rate)
        self._burst = self._burst_s * rate

    def tokens(self, now_ms: int) -> float:
        """How many there are; less than none: the quota is used up."""
        filled = self._tokens + self._rate * ((now_ms - self._updated_ms) / 1000.0)
        self._tokens = min(self._burst, filled)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, amount: float, now_ms: int) -> None:
        """Takes tokens without a check; a negative amount adds them, up to the burst."""
        self._tokens = min(self._burst, self.tokens(now_ms) - amount)

    def throttle_ms(self, now_ms: int) -> int:
        """How long until there are none too few, milliseconds, to the nearest; 0 when there are."""
        tokens = self.tokens(now_ms)
        return rounded_ms(-tokens / self._rate * 1000) if tokens < 0 else 0

    def admit(self, amount: float, now_ms: int, *, strict: bool) -> Admission:
        """Accepts an amount or not: strict by the bucket before it, permissive by that after it."""
        if strict and self.tokens(now_ms) < 0:
            return Admission(accepted=False, throttle_ms=self.throttle_ms(now_ms))
        self.take(amount, now_ms)
        if strict:
            return AT_ONCE
        return Admission(accepted=True, throttle_ms=self.throttle_ms(now_ms))
