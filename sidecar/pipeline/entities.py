"""Which quota each client was under, and with whom it shared it, from when to when.

For each (user, client-id) the eight levels of ``sidecar.quotas.entities`` are looked up in the
quotas of each kind. The first level that has one gives the tags, the tags the limit. Who is under
none shares by the shape of the quotas that there are, as in ``sidecar.quotas.prediction``: by user,
client-id or both while all quotas of the kind are for one of these, else by client-id. While there
are none of the kind, nothing counts; then clients are told by user, whom a quota would be set for.

Clients are few beside their requests: this is done once for each, and joined.

Example: with 10 MB/s for user alice and 1 MB/s for client-id etl, alice's etl has the entity
"user=alice" and the limit 10 MB/s, shared by "user=alice"; bob's etl has "client-id=etl", 1 MB/s.

Source: Kafka's ClientQuotaManager, DefaultQuotaCallback; KIP-936 for producer ids, by user alone.
"""

from typing import Final

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from sidecar.pipeline.events import KEYS, PRODUCER_IDS
from sidecar.pipeline.quota_config import DEFAULT, entity_of
from sidecar.pipeline.tables import Column, Table

EVER: Final = 1 << 62
"""Milliseconds since 1970 that no log reaches."""

CLIENT_QUOTAS: Final = Table(
    "client_quotas",
    (
        Column("quota_type", "string", "the kind of quota"),
        Column("user", "string", "of a client"),
        Column("client_id", "string", "of a client"),
        Column("from_ms", "bigint", "from when on, milliseconds since 1970"),
        Column("to_ms", "bigint", "until when, not included"),
        Column("counts", "boolean", "whether anybody has a quota of this kind then"),
        Column("entity", "string", "whose quota it is; without one, as shared_by"),
        Column("shared_by", "string", "who uses it up together"),
        Column("limit", "double", "null: none, or one that holds nobody"),
    ),
    (),
    "the quota that a client is under for a while; all times are covered",
)

_BY_USER: Final = (1, 2, 4, 5, 3, 6)
_BY_CLIENT: Final = (1, 2, 4, 5, 7, 8)
_BOTH: Final = (1, 2, 4, 5)
_USER_ONLY: Final = (3, 6)
_CLIENT_ONLY: Final = (7, 8)
_USER_BITS: Final = 1
_CLIENT_BITS: Final = 2


def client_quotas(clients: DataFrame, config: DataFrame) -> DataFrame:
    """The quotas of clients over time.

    Args:
        clients: with ``quota_type``, ``user`` and ``client_id``, each once.
        config: of SILVER_QUOTA_CONFIG.

    Returns:
        Of CLIENT_QUOTAS.
    """
    quotas = _quotas(config)
    quota = sf.struct("level", "from_ms", "to_ms", "limit", "entity")
    found = (
        _levels(clients)
        .join(
            sf.broadcast(quotas),
            (sf.col("quota_type") == sf.col("its_type"))
            & sf.col("level_user").eqNullSafe(sf.col("its_user"))
            & sf.col("level_client").eqNullSafe(sf.col("its_client")),
            how="left",
        )
        .groupBy("quota_type", "user", "client_id")
        # Rows of levels without a quota are null, and left out.
        .agg(sf.collect_list(sf.when(sf.col("its_type").isNotNull(), quota)).alias("quotas"))
        .join(sf.broadcast(_shapes(quotas)), "quota_type", how="left")
        .withColumn("shapes", sf.coalesce("shapes", sf.array().cast(_SHAPES)))
    )
    return CLIENT_QUOTAS.select(_resolved(_intervals(found)))


_SHAPES: Final = "array<struct<from_ms:bigint,to_ms:bigint,bits:int>>"


def _quotas(config: DataFrame) -> DataFrame:
    """Those that are about requests, while they were set."""
    types = [(sf.lit(key), sf.lit(quota_type)) for quota_type, key in KEYS.items()]
    to_ms = sf.coalesce(sf.unix_millis("valid_to"), sf.lit(EVER))
    return (
        config.withColumn(
            "its_type", sf.create_map(*(each for pair in types for each in pair))[sf.col("key")]
        )
        .where("its_type is not null and value is not null")
        .select(
            "its_type",
            sf.col("user").alias("its_user"),
            sf.col("client_id").alias("its_client"),
            "entity",
            sf.col("value").alias("limit"),
            sf.unix_millis("valid_from").alias("from_ms"),
            to_ms.alias("to_ms"),
        )
        .where("from_ms < to_ms")
    )


def _shapes(quotas: DataFrame) -> DataFrame:
    """For each kind, when there were quotas for users, client-ids and both; few rows."""
    bits = sf.when(sf.col("its_user").isNotNull(), _USER_BITS).otherwise(0) + sf.when(
        sf.col("its_client").isNotNull(), _CLIENT_BITS
    ).otherwise(0)
    spans = quotas.select(
        sf.col("its_type").alias("quota_type"), "from_ms", "to_ms", bits.alias("bits")
    )
    by_shape = Window.partitionBy("quota_type", "bits").orderBy("from_ms", "to_ms")
    before = by_shape.rowsBetween(Window.unboundedPreceding, -1)
    joined = by_shape.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    begins = sf.col("from_ms") > sf.max("to_ms").over(before)
    islands = (
        spans.withColumn("begins", sf.coalesce(begins, sf.lit(True)).cast("int"))
        .withColumn("island", sf.sum("begins").over(joined))
        .groupBy("quota_type", "bits", "island")
        .agg(sf.min("from_ms").alias("from_ms"), sf.max("to_ms").alias("to_ms"))
    )
    return islands.groupBy("quota_type").agg(
        sf.collect_list(sf.struct("from_ms", "to_ms", "bits")).alias("shapes")
    )


