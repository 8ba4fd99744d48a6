"""Rows of usage as workers read them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.usage_pipeline.build import files_of, usage_rows, used
from usage_pipeline.kernels.cover import COVERED, covered
from usage_pipeline.kernels.packed import EVER_S
from usage_pipeline.tables.schemas import GOLD_USAGE_1S
from usage_pipeline.usage.usage_reader import UsageRows, in_shards, packed_by_name

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def by_client(quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
    return [(-EVER_S, f"{quota_type} {user} {client_id}")]


@pytest.mark.spark
def test_workers_read_all_files(spark: SparkSession, tmp_path: Path) -> None:
    """Each second of each client is there once, with its amount."""
    rows = [
        used(
            TEN + timedelta(seconds=second),
            broker=1 + second % 2,
            client_id="etl" if second < 7 else "web",
            amount=float(second),
        )
        for second in range(20)
    ]
    files = tuple(
        file
        for part in range(3)
        for file in files_of(tmp_path, GOLD_USAGE_1S, rows[part::3], f"run-{part}")
    )
    usage = UsageRows(spark, files)
    found = [
        (name, broker, second, amount)
        for name, broker, seconds, amounts in packed_by_name(usage, by_client)
        .select("name", "broker", "second", "amount")
        .collect()
        for second, amount in zip(
            memoryview(seconds).cast("q").tolist(),
            memoryview(amounts).cast("d").tolist(),
            strict=True,
        )
    ]
    start = int(TEN.timestamp())
    assert [
        (f"produce alice {'etl' if second < 7 else 'web'}", 1 + second % 2, start + second, second)
        for second in range(20)
    ] == sorted(found, key=lambda row: row[2])
    last = usage.mapped(("quota_type", "broker", "window_start"), covered, COVERED)
    assert start + 19 == max(row["last"] for row in last.collect())


@pytest.mark.spark
def test_what_a_worker_holds_is_bounded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant's brokers may be in several workers. More rows have more shards."""
    monkeypatch.setattr("usage_pipeline.usage.usage_reader._IN_SHARD", 2)
    monkeypatch.setattr("usage_pipeline.usage.usage_reader._SHARDS", 4)
    rows = [used(TEN + timedelta(seconds=number % 2), broker=number // 2) for number in range(400)]
    usage = usage_rows(spark, tmp_path, rows)

    def sizes(table: pa.Table) -> pa.Table:
        brokers = table.column("broker").to_pylist()
        return pa.table({"rows": [len(brokers)], "brokers": [len(set(brokers))]})

    packed = packed_by_name(usage, by_client)
    shards = in_shards(packed, usage).applyInArrow(sizes, "rows bigint, brokers bigint").collect()
    assert sum(each.brokers for each in shards) == 200
    assert 8 > max(each.rows for each in shards)
