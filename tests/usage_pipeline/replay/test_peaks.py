"""The highest rates of those who share a quota."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.usage_pipeline import build
from tests.usage_pipeline.build import frame_of, usage_rows
from usage_pipeline.replay.peaks import peaks
from usage_pipeline.tables.schemas import SILVER_QUOTA_CONFIG

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.spark
def test_the_peak_is_that_of_the_broker_where_it_is_highest(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It is over ten seconds and one, of all who share the quota; ids have ten hours and one."""

    def used(second: int, amount: float, **more: object) -> dict[str, object]:
        return build.used(TEN + timedelta(seconds=second), amount=amount, **more)

    rows = [
        used(0, 3000.0),
        used(10, 3000.0, client_id="b"),
        used(11, 500.0),
        used(5, 5900.0, broker=2),
        used(0, 4.0, quota_type="producer_ids"),
        used(35_000, 3.0, quota_type="producer_ids"),
        used(0, 0.0, user="bob"),
    ]
    quota = {"entity": "user=alice", "user": "alice", "value": 1000.0}
    config = frame_of(
        spark,
        SILVER_QUOTA_CONFIG,
        {**quota, "key": "producer_byte_rate", "valid_from": datetime(1970, 1, 1, tzinfo=UTC)},
    )
    assert [("produce", "user=alice", 600.0), ("producer_ids", "user=alice", 0.7)] == sorted(
        map(tuple, peaks(usage_rows(spark, tmp_path, rows), config).collect())
    )
