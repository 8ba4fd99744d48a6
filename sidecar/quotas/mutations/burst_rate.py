"""The rate of KIP-599 as first proposed: a burst is spread evenly over the previous windows.

An amount counts as if it had come in equal parts in the current window and in the ``samples - 1``
windows before it. Each window that passes drops one part. The rate is the sum of the remaining
parts, divided by the length of all windows. A request is accepted only if the rate is below the
quota. The wait is (rate - quota) / quota x samples x window.

Example: the quota is 5 per second, with 100 samples of 1 s, and a burst of 560 comes. The rate is
5.6 and the wait (5.6 - 5) / 5 x 100 x 1 s = 12 s. After 12 s, 88 parts of 5.6 remain, a rate of
4.928, and more is accepted. Without the spread, requests would be rejected for 101 s: a
sampled rate keeps the burst until its whole sample is dropped.

Windows begin at multiples of their length since the epoch, and a part is dropped only when its
window has passed. At or just above the quota the formula gives a wait that ends before that. Then
the wait lasts until the first window in which the rate is below the quota. If the clock goes
backwards, time stands still here.

The proposal's quotas controller_mutations_rate and controller_mutations_burst define the number of
samples: burst / rate / window.

Source: KIP-599, version 15 of its page, "Throttling Algorithm". Kafka has never had it.
"""

from bisect import bisect_left
from collections import deque

from sidecar.quotas.admission import AT_ONCE, Admission, checked_rate
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.throttle_time import rounded_ms


class BurstRate:
    """A quota on the spread rate. At the start nothing is recorded.

    Args:
        rate: the quota, per second, above 0.
        window: the samples over which a burst is spread.

    Raises:
        ValueError: the rate is not above 0, or not finite.
    """

    __slots__ = ("_bursts", "_limit", "_newest", "_window")

    def __init__(self, rate: float, window: QuotaWindow) -> None:
        self._limit = checked_rate(rate)
        self._window = window
        # Number of the window -> amount recorded in it; at most as many windows as samples.
        self._bursts: deque[tuple[int, float]] = deque()
        self._newest: int | None = None

    def __repr__(self) -> str:
        return f"BurstRate({self._limit} per second, {self._window}, {len(self._bursts)} bursts)"

    def set_rate(self, rate: float) -> None:
        """Set a new quota over the same samples; recorded amounts stay."""
        self._limit = checked_rate(rate)

    def rate(self, now_ms: int) -> float:
        """Return the rate per second over all windows."""
        return self._rate_in(self._window_at(now_ms))

    def throttle_ms(self, now_ms: int) -> int:
        """Return how long a client must wait now, in milliseconds; 0 means no wait."""
        current = self._window_at(now_ms)
        return self._wait_ms(current, self._rate_in(current), now_ms)

    def admit(self, amount: float, now_ms: int, *, strict: bool) -> Admission:
        """Accept or reject, in strict mode by the rate before the amount, else by the one after."""
        current = self._window_at(now_ms)
        if strict and (rate := self._rate_in(current)) >= self._limit:
            return Admission(accepted=False, throttle_ms=self._wait_ms(current, rate, now_ms))
        self._record(amount, current)
        if strict:
            return AT_ONCE
        rate = self._rate_in(current)
        return Admission(accepted=True, throttle_ms=self._wait_ms(current, rate, now_ms))

    def _record(self, amount: float, current: int) -> None:
        if self._bursts and self._bursts[-1][0] == current:
            amount += self._bursts.pop()[1]
        self._bursts.append((current, amount))

    def _window_at(self, now_ms: int) -> int:
        """Drop bursts without a remaining part; return the number of the current window."""
        current = now_ms // self._window.window_ms
        if self._newest is not None:
            current = max(current, self._newest)
        self._newest = current
        while self._bursts and self._bursts[0][0] <= current - self._window.samples:
            self._bursts.popleft()
        return current

    def _rate_in(self, number: int) -> float:
        """Return the rate in a later window if nothing more is recorded."""
        samples = self._window.samples
        gone = number - samples
        parts = sum(amount * (burst - gone) for burst, amount in self._bursts if burst > gone)
        return parts / samples / (self._window.span_ms / 1000)

    def _wait_ms(self, current: int, rate: float, now_ms: int) -> int:
        if rate < self._limit:
            return 0
        wait_ms = rounded_ms((rate - self._limit) / self._limit * self._window.span_ms)
        return max(wait_ms, self._below_ms(current) - now_ms)

    def _below_ms(self, current: int) -> int:
        """Return when the first window with a rate below the quota begins, in milliseconds."""
        later = range(current, current + self._window.samples + 1)
        first = bisect_left(later, True, key=lambda number: self._rate_in(number) < self._limit)
        return later[first] * self._window.window_ms
