"""Mutations are what the daemon's own rules charge, whichever line has a topic's size."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sidecar.quotas.entities import QuotaKey
from sidecar.requestlog.mutation_counts import TopicSizes
from sidecar.requestlog.request_detail import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    TopicChange,
)
from tests.sidecar.requestlog.lines import BY_HAND, REAL, parsed_line, read, topics_line
from tests.support import charges as daemon
from tests.usage_pipeline.charged_lines import used_of
from tests.usage_pipeline.silver_tables import batch_of, frame, row
from usage_pipeline.silver.dim_topic import dim_topic
from usage_pipeline.tables.schemas import GOLD_USAGE_1S
from usage_pipeline.usage.mutations import MutationRequests, Sizes, charged, charges, usage_of

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


@pytest.mark.spark
def test_mutations_are_what_the_daemon_charges(spark: SparkSession) -> None:
    """Amounts and unknowns agree for real lines, those by hand and two topics' lives."""
    lines = [*map(read, (*REAL, *BY_HAND)), *LIVES]
    silver = spark.createDataFrame(pa.Table.from_batches([batch_of(lines)]))
    mutations = MutationRequests.from_changes(silver, dim_topic(silver))
    batch = mutations.rows.toArrow().combine_chunks().to_batches()[0]
    offsets = batch["src_offset"].to_pylist()

    sizes = TopicSizes()
    by_line = [daemon.charges(line, sizes) for line in lines]
    found = charges(batch, mutations.sizes)
    judged = [
        (offsets[at], amount, strict)
        for at, amount, strict in zip(
            found.row.tolist(), found.amount.tolist(), found.strict.tolist(), strict=True
        )
    ]
    assert sorted(
        (offset, one.amount, one.strict)
        for offset, each in enumerate(by_line)
        for one in each.charges
        if one.key is QuotaKey.CONTROLLER_MUTATION
    ) == sorted(each for each in judged if not np.isnan(each[1]))
    assert sum(each.unknown for each in by_line) == np.isnan(found.amount).sum()

    sizes, used = TopicSizes(), charged(batch, mutations.sizes)
    assert [
        (offset, amount, not is_short)
        for offset, line in enumerate(lines)
        for quota_type, amount, is_short in used_of(line, sizes)
        if quota_type == "controller_mutation"
    ] == sorted(zip(offsets, used.amount.tolist(), used.known.tolist(), strict=True))


@pytest.mark.spark
def test_few_lines_are_charged_by_one_task(spark: SparkSession) -> None:
    """This holds for any number of reading tasks, because reading is another stage."""
    silver = spark.createDataFrame(pa.Table.from_batches([batch_of(LIVES)])).repartition(3)
    rows = MutationRequests.from_changes(silver, dim_topic(silver)).rows
    assert 1 == rows.rdd.getNumPartitions()
    assert len(LIVES) == rows.count()


def test_sizes_are_those_of_earlier_lines() -> None:
    """Lines are in the order of time, file and offset; a topic known by id alone is another."""
    stated = [((5, "a.log", 0), 12), ((5, "a.log", 90), None), ((5, "b.log", 0), 24)]
    sizes = Sizes({("name", "t"): stated, ("id", "x"): [((9, "a.log", 0), 7)]})
    named, by_id = TopicChange("t", "x", None, 0), TopicChange("", "x", None, 0)
    places = [(5, "a.log", 0), (5, "a.log", 1), (5, "a.log", 91), (5, "c.log", 0), (99, "", 0)]
    assert [None, 12, None, 24, 24] == [sizes.before(named, here) for here in places]
    assert [None, None, None, None, 7] == [sizes.before(by_id, here) for here in places]
    assert sizes.before(TopicChange("", "", None, 0), (99, "", 0)) is None


@pytest.mark.spark
def test_partitions_are_counted_on_the_controller_by_the_sizes_that_topics_had(
    spark: SparkSession,
) -> None:
    """Creations, growth and deletions count if sizes are known; refused ones never do."""

    def topics(
        second: float, api: str, *changes: tuple[object, ...], **fields: object
    ) -> dict[str, object]:
        at = TEN + timedelta(seconds=second)
        about = {"api": api, "is_forwarded": True, "topic_changes": list(changes)}
        times = {"log_ts": at, "quota_ts": at, "client_id": "c", "src_offset": int(second)}
        return row(**{**times, **about, **fields})

    lines = [
        topics(1, "CREATE_TOPICS", ("a", "", 12, 0), throttle_ms=70),
        topics(1, "CREATE_TOPICS", ("a", "", 12, 0), is_forwarded=False),
        topics(2, "CREATE_PARTITIONS", ("a", "", 20, 0), ("a", "", 90, 89)),
        topics(3, "CREATE_TOPICS", ("b", "", 5, 89)),
        topics(4, "DELETE_TOPICS", ("a", "", None, 0), ("nobody-knows", "", None, 0)),
        topics(5, "19", ("c", "", 3, 36)),
        topics(6, "DELETE_TOPICS", topic_changes=None),
    ]
    silver = frame(spark, lines)
    usage = usage_of(MutationRequests.from_changes(silver, dim_topic(silver)))
    assert GOLD_USAGE_1S.names == tuple(usage.columns)
    keys = ("dt", "broker", "user", "client_id", "quota_type")
    found = usage.toArrow().sort_by("window_start").to_pylist()
    assert {(TEN.date(), 1, "alice", "c", "controller_mutation")} == {
        tuple(each[key] for key in keys) for each in found
    }
    assert [
        (1, 12.0, 1, 1, 70, False),
        (2, 8.0, 1, 0, 0, True),
        (3, 0.0, 1, 0, 0, True),
        (4, 20.0, 1, 0, 0, True),
        (5, 0.0, 1, 0, 0, False),
        (6, 0.0, 1, 0, 0, True),
    ] == [
        (
            each["window_start"].second,
            *(each[name] for name in ("amount", "events", "throttled", "throttle_ms")),
            each["lower_bound"],
        )
        for each in found
    ]
