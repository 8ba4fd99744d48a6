"""The slope: between the soft limit and the limit the factor falls step by step.

For each volume below the soft limit, let R be the bytes left until the limit, n the fill rate over
``WINDOW_S``, and f the mean factor in that time. R should last for the horizon, so the volume may
fill at R / horizon. Producers write w x factor bytes/s. What a cleaner deletes does not depend on
the factor. The wanted factor is::

    f + 0.7 (R / horizon - n) / w

The lowest wanted factor of all volumes counts, in steps of ``STEP``. The factor falls at once. It
rises slowly, and only ``TURN_S`` after it last began to fall. When no volume is below the soft
limit, the factor rises to 1.0.

Example: a limit of 10 GB, a soft limit of 40 GB, a horizon of 30 min. A volume has 25 GB available,
so R is 15 GB, which lasts 30 min at 8.3 MB/s. It fills by 18 MB/s at a factor of 1.0 so far. The
wanted factor is 1.0 + 0.7 (8.3 - 18) / 18 = 0.62, so the factor becomes 0.65. In the next minutes
it approaches 8.3 / 18 = 0.46. With a cleaner of 4 MB/s it settles 4 MB/s higher.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from sidecar.throttle.fill import rate_over
from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import Learned, Slope, VolumeState

_STEPS: Final = 20

STEP: Final = 1 / _STEPS
"""The smallest change of the factor, and the smallest factor above 0.0."""

WINDOW_S: Final = 60.0
"""Several pauses of clients (4 s), and several of Kafka's quota windows (11 s)."""

TURN_S: Final = 60.0
"""The time between the moment when the factor began to fall and the next rise, at least."""

_LAG_S: Final = WINDOW_S / 2
"""The mean age of a rate over ``WINDOW_S``; the mean factor must be as old."""

_FIRST: Final = 0.25
"""In this first part of the slope the factor may not fall faster than the space does."""

_LAST: Final = 0.1
"""In this last part of the slope the factor may not stay higher than the space."""

_GAIN: Final = 0.7
"""The part of the way to the settled factor that one change goes. At 1.0, noise in the rate would
make the factor swing."""

_LEARNS_BELOW: Final = 0.8
"""At a factor nearer to 1.0, its effect on the rate can't be told from noise."""

_MOST_TIMES_FIRST_RATE: Final = 5.0
"""The most that producers are assumed to write, in units of the first rate. That is right if a
cleaner deletes four fifths of it. A larger estimate means that the producers write less."""

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class SlopeRules:
    """How the factor falls.

    Attributes:
        soft_limit: the limit at which the factor begins to fall.
        horizon_s: how long the space until the limit has to last, seconds, > 0.
        rise_per_s: the most that the factor may rise in a second, > 0.
    """

    soft_limit: Limit
    horizon_s: float = 1800.0
    rise_per_s: float = 0.2 / 60.0


