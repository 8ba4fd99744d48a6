"""The parser, in parts of plain and packed logs, against Spark's own functions."""

import gzip
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from tests.sidecar.requestlog.lines import BY_HAND, REAL
from tests.usage_pipeline.ingest.native import native
from tests.usage_pipeline.parsed_logs import parsed, requests_of
from usage_pipeline.ingest.paths import Zones
from usage_pipeline.ingest.records import parse_block
from usage_pipeline.ingest.request_logs import RequestLogs

TEXT = b"\n".join((*REAL, *BY_HAND, b"torn", *BY_HAND)) + b"\n"


@pytest.fixture
def logs(tmp_path: Path) -> RequestLogs:
    """Two brokers have one plain log, in parts of 3,000 bytes, and one packed, in Berlin."""
    (tmp_path / "broker-3.log").write_bytes(TEXT)
    (tmp_path / "broker-4.log.gz").write_bytes(gzip.compress(TEXT))
    return RequestLogs(str(tmp_path), Zones.parse(["4=Europe/Berlin"]), split_bytes=3_000)


@pytest.mark.rare
def test_parts_give_what_whole_logs_give(logs: RequestLogs) -> None:
    """Each line is a row or can't be read, once, for any parts and packing."""
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
    rows, rejected = parsed(logs)
    assert pa.Table.from_batches([block.rows for block in blocks]).equals(rows)
    expected = pa.Table.from_batches([block.rejected for block in blocks])
    assert expected.equals(rejected)


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
        expected, found = sorted(map(str, mine.collect())), sorted(map(str, own.collect()))
        assert expected == found
