"""The forecast of one volume from its readings.

A forecast is refused, with the reason, if there are fewer than 12 readings or less than a day of
them (a day of traffic is a tooth too; a gap is no history), if the last reading is a day old, if
there are one or two deletions, or if the log dir is offline. A volume at its limit still has 0
hours, unless its log dir is offline or its last reading is a day old.

Usage grows without a deletion until the retention of the topics begins to delete, and may level off
then. So the range has no late end if the history has no deletion and is shorter than the retention.

Example: a volume of 1 TB has a limit of 50 GB, and a floor of 700 GB that grows by 2 GB an hour
under teeth of 90 GB. The forecast is 80 hours, with a range.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from sidecar.errors import SidecarError
from usage_pipeline.forecast.backtest import backtest_error
from usage_pipeline.forecast.growth import Floats
from usage_pipeline.forecast.sawtooth import Refused, fit
from usage_pipeline.forecast.time_to_limit import reach

_GAP_H: Final = 1.0
_LEAST_HISTORY_H: Final = 24.0
"""The hours of readings that a forecast needs."""
_STALE_H: Final = 24.0
"""The largest age of the last reading."""


class ForecastError(SidecarError):
    """The settings of a forecast are invalid."""


@dataclass(frozen=True, slots=True)
class Forecasting:
    """The settings of forecasts.

    Attributes:
        limit_bytes: the available bytes at which producers are throttled.
        limit_ratio: the same as a ratio of the total size; the larger limit applies.
        horizon_hours: the hours to forecast.
        history_days: the days of readings to use, because disks grew differently long ago. Four
            weeks have enough weekends.
        retention_hours: the longest retention of the topics.

    Raises:
        ForecastError: a setting is invalid.
    """

    limit_bytes: int = 0
    limit_ratio: float = 0.0
    horizon_hours: float = 90 * 24.0
    history_days: float = 28.0
    retention_hours: float = 7 * 24.0

    def __post_init__(self) -> None:
        if self.limit_bytes < 0 or not 0.0 <= self.limit_ratio < 1.0:
            raise ForecastError(
                "a limit must be at least 0 bytes, and a ratio from 0.0 to less than 1.0"
            )
        if min(self.horizon_hours, self.history_days) <= 0.0:
            raise ForecastError("the horizon and the history of a forecast must be above 0")

    def limit_of(self, total_bytes: int) -> int:
        """Return the available bytes at which producers are throttled."""
        return max(self.limit_bytes, round(self.limit_ratio * total_bytes))


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of one volume, ascending.

    Attributes:
        hours: the times in hours from the as-of time, 0 or less.
        total_bytes: the size of the volume; nan while offline.
        available_bytes: the available bytes; nan while offline.
        offline: whether the log dir was offline.
    """

    hours: Floats
    total_bytes: Floats
    available_bytes: Floats
    offline: npt.NDArray[np.bool_]

    @property
    def online(self) -> "Readings":
        """The readings with sizes."""
        known = ~self.offline
        return Readings(
            self.hours[known],
            self.total_bytes[known],
            self.available_bytes[known],
            self.offline[known],
        )

    @property
    def history_hours(self) -> float:
        """The hours with readings: a longer gap counts as one hour, or as two usual steps."""
        if not len(self.hours):
            return 0.0
        steps = np.diff(self.hours, prepend=self.hours[0])
        longer = np.maximum(0.0, steps - max(_GAP_H, 2 * float(np.median(steps))))
        return float(self.hours[-1] - self.hours[0] - longer.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeForecast:
    """The columns of GOLD_DISK_FORECAST."""

    total_bytes: int | None
    available_bytes: int | None
    limit_bytes: int | None
    growth_bytes_per_hour: float | None = None
    hours_to_limit: float | None = None
    hours_low: float | None = None
    hours_high: float | None = None
    readings: int
    history_hours: float
    teeth: int = 0
    backtest_error_bytes: float | None = None
    refused: str | None = None


def forecast_volume(
    readings: Readings, forecasting: Forecasting, *, run_age_h: float = 0.0
) -> VolumeForecast:
    """Return the forecast.

    Args:
        readings: at least one reading.
        forecasting: the settings.
        run_age_h: the hours from the as-of time to the run; 0 if an as-of time was requested.
    """
    online = readings.online
    refused = _unknown_now(readings, online, run_age_h)
    if refused is not None:
        return _refused(online, forecasting, refused)
    history_h = online.history_hours
    if history_h < _LEAST_HISTORY_H:
        why = f"the history has {history_h:.1f} hours; a forecast needs {_LEAST_HISTORY_H:g}"
        return _at_limit_or_refused(online, forecasting, why)
    used_bytes = online.total_bytes - online.available_bytes
    saw = fit(online.hours, used_bytes)
    if isinstance(saw, Refused):
        return _at_limit_or_refused(online, forecasting, saw.reason)
    total = int(online.total_bytes[-1])
    limit = forecasting.limit_of(total)
    may_level_off = not saw.teeth and history_h < forecasting.retention_hours
    at = reach(
        saw,
        float(used_bytes[-1]),
        float(total - limit),
        forecasting.horizon_hours,
        age_h=-float(online.hours[-1]),
    )
    return VolumeForecast(
        total_bytes=total,
        available_bytes=int(online.available_bytes[-1]),
        limit_bytes=limit,
        growth_bytes_per_hour=saw.growth,
        hours_to_limit=at.hours,
        hours_low=at.low,
        # A volume at its limit is there now, whatever happens later.
        hours_high=None if may_level_off and at.high != 0.0 else at.high,
        readings=len(used_bytes),
        history_hours=history_h,
        teeth=saw.teeth,
        backtest_error_bytes=backtest_error(online.hours, used_bytes),
    )


def _unknown_now(readings: Readings, online: Readings, run_age_h: float) -> str | None:
    if readings.offline[-1]:
        return "the log dir is offline"
    age_h = -float(online.hours[-1])
    if age_h > _STALE_H:
        return f"the last reading is {age_h:.0f} hours old"
    if age_h + run_age_h > _STALE_H:
        return (
            f"the last reading is more than {_STALE_H:g} hours older than the run;"
            " to forecast an earlier history, set --as-of"
        )
    return None


def _at_limit_or_refused(online: Readings, forecasting: Forecasting, why: str) -> VolumeForecast:
    """Return a refused forecast. A volume at its limit has 0 hours, which need no history."""
    limit = forecasting.limit_of(int(online.total_bytes[-1]))
    hours = 0.0 if online.available_bytes[-1] <= limit else None
    return replace(
        _refused(online, forecasting, why), hours_to_limit=hours, hours_low=hours, hours_high=hours
    )


def _refused(online: Readings, forecasting: Forecasting, why: str) -> VolumeForecast:
    count = len(online.hours)
    total = int(online.total_bytes[-1]) if count else None
    return VolumeForecast(
        total_bytes=total,
        available_bytes=int(online.available_bytes[-1]) if count else None,
        limit_bytes=None if total is None else forecasting.limit_of(total),
        readings=count,
        history_hours=online.history_hours,
        refused=why,
    )
