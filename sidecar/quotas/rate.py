"""The sampled rate that Kafka compares with produce, fetch and request quotas.

Values go into samples of one window each. The first value after a sample's window opens the next
sample, so samples do not follow a fixed grid. The rate is the sum of all kept samples, divided by
the time since the oldest of them opened. That time is at least ``samples - 1`` windows plus the
elapsed part of the current one, so a first burst within a millisecond does not give an enormous
rate. A sample is dropped when ``samples`` windows have passed since its last value. One sample more
than ``samples`` may therefore exist, and the time may be one window longer.

Example with 11 samples of 1 s: 1,000 recorded at 0 ms are 100 per second at once (over 10 s), 90.9
at 999 ms (over 10.999 s), and 0 at 11,000 ms, when the sample is dropped.

If the clock stands still or goes backwards, the result is the same as Kafka's. A sample in the
future is kept. The time since it opened is negative, and the missing windows compensate for that.
Their number is at most 2^31 - 1. If the clock goes back further (68 years with windows of 1 s), the
rate is taken over 1 ms.

Source: Kafka's Rate, SampledStat and WindowedSum, as of 3.9; earlier ones (3.3) drop a sample when
``samples`` windows have passed since it opened, not since its last value.
"""

import sys
from dataclasses import dataclass
from typing import Final

_INT_MAX: Final = (1 << 31) - 1
_EVER_MS: Final = sys.maxsize
"""A time later than any other."""


@dataclass(frozen=True, slots=True)
class QuotaWindow:
    """The windows of a quota.

    Attributes:
        samples: the number of windows; Kafka's quota.window.num, controller.quota.window.num.
        window_ms: the length of one window, in milliseconds; Kafka's quota.window.size.seconds.

    Raises:
        ValueError: one of them is less than 1.
    """

    samples: int = 11
    window_ms: int = 1000

    def __post_init__(self) -> None:
        if self.samples < 1 or self.window_ms < 1:
            raise ValueError("a quota window is at least 1 sample of 1 ms")

    @property
    def span_ms(self) -> int:
        """The length of all windows together, in milliseconds."""
        return self.samples * self.window_ms


class _Sample:
    """The values of one window."""

    __slots__ = ("last_ms", "opened_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.clear(now_ms)

    def clear(self, now_ms: int) -> None:
        self.total = 0.0
        self.opened_ms = now_ms
        self.last_ms = now_ms


class Rate:
    """A rate per second. At the start nothing is recorded, and the rate is 0."""

    __slots__ = (
        "_current",
        "_idle_since_ms",
        "_oldest_ms",
        "_samples",
        "_span_ms",
        "_window",
        "_window_ms",
    )

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._window_ms = window.window_ms
        self._span_ms = window.span_ms
        self._samples: list[_Sample] = []
        self._current = 0
        # When the oldest sample opened, and the last value of the sample that is without one for
        # the longest time, both as of the last check. A time before all others means "not known",
        # which is so after a new sample has opened.
        self._oldest_ms = self._idle_since_ms = -_EVER_MS

    def __repr__(self) -> str:
        return f"Rate({self._window}, {len(self._samples)} samples)"

    def record(self, value: float, now_ms: int) -> None:
        """Record a value. A negative value takes back an earlier one."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.opened_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.total += value
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """Return the rate per second, over ``window_ms(now_ms)``."""
        return self.observe(now_ms)[0]

    def window_ms(self, now_ms: int) -> int:
        """Return the time over which the rate is taken, at least 1 ms: Kafka's windowSize."""
        return self.observe(now_ms)[1]

    def observe(self, now_ms: int) -> tuple[float, int]:
        """Return ``measure`` and ``window_ms`` together, after dropping old samples."""
        if not self._samples:
            # As in Kafka, measuring also opens the first sample, not only recording.
            self._samples.append(_Sample(now_ms))
        dropped_ms = now_ms - self._span_ms
        # If the clock goes back, the current sample may become the oldest.
        if self._idle_since_ms <= dropped_ms or self._samples[self._current].last_ms <= dropped_ms:
            self._drop(dropped_ms, now_ms)
        # Add the samples in the order of the ring, to round as Kafka does.
        total = 0.0
        for sample in self._samples:
            total += sample.total
        window_ms = self._over_ms(now_ms - self._oldest_ms)
        return total / (window_ms / 1000.0), window_ms

    def _drop(self, dropped_ms: int, now_ms: int) -> None:
        """Clear old samples, and find the oldest of the remaining ones."""
        oldest_ms = idle_since_ms = _EVER_MS
        for sample in self._samples:
            if sample.last_ms <= dropped_ms:
                sample.clear(now_ms)
            # Calls of min() would take as long as the rest of this function.
            if sample.opened_ms < oldest_ms:  # noqa: PLR1730
                oldest_ms = sample.opened_ms
            if sample.last_ms < idle_since_ms:  # noqa: PLR1730
                idle_since_ms = sample.last_ms
        self._oldest_ms, self._idle_since_ms = oldest_ms, idle_since_ms

    def _advance(self, now_ms: int) -> _Sample:
        # One more than ``samples``, because the oldest may overlap the measured time.
        self._current = (self._current + 1) % (self._window.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].clear(now_ms)
        self._idle_since_ms = -_EVER_MS
        return self._samples[self._current]

    def _over_ms(self, elapsed_ms: int) -> int:
        """Return the time since the oldest sample opened, plus the windows not opened yet."""
        window_ms = self._window_ms
        # Divide towards zero, also for negative numbers, as Java does.
        whole = elapsed_ms // window_ms if elapsed_ms >= 0 else -(-elapsed_ms // window_ms)
        missing = self._window.samples - 1 - whole
        if missing > _INT_MAX:
            return 1  # The number overflows in Java, and the time stays negative.
        if missing > 0:
            elapsed_ms += missing * window_ms
        return elapsed_ms if elapsed_ms > 0 else 1
