"""Batches of a stream in tables."""

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from tests.usage_pipeline.build import rows_in
from tests.usage_pipeline.logs import line
from usage_pipeline.ingest.paths import Zones
from usage_pipeline.ingest.records import REJECTED, ROWS, Parsed
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.streaming import sink as sinks
from usage_pipeline.streaming.kafka_source import lines_of, parsed_messages
from usage_pipeline.streaming.positions import Positions
from usage_pipeline.streaming.sink import BatchSink, OtherStreamError
from usage_pipeline.tables import commits
from usage_pipeline.tables.commits import pinned
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import (
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_REQUEST,
    SILVER_VOLUME,
    Table,
)

STREAM = "3f2a9c01-0000-0000-0000-000000000000"


def torn(batches: Batches, _positions: Positions) -> Iterator[Parsed]:
    """Returns an unreadable line for each row of the source."""
    for batch in batches:
        lines = [
            {"src_file": "a", "src_offset": at, "kind": "torn"} for at in batch["id"].to_pylist()
        ]
        rejected = pa.RecordBatch.from_pylist(lines, schema=REJECTED)
        yield Parsed(pa.RecordBatch.from_pylist([], schema=ROWS), rejected)


def sink(root: Path, *tables: Table, stream: str = STREAM) -> BatchSink:
    """Returns the sink as it is after a restart."""
    return BatchSink(Folder.parse(str(root)), tables or (QUARANTINE,), stream, torn)


@pytest.mark.spark
def test_a_batch_that_is_written_again_is_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits of a killed attempt and other batches stay; a batch without rows commits nothing."""

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
    assert 1 == len(pinned(again.folder).files(QUARANTINE))


@pytest.mark.spark
@pytest.mark.parametrize(("retained", "files"), [(timedelta(days=1), 3), (timedelta(0), 1)])
def test_files_that_were_brought_together_are_retained_for_a_while(
    spark: SparkSession, tmp_path: Path, retained: timedelta, files: int
) -> None:
    """Readers of an earlier version can use the files until then."""
    stream = dataclasses.replace(sink(tmp_path), retained=retained)
    stream.check()
    for number in range(2):
        stream.write(spark.range(number, number + 1, 1, 1), number)
    stream.tidy()
    assert files == len(list((tmp_path / QUARANTINE.name).rglob("*.parquet")))
    assert 2 == len(rows_in(tmp_path, QUARANTINE))


def test_a_stream_with_another_checkpoint_is_refused(tmp_path: Path) -> None:
    """It would write existing rows again. It may write to a table without a stream."""
    sink(tmp_path).check()
    sink(tmp_path).check()
    with pytest.raises(OtherStreamError, match="another checkpoint"):
        sink(tmp_path, SILVER_VOLUME, QUARANTINE, stream="0badcafe-0000").check()


def test_other_tables_than_it_has_begun_with_are_refused(tmp_path: Path) -> None:
    """A new table would lack earlier lines, and an omitted table would lack later ones."""
    sink(tmp_path, QUARANTINE, SILVER_VOLUME).check()
    for tables in ((GOLD_REPLAY,), (QUARANTINE, SILVER_VOLUME, GOLD_REPLAY), (QUARANTINE,)):
        with pytest.raises(OtherStreamError, match="this stream writes quarantine, silver_volume"):
            sink(tmp_path, *tables).check()
    assert ["quarantine", "silver_volume"] == Folder.parse(str(tmp_path)).names("_streams")
    sink(tmp_path, SILVER_VOLUME, QUARANTINE).check()


def shipped(spark: SparkSession, *places: tuple[int, str]) -> DataFrame:
    """Messages of a batch: the line with this number, of a file of this name."""
    schema = "key binary, value binary, topic string, partition int, offset bigint"
    length = len(numbered(0))
    rows = [
        (b"3", f"{file}:{number % 100 * length}:".encode() + numbered(number), "log", 0, at)
        for at, (number, file) in enumerate(places)
    ]
    sent = spark.createDataFrame(rows, schema).coalesce(1)
    headers = sql.lit(None).cast("array<struct<key:string,value:binary>>")
    return lines_of(
        sent.withColumns({"headers": headers, "timestamp": sql.current_timestamp()}), None
    )


def numbered(number: int) -> bytes:
    return line(number * 100, user=f"u{number:03}")


@pytest.mark.spark
def test_a_line_that_is_sent_again_is_in_no_table_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is missing after a kill between positions and commits, or between two commits."""
    append, tables = commits.append, (SILVER_REQUEST, GOLD_USAGE_1S, QUARANTINE)
    parse = partial(parsed_messages, zones=Zones())
    resent = []

    def write(batch: int, *places: tuple[int, str], whole: int = 9) -> None:
        """Killed after so many of its commits, and begun again by another process."""
        made = iter(range(9))

        def killed(*args: Any) -> bool:
            if next(made) == whole:
                raise KeyboardInterrupt
            return append(*args)

        again = BatchSink(Folder.parse(str(tmp_path)), tables, STREAM, parse)
        again.check()
        monkeypatch.setattr(sinks, "append", killed)
        if whole < len(tables):
            with pytest.raises(KeyboardInterrupt):
                again.write(shipped(spark, *places), batch)
        else:
            again.write(shipped(spark, *places), batch)
            resent.append(again.resent[batch])

    log = "/logs/kafka-request.log"
    first = [(number, log) for number in range(60)]
    write(0, *first)
    # From its checkpoint, over a rotation.
    second = [(number, f"{log}.1") for number in range(40, 100)]
    second += [(number, log) for number in range(100, 130)]
    for whole in (0, 1, 9):
        write(1, *second, whole=whole)
    write(2, *second[-10:])
    write(3, *second[50:], (130, log), whole=0)
    write(3, *second[50:], (130, log))
    assert [0, 20, 10, 40] == resent
    requests, usage = rows_in(tmp_path, SILVER_REQUEST), rows_in(tmp_path, GOLD_USAGE_1S)
    users = [f"u{number:03}" for number in range(131)]
    assert users == sorted(row["user"] for row in requests)
    produced = [row for row in usage if row["quota_type"] == "produce"]
    assert users == sorted(row["user"] for row in produced)
    assert {1} == {row["events"] for row in produced}
    names = [
        name for name in Folder.parse(str(tmp_path)).names("_streams") if "-positions-" in name
    ]
    assert [f"{STREAM}-positions-000000000{batch}.json" for batch in (2, 3)] == names
