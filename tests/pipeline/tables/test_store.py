"""The tables of a folder as a run sees them."""

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from sidecar.pipeline.tables.files import HadoopFiles
from sidecar.pipeline.tables.publish import Output, recover
from sidecar.pipeline.tables.schemas import DIM_TOPIC, SILVER_VOLUME
from sidecar.pipeline.tables.store import FewerRowsError, Store
from tests.pipeline.build import frame_of


def volumes(spark: SparkSession, *days: int, available: int = 1) -> DataFrame:
    """Returns a reading of each of some days of November."""
    return frame_of(
        spark,
        SILVER_VOLUME,
        *(
            {"dt": date(2026, 11, day), "broker": 1, "available_bytes": available, "offline": False}
            for day in days
        ),
    )


def days_and_bytes(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row["dt"].day, row["available_bytes"]) for row in frame.collect())


@pytest.mark.spark
def test_a_run_reads_its_own_days_and_the_last_good_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It does so before publishing and after; a killed run's days are never read, nor retained."""
    output = Output(HadoopFiles(spark), str(tmp_path / "tables"))
    first = Store(spark, output)
    assert [] == days_and_bytes(first.read(SILVER_VOLUME))
    first.write(SILVER_VOLUME, volumes(spark, 19, 20, 20))
    first.write(DIM_TOPIC, frame_of(spark, DIM_TOPIC, {"topic": "a"}))
    first.publish(SILVER_VOLUME)

    killed = Store(spark, output)
    killed.write(SILVER_VOLUME, volumes(spark, 20, 20, available=2))
    killed.write(DIM_TOPIC, frame_of(spark, DIM_TOPIC, {"topic": "b"}))
    assert [(19, 1), (20, 2), (20, 2)] == days_and_bytes(killed.read(SILVER_VOLUME))
    assert [(20, 2), (20, 2)] == days_and_bytes(killed.read(SILVER_VOLUME, [date(2026, 11, 20)]))
    assert "b" == killed.read(DIM_TOPIC).collect()[0]["topic"]

    recover(output)
    again = Store(spark, output)
    assert [(19, 1), (20, 1), (20, 1)] == days_and_bytes(again.read(SILVER_VOLUME))
    assert "a" == again.read(DIM_TOPIC).collect()[0]["topic"]
    # The listing may still show what was removed.
    killed.write(SILVER_VOLUME, volumes(spark, 21, available=2))
    again.write(SILVER_VOLUME, volumes(spark, 20, available=3))
    with pytest.raises(FewerRowsError, match="2026-11-20 has 2 rows and would have 1"):
        again.publish(SILVER_VOLUME)
    assert [(19, 1), (20, 3)] == days_and_bytes(again.read(SILVER_VOLUME))
    again.publish()
    assert [(19, 1), (20, 3)] == days_and_bytes(Store(spark, output).read(SILVER_VOLUME))
