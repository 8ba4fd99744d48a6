"""A value over time: samples of a count or a level, in the order of time.

Example: the acknowledged bytes are 0 at 10.0 s and 600 at 10.2 s. The rate from 10.0 to 10.2 s is
3,000 bytes/s. From 10.05 to 10.1 s, between two samples, interpolation gives the same rate.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class Series:
    """Samples, each later than the one before it."""

    __slots__ = ("_times", "_values")

    def __init__(self, samples: Iterable[tuple[float, float]] = ()) -> None:
        """Make a series of (seconds, value) samples."""
        self._times: list[float] = []
        self._values: list[float] = []
        for at, value in samples:
            self.add(at, value)

    def __repr__(self) -> str:
        return f"Series({len(self)} samples)"

    def __len__(self) -> int:
        return len(self._times)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return zip(self._times, self._values, strict=True)

    def add(self, at: float, value: float) -> None:
        """Add a sample, in seconds of one clock; it is dropped if it is not later than the last."""
        if not self._times or at > self._times[-1]:
            self._times.append(at)
            self._values.append(value)

    def at(self, at: float) -> float:
        """Return the value at a time: interpolated, or that of the first or the last sample.

        Raises:
            ValueError: there are no samples.
        """
        if not self._times:
            raise ValueError("there are no samples")
        index = bisect_left(self._times, at)
        if index == 0:
            return self._values[0]
        if index == len(self._times):
            return self._values[-1]
        (t0, t1), (v0, v1) = self._times[index - 1 : index + 1], self._values[index - 1 : index + 1]
        return v0 + (v1 - v0) * (at - t0) / (t1 - t0)

    def latest(self, at: float, within_s: float) -> float | None:
        """Return the last sample's value at a time; None if it is older than ``within_s``."""
        index = bisect_right(self._times, at) - 1
        if index < 0 or at - self._times[index] > within_s:
            return None
        return self._values[index]

    def rate(self, begin: float, end: float) -> float:
        """Return the growth per second from one time to a later one."""
        return (self.at(end) - self.at(begin)) / (end - begin)

    def rates(self, step_s: float, window_s: float) -> list[tuple[float, float]]:
        """Return the rate over time for a picture, at each step over the window that ends there.

        Returns:
            (seconds, rate) pairs, from a window after the first sample until the last sample.
        """
        if not self._times:
            return []
        pairs = []
        count = int((self._times[-1] - self._times[0] - window_s) / step_s + 1e-9)
        for index in range(count + 1):
            end = self._times[0] + window_s + index * step_s
            pairs.append((end, self.rate(end - window_s, end)))
        return pairs

    def window(self, begin: float, end: float) -> "Series":
        """Return the samples from one time to another, both inclusive."""
        return Series((at, value) for at, value in self if begin <= at <= end)


def crossing(series: Series, threshold: float) -> float | None:
    """Return when the value first reaches a threshold from above, by interpolation.

    Returns:
        The time in seconds, or None if the value stays above the threshold.
    """
    before: tuple[float, float] | None = None
    for at, value in series:
        if value <= threshold:
            if before is None:
                return at
            earlier, above = before
            return earlier + (at - earlier) * (above - threshold) / (above - value)
        before = at, value
    return None
