"""Sizes of topics over time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.usage_pipeline.silver_tables import frame, row
from usage_pipeline.silver.dim_topic import dim_topic

pytestmark = pytest.mark.spark

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def about(api: str, hour: int, *changes: tuple[Any, ...], **fields: Any) -> dict[str, Any]:
    """Returns a controller's line; changes are topic, id, partitions and error."""
    return row(
        **{
            "api": api,
            "is_forwarded": True,
            "validate_only": False,
            "log_ts": TEN + timedelta(hours=hour - 10),
            "topic_changes": list(changes),
            **fields,
        }
    )


def test_a_topics_life_is_three_rows(spark: SparkSession) -> None:
    """The rows are the example's. Failed and validated changes and brokers' lines add none."""
    rows = [
        about("CREATE_TOPICS", 10, ("t", "id1", 12, 0), ("failed", "", 3, 36)),
        about("CREATE_TOPICS", 10, ("t", "id1", 12, 0), is_forwarded=False),
        about("CREATE_PARTITIONS", 11, ("t", "", 48, 0), validate_only=True),
        about("CREATE_PARTITIONS", 11, ("t", "", 24, None), src_offset=700),
        about("DELETE_TOPICS", 12, ("t", "id1", None, 0), ("", "id2", None, 0)),
        about("DELETE_TOPICS", 12, ("", "id3", None, 0)),
    ]
    found = dim_topic(frame(spark, rows)).collect()
    assert {
        ("t", 12, 10, 11, 0),
        ("t", 24, 11, 12, 700),
        ("t", None, 12, 12, 0),
    } == {
        (r.topic, r.partitions, hour(r.valid_from), hour(r.valid_to), r.src_offset)
        for r in found
        if r.topic
    }
    assert {("id2", 12), ("id3", 12)} == {
        (r.topic_id, hour(r.valid_to)) for r in found if not r.topic
    }


def hour(time: datetime | None) -> int | None:
    return None if time is None else time.astimezone(UTC).hour
