"""Who used what, second by second."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from sidecar.pipeline.silver.dim_topic import dim_topic
from sidecar.pipeline.tables.schemas import GOLD_USAGE_1S
from sidecar.pipeline.usage.usage_table import gold_usage_1s
from tests.pipeline.silver_tables import frame, row

pytestmark = pytest.mark.spark

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def by_second(usage: DataFrame, *names: str) -> dict[tuple[object, ...], tuple[object, ...]]:
    """Returns these columns by broker, client-id, quota type and second of the minute."""
    keys = ("broker", "client_id", "quota_type")
    return {
        (*(each[key] for key in keys), each.window_start.second): tuple(each[n] for n in names)
        for each in usage.collect()
    }


def at(second: float, **fields: object) -> dict[str, object]:
    """Returns a PRODUCE of c, charged at a second."""
    charged = TEN + timedelta(seconds=second)
    usual = {"client_id": "c", "api": "PRODUCE", "local_ms": 0.25, "log_ts": charged}
    return {**usual, "quota_ts": charged, "quota_bytes": 100, "bytes_known": True, **fields}


def test_each_request_counts_in_its_second_for_what_it_is_charged_with(spark: SparkSession) -> None:
    """Sums, throttle times and lower bounds are by quota type and the second of the charge."""
    rows = [
        at(0.0, exempt=False),
        at(0.999, exempt=False, throttle_ms=70, log_ts=TEN + timedelta(seconds=5)),
        at(1.0, exempt=True),
        at(1.5, quota_bytes=None, bytes_known=False),
        at(2.0, api="FETCH", quota_bytes=900, exempt=False),
        at(2.0, api="FETCH", quota_bytes=None, bytes_known=False, throttle_ms=30),
        at(2.0, api="FETCH", is_follower=True, quota_bytes=None, bytes_known=None),
        at(3.0, api="INIT_PRODUCER_ID", producer_id=4000, local_ms=1.5, exempt=False),
        at(3.0, api="METADATA", broker=2, exempt=False),
    ]
    usage = gold_usage_1s(frame(spark, [row(**each) for each in rows]))
    assert GOLD_USAGE_1S.names == tuple(usage.columns)
    assert {
        (1, "c", "produce", 0): (200.0, 2, 1, 70, False),
        (1, "c", "request", 0): (0.05, 2, 1, 70, True),
        (1, "c", "produce", 1): (100.0, 2, 0, 0, True),
        (1, "c", "fetch", 2): (900.0, 2, 1, 30, True),
        (1, "c", "request", 2): (0.025, 1, 0, 0, True),
        (1, "c", "producer_ids", 3): (1.0, 1, 0, 0, False),
        (1, "c", "request", 3): (0.15, 1, 0, 0, True),
        (2, "c", "request", 3): (0.025, 1, 0, 0, True),
    } == by_second(usage, "amount", "events", "throttled", "throttle_ms", "lower_bound")


def test_partitions_are_counted_on_the_controller_by_the_sizes_that_topics_had(
    spark: SparkSession,
) -> None:
    """Creations, growth and deletions count if sizes are known; refused ones never do."""

    def topics(
        second: float, api: str, *changes: tuple[object, ...], **fields: object
    ) -> dict[str, object]:
        known = api == "CREATE_TOPICS"
        mutations = {"mutations": 12 if known else None, "mutations_known": known}
        about = {"api": api, "is_forwarded": True, "topic_changes": list(changes), "exempt": True}
        return row(**at(second, **{**about, **mutations, "src_offset": int(second), **fields}))

    lines = [
        topics(1, "CREATE_TOPICS", ("a", "", 12, 0)),
        topics(1, "CREATE_TOPICS", ("a", "", 12, 0), is_forwarded=False, mutations=12),
        topics(2, "CREATE_PARTITIONS", ("a", "", 20, 0), ("a", "", 90, 89)),
        topics(3, "CREATE_TOPICS", ("b", "", 5, 89), mutations=0),
        topics(4, "DELETE_TOPICS", ("a", "", None, 0), ("nobody-knows", "", None, 0)),
    ]
    silver = frame(spark, lines)
    key = ("c", "controller_mutation")
    assert {
        (1, *key, 1): (12.0, False),
        (1, *key, 2): (0.0, True),
        (1, *key, 3): (0.0, True),
        (1, *key, 4): (0.0, True),
    } == by_second(gold_usage_1s(silver), "amount", "lower_bound")
    assert {
        (1, *key, 1): (12.0, False),
        (1, *key, 2): (8.0, True),
        (1, *key, 3): (0.0, True),
        (1, *key, 4): (20.0, True),
    } == by_second(gold_usage_1s(silver, dim_topic(silver)), "amount", "lower_bound")
