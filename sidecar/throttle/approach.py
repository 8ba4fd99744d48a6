"""When client quotas begin to fall before a limit, since they need minutes to take effect.

Lowered quotas limit nobody until they are as low as what their clients write. From twice a known
rate that takes 25 s. From then on, what lands until the quotas are at their floor is as much as the
clients write in 36 s. So quotas begin to fall when a volume would be at its limit within ``LEAD_S``
at its fill rate. If only fill rates are known, quotas fall for longer without an effect: with six
equal clients they begin six times too high, and ``LEAD_BY_FILL_S`` is enough for that.

Quotas rise while the limit is further away. With H bytes above the limit and the lead L, a volume
may fill with H / L. If it fills with F, clients may write H / L - F more. They write no more than
R, the highest fill rate of late over a minute. So a quota may rise to ``1 + (H / L - F) / R``
times, without knowing how much is deleted meanwhile, and clients get what there is room for.

A reading may be old because nobody sees the volume. The time that has passed since counts as
filled, and after the validity the reading no longer counts.

Example: a volume has 1,000 MB above its limit and fills with 18 MB/s, so the limit is 56 s away and
quotas fall. With 1,600 MB and 2 MB/s, the lead of 80 s allows 20 MB/s, so quotas rise to twice.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from sidecar.throttle.fill_rates import FillRates
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.quota_steps import RISE
from sidecar.throttle.sizes import size
from sidecar.volumes import LogDir

LEAD_S: Final = 80.0
"""Where it is known what clients write."""
LEAD_BY_FILL_S: Final = 150.0
"""Where only fill rates tell."""

_STAY: Final = 1.1
"""Quotas that could rise by less stay."""
_LEAST: Final = 1.25
"""Quotas rise by this much at least, if the volume would not fill too fast then without deletions.
A file that was copied to it may make R so high that they would stay for a quarter of an hour."""


@dataclass(frozen=True, slots=True)
class Approach:
    """The volume that allows client quotas least.

    Attributes:
        log_dir: which volume; None without any.
        headroom: the bytes above its limit, >= 0.
        fill: its fill rate, bytes/s, >= 0.
        falling: the volumes for which quotas have to fall; empty if they need not.
        rise: otherwise, by how much a quota may rise in a step, 1.0 to ``RISE``.
        brokers: those with a volume that allows less than ``RISE``.
    """

    log_dir: LogDir | None = None
    headroom: float = 0.0
    fill: float = 0.0
    falling: frozenset[LogDir] = frozenset()
    rise: float = RISE
    brokers: frozenset[int] = frozenset()

    @property
    def falls(self) -> bool:
        """Whether quotas have to fall."""
        return bool(self.falling)

    def __str__(self) -> str:
        if self.log_dir is None:
            return "no volume is known"
        broker_id, path = self.log_dir
        fills = f" and fills by {size(round(self.fill))} a second" if self.fill else ""
        return f"{path} of broker {broker_id} has {size(round(self.headroom))} above it{fills}"


def approach(
    states: Iterable[VolumeState], rates: FillRates, now: float, lead_s: float
) -> Approach:
    """Return the volume that allows client quotas least.

    Args:
        states: the volumes with valid readings.
        rates: how fast they fill.
        now: steady seconds.
        lead_s: ``LEAD_S``, or ``LEAD_BY_FILL_S``.
    """
    found, least = Approach(), math.inf
    most, brokers, falling = rates.lasting(now), set(), set()
    for state in states:
        highest = most.get(state.volume.broker_id, 0.0)
        if highest <= 0.0:
            # It is not known yet what clients write, or nobody writes.
            continue
        age_s, published = now - state.read_at, state.fill.bytes_per_second or 0.0
        if state.headroom_bytes >= max(highest, published) * (RISE * lead_s + age_s):
            # Most volumes are this far from their limits, and there may be thousands.
            continue
        fill = rates.of(state.volume.place, age_s)
        headroom = max(0.0, state.headroom_bytes - fill * age_s)
        allowed = headroom / lead_s
        times = 1.0 + (allowed - fill) / max(highest, fill)
        if fill <= allowed / _LEAST:
            times = max(times, _LEAST)
        if times < RISE:
            brokers.add(state.volume.broker_id)
        if times <= 1.0:
            falling.add(state.volume.place)
        if times < least:
            least, rise = times, min(RISE, times) if times >= _STAY else 1.0
            found = Approach(state.volume.place, headroom, fill, rise=rise)
    return replace(found, falling=frozenset(falling), brokers=frozenset(brokers))
