"""When a disk that saw-tooths is at its limit, with a range.

The limit is reached by the top of a tooth: by the floor and a tooth's usual height together. A disk
whose teeth reach it already gets there within this tooth, at the rates at which teeth rise; so does
one that has outgrown the highest tooth by a quarter, since retention does not do what it did.

The range: 400 futures, each with a growth as sure as the time since it last changed is long, with
surprises as they were, in blocks so that what belongs together (a night) stays together, and with
teeth as they were; and 400 more that begin from the growth of that time's newest quarter, which
knows of another change first. 80 % of either half are within it, and half of all come later than
the hours that are expected.

Example: a floor of 60 GB that grows by 0.5 GB an hour under teeth of 20 GB, limit at 90 GB: 20 h.

Source: Künsch, "The Jackknife and the Bootstrap for General Stationary Observations" (1989), for
the blocks.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from usage_pipeline.forecast.growth import Floats
from usage_pipeline.forecast.sawtooth import Saw

_FUTURES: Final = 400
_RANGE: Final = (0.1, 0.9)
_OUTGROWN: Final = 1.25
_MOST_STEPS: Final = 500


@dataclass(frozen=True, slots=True)
class Reach:
    """When a limit is reached, in hours from hour 0 of the saw; None beyond the horizon."""

    hours: float | None
    low: float | None
    high: float | None


def reach(
    saw: Saw, used_bytes: float, limit_bytes: float, horizon_h: float, seed: int = 1
) -> Reach:
    """When a saw reaches a limit.

    Args:
        saw: as fitted.
        used_bytes: at hour 0.
        limit_bytes: used bytes at which producers are throttled.
        horizon_h: how far to look, hours, > 0.
        seed: of the futures.
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
    if _is_in_tooth(saw, used_bytes, limit_bytes):
        slow, usual, quick = np.quantile(saw.rises, (_RANGE[0], 0.5, _RANGE[1]))
        missing = limit_bytes - used_bytes
        ends = [missing / usual, missing / quick, max(missing / slow, ends[2])]
    return Reach(*(at if at <= horizon_h else None for at in ends))


def _is_in_tooth(saw: Saw, used_bytes: float, limit_bytes: float) -> bool:
    if not saw.teeth:
        return False
    reaches = saw.floor_bytes + float(np.median(saw.heights)) >= limit_bytes
    return reaches or used_bytes - saw.floor_bytes > _OUTGROWN * float(saw.heights.max())


def _futures(saw: Saw, growth: float, limit_bytes: float, horizon_h: float, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    count = saw.points - 1
    past = _blocks(saw.surprises, count, rng)
    growths = growth + past.sum(axis=1) / (count * saw.step_hours)
    # More would take longer than they are worth: beyond them the growth alone goes on.
    steps = min(_MOST_STEPS, math.ceil(horizon_h / saw.step_hours))
    # The first tooth that reaches it counts, so that each has a height of its own.
    heights = rng.choice(saw.heights, (_FUTURES, steps)) if saw.teeth else 0.0
    wander = np.cumsum(_blocks(saw.surprises, steps, rng), axis=1)
    # Teeth reach it when they are highest, at some time of a step; else it is reached in between.
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
    found: Floats = np.where(exists.any(axis=1), within, at[:, -1] + beyond)
    return found


def _blocks(surprises: Floats, steps: int, rng: np.random.Generator) -> Floats:
    """So many steps of each future, made of stretches of the past."""
    count = len(surprises)
    length = max(1, round(math.sqrt(count)))
    starts = rng.integers(0, count - length + 1, (_FUTURES, -(-steps // length)))
    drawn = (starts[:, :, None] + np.arange(length)).reshape(_FUTURES, -1)[:, :steps]
    made: Floats = surprises[drawn]
    return made
