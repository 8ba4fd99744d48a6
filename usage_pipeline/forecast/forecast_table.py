"""The forecast of each volume, a row for each.

Python workers forecast the volumes separately with ``usage_pipeline.forecast.volume_forecast``.

Example: a week of readings every 10 s is 60,000 readings of a volume, and 2 MB for its worker.
"""

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from usage_pipeline.forecast.volume_forecast import (
    ForecastError,
    Forecasting,
    Readings,
    forecast_volume,
)
from usage_pipeline.tables.arrow import arrow_schema
from usage_pipeline.tables.schemas import GOLD_DISK_FORECAST, SILVER_VOLUME

_COLUMNS: Final = [column for column in GOLD_DISK_FORECAST.columns if column.name != "dt"]
_SCHEMA: Final = arrow_schema(_COLUMNS)


def disk_forecast(
    volumes: DataFrame, as_of: datetime, forecasting: Forecasting, *, run_age_h: float = 0.0
) -> DataFrame:
    """Return the rows of GOLD_DISK_FORECAST.

    Args:
        volumes: the rows of SILVER_VOLUME.
        as_of: the time, with a zone, of the last readings to use and from which hours count.
        forecasting: the settings.
        run_age_h: the hours from the as-of time to the run; 0 if an as-of time was requested.

    Raises:
        ForecastError: the time has no zone.
    """
    if as_of.tzinfo is None:
        raise ForecastError("an as-of time needs a time zone, as in 2026-01-05T08:00:00Z")
    as_of_us = (as_of - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
    hours = (sql.unix_micros("observed_ts") - sql.unix_micros("as_of")) / sql.lit(3_600_000_000.0)
    fields = ("as_of", "hours", "total_bytes", "available_bytes", "offline")
    forecasts = (
        SILVER_VOLUME.select(volumes)
        .withColumn("as_of", sql.timestamp_micros(sql.lit(as_of_us)))
        .withColumn("hours", hours)
        .where((sql.col("hours") <= 0) & (sql.col("hours") >= -24 * forecasting.history_days))
        .select("broker", "log_dir", *fields)
        .groupBy("broker", "log_dir", "as_of")
        .applyInArrow(
            _of_volume(forecasting, run_age_h),
            ", ".join(f"{column.name} {column.type}" for column in _COLUMNS),
        )
    )
    return GOLD_DISK_FORECAST.select(forecasts.withColumn("dt", sql.to_date("as_of")))


def _of_volume(
    forecasting: Forecasting, run_age_h: float
) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    """Forecast a volume from its readings, in a Python worker."""

    def of_volume(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        ordered = table.sort_by("hours")
        readings = Readings(
            ordered["hours"].to_numpy(),
            ordered["total_bytes"].to_numpy().astype(np.float64),
            ordered["available_bytes"].to_numpy().astype(np.float64),
            ordered["offline"].to_numpy(),
        )
        broker, log_dir, as_of = (each.as_py() for each in key)
        row = {"broker": broker, "log_dir": log_dir, "as_of": as_of}
        row |= asdict(forecast_volume(readings, forecasting, run_age_h=run_age_h))
        return pa.Table.from_pylist([row], schema=_SCHEMA)

    return of_volume
