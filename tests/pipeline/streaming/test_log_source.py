"""Batches of logs that grow, as Spark asks for them."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from sidecar.pipeline.streaming.log_source import Piece, RequestLogStream, StreamOptions
from sidecar.pipeline.streaming.source_offsets import LostLinesError, Offset
from tests.pipeline.growing_logs import GrowingLog, line, lines, pack


def reader(folder: Path, **options: object) -> DataSourceStreamReader:
    """Returns a reader as after a restart: it knows nothing but the options."""
    settings = StreamOptions(str(folder), **options).spark_options()  # type: ignore[arg-type]  # its fields
    return RequestLogStream(settings).streamReader(StructType())


def pieces_of(reading: DataSourceStreamReader, start: Offset, end: Offset) -> list[Piece]:
    return [piece for piece in reading.partitions(start, end) if isinstance(piece, Piece)]


def planned(reading: DataSourceStreamReader, start: Offset) -> tuple[Offset, list[Piece]]:
    """Returns the next batch, through JSON as Spark stores it."""
    end = json.loads(json.dumps(reading.latestOffset(start, reading.getDefaultReadLimit())))
    return end, pieces_of(reading, start, end)


def batches_of(reading: DataSourceStreamReader, pieces: list[Piece]) -> list[pa.RecordBatch]:
    return [batch for piece in pieces for batch in reading.read(piece)]


def numbers(reading: DataSourceStreamReader, pieces: list[Piece]) -> list[int]:
    """Returns the lines' times in tenths of a second, which ``lines`` counts."""
    times = [time for batch in batches_of(reading, pieces) for time in batch["log_ts"].to_pylist()]
    return [round((time.minute * 60 + time.second) * 10 + time.microsecond / 1e5) for time in times]


def rest(reading: DataSourceStreamReader, start: Offset) -> tuple[Offset, list[int]]:
    """Returns all batches until nothing is left."""
    found: list[int] = []
    while True:
        end, pieces = planned(reading, start)
        if end == start:
            return start, found
        found += numbers(reading, pieces)
        start = end


def test_lines_are_read_once_as_a_log_grows(tmp_path: Path) -> None:
    """Half a line is left until it is whole."""
    log = GrowingLog(tmp_path, 3)
    half = line(1_000, 10)
    log.write(lines(10) + half[:300])
    offset, found = rest(reader(tmp_path), {})
    assert list(range(10)) == found
    log.write(half[300:])
    _, found = rest(reader(tmp_path), offset)
    assert [10] == found


def test_a_log_that_is_rotated_in_every_way_is_read_once(tmp_path: Path) -> None:
    """It is renamed, copied and packed, with a restart in between each time."""
    log = GrowingLog(tmp_path, 3)
    offset: Offset = {}
    found: list[int] = []
    for begin in range(0, 60, 6):
        log.write(lines(3, first=begin))
        offset, more = rest(reader(tmp_path, max_bytes=1500), offset)
        log.write(lines(3, first=begin + 3))
        copied = begin % 4 == 0
        old = log.copy_and_truncate(str(begin)) if copied else log.rotate(str(begin))
        if begin % 3 == 0:
            pack(old)
        found += more
    _, more = rest(reader(tmp_path, max_bytes=1500), offset)
    assert list(range(60)) == sorted(found + more)


def test_a_batch_that_is_done_again_reads_the_same_lines(tmp_path: Path) -> None:
    """The file may be anywhere by then, and have grown since."""
    log = GrowingLog(tmp_path, 3, lines(20))
    first, _ = planned(reader(tmp_path, max_bytes=5_000), {})
    end, pieces = planned(reader(tmp_path, max_bytes=5_000), first)
    expected = numbers(reader(tmp_path), pieces)
    assert expected
    log.write(lines(20, first=20))
    old = log.rotate("1")
    assert expected == numbers(reader(tmp_path), pieces_of(reader(tmp_path), first, end))
    # It is renamed after it was planned, too.
    assert expected == numbers(reader(tmp_path), pieces)
    pack(old)
    log.write(lines(1, first=40))
    assert expected == numbers(reader(tmp_path), pieces_of(reader(tmp_path), first, end))
    assert expected == numbers(reader(tmp_path), pieces)


