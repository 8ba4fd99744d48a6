"""When client quotas begin to fall before a limit, since they need minutes to take effect.

Lowered quotas limit nobody until they are as low as what their clients write. From twice a known
rate that takes 25 s. From then on, what lands until the quotas are at their floor is as much as the
clients write in 36 s. So quotas begin to fall when a volume would be at its limit within ``LEAD_S``
at its fill rate. If only fill rates are known, quotas fall for longer without an effect: with six
equal clients they begin six times too high, and ``LEAD_BY_FILL_S`` is enough for that.

A fill rate here is the higher one of 5 and of ``SLOW_S`` seconds, since throttled clients write in
bursts between waits of some seconds.

Quotas rise while the limit is further away. With H bytes above the limit and the lead L, a volume
may fill with H / L. If it fills with F, clients may write H / L - F more. They write no more than
R, the highest fill rate of late, so a quota may rise to ``1 + (H / L - F) / R`` times, without
knowing how much is deleted meanwhile. So clients get what the volume has room for.

A reading may be old because nobody sees the volume. The time that has passed since counts as
filled, and after the validity the reading no longer counts.

Example: a volume has 1,000 MB above its limit and fills with 18 MB/s, so the limit is 56 s away and
quotas fall. With 1,600 MB and 2 MB/s, the lead of 80 s allows 20 MB/s, so quotas rise to twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sidecar.throttle.fill import WINDOW_S, Fill, first_fill, next_fill, rate_over
from sidecar.throttle.memory import LogDir, VolumeState
from sidecar.throttle.quota_steps import RISE
from sidecar.throttle.sizes import size

LEAD_S: Final = 80.0
"""Where it is known what clients write."""
LEAD_BY_FILL_S: Final = 150.0
"""Where only fill rates tell."""
SLOW_S: Final = 20.0

_KEPT_S: Final = 2 * SLOW_S
_STAY: Final = 1.1
"""Quotas that could rise by less stay."""


@dataclass(frozen=True, slots=True)
class Approach:
    """The volume that allows client quotas least.

    Attributes:
        log_dir: which volume; None without any.
        headroom: the bytes above its limit, >= 0.
        fill: its fill rate, bytes/s, >= 0.
        falls: whether quotas have to fall.
        rise: otherwise, by how much a quota may rise in a step, 1.0 to ``RISE``.
        brokers: those with a volume that allows less than ``RISE``.
    """

    log_dir: LogDir | None = None
    headroom: float = 0.0
    fill: float = 0.0
    falls: bool = False
    rise: float = RISE
    brokers: frozenset[int] = frozenset()

    def __str__(self) -> str:
        if self.log_dir is None:
            return "no volume is known"
        broker_id, path = self.log_dir
        fills = f" and fills by {size(round(self.fill))} a second" if self.fill else ""
        return f"{path} of broker {broker_id} has {size(round(self.headroom))} above it{fills}"


@dataclass(slots=True)
class Fills:
    """How fast volumes fill."""

    _marks: dict[LogDir, Fill] = field(default_factory=dict)

    def note(self, states: Iterable[VolumeState]) -> None:
        """Note the last readings of all volumes."""
        marks = {}
        for state in states:
            key, at, used = state.volume.place, state.read_at, state.volume.used_bytes
            fill = self._marks.get(key)
            marks[key] = (
                first_fill(at, used) if fill is None else next_fill(fill, at, used, _KEPT_S)
            )
        self._marks = marks

    def of(self, log_dir: LogDir) -> float:
        """Return a volume's fill rate, bytes/s, >= 0."""
        fill = self._marks.get(log_dir)
        if fill is None:
            return 0.0
        return max(0.0, rate_over(fill, WINDOW_S) or 0.0, rate_over(fill, SLOW_S) or 0.0)


def approach(
    states: Iterable[VolumeState],
    fills: Fills,
    most: Mapping[int, float],
    now: float,
    lead_s: float,
) -> Approach:
    """Return the volume that allows client quotas least.

    Args:
        states: the volumes with valid readings.
        fills: their fill rates.
        most: broker id -> its highest fill rate of late, bytes/s.
        now: steady seconds.
        lead_s: ``LEAD_S``, or ``LEAD_BY_FILL_S``.
    """
    found, least = Approach(), float("inf")
    brokers = set()
    for state in states:
        fill = fills.of(state.volume.place)
        headroom = max(0.0, state.headroom_bytes - fill * (now - state.read_at))
        highest = most.get(state.volume.broker_id, 0.0)
        if highest <= 0.0:
            # It is not known yet what clients write, or nobody writes.
            continue
        times = 1.0 + (headroom / lead_s - fill) / max(highest, fill)
        if times < RISE:
            brokers.add(state.volume.broker_id)
        if times < least:
            least, rise = times, min(RISE, times) if times >= _STAY else 1.0
            found = Approach(state.volume.place, headroom, fill, times <= 1.0, rise)
    return replace(found, brokers=frozenset(brokers))