def next_slope(
    before: Slope | None,
    volumes: Iterable[VolumeState],
    rules: SlopeRules,
    applied: float,
    now: float,
) -> Slope | None:
    """The position on the slope after new readings.

    Args:
        before: the position before; None when the factor has been 1.0 for long.
        volumes: the volumes that count.
        rules: the rules by which the factor moves.
        applied: the factor that has applied since then, whatever its source.
        now: steady seconds. An observation may come late, so an earlier one than ``before.at``
            counts as that; else the time in between would count twice, as time to rise in.

    Returns:
        None when the factor is 1.0 and no volume is below the soft limit.
    """
    last = before or Slope(1.0, 1.0, 1.0, now, now - TURN_S, falls=False)
    now = max(now, last.at)
    since_s = now - last.at
    # An exponential mean with a mean age of ``_LAG_S``, so it is as old as the fill rates. A rate
    # of now compared with the factor of now would make the factor overshoot after each change.
    mean = applied + (last.mean - applied) * math.exp(-since_s / _LAG_S)
    places = {
        state.volume.place: place
        for state in volumes
        if (place := _Place.of_volume(state, rules)) is not None
    }
    if before is None and not places:
        # Above the soft limit, nothing has to be remembered.
        return None
    learned = {
        key: rates
        for key, place in places.items()
        if (rates := place.learned(last.learned.get(key), mean)) is not None
    }
    # One factor applies to the whole cluster, so the volume that needs the lowest factor decides.
    wanted = min(
        (place.factor(learned.get(key), mean, last.height, rules) for key, place in places.items()),
        default=1.0,
    )
    # A falling factor is rounded up, a rising one down. So the factor does not move while the
    # wanted factor moves by less than a step.
    down = _step_above(wanted)
    if down < last.factor:
        # The factor falls at once, because the space that is written meanwhile does not come back.
        # ``fell_at`` stays the begin of this fall: a long fall must not delay the next rise.
        fell_at = last.fell_at if last.falls else now
        return Slope(down, down, mean, now, fell_at, falls=True, learned=learned)
    if now - last.fell_at < TURN_S:
        # The factor rises only after the rates show the effect of the last fall. So a volume that
        # goes up and down turns the factor once a minute at most.
        return replace(last, mean=mean, at=now, learned=learned)
    # ``height`` rises continuously, and the factor is the step below it. Without ``height``, a rise
    # of less than a step between two polls would be lost each time.
    height = min(wanted, last.height + rules.rise_per_s * since_s) if places else 1.0
    factor = max(last.factor, _step_below(height))
    # Everything learned is forgotten only when the factor is back at 1.0 and no volume is low.
    if factor == 1.0 and not places:
        return None
    height = max(height, factor)
    falls = last.falls and factor == last.factor
    return Slope(factor, height, mean, now, last.fell_at, falls, learned)


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a volume on its slope.

    Attributes:
        left_bytes: the bytes until the limit; 0.0 or less at the limit.
        width_bytes: the bytes from the soft limit to the limit, > 0.
        rate: the fill rate, bytes/s; None before a second reading.
    """

    left_bytes: float
    width_bytes: float
    rate: float | None

    @classmethod
    def of_volume(cls, state: VolumeState, rules: SlopeRules) -> "_Place | None":
        """The place of a volume; None when it is above the soft limit, or has no slope."""
        soft = rules.soft_limit.judge(state.volume)
        width = soft.threshold_bytes - state.verdict.threshold_bytes
        # On a small volume a soft limit in bytes may be below a limit that is a ratio: no slope.
        if width <= 0.0 or not soft.violates:
            return None
        return cls(state.headroom_bytes, width, rate_over(state.fill, WINDOW_S))

    def learned(self, before: Learned | None, mean: float) -> Learned | None:
        """Estimates, in two ways, what producers would write at 1.0; None before a first rate.

        The rate at the first reading is too small by what a cleaner deletes. How much the rate has
        fallen with the factor shows the rest, but may be too large.
        """
        if self.rate is None:
            return before
        first = self.rate if before is None else before.first_rate
        written = max(first, self.rate, 0.0 if before is None else before.written)
        if mean < _LEARNS_BELOW and first > 0.0:
            # A cleaner deletes c whatever the factor is: n = f w - c, at factor 1.0 and now. So w
            # is the fall of n divided by the fall of f. Near 1.0 the divisor is too small for that.
            fallen = (first - self.rate) / (1.0 - mean)
            written = max(written, min(fallen, _MOST_TIMES_FIRST_RATE * first))
        return Learned(first, written)

    def factor(
        self, learned: Learned | None, mean: float, unknown: float, rules: SlopeRules
    ) -> float:
        """The factor wanted for this volume alone, 0.0 to 1.0; without a rate, ``unknown``."""
        part = self.left_bytes / self.width_bytes
        wanted = unknown
        if self.rate is not None and learned is not None:
            excess = self.rate - self.left_bytes / rules.horizon_s
            # A smaller estimate moves the factor further. So it falls by the smaller estimate and
            # rises by the larger one: the factor is too low rather than too high.
            written = max(learned.first_rate, self.rate) if excess > 0.0 else learned.written
            # With n = f w - c, this moves f by seven tenths of the way to (R / horizon + c) / w. At
            # that factor the volume fills exactly as fast as it may, so f settles there. Without
            # writes there is nothing to throttle.
            wanted = mean - _GAIN * excess / written if written > 0.0 else 1.0
        # At the soft limit (part 1.0) this bound is 1.0, and it is 0.0 at three quarters. So the
        # factor leaves 1.0 without a jump, even if the volume fills fast.
        wanted = max(wanted, (part - (1.0 - _FIRST)) / _FIRST)
        # At the limit (part 0.0) ``part / _LAST`` is 0.0, so the factor arrives there without a
        # jump.
        return max(0.0, min(1.0, wanted, part / _LAST))


def _step_above(factor: float) -> float:
    """The next step up, at least ``STEP``: 0.0 is for the limit alone."""
    return max(1, math.ceil(factor * _STEPS - _ROUNDING)) / _STEPS


def _step_below(factor: float) -> float:
    return math.floor(factor * _STEPS + _ROUNDING) / _STEPS