def _levels(clients: DataFrame) -> DataFrame:
    """Each client with the eight entities that may have its quota."""
    # Nobody's entity: a user who is called "<default>" is not the default.
    user, client_id = (
        sf.when(sf.col(name) == DEFAULT, "\0").otherwise(sf.col(name))
        for name in ("user", "client_id")
    )
    default, none = sf.lit(DEFAULT), sf.lit(None).cast("string")
    names = (
        *((user, client_id), (user, default), (user, none)),
        *((default, client_id), (default, default), (default, none)),
        *((none, client_id), (none, default)),
    )
    levels = sf.array(
        *(
            sf.struct(
                sf.lit(level).alias("level"),
                level_user.alias("level_user"),
                level_client.alias("level_client"),
            )
            for level, (level_user, level_client) in enumerate(names, 1)
        )
    )
    laid_out = clients.select("quota_type", "user", "client_id", sf.inline(levels))
    return laid_out.where(
        (sf.col("quota_type") != PRODUCER_IDS) | sf.col("level").isin(*_USER_ONLY)
    )


def _intervals(found: DataFrame) -> DataFrame:
    """Each client while neither its quotas nor the shape of all others change."""
    changes = [
        sf.transform(kind, lambda each: each["from_ms"]) for kind in ("quotas", "shapes")
    ] + [sf.transform(kind, lambda each: each["to_ms"]) for kind in ("quotas", "shapes")]
    starts = sf.array_sort(sf.array_distinct(sf.concat(sf.array(sf.lit(-EVER)), *changes)))
    next_ms = sf.get("starts", sf.col("at") + 1)
    return (
        found.withColumn("starts", starts)
        .select("*", sf.posexplode("starts").alias("at", "from_ms"))
        .withColumn("to_ms", next_ms)
        .where(sf.col("from_ms") < EVER)
        .withColumn("to_ms", sf.coalesce("to_ms", sf.lit(EVER)))
    )


def _resolved(intervals: DataFrame) -> DataFrame:
    """The quota of each client in each interval, and who shares it."""
    covering = intervals.withColumns(
        {
            "quotas": sf.filter("quotas", _covers),
            "bits": sf.array_distinct(
                sf.transform(sf.filter("shapes", _covers), lambda each: each["bits"])
            ),
        }
    )
    first = sf.array_min("quotas")["level"]
    tagged = covering.withColumns(
        {
            "user_tag": sf.when(first.isin(*_BY_USER), sf.col("user")).otherwise(""),
            "client_tag": sf.when(first.isin(*_BY_CLIENT), sf.col("client_id")).otherwise(""),
        }
    )
    # The first level gives the tags, and the tags the quota: an empty one takes no part.
    has_user, has_client = sf.col("user_tag") != "", sf.col("client_tag") != ""
    allowed = (
        sf.when(has_user & has_client, _array(_BOTH))
        .when(has_user, _array(_USER_ONLY))
        .when(has_client, _array(_CLIENT_ONLY))
        .otherwise(_array(()))
    )
    held = tagged.withColumn("allowed", allowed).withColumn(
        "quota",
        sf.array_min(sf.filter("quotas", lambda each: sf.array_contains("allowed", each["level"]))),
    )
    holds = (sf.col("quota.limit") > 0) & (sf.col("quota.limit") < float("inf"))
    return _named(held.withColumn("quota", sf.when(holds, sf.col("quota"))))


def _named(held: DataFrame) -> DataFrame:
    is_held = sf.col("quota").isNotNull()
    by_ids = sf.col("quota_type") == PRODUCER_IDS
    shape = (
        sf.when((sf.size("bits") == 0) | by_ids, _USER_BITS)
        .when(sf.size("bits") == 1, sf.col("bits")[0])
        .otherwise(_CLIENT_BITS)
    )
    user_tag = sf.when(is_held, sf.col("user_tag")).when(
        shape.bitwiseAND(_USER_BITS) > 0, sf.col("user")
    )
    client_tag = sf.when(is_held, sf.col("client_tag")).when(
        shape.bitwiseAND(_CLIENT_BITS) > 0, sf.col("client_id")
    )
    shared_by = entity_of(_told(user_tag), _told(client_tag))
    return held.withColumns(
        {
            "counts": (sf.size("bits") > 0) | by_ids,
            "shared_by": shared_by,
            "entity": sf.coalesce("quota.entity", shared_by),
            "limit": sf.col("quota.limit"),
        }
    )


def _told(tag: Expression) -> Expression:
    return sf.when(tag != "", tag)


def _covers(each: Expression) -> Expression:
    return (each["from_ms"] <= sf.col("from_ms")) & (sf.col("from_ms") < each["to_ms"])


def _array(levels: tuple[int, ...]) -> Expression:
    return sf.array(*map(sf.lit, levels)).cast("array<int>")
