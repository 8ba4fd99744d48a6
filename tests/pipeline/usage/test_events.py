"""Events are what the daemon's own rules charge."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from sidecar.pipeline.silver.dim_topic import dim_topic
from sidecar.pipeline.usage.events import KEYS, charges
from sidecar.requestlog import charges as daemon
from sidecar.requestlog.mutation_counts import TopicSizes
from sidecar.requestlog.request_detail import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from tests.pipeline.silver_tables import frame, of_line, row
from tests.requestlog.lines import BY_HAND, REAL, parsed_line, read, topics_line

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


LIVES = (
    topics_line(
        CREATE_TOPICS, {"name": "a", "numPartitions": 12}, {"name": "b", "numPartitions": -1}
    ),
    topics_line(CREATE_PARTITIONS, {"name": "a", "count": 24}, error=89, version=3),
    topics_line(CREATE_PARTITIONS, {"name": "a", "count": 24}, validate_only=True),
    topics_line(CREATE_PARTITIONS, {"name": "a", "count": 20}, remoteTimeMs=2.5),
    topics_line(CREATE_PARTITIONS, {"name": "a", "count": 24}, error=37),
    topics_line(DELETE_TOPICS, {"name": "a"}, {"name": "b"}, version=6),
    topics_line(DELETE_TOPICS, {"name": "a"}),
    parsed_line(CREATE_TOPICS, isForwarded=True, request={"topics": 3}),
)
"""All in the same millisecond: only the offset tells their order."""


def charged_events(events: Iterable[Row]) -> list[tuple[object, ...]]:
    return sorted(
        (e.src_offset, KEYS[e.quota_type], e.at_ms, e.user, e.client_id, e.amount, e.strict, w)
        for e in events
        for w in (e.waited_ms,)
        if e.known
    )


@pytest.mark.spark
def test_events_are_what_the_daemon_charges(spark: SparkSession) -> None:
    """Amounts, times and unknowns agree for real lines, those by hand and two topics' lives."""
    lines = [*map(read, (*REAL, *BY_HAND)), *LIVES]
    silver = frame(spark, [of_line(line, offset) for offset, line in enumerate(lines)])
    sizes = TopicSizes()
    charged = [daemon.charges(line, sizes) for line in lines]
    expected = sorted(
        (offset, str(c.key), c.at_ms, c.user, c.client_id, c.amount, c.strict, c.waited_ms)
        for offset, each in enumerate(charged)
        for c in each.charges
    )
    kinds = ("produce", "request", "controller_mutation")
    found = charges(silver, dim_topic(silver), kinds).collect()
    assert expected == charged_events(found)
    assert sum(each.unknown for each in charged) == sum(not each.known for each in found)


@pytest.mark.spark
def test_what_the_daemon_does_not_count_yet(spark: SparkSession) -> None:
    """Consumers' fetches and new ids count; a follower's don't, an empty one is unknown."""
    later = TEN + timedelta(days=1)
    rows = [
        row(api="FETCH", quota_bytes=500, bytes_known=True, log_ts=later, quota_ts=TEN),
        row(api="FETCH", quota_bytes=None, bytes_known=False, throttle_ms=70, src_offset=1),
        row(api="FETCH", quota_bytes=9, bytes_known=True, is_follower=True, src_offset=2),
        row(api="INIT_PRODUCER_ID", producer_id=7, src_offset=3),
    ]
    found = charges(frame(spark, rows), dim_topic(frame(spark, []))).orderBy("src_offset").collect()
    assert [
        ("fetch", 500.0, True, 0, None),
        ("fetch", None, False, 70, None),
        ("producer_ids", 1.0, True, 0, 7),
    ] == [(e.quota_type, e.amount, e.known, e.told_ms, e.producer_id) for e in found]
    assert {TEN.date()} == {e.dt for e in found}


def test_an_unknown_quota_type_is_refused() -> None:
    """It is refused before anything is read."""
    not_read = cast("DataFrame", None)
    with pytest.raises(ValueError, match="not \\['ip'\\]"):
        charges(not_read, not_read, ["ip"])
