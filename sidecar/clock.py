"""The daemon's one clock: steady seconds that read like epoch seconds.

Validity must not move when somebody sets the machine's clock, so inside the daemon time is the boot
clock, anchored once to the epoch. What a person or Prometheus reads is turned back into wall time
at the edge, with the machine's clock as it is then.

Example: started at 1,000 by the wall; 60 s later NTP steps the wall by +300. ``now()`` is 1,060,
and ``wall(1060)`` is 1,360.
"""

import time
from collections.abc import Callable

_STEP_S = 0.5
"""A smaller difference between the two clocks is drift: following it would make printed times
flicker."""


class SteadyClock:
    """Seconds since the epoch by a clock that never steps, not even over a suspended machine."""

    __slots__ = ("_anchor", "_boot", "_epoch", "_offset")

    def __init__(
        self, boot: Callable[[], float] | None = None, epoch: Callable[[], float] | None = None
    ) -> None:
        """Takes both clocks of the machine: seconds since its boot, and epoch seconds."""
        self._boot = boot or _since_boot
        self._epoch = epoch or time.time
        self._anchor = self._epoch() - self._boot()
        self._offset = 0.0

    def now(self) -> float:
        """Steady seconds."""
        return self._anchor + self._boot()

    def wall(self, steady_s: float) -> float:
        """The epoch seconds that the machine's clock showed, or will show, at a steady time."""
        offset = self._epoch() - self.now()
        if abs(offset - self._offset) > _STEP_S:
            self._offset = offset
        return steady_s + self._offset


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
