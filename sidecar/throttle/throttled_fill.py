"""Which volumes fill although producers are throttled, and how fast.

A factor of 0.0 throttles who produces through a quota callback. Reassignments, offset commits and
excluded principals are not throttled, and a few requests of each producer pass; so a volume can
fill on. What is written just as a throttle begins must not be mistaken for that: a rate counts only
if all its readings came ``SETTLE_S`` after that beginning, or later. It is taken over ``OVER_S``,
or over the whole throttle if that is shorter: while producers pause for a minute each, 5 s show a
spike or nothing.

Example: throttled since 100 s. 10 bytes/s between readings at 104 s and 110 s say nothing, since
the first is too early; 10 bytes/s between readings at 105 s and 112 s do.
"""

from dataclasses import dataclass
from typing import Final

from sidecar.throttle.fill import rate_since
from sidecar.throttle.memory import Memory, VolumeState

SETTLE_S: Final = 5.0
"""Longer than the quota callback's usual pauses (4 s): by then every producer has met one."""

OVER_S: Final = 300.0
"""As long as the quota callback's longest pause, by default."""


@dataclass(frozen=True, slots=True)
class ThrottledFill:
    """A volume that fills although producers are throttled; the rate is > 0."""

    known: VolumeState
    bytes_per_second: float


def throttled_since(factor: float, since: float) -> float | None:
    """Since when a factor throttles all producers, steady seconds; None: it does not."""
    return since if factor == 0.0 else None


def throttled_rate(known: VolumeState, since: float) -> float | None:
    """How fast a volume fills, or empties, throttled since then (steady s); None: not known."""
    return rate_since(known.fill, since + SETTLE_S, OVER_S) if known.online else None


def throttled_fills(
    memory: Memory, since: float | None, validity_s: float, now: float
) -> list[ThrottledFill]:
    """The volumes with valid readings that fill while producers are throttled, all in seconds.

    ``since`` is None while they are not.
    """
    if since is None:
        return []
    return [
        ThrottledFill(known, rate)
        for known in memory.valid_volumes(validity_s, now)
        if (rate := throttled_rate(known, since)) is not None and rate > 0
    ]
