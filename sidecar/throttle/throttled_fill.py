"""Which volumes fill although producers are throttled, and how fast.

A factor of 0.0 throttles clients that produce through a quota callback. It does not throttle
reassignments, offset commits and excluded principals, and a few requests of each producer pass. So
a volume can go on filling. A rate counts only if all its readings came ``SETTLE_S`` after the
beginning, or later. It is taken over ``OVER_S``, or over the whole throttle if that is shorter.

Example: producers are throttled since 100 s. 10 bytes/s between readings at 104 s and 110 s do not
count, because the first reading is too early. Between readings at 105 s and 112 s they do.
"""

from dataclasses import dataclass
from typing import Final

from sidecar.throttle.fill import rate_since
from sidecar.throttle.memory import Memory, VolumeState

SETTLE_S: Final = 5.0
"""Longer than a usual pause of the quota callback (4 s): by then every producer was paused."""

OVER_S: Final = 300.0
"""The longest pause of the quota callback, by default."""


@dataclass(frozen=True, slots=True)
class ThrottledFill:
    """A volume that fills although producers are throttled; the rate is > 0."""

    state: VolumeState
    bytes_per_second: float


def throttled_since(factor: float, since: float) -> float | None:
    """Since when a factor throttles all producers, steady seconds; None when it does not."""
    return since if factor == 0.0 else None


def throttled_rate(state: VolumeState, since: float) -> float | None:
    """The fill rate since a throttle began (steady seconds), < 0 if it empties; None: unknown."""
    # Earlier readings contain what was written just as the throttle began. And while producers
    # pause for a minute each, a rate over a few seconds would show a spike or nothing.
    return rate_since(state.fill, since + SETTLE_S, OVER_S) if state.online else None


def throttled_fills(
    memory: Memory, since: float | None, validity_s: float, now: float
) -> list[ThrottledFill]:
    """The volumes with valid readings that fill while producers are throttled, all in seconds.

    ``since`` is None while they are not.
    """
    if since is None:
        return []
    return [
        ThrottledFill(state, rate)
        for state in memory.valid_volumes(validity_s, now)
        if (rate := throttled_rate(state, since)) is not None and rate > 0
    ]
