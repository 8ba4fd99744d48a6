"""What each request was charged with: an event for each quota that it counts for.

A request is charged with its bytes (PRODUCE, consumers' FETCH), with its handlers' time unless it
is exempt, with the new producer id that was allocated, and on the controller's line with each topic
that it creates, grows or deletes. This is ``sidecar.requestlog.charges`` for DataFrames.

What a line doesn't have is an event too, with ``known`` false: the demand of a throttled FETCH,
whose answer is empty; a PRODUCE that can't be read; a topic whose size is unknown.

Mutations are counted from forwarded lines alone, since the broker that passed them on logged the
same request. Those that are only to be validated are charged too, as KRaft does.

Example: a PRODUCE of 10,035 bytes that took 0.258 ms, charged at 10:00:00.122, is two events of
that time: produce with the amount 10035.0, and request with 0.0258 % of a second.

Source: KafkaApis, ControllerApis, ReplicationControlManager; KIP-124, KIP-599, KIP-936.
"""

from collections.abc import Collection
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sidecar.pipeline.silver.dim_topic import is_mutation_line
from sidecar.pipeline.tables.apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from sidecar.pipeline.tables.schemas import QUOTA_TYPES, Column, Table
from sidecar.requestlog.mutation_counts import QUOTA_EXCEEDED

PRODUCE: Final = "produce"
FETCH: Final = "fetch"
REQUEST: Final = "request"
CONTROLLER_MUTATION: Final = "controller_mutation"
PRODUCER_IDS: Final = "producer_ids"
KEYS: Final = {
    PRODUCE: "producer_byte_rate",
    FETCH: "consumer_byte_rate",
    REQUEST: "request_percentage",
    CONTROLLER_MUTATION: "controller_mutation_rate",
    PRODUCER_IDS: "producer_ids_rate",
}
"""The quota's name in Kafka; producer_ids_rate is KIP-936's."""

EVENTS: Final = Table(
    "events",
    (
        Column("dt", "date", "the day of quota_ts"),
        Column("broker", "int", "the node that charged it"),
        Column("quota_type", "string", ", ".join(QUOTA_TYPES)),
        Column("user", "string", "the principal's name without its type"),
        Column("client_id", "string", "as the client gave it"),
        Column("at_ms", "bigint", "when it was charged, milliseconds since 1970"),
        Column("amount", "double", "bytes, percent of a second, partitions or 1 id; null: unknown"),
        Column("known", "boolean", "whether a line has the amount"),
        Column("strict", "boolean", "of mutations: refused while the quota is used up"),
        Column("waited_ms", "bigint", "of mutations: from the charge to the answer"),
        Column("producer_id", "bigint", "that was allocated; null for other kinds"),
        Column("told_ms", "bigint", "the throttle time in the request's line, for any quota"),
        Column("log_ts", "timestamp", "when the answer was sent"),
        Column("src_file", "string", "the file that the line is in"),
        Column("src_offset", "bigint", "of its first byte in it, unpacked"),
        Column("position", "int", "of this event among its request's"),
    ),
    (),
    "a charge of a request to a quota; not kept, but made from silver_request on demand",
)

_STRICT_SINCE: Final = ((CREATE_TOPICS, 6), (DELETE_TOPICS, 5), (CREATE_PARTITIONS, 3))
_PERCENT_PER_NS: Final = 100.0 / 1_000_000_000
_NS_PER_MS: Final = 1_000_000
_CHARGE: Final = (
    "struct<quota_type:string,amount:double,position:int,topic:string,topic_id:string,wanted:int>"
)


def charges(
    silver: DataFrame, dim_topic: DataFrame, quota_types: Collection[str] = QUOTA_TYPES
) -> DataFrame:
    """The events of all requests; in no order.

    Args:
        silver: of SILVER_REQUEST.
        dim_topic: of DIM_TOPIC; its size before a line is the one that the line's topic had.
        quota_types: of QUOTA_TYPES; others are left out.

    Returns:
        Of EVENTS.

    Raises:
        ValueError: an unknown quota type.
    """
    unknown = set(quota_types) - set(QUOTA_TYPES)
    if unknown or not quota_types:
        raise ValueError(f"quota types are {', '.join(QUOTA_TYPES)}, not {sorted(unknown)}")
    charged = _charged(silver, quota_types)
    if CONTROLLER_MUTATION in quota_types:
        charged = _with_sizes(charged, dim_topic)
    is_mutation = sf.col("quota_type") == CONTROLLER_MUTATION
    waited_ms = sf.when(is_mutation, sf.rint("remote_ms").cast("bigint")).otherwise(0)
    return EVENTS.select(
        charged.withColumns(
            {
                "dt": sf.to_date("quota_ts"),
                "waited_ms": waited_ms,
                "at_ms": sf.unix_millis("quota_ts") - waited_ms,
                "known": sf.col("amount").isNotNull(),
                "strict": is_mutation & _is_strict(),
                "told_ms": sf.col("throttle_ms"),
            }
        )
    )


