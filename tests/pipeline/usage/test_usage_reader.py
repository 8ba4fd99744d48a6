"""Rows of usage as workers read them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from sidecar.pipeline.kernels.cover import COVERED, covered
from sidecar.pipeline.kernels.packed import EVER_S
from sidecar.pipeline.tables.schemas import GOLD_USAGE_1S
from sidecar.pipeline.usage.usage_reader import UsageRows, packed_by_name
from tests.pipeline.build import frame_of

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def by_client(quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
    return [(-EVER_S, f"{quota_type} {user} {client_id}")]


@pytest.mark.spark
def test_workers_read_from_files_what_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    """The time that is asked for is from its first second up to the last, without it."""
    rows: list[dict[str, object]] = [
        {
            "dt": TEN.date(),
            "broker": 1 + second % 2,
            "user": "alice",
            "client_id": "etl" if second < 7 else "web",
            "quota_type": "produce",
            "window_start": TEN + timedelta(seconds=second),
            "amount": float(second),
            "events": 1,
        }
        for second in range(20)
    ]
    path = str(tmp_path / "usage")
    usage = frame_of(spark, GOLD_USAGE_1S, *rows).repartition(3, "broker", "window_start")
    # Older tables have such times.
    type_of_times = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(type_of_times)
    assert before is not None
    spark.conf.set(type_of_times, "INT96")
    usage.where("amount < 4").write.parquet(path)
    spark.conf.set(type_of_times, before)
    usage.where("amount >= 4 and amount < 10").write.mode("append").parquet(path)
    parquet.write_table(
        usage.where("amount >= 10").toArrow(), Path(path) / "made.parquet", version="1.0"
    )
    frame, files = spark.read.parquet(path), tuple(Path(path).glob("*.parquet"))
    since, until = TEN + timedelta(seconds=5), TEN + timedelta(seconds=16)
    asked = [UsageRows(frame, paths, since, until) for paths in (None, files)]
    by_spark, by_workers = (
        sorted(
            (name, broker, second, amount)
            for name, broker, seconds, amounts in packed_by_name(each, by_client)
            .select("name", "broker", "second", "amount")
            .collect()
            for second, amount in zip(
                memoryview(seconds).cast("q").tolist(),
                memoryview(amounts).cast("d").tolist(),
                strict=True,
            )
        )
        for each in asked
    )
    start = int(TEN.timestamp())
    assert [
        (f"produce alice {'etl' if second < 7 else 'web'}", 1 + second % 2, start + second, second)
        for second in range(5, 16)
    ] == sorted(by_spark, key=lambda row: row[2])
    assert by_spark == by_workers
    last = UsageRows(frame, files, until=until).mapped(("broker", "window_start"), covered, COVERED)
    assert start + 15 == max(row["last"] for row in last.collect())
