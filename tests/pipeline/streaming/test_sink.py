"""Batches of a stream in tables."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sidecar.pipeline.ingest.records import REJECTED, ROWS, Parsed
from sidecar.pipeline.runtime.by_workers import Batches
from sidecar.pipeline.streaming import sink as sinks
from sidecar.pipeline.streaming.sink import BatchSink, OtherStreamError
from sidecar.pipeline.tables.commits import newest
from sidecar.pipeline.tables.folder import Folder
from sidecar.pipeline.tables.schemas import GOLD_REPLAY, QUARANTINE, SILVER_VOLUME, Table
from tests.pipeline.build import rows_in

STREAM = "3f2a9c01-0000-0000-0000-000000000000"


def torn(batches: Batches) -> Iterator[Parsed]:
    """A line that can't be read of each row that the source gives."""
    for batch in batches:
        lines = [
            {"src_file": "a", "src_offset": at, "kind": "torn"} for at in batch["id"].to_pylist()
        ]
        rejected = pa.RecordBatch.from_pylist(lines, schema=REJECTED)
        yield Parsed(pa.RecordBatch.from_pylist([], schema=ROWS), rejected)


def sink(root: Path, *tables: Table, stream: str = STREAM) -> BatchSink:
    """Returns the sink as it is after a restart."""
    return BatchSink(Folder.of(str(root)), tables or (QUARANTINE,), stream, torn)


@pytest.mark.spark
def test_a_batch_that_is_written_again_is_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed attempt has committed stays, and other batches do; one without rows is none."""

    def offsets() -> list[int]:
        return sorted(each["src_offset"] for each in rows_in(tmp_path, QUARANTINE))

    monkeypatch.setattr(sinks, "_TIDIED_BATCHES", 2)
    first = sink(tmp_path)
    first.check()
    first.write(spark.range(0), 0)
    assert not (tmp_path / QUARANTINE.name).exists()
    first.write(spark.range(0, 3), 1)
    first.write(spark.range(3, 5), 2)
    again = sink(tmp_path)
    again.check()
    again.write(spark.range(3, 5), 2)
    assert [0, 1, 2, 3, 4] == offsets()
    again.write(spark.range(5, 6), 3)
    assert [0, 1, 2, 3, 4, 5] == offsets()
    assert 1 == len(newest(again.folder).files(QUARANTINE))


def test_a_stream_with_another_checkpoint_is_refused(tmp_path: Path) -> None:
    """It would write again what is there; another table is another stream's to begin."""
    sink(tmp_path).check()
    sink(tmp_path).check()
    with pytest.raises(OtherStreamError, match="another checkpoint"):
        sink(tmp_path, SILVER_VOLUME, QUARANTINE, stream="0badcafe-0000").check()


def test_other_tables_than_it_has_begun_with_are_refused(tmp_path: Path) -> None:
    """They would lack what was read before, or what is read without them."""
    sink(tmp_path, QUARANTINE, SILVER_VOLUME).check()
    for tables in ((GOLD_REPLAY,), (QUARANTINE, SILVER_VOLUME, GOLD_REPLAY), (QUARANTINE,)):
        with pytest.raises(OtherStreamError, match="this stream writes quarantine, silver_volume"):
            sink(tmp_path, *tables).check()
    assert ["quarantine", "silver_volume"] == Folder.of(str(tmp_path)).names("_streams")
    sink(tmp_path, SILVER_VOLUME, QUARANTINE).check()
