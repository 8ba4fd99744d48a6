"""The Spark session."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from tests.support.waiting import seen
from usage_pipeline.runtime.session import NoJavaError, NoSparkError, session
from usage_pipeline.tables.schemas import TABLES


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the command comes before Spark is loaded."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoJavaError, match="apt-get install openjdk-17-jre-headless"):
        session("local[1]")


@pytest.mark.parametrize("error", [Py4JError("no answer"), PySparkRuntimeError("exited")])
def test_a_master_that_is_not_there_is_reported(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no traceback, because Spark has already printed the cause."""

    def refused(_: object) -> None:
        raise error

    monkeypatch.setattr("usage_pipeline.runtime.session._has_java", lambda: True)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refused)
    with pytest.raises(NoSparkError, match=r"can't be started on spark://nowhere:1: .*--master"):
        session("spark://nowhere:1")


@pytest.mark.spark
def test_every_table_can_be_made(spark: SparkSession) -> None:
    """Its types are Spark's, its partitions are its first columns, and select leaves it as it is.

    Times are UTC, whatever the machine's zone is.
    """
    assert "UTC" == spark.conf.get("spark.sql.session.timeZone")
    for table in TABLES:
        frame = spark.createDataFrame([], table.schema)
        assert frame.schema == table.select(frame).schema
        assert list(table.names) == frame.columns
        assert table.partitions == table.names[: len(table.partitions)]


@pytest.mark.spark
async def test_workers_that_a_short_run_leaves_idle_are_ended(spark: SparkSession) -> None:
    """Two steps in Python have two workers for each core; afterwards there is one for each."""

    def daemons(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch([pa.array([os.getppid()] * batch.num_rows)], ["id"])

    chained = spark.range(0, 4, 1, 4).mapInArrow(daemons, "id long")
    (daemon,) = {row["id"] for row in chained.mapInArrow(daemons, "id long").collect()}
    children = Path(f"/proc/{daemon}/task/{daemon}/children")
    cores = spark.sparkContext.defaultParallelism
    await seen(
        "the end of idle workers", lambda: len(children.read_text().split()) <= cores, timeout_s=10
    )
