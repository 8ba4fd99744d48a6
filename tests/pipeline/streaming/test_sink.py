"""Batches of a stream in a table's folder."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sidecar.pipeline.streaming.sink import BatchSink, OtherStreamError
from sidecar.pipeline.tables.files import HadoopFiles
from sidecar.pipeline.tables.schemas import QUARANTINE, SILVER_VOLUME, Table
from tests.pipeline.build import frame_of
from tests.pipeline.local_files import LocalFiles

STREAM = "3f2a9c01-0000-0000-0000-000000000000"


def sink(spark: SparkSession, root: Path, table: Table = SILVER_VOLUME) -> BatchSink:
    """Returns the sink as it is after a restart."""
    return BatchSink(HadoopFiles(spark), str(root), table, STREAM, 2)


def row(day: int, available: int) -> dict[str, Any]:
    return {"dt": date(2026, 11, day), "broker": 1, "available_bytes": available}


@pytest.mark.spark
def test_a_batch_that_is_written_again_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    """It replaces a killed attempt's files in all partitions; other batches stay."""

    def rows() -> list[tuple[int, int]]:
        found = spark.read.parquet(str(tmp_path / SILVER_VOLUME.name)).collect()
        return sorted((each["dt"].day, each["available_bytes"]) for each in found)

    first = sink(spark, tmp_path)
    first.write(frame_of(spark, SILVER_VOLUME, row(19, 1), row(20, 2)), 0)
    first.write(frame_of(spark, SILVER_VOLUME, row(19, 3), row(20, 4)), 1)
    assert [(19, 1), (19, 3), (20, 2), (20, 4)] == rows()
    again = sink(spark, tmp_path)
    again.check()
    again.write(frame_of(spark, SILVER_VOLUME, row(19, 3), row(21, 4)), 1)
    assert [(19, 1), (19, 3), (20, 2), (21, 4)] == rows()
    quarantine = sink(spark, tmp_path, QUARANTINE)
    quarantine.write(frame_of(spark, QUARANTINE), 0)
    assert not (tmp_path / QUARANTINE.name).exists()
    quarantine.write(frame_of(spark, QUARANTINE, {"kind": "torn"}), 1)
    (name,) = (path.name for path in (tmp_path / QUARANTINE.name).glob("*.parquet"))
    assert "3f2a9c01-0000000001-0.parquet" == name
    assert not list((tmp_path / "_stream").glob("*"))


def test_a_stream_with_another_checkpoint_is_refused(tmp_path: Path) -> None:
    """It would write again what is there; files that no stream wrote are no reason."""
    folder = tmp_path / SILVER_VOLUME.name / "dt=2026-11-20"
    folder.mkdir(parents=True)
    (folder / "part-00000-0a1b2c3d.zstd.parquet").touch()
    (folder / "3f2a9c01-0000000001-0.parquet").touch()
    BatchSink(LocalFiles(), str(tmp_path), SILVER_VOLUME, STREAM).check()
    other = BatchSink(LocalFiles(), str(tmp_path), SILVER_VOLUME, "0badcafe-0000")
    with pytest.raises(OtherStreamError, match="another checkpoint"):
        other.check()
