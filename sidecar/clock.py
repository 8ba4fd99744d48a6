"""The daemon's clock: steady seconds that begin at the epoch time of the start.

A validity must not change when somebody sets the machine's clock. Inside the daemon, time is
therefore the boot clock plus the epoch time at which it was zero, read once at the start. Times
for people and for Prometheus are converted to wall time when they are shown.

Example: the daemon starts at wall time 1,000. 60 s later NTP sets the wall clock 300 s ahead.
``now()`` is 1,060, and ``wall(1060)`` is 1,360.
"""

import time
from collections.abc import Callable

_STEP_S = 0.5
"""A smaller change between the two clocks is drift; following it would make shown times flicker."""


class SteadyClock:
    """Seconds since the epoch that also pass during a suspend; clock changes do not move them."""

    __slots__ = ("_anchor", "_boot", "_epoch", "_offset")

    def __init__(
        self, boot: Callable[[], float] | None = None, epoch: Callable[[], float] | None = None
    ) -> None:
        """Both default to the machine's clocks: seconds since its boot, and epoch seconds."""
        self._boot = boot or _since_boot
        self._epoch = epoch or time.time
        self._anchor = self._epoch() - self._boot()
        self._offset = 0.0

    def now(self) -> float:
        """Steady seconds."""
        return self._anchor + self._boot()

    def wall(self, steady_s: float) -> float:
        """Converts steady seconds to the epoch seconds of the machine's current clock."""
        offset = self._epoch() - self.now()
        if abs(offset - self._offset) > _STEP_S:
            self._offset = offset
        return steady_s + self._offset


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
