"""Disk forecasts as a table: a row for each volume, as of a time."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.usage_pipeline.saws import GB, saw
from usage_pipeline.forecast.forecast_table import disk_forecast
from usage_pipeline.forecast.volume_forecast import ForecastError, Forecasting
from usage_pipeline.tables.schemas import GOLD_DISK_FORECAST, SILVER_VOLUME

pytestmark = pytest.mark.spark

NEWEST = datetime(2026, 1, 12, 8, 0, tzinfo=UTC)
HOURS = np.arange(-1008, 1) / 6


def volumes(spark: SparkSession) -> DataFrame:
    """Returns a week: broker 1 grows, broker 2 began this night, broker 3 has just gone offline."""
    used = saw(HOURS, floor=700 * GB, growth=2 * GB, tooth=90 * GB)
    rows = [
        (at.date(), broker, "/d", at, None if gone else 10**12, None if gone else free, gone)
        for broker, since_h in ((1, -168), (2, -7), (3, -168))
        for hour, free in zip(HOURS.tolist(), (10**12 - used).astype(int).tolist(), strict=True)
        if hour >= since_h
        for at in [NEWEST + timedelta(hours=hour)]
        for gone in [broker == 3 and hour == 0]
    ]
    # Readings come in no order.
    return spark.createDataFrame(rows[::-1], SILVER_VOLUME.schema)


def test_a_row_for_each_volume(spark: SparkSession) -> None:
    """There is a forecast, a refusal for little history, and one for an offline log dir."""
    table = disk_forecast(volumes(spark), NEWEST, Forecasting(limit_ratio=0.05))
    assert list(GOLD_DISK_FORECAST.names) == table.columns
    growing, young, offline = table.orderBy("broker").collect()
    assert (1, "/d", None) == (growing["broker"], growing["log_dir"], growing["refused"])
    assert 80 == pytest.approx(growing["hours_to_limit"], abs=5)
    assert growing["hours_low"] <= growing["hours_to_limit"] <= growing["hours_high"]
    assert (1009, 27, 168.0) == (growing["readings"], growing["teeth"], growing["history_hours"])
    assert ("the history has 7.0 hours; a forecast needs 24", None) == (
        young["refused"],
        young["hours_low"],
    )
    assert ("the log dir is offline", 1008) == (offline["refused"], offline["readings"])
    assert {(NEWEST.date(), NEWEST.replace(tzinfo=None))} == {
        (row["dt"], row["as_of"]) for row in (growing, young, offline)
    }


def test_as_of_a_time_later_readings_are_not_known(spark: SparkSession) -> None:
    """Two days before, broker 2 was not there, broker 3 was online, the limit 48 h further."""
    as_of = NEWEST - timedelta(hours=48)
    rows = (
        disk_forecast(volumes(spark), as_of, Forecasting(limit_ratio=0.05))
        .orderBy("broker")
        .collect()
    )
    assert [1, 3] == [row["broker"] for row in rows]
    assert [721, 721] == [row["readings"] for row in rows]
    assert [128, 128] == pytest.approx([row["hours_to_limit"] for row in rows], abs=5)
    assert {as_of.replace(tzinfo=None)} == {row["as_of"] for row in rows}
    with pytest.raises(ForecastError, match="needs a time zone"):
        disk_forecast(volumes(spark), as_of.replace(tzinfo=None), Forecasting())
