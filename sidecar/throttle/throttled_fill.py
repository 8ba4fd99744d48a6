"""Which volumes fill although producers are held, and how fast.

A factor of 0.0 holds who produces through a quota callback. Reassignments, offset commits and
excluded principals are not held, and a little of each producer is let through; so a volume can fill
on. What lands in the moment in which a hold begins must not be taken for that: a rate counts only
if the readings that it is made of all came ``SETTLE_S`` after the hold began, or later. It is over
``OVER_S``, as far as the hold goes back: of producers that pause for a minute each 5 s tell of a
spike or of nothing. A volume counts while its broker is an active member, the log dir is online and
the reading is valid.

Example: held since 100 s. 10 bytes/s between readings at 104 s and 110 s say nothing, since the
first is too early; 10 bytes/s between readings at 105 s and 112 s do.
"""

from dataclasses import dataclass
from typing import Final

from sidecar.throttle.fill import rate_since
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.throttle.validity import is_valid

SETTLE_S: Final = 5.0
"""Longer than the quota callback's usual pauses (4 s): by then every producer has met one."""

OVER_S: Final = 300.0
"""As long as the quota callback's longest pause, by default."""


@dataclass(frozen=True, slots=True)
class ThrottledFill:
    """A volume that fills although producers are held.

    Attributes:
        known: the volume.
        bytes_per_second: how fast, > 0.
    """

    known: VolumeState
    bytes_per_second: float


def throttled_since(factor: float, since: float) -> float | None:
    """Since when producers are held, steady seconds; None while they are not.

    Args:
        factor: the one in force.
        since: when it came into force, steady seconds.
    """
    return since if factor == 0.0 else None


def throttled_rate(known: VolumeState, since: float) -> float | None:
    """How fast a volume fills while producers are held, or empties; None: not known.

    Args:
        known: the volume.
        since: since when producers are held, steady seconds.
    """
    return rate_since(known.fill, since + SETTLE_S, OVER_S) if known.online else None


def throttled_fills(
    memory: Memory, since: float | None, validity_s: float, now: float
) -> list[ThrottledFill]:
    """The volumes that fill while producers are held.

    Args:
        memory: what is remembered of the volumes.
        since: since when producers are held, steady seconds; None: they are not.
        validity_s: for how long a reading counts, seconds.
        now: steady seconds.
    """
    if since is None:
        return []
    return [
        ThrottledFill(known, rate)
        for broker in memory.active_brokers()
        if broker.read_at is not None and is_valid(broker.read_at, validity_s, now)
        for known in broker.volumes
        if (rate := throttled_rate(known, since)) is not None and rate > 0
    ]
