"""The slope: between the soft limit and the limit the factor falls step by step, not off a cliff.

Of each volume that has less than the soft limit: let R be the bytes that are left until the limit,
B those from the soft limit to the limit, n the fill rate over ``WINDOW_S`` and f the mean factor of
that time. R lasts the horizon at a fill rate of R / horizon. What is written moves with the factor,
w bytes/s by 1.0, and what a cleaner deletes does not. So the factor wanted is::

    f + 0.7 (R / horizon - n) / w

- In the first quarter of the slope it is not below 4 R / B - 3, so it leaves 1.0 without a jump.
- In the last tenth it is not above 10 R / B, so it comes to 0.0 at the limit without one.
- It moves in steps of ``STEP``: down to the step above what is wanted, up to the step below it, so
  it stands still while that moves by less than a step. ``STEP`` is the smallest.

The smallest factor of all volumes counts. It falls at once. It rises by ``rise_per_s`` at most, and
only ``TURN_S`` after it last began to fall, so a volume that goes up and down turns it once a
minute at most. Where no volume has less than the soft limit it is 1.0, once it may rise.

Why it comes to rest: f is as old as n. So with c deleted each second n = f w - c, whatever the
factor was meanwhile, and what is wanted moves seven tenths of the way to the one factor at which
the volume fills as fast as it may, (R / horizon + c) / w. Of w two estimates are known: n when the
volume came onto the slope, which is too small by c, and by how much n has fallen with f, the most
of all times, which may be too large. It falls by the former, so too far rather than not enough, and
rises by the latter.

Example: a limit of 10 GB, a soft limit of 40 GB, a horizon of 30 min. A volume with 25 GB available
has R = 15 GB, which lasts 30 min at 8.3 MB/s. It fills by 18 MB/s at a factor of 1.0 until now: 1.0
+ 0.7 (8.3 - 18) / 18 = 0.62, so 0.65; and in the next minutes on towards 8.3 / 18 = 0.46. Beside a
cleaner of 4 MB/s it comes to rest where 4 MB/s pass.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from sidecar.throttle.fill import rate_over
from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import Learned, Slope, VolumeState

STEP: Final = 0.05
WINDOW_S: Final = 60.0
"""Several pauses of clients (4 s), and several windows of Kafka's (11 s)."""

TURN_S: Final = 60.0
_LAG_S: Final = WINDOW_S / 2
"""How old the mean of a rate is that Kafka's own window of 11 s shapes."""

_FIRST: Final = 0.25
_LAST: Final = 0.1
_GAIN: Final = 0.7
_LEARNS_BELOW: Final = 0.8
"""Nearer to 1.0 what the factor did to the rate is noise."""

_MOST: Final = 5.0
"""Of the first rate: a cleaner of four fifths. More is that producers want less."""

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class SlopeRules:
    """By what the factor falls.

    Attributes:
        soft_limit: where it begins.
        horizon_s: how long what is left until the limit has to last, seconds, > 0.
        rise_per_s: by how much it rises at most, per second, > 0.
    """

    soft_limit: Limit
    horizon_s: float = 1800.0
    rise_per_s: float = 0.2 / 60.0


def next_slope(
    before: Slope | None,
    volumes: Iterable[VolumeState],
    rules: SlopeRules,
    in_force: float,
    now: float,
) -> Slope | None:
    """Where it is after a look at the volumes.

    Args:
        before: where it was; None: at 1.0, for long.
        volumes: those that count.
        rules: by what it moves.
        in_force: the factor in force since the look before, whatever its source.
        now: steady seconds, not before ``before``'s.

    Returns:
        None: at 1.0, and no volume has less than the soft limit.
    """
    last = before or Slope(1.0, 1.0, 1.0, now, now - TURN_S, falls=False)
    since_s = max(0.0, now - last.at)
    mean = in_force + (last.mean - in_force) * math.exp(-since_s / _LAG_S)
    places = {
        (each.volume.broker_id, each.volume.log_dir): place
        for each in volumes
        if (place := _Place.of(each, rules)) is not None
    }
    if before is None and not places:
        return None
    learned = {
        key: found
        for key, place in places.items()
        if (found := place.learned(last.learned.get(key), mean)) is not None
    }
    wanted = min(
        (place.factor(learned.get(key), mean, last.height, rules) for key, place in places.items()),
        default=1.0,
    )
    down = _step_above(wanted)
    if down < last.factor:
        fell_at = last.fell_at if last.falls else now
        return Slope(down, down, mean, now, fell_at, falls=True, learned=learned)
    if now - last.fell_at < TURN_S:
        return replace(last, mean=mean, at=now, learned=learned)
    height = min(wanted, last.height + rules.rise_per_s * since_s) if places else 1.0
    factor = max(last.factor, _step_below(height))
    if factor == 1.0 and not places:
        return None
    height = max(height, factor)
    falls = last.falls and factor == last.factor
    return Slope(factor, height, mean, now, last.fell_at, falls, learned)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a volume is on its slope.

    Attributes:
        left_bytes: until the limit; 0.0 and less at it.
        width_bytes: from the soft limit to the limit, > 0.
        rate: by which it fills, bytes/s; None before a second reading.
    """

    left_bytes: float
    width_bytes: float
    rate: float | None

    @classmethod
    def of(cls, known: VolumeState, rules: SlopeRules) -> "_Place | None":
        """None where it is on no slope."""
        soft_bytes = rules.soft_limit.judge(known.volume).threshold_bytes
        width = soft_bytes - known.verdict.threshold_bytes
        if width <= 0.0 or known.volume.available_bytes > soft_bytes:
            return None
        return cls(known.headroom_bytes, width, rate_over(known.fill, WINDOW_S))

    def learned(self, before: Learned | None, mean: float) -> Learned | None:
        """What is known of the rate by now; None before there is one."""
        if self.rate is None:
            return before
        first = self.rate if before is None else before.first_rate
        written = max(first, self.rate, 0.0 if before is None else before.written)
        if mean < _LEARNS_BELOW and first > 0.0:
            fallen = (first - self.rate) / (1.0 - mean)
            written = max(written, min(fallen, _MOST * first))
        return Learned(first, written)

    def factor(
        self, learned: Learned | None, mean: float, unknown: float, rules: SlopeRules
    ) -> float:
        """The factor by this volume alone, 0.0 to 1.0; ``unknown`` without a rate."""
        part = self.left_bytes / self.width_bytes
        wanted = unknown
        if self.rate is not None and learned is not None:
            excess = self.rate - self.left_bytes / rules.horizon_s
            # Down by the smaller estimate, up by the larger one: too low is safe.
            written = max(learned.first_rate, self.rate) if excess > 0.0 else learned.written
            # Where nothing is written nothing has to be throttled.
            wanted = mean - _GAIN * excess / written if written > 0.0 else 1.0
        wanted = max(wanted, (part - (1.0 - _FIRST)) / _FIRST)
        return max(0.0, min(1.0, wanted, part / _LAST))


def _step_above(factor: float) -> float:
    """The next step up, STEP at least."""
    return round(max(STEP, math.ceil(factor / STEP - _ROUNDING) * STEP), 2)


def _step_below(factor: float) -> float:
    return round(math.floor(factor / STEP + _ROUNDING) * STEP, 2)
