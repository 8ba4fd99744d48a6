"""The time when a saw-toothed disk reaches its limit, with a range.

The top of a tooth reaches the limit: the floor plus the usual height of a tooth. If half of the
teeth that were higher than the current one reach the limit, the disk reaches it within the current
tooth, at the usual rates of teeth or at the present rate. A tenth of them determines only the early
end. If the current tooth exceeds the highest by a quarter, retention has changed, and the tooth
goes on. If less than a quarter is missing, the same applies to an excess of 2 %, or to any excess
if the tooth rises at the usual rate. A rise unlike earlier ones (``rise``) makes the expected time
and the early end earlier.

The range comes from 800 futures. 400 of them have the growth since the last change, with an
uncertainty that decreases with that time. The other 400 have the growth of the newest quarter of
that time, which shows another change first. All repeat past surprises in blocks, so that a night
stays together, and past teeth. The range contains 80 % of each half, and the expected time is the
median of all.

Example: a floor of 60 GB that grows by 0.5 GB an hour under teeth of 20 GB, limit at 90 GB: 20 h.

Source: Künsch, "The Jackknife and the Bootstrap for General Stationary Observations" (1989), for
the blocks.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from usage_pipeline.forecast.growth import Floats
from usage_pipeline.forecast.rise import OUTGROWN
from usage_pipeline.forecast.sawtooth import Saw

_FUTURES: Final = 400
_RANGE: Final = (0.1, 0.9)
_EXCEEDS: Final = 1.02
_MOST_STEPS: Final = 500


@dataclass(frozen=True, slots=True)
class Reach:
    """The time to a limit in hours from hour 0 of the saw; None if it is beyond the horizon."""

    hours: float | None
    low: float | None
    high: float | None


def reach(
    saw: Saw,
    used_bytes: float,
    limit_bytes: float,
    horizon_h: float,
    seed: int = 1,
    *,
    age_h: float = 0.0,
) -> Reach:
    """Return the time when a saw reaches a limit.

    Args:
        saw: the fitted saw.
        used_bytes: the used bytes at the last reading.
        limit_bytes: the used bytes at which producers are throttled.
        horizon_h: the hours to simulate, > 0.
        seed: the seed of the futures.
        age_h: the hours from the last reading to hour 0, at least 0.
    """
    if used_bytes >= limit_bytes:
        return Reach(0.0, 0.0, 0.0)
    futures = np.stack(
        [
            _futures(saw, growth, limit_bytes, horizon_h, seed)
            for growth in (saw.growth, saw.newest_growth)
        ]
    )
    low, high = np.quantile(futures, _RANGE, axis=1, method="nearest")
    ends = [float(np.quantile(futures, 0.5, method="nearest")), float(low.min()), float(high.max())]
    missing = limit_bytes - used_bytes
    share = _share_in_tooth(saw, used_bytes, limit_bytes, age_h)
    if share >= _RANGE[0]:
        slow, usual, quick = np.quantile(saw.rises, (_RANGE[0], 0.5, _RANGE[1]))
        at_usual = missing / max(usual, saw.rise.rate) - age_h
        at_quick = missing / max(quick, saw.rise.rate) - age_h
        if share >= 0.5:
            ends = [at_usual, at_quick, max(missing / slow - age_h, ends[2])]
        else:
            ends[1] = min(ends[1], at_quick)
    soon = saw.rise.hours_to(missing) - age_h
    ends = [max(0.0, at) for at in (min(ends[0], soon), min(ends[1], soon), ends[2])]
    return Reach(*(at if at <= horizon_h else None for at in ends))


def _share_in_tooth(saw: Saw, used_bytes: float, limit_bytes: float, age_h: float) -> float:
    """Return how many of the teeth that were higher than the present one reach the limit."""
    if not saw.teeth:
        return 0.0
    height = used_bytes - (saw.floor_bytes - saw.growth * age_h)
    higher = saw.heights[saw.heights > height]
    if len(higher):
        return float(np.mean(saw.floor_bytes + higher >= limit_bytes))
    highest = float(saw.heights.max())
    # Close to the limit, a quarter more would be too late.
    is_close = limit_bytes - used_bytes <= (OUTGROWN - 1.0) * highest
    # A level that is still as usual differs from the highest by less, and rises more slowly.
    is_real = height > _EXCEEDS * highest or saw.rise.rate >= float(np.median(saw.rises))
    return float((is_close and is_real) or height > OUTGROWN * highest)


def _futures(saw: Saw, growth: float, limit_bytes: float, horizon_h: float, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    count = saw.points - 1
    past = _blocks(saw.surprises, count, rng)
    growths = growth + past.sum(axis=1) / (count * saw.step_hours)
    # The number of steps is bounded. After them, only the growth continues.
    steps = min(_MOST_STEPS, math.ceil(horizon_h / saw.step_hours))
    # Each tooth has its own height, because the first one that reaches the limit counts.
    heights = rng.choice(saw.heights, (_FUTURES, steps)) if saw.teeth else 0.0
    wander = np.cumsum(_blocks(saw.surprises, steps, rng), axis=1)
    # Teeth reach the limit at their highest point within a step; otherwise, interpolate.
    at = np.tile(saw.step_hours * np.arange(1.0, steps + 1), (_FUTURES, 1))
    phase = saw.step_hours * rng.random((_FUTURES, 1))
    if saw.teeth:
        at -= phase
    tops = saw.floor_bytes + heights + growths[:, None] * at + wander
    exists = tops >= limit_bytes
    if not saw.teeth:
        at -= phase
    within = np.take_along_axis(at, np.argmax(exists, axis=1)[:, None], axis=1)[:, 0]
    missing = limit_bytes - tops[:, -1]
    beyond = np.where(growths > 0.0, missing / np.maximum(growths, 1e-9), np.inf)
    hours: Floats = np.where(exists.any(axis=1), within, at[:, -1] + beyond)
    return hours


def _blocks(surprises: Floats, steps: int, rng: np.random.Generator) -> Floats:
    """Return the steps of each future, made of blocks of the past."""
    count = len(surprises)
    length = max(1, round(math.sqrt(count)))
    starts = rng.integers(0, count - length + 1, (_FUTURES, -(-steps // length)))
    drawn = (starts[:, :, None] + np.arange(length)).reshape(_FUTURES, -1)[:, :steps]
    made: Floats = surprises[drawn]
    return made
