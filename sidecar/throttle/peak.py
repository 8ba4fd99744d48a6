"""The highest rate of the last quarter of an hour.

Example: 5 MB/s at minute 0, 9 at minute 1, 2 at minute 2. The highest rate is 9 MB/s until minute
16, then 2.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from sidecar.throttle.fill import Fill, rate_since

PEAK_S: Final = 900.0
"""How long a rate counts. Between two rounds of deleting old segments, five minutes by default, the
fill rate is what is written."""


def growth_of(fill: Fill) -> float:
    """A volume's growth over Kafka's quota window, 10 s, so that a burst is no peak; bytes/s."""
    return max(0.0, rate_since(fill, -math.inf, 10.0) or 0.0)


@dataclass(slots=True)
class Peak:
    """The highest rate of the last ``PEAK_S``."""

    _rates: deque[tuple[float, float]] = field(default_factory=deque)

    def add(self, rate: float, now: float) -> None:
        """Add a rate at a time that is not before the last; 0 is no rate."""
        # A lower rate than a later one never counts again.
        while self._rates and self._rates[-1][1] <= rate:
            self._rates.pop()
        if rate > 0.0:
            self._rates.append((now, rate))

    def highest(self, now: float) -> float | None:
        """Return the highest rate; None if there is none."""
        while self._rates and self._rates[0][0] < now - PEAK_S:
            self._rates.popleft()
        return self._rates[0][1] if self._rates else None
