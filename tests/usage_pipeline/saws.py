"""Disks whose future is known."""

import numpy as np

from usage_pipeline.forecast.growth import Floats

GB = 1e9


def saw(
    hours: Floats,
    *,
    floor: float = 60 * GB,
    growth: float = 0.5 * GB,
    tooth: float = 20 * GB,
    period_h: float = 6.0,
    shift_h: float = 0.0,
) -> Floats:
    """Returns used bytes: a floor that is known at hour 0, and teeth on it."""
    return floor + growth * hours + tooth * (((hours + shift_h) % period_h) / period_h)


def every_5_minutes(history_h: float) -> Floats:
    """Returns hours of readings up to hour 0."""
    return np.arange(-round(history_h * 12), 1) / 12
