"""``pipeline files``: a table's files, and what other engines read from them."""

from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from sidecar.cli import group
from tests.usage_pipeline.build import committed
from usage_pipeline.tables.schemas import GOLD_USAGE_1S, SILVER_REQUEST, TABLES

DAY = date(2026, 11, 20)


def files(out: Path, *tables: str) -> list[str]:
    """Returns what the command prints."""
    done = CliRunner().invoke(group, ["pipeline", "files", *tables, "--out", str(out)])
    assert 0 == done.exit_code, done.output
    return done.stdout.splitlines()


@pytest.mark.spark
def test_any_engine_reads_every_table(spark: SparkSession, tmp_path: Path) -> None:
    """What it is partitioned by is put back; what was replaced is not read."""
    for table in TABLES:
        row = {"dt": DAY, "broker": 3} if table.partitions else {}
        for run in ("first", "second"):
            committed(tmp_path, table, row, run=run)
        names = files(tmp_path, table.name)
        assert 1 == len(names)
        by_duckdb = duckdb.read_parquet(names, hive_partitioning=True)
        by_polars = pl.read_parquet(names, hive_partitioning=True)
        by_spark = spark.read.option("basePath", f"{tmp_path}/{table.name}").parquet(*names)
        for columns in (by_duckdb.columns, by_polars.columns, by_spark.columns):
            assert {one.name for one in table.stored} == {*columns}, table.name
        assert 1 == by_spark.count() == by_polars.height
        if table.partitions:
            assert [(DAY,)] == by_duckdb.select("dt").fetchall()
            assert [DAY] == by_polars["dt"].to_list() == [row.dt for row in by_spark.collect()]


def test_values_are_what_was_written(tmp_path: Path) -> None:
    """Times have their zone, and lists of structs are read by other engines too."""
    at = datetime(2026, 11, 20, 9, tzinfo=UTC)
    change = {"topic": "t", "topic_id": "", "partitions": 3, "error": 0}
    row = {"dt": DAY, "broker": 3, "log_ts": at, "topic_changes": [change]}
    committed(tmp_path, SILVER_REQUEST, row)
    (found,) = pl.read_parquet(files(tmp_path, "silver_request"), hive_partitioning=True).to_dicts()
    assert (at, [change], 3) == (found["log_ts"], found["topic_changes"], found["broker"])


def test_tables_that_are_named_together_are_of_one_run(tmp_path: Path) -> None:
    """Their files are in the order of the names."""
    for table in (SILVER_REQUEST, GOLD_USAGE_1S):
        committed(tmp_path, table, {"dt": DAY, "broker": 3})
    (usage,), (request,) = (files(tmp_path, one) for one in ("gold_usage_1s", "silver_request"))
    assert [usage, request] == files(tmp_path, "gold_usage_1s", "silver_request")


def test_a_table_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    """It is one of another name, or has not been made."""
    committed(tmp_path, GOLD_USAGE_1S, {"dt": DAY})
    for table in ("gold_replay", "usage"):
        words = ["pipeline", "files", "gold_usage_1s", table, "--out", str(tmp_path)]
        done = CliRunner().invoke(group, words)
        assert 2 == done.exit_code
        assert not done.stdout
        assert f"{tmp_path} has no table {table}; it has gold_usage_1s" in done.stderr
