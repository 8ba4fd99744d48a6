"""A quota on a sampled rate: how Kafka throttles produce, fetch and request time.

Exceeded is a rate above the limit. The wait is that of ``throttle_time``, over the time that the
rate was taken over.

Example: 11 samples of 1 s, a limit of 100 per second: 1,500 recorded at once are 150 over 10 s,
and the client waits (150 - 100) / 100 x 10 s = 5 s.

A burst stays in its sample until the whole sample is dropped. KIP-599's example, a quota of 5 over
100 samples of 1 s and a burst of 560 within one second, has to wait 12 s and passes after 101.

Source: Kafka's ClientQuotaManager and Sensor.
"""

from sidecar.quotas.admission import AT_ONCE, Admission, checked_rate
from sidecar.quotas.rate import QuotaWindow, Rate
from sidecar.quotas.throttle_time import bounded_ms, unbounded_ms


class RateQuota:
    """A limit and the rate that is compared with it. Initially nothing was recorded.

    Args:
        limit: per second, above 0.
        window: what the rate is taken over.
        most_ms: no wait is longer, milliseconds; None: there is no bound.

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
        """A new limit; what was recorded stays."""
        self._limit = checked_rate(rate)

    def record(self, value: float, now_ms: int) -> int:
        """Counts a value, and returns how long its client must wait, milliseconds."""
        self._rate.record(value, now_ms)
        return self.throttle_ms(now_ms)

    def record_unchecked(self, value: float, now_ms: int) -> None:
        """Counts a value for the checks to come, as Kafka does with network threads' time."""
        self._rate.record(value, now_ms)

    def rate(self, now_ms: int) -> float:
        """Per second."""
        return self._rate.measure(now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """How long a client must wait now, milliseconds; 0 when it need not."""
        rate, window_ms = self._rate.observe(now_ms)
        if self._most_ms is None:
            return unbounded_ms(rate, self._limit, window_ms)
        return bounded_ms(rate, self._limit, window_ms, self._most_ms)

    def admit(self, amount: float, now_ms: int, *, strict: bool) -> Admission:
        """Accepts an amount or not: strict by the rate before it, permissive by that after it."""
        if not strict:
            return Admission(accepted=True, throttle_ms=self.record(amount, now_ms))
        if self._rate.measure(now_ms) > self._limit:
            return Admission(accepted=False, throttle_ms=self.throttle_ms(now_ms))
        self._rate.record(amount, now_ms)
        return AT_ONCE
