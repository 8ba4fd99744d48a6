"""What stages read."""

from datetime import UTC, date, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from tests.usage_pipeline.build import frame_of
from usage_pipeline.batch.silver_stage import valid
from usage_pipeline.tables.schemas import DIM_TOPIC

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.spark
def test_what_ended_before_the_days_is_not_read(spark: SparkSession) -> None:
    """A row that ended on the first day was valid for a part of it. Without a day, all are read."""
    rows = frame_of(
        spark,
        DIM_TOPIC,
        {"topic": "before", "valid_to": NOON - timedelta(days=1)},
        {"topic": "on", "valid_to": NOON},
        {"topic": "after", "valid_to": NOON + timedelta(days=9)},
        {"topic": "ever"},
    )
    first = date(2026, 11, 20)
    assert {"on", "after", "ever"} == {row.topic for row in valid(rows, first).collect()}
    assert 4 == valid(rows, None).count()
