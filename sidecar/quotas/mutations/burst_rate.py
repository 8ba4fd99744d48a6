"""The rate of KIP-599 as it was first proposed: a burst is spread evenly over the previous windows.

What is recorded counts as if it had come in equal parts in this window and the ``samples - 1``
before it, so each window that passes drops one part of it. The rate is the sum of what is left by
all windows together. Something is accepted iff that is below the quota; the wait is
(rate - quota) / quota x samples x window.

Example: a quota of 5 per second with 100 samples of 1 s, a burst of 560: the rate is 5.6, and the
wait (5.6 - 5) / 5 x 100 x 1 s = 12 s. After 12 s 88 parts of 5.6 are left, a rate of 4.928, and
more is accepted. Unspread, it would be refused for 101 s: see ``rate_quota``.

Windows go by the grid of the epoch. Every part is gone by the wait, but none before its window: at
or just above the quota the wait would be shorter than that. Then it is until the window in which
the rate really is below the quota. A clock that goes backwards stands still here.

Its quotas, controller_mutations_rate and controller_mutations_burst, say how many samples there
are: burst / rate / window.

Source: KIP-599, version 15 of its page, "Throttling Algorithm". Kafka has never had it.
"""

from bisect import bisect_left
from collections import deque

from sidecar.quotas.admission import AT_ONCE, Admission, checked_rate
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.throttle_time import rounded_ms


class BurstRate:
    """A quota on the spread rate. Initially nothing was recorded.

    Args:
        rate: the quota, per second, above 0.
        window: the samples that a burst is spread over.

    Raises:
        ValueError: the rate is not above 0, or not finite.
    """

    __slots__ = ("_bursts", "_limit", "_newest", "_window")

    def __init__(self, rate: float, window: QuotaWindow) -> None:
        self._limit = checked_rate(rate)
        self._window = window
        # The window's number -> what came in it: as many as there are samples, at most.
        self._bursts: deque[tuple[int, float]] = deque()
        self._newest: int | None = None

    def __repr__(self) -> str:
        return f"BurstRate({self._limit} per second, {self._window}, {len(self._bursts)} bursts)"

    def set_rate(self, rate: float) -> None:
        """A new quota over the same samples; what was recorded stays."""
        self._limit = checked_rate(rate)

    def rate(self, now_ms: int) -> float:
        """Per second, over all windows."""
        return self._rate_in(self._window_at(now_ms))

    def throttle_ms(self, now_ms: int) -> int:
        """How long a client must wait now, milliseconds; 0 when it need not."""
        current = self._window_at(now_ms)
        return self._wait_ms(current, self._rate_in(current), now_ms)

    def admit(self, amount: float, now_ms: int, *, strict: bool) -> Admission:
        """Accepts an amount or not: strict by the rate before it, permissive by that after it."""
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
        """The number of the window that it is now; what has no part left in it is dropped."""
        current = now_ms // self._window.window_ms
        if self._newest is not None:
            current = max(current, self._newest)
        self._newest = current
        while self._bursts and self._bursts[0][0] <= current - self._window.samples:
            self._bursts.popleft()
        return current

    def _rate_in(self, number: int) -> float:
        """In a window, if nothing more comes until then."""
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
        """When the first window begins in which the rate is below the quota, milliseconds."""
        later = range(current, current + self._window.samples + 1)
        first = bisect_left(later, True, key=lambda number: self._rate_in(number) < self._limit)
        return later[first] * self._window.window_ms
