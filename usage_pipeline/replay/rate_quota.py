"""A quota on a sampled rate: how Kafka throttles produce, fetch and request time.

A rate above the limit exceeds the quota. ``throttle_time`` gives the wait, for the time over which
the rate is taken.

Example: with 11 samples of 1 s and a limit of 100 per second, 1,500 recorded at once are a rate of
150 over 10 s. The client waits (150 - 100) / 100 x 10 s = 5 s.

A burst stays in its sample until the whole sample is dropped. In KIP-599's example, a quota of 5
with 100 samples of 1 s and a burst of 560 within a second, the wait is 12 s, but the rate falls
below the quota only after 101 s.

Source: Kafka's ClientQuotaManager and Sensor.
"""

from sidecar.quotas.admission import AT_ONCE, Admission, checked_rate
from sidecar.quotas.rate import QuotaWindow, Rate
from sidecar.quotas.throttle_time import bounded_ms, unbounded_ms


class RateQuota:
    """A limit, and the rate that is compared with it. At the start nothing is recorded.

    Args:
        limit: per second, above 0.
        window: the windows over which the rate is taken.
        most_ms: the longest wait, in milliseconds; None means no bound.

    Raises:
        ValueError: the limit is not above 0, or not finite.
    """

    __slots__ = ("_limit", "_most_ms", "_rate")

    def __init__(self, limit: float, window: QuotaWindow, most_ms: int | None = None) -> None:
        self._limit = checked_rate(limit)
        self._rate = Rate(window)
        self._most_ms = most_ms

    def __repr__(self) -> str:
        return f"RateQuota({self._limit} per second, {self._rate})"

    def set_rate(self, rate: float) -> None:
        """Set a new limit; recorded values stay."""
        self._limit = checked_rate(rate)

    def record(self, value: float, now_ms: int) -> int:
        """Record a value; return how long the client must wait, in milliseconds."""
        self._rate.record(value, now_ms)
        return self.throttle_ms(now_ms)

    def record_unchecked(self, value: float, now_ms: int) -> None:
        """Record a value without a check, as Kafka does with network threads' time."""
        self._rate.record(value, now_ms)

    def rate(self, now_ms: int) -> float:
        """Per second."""
        return self._rate.measure(now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """Return how long a client must wait now, in milliseconds; 0 means no wait."""
        rate, window_ms = self._rate.observe(now_ms)
        if self._most_ms is None:
            return unbounded_ms(rate, self._limit, window_ms)
        return bounded_ms(rate, self._limit, window_ms, self._most_ms)

    def admit(self, amount: float, now_ms: int, *, strict: bool) -> Admission:
        """Accept or reject, in strict mode by the rate before the amount, else by the one after."""
        if not strict:
            return Admission(accepted=True, throttle_ms=self.record(amount, now_ms))
        if self._rate.measure(now_ms) > self._limit:
            return Admission(accepted=False, throttle_ms=self.throttle_ms(now_ms))
        self._rate.record(amount, now_ms)
        return AT_ONCE
