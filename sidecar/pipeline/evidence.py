"""What each tenant used, at which rates, and how much there is of it.

A rate is taken over 10 s, as Kafka's first one is (producer ids, whose quota is per hour: over 10
hours), on each broker, while there was any. The broker with the highest one counts, since a quota
is one number for all of them. What is decayed is the weight of a rate: it halves with every
half-life before the end. A broker's 10 minutes without any charged request are not covered.

Example: alice sent 3,000,000 bytes in 10 s on broker 1 and 90,000,000 on broker 2: 9 MB/s, and
should that have been two half-lives ago, it counts a quarter of what she sends now.
"""

from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sidecar.pipeline.recommended import Terms

TENANT: Final = ("quota_type", "entity")
"""What a row is of."""
_RATE_S: Final = 10
"""What a rate is taken over, seconds: the least time that Kafka divides by."""
_HOURS_OF_IDS: Final = 10
"""Likewise of producer ids, with KIP-936's windows of an hour."""
_COVER_S: Final = 600
_HOUR_S: Final = 3600
_DAY_S: Final = 86_400
_WEIGHT: Final = 1_000_000
"""Of a rate at the end: percentile() wants whole numbers."""


def evidence(
    usage: DataFrame,
    replay: DataFrame,
    terms: Terms,
    since: datetime | None,
    until: datetime | None,
) -> DataFrame:
    """What is known of each tenant's use.

    Args:
        usage: of GOLD_USAGE_1S.
        replay: of GOLD_REPLAY: it knows who shares a quota.
        terms: the percentile and the half-life count.
        since: from when on, with a time zone; None: from the first row on.
        until: before when; None: up to the last row.

    Returns:
        Of each TENANT ``percentile_rate`` and ``peak_seen`` in the quota's unit, ``events``, those
        ``held``, the ``hours`` in which there were any, the second of the ``newest``, and the
        ``coverage`` of the time, a share.
    """
    between = _between(usage, since, until)
    bounds = _bounds(between, since, until)
    return _percentiles(_of_tenants(between, replay).crossJoin(sf.broadcast(bounds)), terms)


def _between(usage: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    kept = usage.select(
        *("broker", "user", "client_id", "quota_type", "window_start"),
        *("amount", "events", "throttled"),
    )
    if since is not None:
        kept = kept.where(sf.col("window_start") >= sf.lit(since))
    if until is not None:
        kept = kept.where(sf.col("window_start") < sf.lit(until))
    return kept.withColumn("second", sf.unix_timestamp("window_start"))


def _of_tenants(rows: DataFrame, replay: DataFrame) -> DataFrame:
    """With ``entity``: who shares the quota, as the replay has it; the user where it has nobody.

    Of a client's three forms the strictest that the replay knows is the right one: the eight levels
    resolve a client to one of them.
    """
    known = replay.select("quota_type", sf.col("shared_by").alias("known")).distinct()
    user = sf.concat(sf.lit("user="), "user")
    client = sf.concat(sf.lit("client-id="), "client_id")
    forms = {"both": sf.concat_ws(",", user, client), "one": user, "other": client}
    found = rows
    for name, form in forms.items():
        as_known = known.withColumnsRenamed({"known": name, "quota_type": "known_type"})
        same = (sf.col("quota_type") == sf.col("known_type")) & (form == sf.col(name))
        found = found.join(sf.broadcast(as_known), same, how="left").drop("known_type")
    named = sf.when(sf.col("user") != "", user).otherwise(client)
    return found.select(
        "quota_type",
        "broker",
        "second",
        "amount",
        "events",
        "throttled",
        sf.coalesce(*forms, named).alias("entity"),
    )


def _percentiles(rates: DataFrame, terms: Terms) -> DataFrame:
    """Of each tenant: the percentile, the peak, and how much it stands on."""
    is_ids = sf.col("quota_type") == "producer_ids"
    span = sf.when(is_ids, _HOURS_OF_IDS * _HOUR_S).otherwise(_RATE_S)
    slots = rates.groupBy(
        *TENANT, "broker", (sf.floor(sf.col("second") / span) * span).alias("slot")
    ).agg(
        (sf.sum("amount") / sf.first(sf.when(is_ids, _HOURS_OF_IDS).otherwise(_RATE_S))).alias(
            "rate"
        ),
        sf.sum("events").alias("events"),
        sf.sum("throttled").alias("held"),
        sf.collect_set(sf.floor(sf.col("second") / _HOUR_S)).alias("hours"),
        sf.max("second").alias("newest"),
        sf.first("end").alias("end"),
        sf.first("coverage").alias("coverage"),
    )
    age = (sf.col("end") - sf.col("slot")) / (_DAY_S * terms.half_life_days)
    weight = sf.greatest(sf.lit(1), sf.round(_WEIGHT * sf.pow(sf.lit(2.0), -age)).cast("bigint"))
    by_broker = slots.groupBy(*TENANT, "broker").agg(
        sf.percentile("rate", terms.percentile, weight).alias("percentile_rate"),
        sf.max("rate").alias("peak_rate"),
        sf.sum("events").alias("events"),
        sf.sum("held").alias("held"),
        sf.flatten(sf.collect_set("hours")).alias("hours"),
        sf.max("newest").alias("newest"),
        sf.first("coverage").alias("coverage"),
    )
    return by_broker.groupBy(*TENANT).agg(
        sf.max("percentile_rate").alias("percentile_rate"),
        sf.max("peak_rate").alias("peak_seen"),
        sf.sum("events").alias("events"),
        sf.sum("held").alias("held"),
        sf.size(sf.array_distinct(sf.flatten(sf.collect_list("hours")))).alias("hours"),
        sf.max("newest").alias("newest"),
        sf.first("coverage").alias("coverage"),
    )


def _bounds(rows: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    """One row: the end, and the share of all brokers' 10 minutes in which anything was charged."""
    covered = rows.groupBy("broker", sf.floor(sf.col("second") / _COVER_S).alias("slot")).agg(
        sf.max("second").alias("last")
    )
    first = sf.min("slot") if since is None else sf.lit(int(since.timestamp()) // _COVER_S)
    last = sf.max("slot") if until is None else sf.lit(int(until.timestamp() - 1) // _COVER_S)
    brokers = sf.size(sf.collect_set("broker"))
    asked = brokers * sf.greatest(sf.lit(1), last - first + 1)
    end = sf.max("last") if until is None else sf.lit(int(until.timestamp()))
    return covered.agg((sf.count("*") / asked).alias("coverage"), end.alias("end"))
