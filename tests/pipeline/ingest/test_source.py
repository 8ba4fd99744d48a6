"""Request logs as a source of Spark, against the parser and against Spark's own functions."""

import gzip
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import to_arrow_schema

from sidecar.pipeline.ingest.paths import Zones
from sidecar.pipeline.ingest.records import ROWS, parse_block
from sidecar.pipeline.ingest.source import Options, RequestLogReader
from sidecar.pipeline.silver.request_table import (
    RequestLogs,
    both_of,
    quarantine_of,
    requests_of,
    silver_request,
)
from sidecar.pipeline.tables.schemas import QUARANTINE
from tests.pipeline.growing_logs import line
from tests.pipeline.ingest.native import native
from tests.requestlog.lines import BY_HAND, REAL

TEXT = b"\n".join((*REAL, *BY_HAND, b"torn", *BY_HAND)) + b"\n"


@pytest.fixture
def logs(tmp_path: Path) -> RequestLogs:
    """Two brokers have one plain log, in parts of 3,000 bytes, and one packed, in Berlin."""
    (tmp_path / "broker-3.log").write_bytes(TEXT)
    (tmp_path / "broker-4.log.gz").write_bytes(gzip.compress(TEXT))
    return RequestLogs(str(tmp_path), Zones.of(["4=Europe/Berlin"]), split_bytes=3_000)


def found(frame: DataFrame) -> list[Row]:
    """Returns the rows, by place."""
    return sorted(frame.collect(), key=lambda row: (row["broker"], row["src_offset"]))


@pytest.mark.spark
def test_the_source_gives_what_the_parser_gives(spark: SparkSession, logs: RequestLogs) -> None:
    """Each line is a row or in quarantine, once, for any parts and packing; in one reading too."""
    blocks = [
        parse_block(
            TEXT,
            broker=broker,
            zone=ZoneInfo(zone),
            src_file=f"{logs.path}/broker-{broker}.log{packed}",
            offset=0,
        )
        for broker, zone, packed in ((3, "UTC", ""), (4, "Europe/Berlin", ".gz"))
    ]
    rows = pa.Table.from_batches([block.rows for block in blocks])
    expected = found(spark.createDataFrame(rows))
    assert to_arrow_schema(requests_of(spark, logs).schema, timezone="UTC").equals(ROWS)
    assert expected == found(requests_of(spark, logs))
    rejected = pa.Table.from_batches([block.rejected for block in blocks])
    assert rejected.to_pylist() == [row.asDict() for row in found(quarantine_of(spark, logs))]
    both = both_of(spark, logs).withColumnsRenamed(
        {f"rejected_{name}": name for name in ("kind", "reason", "bytes")}
    )
    read = silver_request(both.where("kind is null"))
    assert found(silver_request(requests_of(spark, logs))) == found(read)
    unread = QUARANTINE.select(both.where("kind is not null"))
    assert found(quarantine_of(spark, logs)) == found(unread)


@pytest.mark.spark
def test_the_parser_gives_what_sparks_own_functions_give(
    spark: SparkSession, logs: RequestLogs
) -> None:
    """A broker's lines and one by hand of every API agree, but for their places."""
    for broker, zone in ((3, "UTC"), (4, "Europe/Berlin")):
        lines = spark.read.text(f"{logs.path}/broker-{broker}.log*").select(
            "value",
            sql.lit(broker).alias("broker"),
            sql.expr("regexp_replace(_metadata.file_path, '^file:(//)?', '')").alias("src_file"),
        )
        mine = requests_of(spark, logs).where(f"broker = {broker}").drop("src_offset")
        own = native(lines, zone).drop("src_offset")
        expected, found_ = sorted(map(str, mine.collect())), sorted(map(str, own.collect()))
        assert expected == found_


@pytest.mark.spark
def test_filters_leave_out_nothing_that_they_let_through(
    spark: SparkSession, logs: RequestLogs
) -> None:
    """The rows are those that are asked for, bounds included; the day and hour are of UTC."""
    frame = silver_request(requests_of(spark, logs))
    since = datetime(2026, 11, 20, 10, 0, 0, 124_000)  # noqa: DTZ001  as Spark gives times, in UTC
    until = datetime(2026, 11, 20, 23, 5, 21, 490_000)  # noqa: DTZ001  likewise
    asked = found(
        frame.where(
            sql.col("api").isin("PRODUCE", "FETCH")
            & (sql.col("log_ts") >= sql.lit(since))
            & (sql.col("log_ts") < sql.lit(until))
        )
    )
    assert [
        row
        for row in found(frame)
        if row["api"] in ("PRODUCE", "FETCH") and since <= row["log_ts"] < until
    ] == asked
    assert {("PRODUCE", 10), ("FETCH", 10), ("PRODUCE", 22), ("FETCH", 22), ("FETCH", 23)} == {
        (row["api"], row["hour"]) for row in asked
    }
    fewer = requests_of(spark, logs, ["api", "broker"])
    assert ["broker", "api"] == fewer.columns
    assert requests_of(spark, logs).count() == fewer.count()


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({}, [*"abcdefgh"]),
        ({"cores": "1"}, ["ab", "cd", "ef", "gh"]),
        ({"cores": "2"}, [*"abcdefgh"]),
    ],
)
def test_one_task_reads_several_small_files(
    tmp_path: Path, options: dict[str, str], tasks: list[str]
) -> None:
    """Each is read once, in order; there are enough tasks to keep all cores busy to the end."""
    (tmp_path / "broker-3").mkdir()
    for name in "abcdefgh":
        (tmp_path / "broker-3" / name).write_bytes(line(0))
    settings = {"path": str(tmp_path), "columns": "src_file", **options}
    reader = RequestLogReader(Options.of(settings))
    read = [
        "".join(
            Path(name).name for batch in reader.read(task) for name in batch["src_file"].to_pylist()
        )
        for task in reader.partitions()
    ]
    assert tasks == read


@pytest.mark.spark
def test_a_path_without_files_says_so(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's exception has the reason."""
    with pytest.raises(AnalysisException, match="there are no files"):
        requests_of(spark, RequestLogs(f"{tmp_path}/nothing")).count()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name the request logs"),
        ({"path": "x", "table": "gold"}, "none of silver_request, quarantine, both"),
        ({"path": "x", "splitBytes": "0"}, "splitBytes 0 is not positive"),
        ({"path": "x", "cores": "0"}, "cores 0 is not positive"),
        ({"path": "x", "columns": "api,apy"}, "no column apy"),
    ],
)
def test_options_that_cant_be_used(options: dict[str, str], message: str) -> None:
    """The message says which one, and what can be used."""
    with pytest.raises(ValueError, match=message):
        Options.of(options)
