"""The forecast of each volume, a row for each.

Python workers forecast the volumes separately with ``usage_pipeline.forecast.volume_forecast``.

Example: a week of readings every 10 s is 60,000 readings of a volume, and 2 MB for its worker.
"""

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from usage_pipeline.forecast.volume_forecast import (
    ForecastError,
    Forecasting,
    Readings,
    forecast_volume,
)
from usage_pipeline.tables.schemas import GOLD_DISK_FORECAST, SILVER_VOLUME

_TOLD = {column.name: column.type for column in GOLD_DISK_FORECAST.columns if column.name != "dt"}
_PANDAS = {
    name: {
        "int": "int32",
        "bigint": "Int64",
        "double": "Float64",
        "timestamp": "datetime64[us]",
    }.get(kind, "object")
    for name, kind in _TOLD.items()
}


def disk_forecast(
    volumes: DataFrame, as_of: datetime | None = None, forecasting: Forecasting | None = None
) -> DataFrame:
    """Return the rows of GOLD_DISK_FORECAST.

    Args:
        volumes: the rows of SILVER_VOLUME.
        as_of: the time, with a zone, of the last readings to use and from which hours count. None
            for the newest reading of all volumes.
        forecasting: the settings; None for the defaults.

    Raises:
        ForecastError: the time has no zone.
    """
    chosen = forecasting or Forecasting()
    readings = SILVER_VOLUME.select(volumes)
    if as_of is None:
        newest = readings.agg(sql.max("observed_ts").alias("as_of"))
        readings = readings.crossJoin(sql.broadcast(newest))
    elif as_of.tzinfo is None:
        raise ForecastError("an as-of time needs a time zone, as in 2026-01-05T08:00:00Z")
    else:
        readings = readings.withColumn("as_of", sql.timestamp_micros(sql.lit(_micros(as_of))))
    hours = (sql.unix_micros("observed_ts") - sql.unix_micros("as_of")) / sql.lit(3_600_000_000.0)
    fields = ("as_of", "hours", "total_bytes", "available_bytes", "offline")
    forecasts = (
        readings.withColumn("hours", hours)
        .where((sql.col("hours") <= 0) & (sql.col("hours") >= -24 * chosen.history_days))
        .select("broker", "log_dir", *fields)
        .groupBy("broker", "log_dir", "as_of")
        .applyInPandas(
            _of_volume(chosen), ", ".join(f"{name} {kind}" for name, kind in _TOLD.items())
        )
    )
    return GOLD_DISK_FORECAST.select(forecasts.withColumn("dt", sql.to_date("as_of")))


def _micros(at: datetime) -> int:
    return (at - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _of_volume(
    forecasting: Forecasting,
) -> Callable[[tuple[Any, ...], pd.DataFrame], pd.DataFrame]:
    """Forecast a volume from its readings, in a Python worker."""

    def of_volume(key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
        ordered = frame.sort_values("hours")
        readings = Readings(
            ordered["hours"].to_numpy("float64"),
            ordered["total_bytes"].to_numpy("float64"),
            ordered["available_bytes"].to_numpy("float64"),
            ordered["offline"].to_numpy("bool"),
        )
        row = {
            "broker": key[0],
            "log_dir": key[1],
            "as_of": key[2],
            **asdict(forecast_volume(readings, forecasting)),
        }
        return pd.DataFrame([row], columns=list(_TOLD)).astype(_PANDAS)

    return of_volume