def _charged(silver: DataFrame, quota_types: Collection[str]) -> DataFrame:
    """A row for each charge; the sizes of topics are not resolved yet."""
    is_charged = {quota_type: _is_charged(quota_type) for quota_type in quota_types}
    # A request is of one API, so one slot is enough for what depends on it.
    by_api = [
        sf.when(charged, charge)
        for quota_type, charge in (
            (PRODUCE, _bytes(PRODUCE)),
            (FETCH, _bytes(FETCH)),
            (PRODUCER_IDS, _charge(PRODUCER_IDS, sf.lit(1.0))),
        )
        if (charged := is_charged.get(quota_type)) is not None
    ]
    slots = [sf.coalesce(*by_api)] if by_api else []
    if REQUEST in is_charged:
        slots.append(sf.when(is_charged[REQUEST], _request_time()))
    several = sf.array(*slots).cast(f"array<{_CHARGE}>")
    if CONTROLLER_MUTATION in is_charged:
        several = sf.when(is_mutation_line(), sf.concat(several, _topics())).otherwise(several)
    is_one = len(slots) == 1 and CONTROLLER_MUTATION not in is_charged
    # Filtered before it is laid out, so that files need not give what nothing is charged with.
    return (
        silver.where(reduce(or_, is_charged.values()))
        .select(
            *("broker", "user", "client_id", "log_ts", "quota_ts", "api", "api_version"),
            *("remote_ms", "throttle_ms", "producer_id", "src_file", "src_offset"),
            (slots[0].cast(_CHARGE) if is_one else sf.explode(several)).alias("charge"),
        )
        .where("charge is not null")
        .select("*", "charge.*")
        .drop("charge")
    )


def _is_charged(quota_type: str) -> Expression:
    match quota_type:
        case "produce":
            return sf.col("api").isin("PRODUCE", "0")
        case "fetch":
            return sf.col("api").isin("FETCH", "1") & ~sf.col("is_follower")
        case "request":
            return ~sf.col("exempt")
        case "controller_mutation":
            return is_mutation_line()
    return sf.col("producer_id").isNotNull()


def _bytes(quota_type: str) -> Expression:
    return _charge(quota_type, sf.when(sf.col("bytes_known"), sf.col("quota_bytes").cast("double")))


def _request_time() -> Expression:
    # To whole nanoseconds first, a half to the even one, as the daemon does.
    percent = sf.rint(sf.col("local_ms") * _NS_PER_MS) * _PERCENT_PER_NS
    return _charge(REQUEST, percent, sf.lit(1))


def _topics() -> Expression:
    """The charges of a request about topics; one of an unknown amount if it couldn't be read."""
    each = sf.transform(
        "topic_changes",
        lambda change, at: sf.when(
            sf.coalesce(change["error"], sf.lit(0)).isin(0, QUOTA_EXCEEDED),
            _charge(CONTROLLER_MUTATION, sf.lit(None), at + 2, change),
        ),
    )
    unread = sf.array(_charge(CONTROLLER_MUTATION, sf.lit(None), sf.lit(2)))
    return sf.coalesce(each.cast(f"array<{_CHARGE}>"), unread.cast(f"array<{_CHARGE}>"))


def _charge(
    quota_type: str,
    amount: Expression,
    position: Expression | None = None,
    change: Expression | None = None,
) -> Expression:
    return sf.struct(
        sf.lit(quota_type).alias("quota_type"),
        amount.cast("double").alias("amount"),
        (sf.lit(0) if position is None else position).alias("position"),
        (sf.lit(None) if change is None else change["topic"]).cast("string").alias("topic"),
        (sf.lit(None) if change is None else change["topic_id"]).cast("string").alias("topic_id"),
        (sf.lit(None) if change is None else change["partitions"]).cast("int").alias("wanted"),
    )


def _with_sizes(charged: DataFrame, dim_topic: DataFrame) -> DataFrame:
    """Amounts of mutations: created, or the difference to the size that an earlier line has."""
    sizes = _sizes(dim_topic)
    named = sf.when(sf.col("topic") != "", _by_name(sf.col("topic"))).otherwise(
        _by_id(sf.col("topic_id"))
    )
    here = sf.struct("log_ts", "src_file", "src_offset")
    earlier = sf.filter(
        "told", lambda each: sf.struct(each.valid_from, each.src_file, each.src_offset) < here
    )
    before = sf.array_max(earlier)["partitions"]
    more = sf.col("wanted") - before
    amount = (
        sf.when(sf.col("quota_type") != CONTROLLER_MUTATION, sf.col("amount"))
        .when(sf.col("api").isin(*CREATE_TOPICS), sf.col("wanted"))
        .when(sf.col("api").isin(*DELETE_TOPICS), before)
        .otherwise(sf.when(more < 0, 0).otherwise(more))
    )
    return (
        charged.withColumn("key", named).join(sizes, "key", how="left").withColumn("amount", amount)
    )


def _sizes(dim_topic: DataFrame) -> DataFrame:
    """For each name and each id of a topic, all that is known of its size."""
    stated = sf.struct("valid_from", "src_file", "src_offset", "partitions")
    by_name = sf.when(sf.col("topic") != "", _by_name(sf.col("topic")))
    by_id = sf.when(sf.col("topic_id") != "", _by_id(sf.col("topic_id")))
    keyed = dim_topic.select(sf.explode(sf.array(by_name, by_id)).alias("key"), stated.alias("one"))
    sizes = keyed.where("key is not null").groupBy("key").agg(sf.collect_list("one").alias("told"))
    return sf.broadcast(sizes)


def _by_name(topic: Expression) -> Expression:
    return sf.concat(sf.lit("name "), topic)


def _by_id(topic_id: Expression) -> Expression:
    return sf.concat(sf.lit("id "), topic_id)


def _is_strict() -> Expression:
    return reduce(
        or_,
        (
            sf.col("api").isin(*api) & (sf.col("api_version") >= version)
            for api, version in _STRICT_SINCE
        ),
    )
