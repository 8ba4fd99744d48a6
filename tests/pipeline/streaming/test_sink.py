"""Batches of a stream in a table."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sidecar.pipeline.streaming.sink import BatchSink, OtherStreamError
from sidecar.pipeline.tables.folder import Folder
from sidecar.pipeline.tables.schemas import QUARANTINE, SILVER_VOLUME, Table
from tests.pipeline.build import frame_of, rows_in

STREAM = "3f2a9c01-0000-0000-0000-000000000000"


def sink(root: Path, table: Table = SILVER_VOLUME, stream: str = STREAM) -> BatchSink:
    """Returns the sink as it is after a restart."""
    return BatchSink(Folder.of(str(root)), table, stream, 2)


def row(day: int, available: int) -> dict[str, Any]:
    return {"dt": date(2026, 11, day), "broker": 1, "available_bytes": available}


@pytest.mark.spark
def test_a_batch_that_is_written_again_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    """What a killed attempt has committed stays, and other batches do; one without rows is none."""

    def rows() -> list[tuple[str, int]]:
        return sorted(
            (each["dt"], each["available_bytes"]) for each in rows_in(tmp_path, SILVER_VOLUME)
        )

    first = sink(tmp_path)
    first.check()
    first.write(frame_of(spark, SILVER_VOLUME, row(19, 1), row(20, 2)), 0)
    first.write(frame_of(spark, SILVER_VOLUME, row(19, 3), row(20, 4)), 1)
    expected = [("2026-11-19", 1), ("2026-11-19", 3), ("2026-11-20", 2), ("2026-11-20", 4)]
    assert expected == rows()
    again = sink(tmp_path)
    again.check()
    again.write(frame_of(spark, SILVER_VOLUME, row(20, 4), row(19, 3)), 1)
    assert expected == rows()
    quarantine = sink(tmp_path, QUARANTINE)
    quarantine.write(frame_of(spark, QUARANTINE), 0)
    assert not (tmp_path / QUARANTINE.name).exists()
    quarantine.write(frame_of(spark, QUARANTINE, {"kind": "torn"}), 1)
    assert ["torn"] == [each["kind"] for each in rows_in(tmp_path, QUARANTINE)]


def test_a_stream_with_another_checkpoint_is_refused(tmp_path: Path) -> None:
    """It would write again what is there; another table is another stream's to begin."""
    sink(tmp_path).check()
    sink(tmp_path).check()
    with pytest.raises(OtherStreamError, match="another checkpoint"):
        sink(tmp_path, stream="0badcafe-0000").check()
    sink(tmp_path, QUARANTINE, "0badcafe-0000").check()