def test_a_file_that_is_gone_before_it_was_read_is_reported(tmp_path: Path) -> None:
    """Whoever notices first reports it: the plan, or the task."""
    log = GrowingLog(tmp_path, 3, lines(5))
    end, pieces = planned(reader(tmp_path), {})
    log.path.write_bytes(lines(5, first=100))
    with pytest.raises(LostLinesError, match="put it back"):
        numbers(reader(tmp_path), pieces)
    with pytest.raises(LostLinesError, match="put it back"):
        reader(tmp_path).partitions({}, end)


def test_brokers_advance_in_step(tmp_path: Path) -> None:
    """A log with a tenth of the lines is read as far in time as the busy one."""
    GrowingLog(tmp_path, 1, lines(300))
    GrowingLog(tmp_path, 2, lines(30, step_ms=1_000))
    reading = reader(tmp_path, max_bytes=50_000)
    _, pieces = planned(reading, {})
    by_broker = {
        broker: max(numbers(reading, [piece for piece in pieces if piece.broker == broker]))
        for broker in (1, 2)
    }
    assert 0 <= by_broker[1] - by_broker[2] < 10
    assert by_broker[1] < 100
    assert list(range(by_broker[1] + 1)) == numbers(
        reading, [piece for piece in pieces if piece.broker == 1]
    )


@pytest.mark.slow
def test_a_large_file_is_read_by_several_tasks(tmp_path: Path) -> None:
    """Each has whole lines, and none is in two; a packed one is read by one task."""
    log = GrowingLog(tmp_path, 3, lines(30_000, step_ms=1))
    _, pieces = planned(reader(tmp_path), {})
    assert 2 == len(pieces)
    reading = reader(tmp_path)
    assert 30_000 == len(numbers(reading, pieces[:1])) + len(numbers(reading, pieces[1:]))
    pack(log.path)
    _, pieces = planned(reader(tmp_path), {})
    assert 1 == len(pieces)


def test_only_what_was_there_is_read_when_it_is_to_end(tmp_path: Path) -> None:
    """What comes after the first plan is left for the next run."""
    log = GrowingLog(tmp_path, 3, lines(20))
    reading = reader(tmp_path, max_bytes=5_000)
    assert isinstance(reading, SupportsTriggerAvailableNow)
    reading.prepareForTriggerAvailableNow()
    first, pieces = planned(reading, {})
    found = numbers(reading, pieces)
    log.write(lines(20, first=20))
    GrowingLog(tmp_path, 4, lines(5))
    _, more = rest(reading, first)
    assert list(range(20)) == found + more


def test_what_is_there_at_the_start_can_be_left_out(tmp_path: Path) -> None:
    """Only later lines are read."""
    log = GrowingLog(tmp_path, 3, lines(20))
    reading = reader(tmp_path, from_start=False)
    start = json.loads(json.dumps(reading.initialOffset()))
    log.write(lines(2, first=20))
    assert [20, 21] == rest(reading, start)[1]


def test_a_batch_has_as_many_bytes_as_allowed(tmp_path: Path) -> None:
    """It has all of them if Spark says so."""
    GrowingLog(tmp_path, 3, lines(100))
    reading = reader(tmp_path, max_bytes=10_000)
    assert ReadMaxBytes(10_000) == reading.getDefaultReadLimit()
    ((_, limited),) = reading.latestOffset({}, ReadMaxBytes(10_000)).items()
    assert 9_000 < limited["at"] <= 11_000
    ((_, whole),) = reading.latestOffset({}, ReadAllAvailable()).items()
    assert len(lines(100)) == whole["at"]


def test_lines_that_cannot_be_read_are_rows_of_quarantine(tmp_path: Path) -> None:
    """They have their places, and only the requested columns."""
    GrowingLog(tmp_path, 3, line(0) + b"torn\n" + line(1, 1))
    reading = reader(tmp_path, table="quarantine", columns="src_offset,kind")
    _, pieces = planned(reading, {})
    (batch,) = batches_of(reading, pieces)
    assert [{"src_offset": len(line(0)), "kind": "other"}] == batch.to_pylist()


def test_a_reader_names_its_columns_and_types() -> None:
    """They are in the table's order, without the columns that the table is partitioned by."""
    source = RequestLogStream(StreamOptions("x", columns="quota_bytes,dt,broker").spark_options())
    assert "`broker` int, `quota_bytes` bigint" == source.schema()
