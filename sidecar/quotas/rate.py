"""The sampled rate that Kafka compares with produce, fetch and request quotas.

What is recorded goes into samples of one window each; a sample opens with the first value after
the last one's window is over, not by a grid. The rate is the sum of all retained samples by the
time since the oldest of them opened, never less than ``samples - 1`` windows and what has passed of
the current one, so that a first burst within a millisecond is no enormous rate. A sample is dropped
when ``samples`` windows have passed since its last value. So one sample more than ``samples`` may
be retained, and the time may be a window longer.

Example, 11 samples of 1 s: 1,000 recorded at 0 ms are 100 per second at once (over 10 s), still at
999 ms (over 10.999 s: 90.9), and 0 at 11,000 ms, when the sample is dropped.

A clock that stands still or goes backwards is counted as Kafka does: a sample that is ahead is
retained, and the time since it opened is negative, which the missing windows make up for. They are
2^31 - 1 at most: further back, 68 years with windows of 1 s, the rate is over 1 ms.

Source: Kafka's Rate, SampledStat and WindowedSum, as of 3.9; earlier ones (3.3) drop a sample when
``samples`` windows have passed since it opened, not since its last value.
"""

import sys
from dataclasses import dataclass
from typing import Final

_INT_MAX: Final = (1 << 31) - 1
_EVER_MS: Final = sys.maxsize
"""Later than any time."""


@dataclass(frozen=True, slots=True)
class QuotaWindow:
    """How far back a quota counts.

    Attributes:
        samples: how many windows; Kafka's quota.window.num, controller.quota.window.num.
        window_ms: one of them, milliseconds; Kafka's quota.window.size.seconds.

    Raises:
        ValueError: one of them is less than 1.
    """

    samples: int = 11
    window_ms: int = 1000

    def __post_init__(self) -> None:
        if self.samples < 1 or self.window_ms < 1:
            raise ValueError("a quota window is 1 sample of 1 ms at least")

    @property
    def span_ms(self) -> int:
        """All its windows together, milliseconds."""
        return self.samples * self.window_ms


class _Sample:
    """What was recorded in one window."""

    __slots__ = ("last_ms", "opened_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.clear(now_ms)

    def clear(self, now_ms: int) -> None:
        self.total = 0.0
        self.opened_ms = now_ms
        self.last_ms = now_ms


class Rate:
    """What is recorded, per second. Initially nothing was, and the rate is 0."""

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
        # When the oldest sample opened, and when the one with no value for longest had its last, as
        # of the last look at each; before all times once another one has opened.
        self._oldest_ms = self._idle_since_ms = -_EVER_MS

    def __repr__(self) -> str:
        return f"Rate({self._window}, {len(self._samples)} samples)"

    def record(self, value: float, now_ms: int) -> None:
        """Counts a value; a negative one takes back what was counted before."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.opened_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.total += value
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """Per second, over ``window_ms(now_ms)``."""
        return self.observe(now_ms)[0]

    def window_ms(self, now_ms: int) -> int:
        """What the rate is taken over, milliseconds, 1 at least: Kafka's windowSize."""
        return self.observe(now_ms)[1]

    def observe(self, now_ms: int) -> tuple[float, int]:
        """Both at once: ``measure`` and ``window_ms``. What is too old is dropped."""
        if not self._samples:
            # The first sample opens by being observed, not only by being recorded in.
            self._samples.append(_Sample(now_ms))
        dropped_ms = now_ms - self._span_ms
        # A clock that goes back may make the current one the oldest.
        if self._idle_since_ms <= dropped_ms or self._samples[self._current].last_ms <= dropped_ms:
            self._drop(dropped_ms, now_ms)
        # Added one by one in the order of the ring, to round as Kafka does.
        total = 0.0
        for sample in self._samples:
            total += sample.total
        window_ms = self._over_ms(now_ms - self._oldest_ms)
        return total / (window_ms / 1000.0), window_ms

    def _drop(self, dropped_ms: int, now_ms: int) -> None:
        """Clears what is too old, and looks at what there is then."""
        oldest_ms = idle_since_ms = _EVER_MS
        for sample in self._samples:
            if sample.last_ms <= dropped_ms:
                sample.clear(now_ms)
            # Calls of min() would take as long as all the rest.
            if sample.opened_ms < oldest_ms:  # noqa: PLR1730
                oldest_ms = sample.opened_ms
            if sample.last_ms < idle_since_ms:  # noqa: PLR1730
                idle_since_ms = sample.last_ms
        self._oldest_ms, self._idle_since_ms = oldest_ms, idle_since_ms

    def _advance(self, now_ms: int) -> _Sample:
        # One more than ``samples``: the oldest may reach into the time that is observed.
        self._current = (self._current + 1) % (self._window.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].clear(now_ms)
        self._idle_since_ms = -_EVER_MS
        return self._samples[self._current]

    def _over_ms(self, elapsed_ms: int) -> int:
        """The time since the oldest sample opened, with the windows that were not seen yet."""
        window_ms = self._window_ms
        # Towards zero, also below it, as Java divides.
        whole = elapsed_ms // window_ms if elapsed_ms >= 0 else -(-elapsed_ms // window_ms)
        missing = self._window.samples - 1 - whole
        if missing > _INT_MAX:
            return 1  # Java's overflows, and the time stays below 0.
        if missing > 0:
            elapsed_ms += missing * window_ms
        return elapsed_ms if elapsed_ms > 0 else 1
