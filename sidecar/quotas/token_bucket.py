"""The token bucket of KIP-599 as adopted: how Kafka throttles controller mutations.

The bucket holds up to a burst of tokens (samples x window x rate) and is refilled at ``rate``. An
accepted amount takes its tokens and may leave a negative number. While the number is negative, the
quota is used up. The wait is the time until it is 0 again: -tokens / rate.

Example: a quota of 5 per second with 100 samples of 1 s allows a burst of 500. A burst of 560
leaves -60 tokens, so the wait is 60 / 5 = 12 s.

The bucket starts full. (Kafka's starts with 0 tokens in 1970, and is full after its first refill.)
A new rate applies from the last event on, not from when it was set, as in Kafka. If the clock goes
backwards, the bucket loses the tokens that it will get again.

Source: Kafka's TokenBucket, StrictControllerMutationQuota, PermissiveControllerMutationQuota and
ControllerMutationQuotaManager.
"""

from sidecar.quotas.admission import AT_ONCE, Admission, checked_rate
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.throttle_time import rounded_ms


class TokenBucket:
    """A token bucket. At the start it is full.

    Args:
        rate: tokens per second, above 0.
        window: the quota's windows. The bucket holds the tokens of all of them together, at most.
        now_ms: the time at the start.

    Raises:
        ValueError: ``rate`` is not above 0, or not finite.
    """

    __slots__ = ("_burst", "_burst_s", "_rate", "_tokens", "_updated_ms")

    def __init__(self, rate: float, window: QuotaWindow, now_ms: int) -> None:
        self._burst_s = window.samples * (window.window_ms / 1000.0)
        self.set_rate(rate)
        self._tokens = self._burst
        self._updated_ms = now_ms

    def __repr__(self) -> str:
        return (
            f"TokenBucket({self._tokens} of {self._burst} tokens at {self._updated_ms} ms, "
            f"{self._rate} per second)"
        )

    def set_rate(self, rate: float) -> None:
        """Set a new rate, and the burst that it fills in the same time as before."""
        self._rate = checked_rate(rate)
        self._burst = self._burst_s * rate

    def tokens(self, now_ms: int) -> float:
        """Return the number of tokens; while it is negative, the quota is used up."""
        filled = self._tokens + self._rate * ((now_ms - self._updated_ms) / 1000.0)
        self._tokens = min(self._burst, filled)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, amount: float, now_ms: int) -> None:
        """Take tokens without a check. A negative amount adds tokens, up to the burst."""
        self._tokens = min(self._burst, self.tokens(now_ms) - amount)

    def throttle_ms(self, now_ms: int) -> int:
        """Return the rounded milliseconds until the number is 0 again; 0 if it is not negative."""
        tokens = self.tokens(now_ms)
        return rounded_ms(-tokens / self._rate * 1000) if tokens < 0 else 0

    def admit(self, amount: float, now_ms: int, *, strict: bool) -> Admission:
        """Accept or reject, in strict mode by the tokens before the amount, else by those after."""
        if strict and self.tokens(now_ms) < 0:
            return Admission(accepted=False, throttle_ms=self.throttle_ms(now_ms))
        self.take(amount, now_ms)
        if strict:
            return AT_ONCE
        return Admission(accepted=True, throttle_ms=self.throttle_ms(now_ms))
