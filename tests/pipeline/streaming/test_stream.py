"""The tables as a stream."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sidecar.pipeline.silver.request_table import RequestLogs, silver_request
from sidecar.pipeline.streaming.log_source import StreamOptions, file_rows
from sidecar.pipeline.streaming.sink import BatchSink, OtherStreamError
from sidecar.pipeline.streaming.stream import (
    LateLinesError,
    Progress,
    StreamError,
    StreamSettings,
    stream,
)
from sidecar.pipeline.tables.commits import newest
from sidecar.pipeline.tables.folder import Folder
from sidecar.pipeline.tables.schemas import GOLD_USAGE_1S, QUARANTINE, SILVER_REQUEST, Table
from sidecar.pipeline.tables.store import Store
from sidecar.pipeline.tables.writers import OtherWriterError
from sidecar.pipeline.usage.usage_table import gold_usage_1s
from tests.pipeline.growing_logs import GrowingLog, line, lines, pack
from tests.pipeline.parsed_logs import requests_of


def streamed(
    spark: SparkSession, logs: Path, settings: StreamSettings, *tables: Table, max_bytes: int
) -> list[Progress]:
    """Streams until all is read that is there."""
    options = StreamOptions(str(logs), max_bytes=max_bytes)
    reported: list[Progress] = []
    stream(
        lambda table, columns: file_rows(spark, options, table, columns),
        tables,
        settings,
        reported.append,
    )
    return reported


def rows(frame: DataFrame, *besides: str) -> list[tuple[Any, ...]]:
    """Returns all rows in an order, without the names of files, which differ."""
    compared = frame.drop("src_file", *besides)
    return sorted(map(tuple, compared.collect()), key=repr)


def killed(sink: BatchSink, frame: DataFrame, batch_id: int) -> None:
    """Writes the batch, or half of it, and dies: the checkpoint doesn't know of it."""
    write(sink, frame, batch_id)
    if batch_id == 1:
        raise RuntimeError("killed")


write = BatchSink.write


@pytest.mark.spark
@pytest.mark.timeout(180)
@pytest.mark.slow
def test_a_stream_of_logs_that_rotate_equals_the_batch_of_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed in its second batch and started again; logs rotate in between."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    settings = StreamSettings(str(out), f"{out}/_checkpoint", watermark_s=5, until_read=True)
    wanted = (SILVER_REQUEST, GOLD_USAGE_1S, QUARANTINE)
    busy = GrowingLog(logs, 1, lines(200))
    idle = GrowingLog(logs, 2, lines(20, step_ms=1_000, user="bob") + b"torn\n")

    monkeypatch.setattr(BatchSink, "write", killed)
    with pytest.raises(StreamError):
        streamed(spark, logs, settings, *wanted, max_bytes=60_000)
    monkeypatch.undo()
    pack(busy.rotate("1"))
    busy.write(lines(200, first=200))
    idle.copy_and_truncate("1")
    idle.write(lines(20, first=20, step_ms=1_000, user="bob") + line(3_600_000, 9, user="last"))
    reported = streamed(spark, logs, settings, *wanted, max_bytes=60_000)
    assert {table.name for table in wanted} == {progress.table for progress in reported}
    assert any("2026-11-20T10:59" in progress.watermark for progress in reported)

    batch = silver_request(requests_of(spark, RequestLogs(str(logs))))
    tables = Store(spark, newest(Folder.of(str(out))))
    silver = tables.read(SILVER_REQUEST)
    assert 441 == silver.count() == silver.select("src_file", "src_offset").distinct().count()
    assert rows(batch) == rows(silver)
    usage = tables.read(GOLD_USAGE_1S)
    assert rows(gold_usage_1s(batch.where("user <> 'last'"))) == rows(usage)
    assert 1 == tables.read(QUARANTINE).count()

    anew = StreamSettings(str(out), f"{tmp_path}/other", until_read=True)
    with pytest.raises(OtherStreamError):
        streamed(spark, logs, anew, SILVER_REQUEST, max_bytes=60_000)
    Folder.of(str(out)).create("_commits/00000000000000000001.json", b"{}")
    with pytest.raises(OtherWriterError):
        streamed(spark, logs, settings, SILVER_REQUEST, max_bytes=60_000)


@pytest.mark.spark
@pytest.mark.timeout(120)
def test_lines_that_come_too_late_end_the_stream_and_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark alone would drop them and continue."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    settings = StreamSettings(str(out), f"{out}/_checkpoint", watermark_s=5, until_read=True)
    GrowingLog(logs, 1, lines(3, step_ms=20_000))
    streamed(spark, logs, settings, GOLD_USAGE_1S, max_bytes=1_000)
    GrowingLog(logs, 2, lines(2))
    for _ in range(2):
        with pytest.raises(LateLinesError, match="came too late for a watermark of 5 s"):
            streamed(spark, logs, settings, GOLD_USAGE_1S, max_bytes=1_000)
    assert (out / "_checkpoint" / "_late").exists()
