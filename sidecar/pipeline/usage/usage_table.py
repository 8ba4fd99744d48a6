"""Who used what, second by second: GOLD_USAGE_1S from SILVER_REQUEST.

One pass over the requests sums, for each (broker, user, client-id, second), what each quota would
be charged with; the few sums are then laid out as a row per quota type. Requests are never laid out
as events, which would be three rows for each. A request belongs to the second of its ``quota_ts``.

What counts is what Kafka charges (``events``): bytes of PRODUCE and of consumers' FETCH, the
handlers' time of requests that are not exempt, new producer ids, and on controllers' lines the
partitions of changes that were accepted. Sums are of whole bytes, nanoseconds and partitions, so
that their order does not matter: the same lines give the same rows.

Example: a PRODUCE of 10,035 bytes that took 0.258 ms, charged at 10:00:00.122, is two rows of
10:00:00: produce with the amount 10035.0, request with 0.0258; both have ``events`` 1.

Windows of a second are right for sums. A replay goes event by event instead: Kafka's samples are
not aligned to the clock's seconds.

Source: KIP-124, KIP-219, KIP-599, KIP-936; KafkaApis, ControllerApis.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from sidecar.pipeline.kernels.seconds import NEEDED as SUMMED_OF
from sidecar.pipeline.kernels.seconds import PACKED, packed, used
from sidecar.pipeline.silver.dim_topic import is_mutation_line
from sidecar.pipeline.silver.requests import Requests
from sidecar.pipeline.tables.schemas import GOLD_USAGE_1S, QUOTA_TYPES
from sidecar.pipeline.usage.events import (
    CONTROLLER_MUTATION,
    FETCH,
    PRODUCE,
    PRODUCER_IDS,
    REQUEST,
    charges,
)
from sidecar.requestlog.mutation_counts import QUOTA_EXCEEDED

_KEYS: Final = ("broker", "user", "client_id")
NEEDED: Final = (
    *_KEYS,
    "quota_ts",
    "api",
    "is_forwarded",
    "is_follower",
    "exempt",
    "quota_bytes",
    "bytes_known",
    "local_ms",
    "throttle_ms",
    "producer_id",
    "mutations",
    "mutations_known",
    "topic_changes",
)
"""The columns of SILVER_REQUEST that usage is made of."""
SHARDS_OF_A_CORE: Final = 4
"""Groups of groups, each of which is a file: enough to spread, few enough that each is worth it."""
OfShard = Callable[[int, pa.Table], pa.Table]
_NS_PER_MS: Final = 1_000_000
_NS_PER_PERCENT: Final = 10_000_000.0
"""Of a thread's second."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A quota type, and what a request adds to it.

    Attributes:
        quota_type: its name.
        charged: which requests are charged.
        amount: of a request, a whole number.
        per_unit: how much of it is 1 in the table.
        short: which requests used or requested more than their amount states.
    """

    quota_type: str
    charged: Column
    amount: Column
    per_unit: float
    short: Column


def gold_usage_1s(
    silver: DataFrame,
    dim_topic: DataFrame | None = None,
    quota_types: Collection[str] = QUOTA_TYPES,
) -> DataFrame:
    """What clients used of brokers in each second.

    It has no sort and no window function, so that it runs on a stream as it is; there, the caller
    sets the watermark of ``quota_ts``.

    Args:
        silver: of SILVER_REQUEST.
        dim_topic: of DIM_TOPIC, for the partitions of CREATE_PARTITIONS and DELETE_TOPICS, which
            need the size that the topic had; controllers' lines are read a second time then.
            None: those are not counted, and ``lower_bound`` says so.
        quota_types: of QUOTA_TYPES; others are left out.

    Returns:
        Of GOLD_USAGE_1S.
    """
    if dim_topic is not None:
        silver = with_sizes(silver, dim_topic)
    kinds = [kind for kind in _kinds() if kind.quota_type in quota_types]
    summed = (
        silver.select(*NEEDED)
        .groupBy(*_KEYS, sql.window("quota_ts", "1 second").alias("second"))
        .agg(*(each for kind in kinds for each in _sums(kind)))
    )
    laid_out = summed.select(
        *_KEYS,
        sql.col("second.start").alias("window_start"),
        sql.inline(sql.array(*map(_row, kinds))),
    )
    return GOLD_USAGE_1S.select(
        laid_out.where("events > 0").withColumn("dt", sql.to_date("window_start"))
    )


def mutations_of_days(of_admins: DataFrame, dim_topic: DataFrame) -> DataFrame:
    """The part of usage that workers don't sum (``summed``), since it needs the sizes of topics.

    Args:
        of_admins: the requests that are about topics.
        dim_topic: of DIM_TOPIC.

    Returns:
        Of GOLD_USAGE_1S.
    """
    return gold_usage_1s(of_admins, dim_topic, [CONTROLLER_MUTATION])


def summed(requests: Requests, function: OfShard, schema: str) -> DataFrame:
    """What becomes of usage, but mutations, that workers sum."""
    least = SHARDS_OF_A_CORE * requests.spark.sparkContext.defaultParallelism
    shards = requests.dimensions.shards(least)

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return packed(batches, shards)

    return by_shard(requests.mapped(SUMMED_OF, of_batches, PACKED), function, schema)


def by_shard(seconds_packed: DataFrame, function: OfShard, schema: str) -> DataFrame:
    """What becomes of sums that workers have packed."""

    def of_shard(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        return function(key[0].as_py(), used(table))

    return seconds_packed.groupBy("shard").applyInArrow(of_shard, schema)


def with_sizes(silver: DataFrame, dim_topic: DataFrame) -> DataFrame:
    """Requests with the ``mutations`` that only the sizes of topics tell; the rest as it is.

    Args:
        silver: of SILVER_REQUEST.
        dim_topic: of DIM_TOPIC.

    Returns:
        The same columns; ``mutations_known`` stays false where a size is not known, and
        ``mutations`` has the others' then.
    """
    is_open = (
        is_mutation_line() & ~sql.col("mutations_known") & sql.col("topic_changes").isNotNull()
    )
    accepted = sql.filter(
        "topic_changes", lambda change: sql.coalesce(change["error"], sql.lit(0)) == 0
    )
    line = ("broker", "src_file", "src_offset")
    counted = (
        charges(
            silver.where(is_open).withColumn("topic_changes", accepted),
            dim_topic,
            [CONTROLLER_MUTATION],
        )
        .groupBy(*line)
        .agg(sql.sum("amount").alias("mutations"), sql.min("known").alias("mutations_known"))
    )
    rest = [name for name in silver.columns if not name.startswith("mutations")]
    opened = silver.where(is_open).select(*rest).join(counted, on=list(line), how="inner")
    filled = opened.withColumn("mutations", sql.col("mutations").cast("bigint"))
    return silver.where(sql.coalesce(~is_open, sql.lit(True))).unionByName(filled)


def _kinds() -> Iterator[_Kind]:
    unknown_bytes = ~sql.col("bytes_known")
    is_produce = sql.col("api").isin("PRODUCE", "0")
    is_consumer = sql.col("api").isin("FETCH", "1") & ~sql.col("is_follower")
    yield _Kind(PRODUCE, is_produce, sql.col("quota_bytes"), 1.0, unknown_bytes)
    yield _Kind(FETCH, is_consumer, sql.col("quota_bytes"), 1.0, unknown_bytes)
    handled_ns = sql.rint(sql.col("local_ms") * _NS_PER_MS).cast("bigint")
    # The network threads' time is charged too and is in no line.
    yield _Kind(REQUEST, ~sql.col("exempt"), handled_ns, _NS_PER_PERCENT, sql.lit(True))
    refused = sql.array_contains("topic_changes.error", QUOTA_EXCEEDED)
    unknown_size = ~sql.col("mutations_known") | sql.coalesce(refused, sql.lit(False))
    yield _Kind(CONTROLLER_MUTATION, is_mutation_line(), sql.col("mutations"), 1.0, unknown_size)
    allocated = sql.col("producer_id").isNotNull()
    yield _Kind(PRODUCER_IDS, allocated, sql.lit(1).cast("bigint"), 1.0, sql.lit(False))


def _sums(kind: _Kind) -> Iterator[Column]:
    name, charged = kind.quota_type, kind.charged
    throttle_ms = sql.col("throttle_ms")
    yield sql.sum(sql.when(charged, kind.amount)).alias(f"{name}_amount")
    yield sql.count(sql.when(charged, 1)).alias(f"{name}_events")
    yield sql.count(sql.when(charged & (throttle_ms > 0), 1)).alias(f"{name}_throttled")
    yield sql.sum(sql.when(charged, throttle_ms)).alias(f"{name}_throttle_ms")
    yield sql.count(sql.when(charged & kind.short, 1)).alias(f"{name}_short")


def _row(kind: _Kind) -> Column:
    name = kind.quota_type
    amount = sql.coalesce(sql.col(f"{name}_amount"), sql.lit(0)).cast("double") / kind.per_unit
    return sql.struct(
        sql.lit(name).alias("quota_type"),
        amount.alias("amount"),
        sql.col(f"{name}_events").alias("events"),
        sql.col(f"{name}_throttled").alias("throttled"),
        sql.coalesce(sql.col(f"{name}_throttle_ms"), sql.lit(0)).alias("throttle_ms"),
        (sql.col(f"{name}_short") > 0).alias("lower_bound"),
    )
