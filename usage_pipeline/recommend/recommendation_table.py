"""The smallest quota that keeps throttling under a target: GOLD_RECOMMENDATION.

For each tenant and quota type, the quota is the largest of three values: the weighted percentile of
the rates (``evidence``) plus a margin; the smallest candidate of the sweep whose replay throttles
at most the target share of charges, on all brokers and days together; and a floor.

The replay is needed because a percentile does not show bursts within a window. The reported share
is that of the largest candidate that does not exceed the quota, and so an upper bound.

Example: alice's 99th percentile is 1.0 MB/s, or 1.15 MB/s with a margin of 15 %. In the replay,
1.0 MB/s throttles 4 % of her requests and 1.4 MB/s 0.6 %. With a target of 1 %, the quota is
1.4 MB/s.

A recommendation is refused if the logs cover too little of the time, if no candidate was replayed
or is large enough, and for the brokers' own principals. It is also refused if many charges have
unknown amounts: the response to a throttled FETCH is empty, so the log does not show the demand.

Confidence is low, whatever the data, if more than 5 % of the charges were throttled. Those clients
wanted to send more, but the replay only knows the requests that they sent.

Source: the decayed percentile with a margin is that of Kubernetes' vertical pod autoscaler.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from usage_pipeline.recommend.evidence import TENANT, evidence
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.tables.schemas import GOLD_RECOMMENDATION
from usage_pipeline.usage.quota_types import KEYS
from usage_pipeline.usage.usage_reader import UsageRows

_HIGH: Final = (0.95, 168.0, 10_000)
_MEDIUM: Final = (0.8, 24.0, 1_000)
"""The coverage, hours and charges that each confidence needs."""
_MOST_UNKNOWN: Final = 0.05
"""Above this share of unknown charges, a recommendation is refused."""
_MOST_THROTTLED: Final = 0.05
"""Above this share of throttled charges, the log does not show the full demand."""


def gold_recommendation(
    usage: UsageRows,
    replay: DataFrame,
    config: DataFrame,
    terms: Terms,
    capacity: Mapping[str, float],
) -> DataFrame:
    """Recommend quotas.

    Args:
        usage: the usage in the requested time.
        replay: rows of GOLD_REPLAY; the scenarios that start with "=" are candidates.
        config: rows of SILVER_QUOTA_CONFIG.
        terms: the terms of recommendations.
        capacity: the capacity of the smallest broker, by quota type: ``terms.capacity_of``.

    Returns:
        A row of GOLD_RECOMMENDATION for each tenant and quota type.
    """
    seen = evidence(usage, config, terms)
    joined = seen.join(_candidates(replay, terms), list(TENANT), how="left")
    quota = _quota(terms)
    decided = joined.withColumn("refused", _refused(terms)).withColumn(
        "quota", sf.when(sf.col("refused").isNull(), quota)
    )
    return GOLD_RECOMMENDATION.select(_completed(decided, capacity))


def _candidates(replay: DataFrame, terms: Terms) -> DataFrame:
    """For each tenant: the results of the replay on all brokers and days together."""
    # The replay also contains the rate as first proposed, but brokers use the bucket.
    by_scenario = (
        replay.where(sf.col("algorithm") != "burst-spreading")
        .groupBy("quota_type", sf.col("shared_by").alias("entity"), "scenario")
        .agg(
            sf.max_by("quota", "dt").alias("quota"),
            (sf.sum("throttled") / sf.greatest(sf.lit(1), sf.sum("events"))).alias("share"),
            sf.max("peak_rate").alias("peak_rate"),
            sf.sum("unknown").alias("unknown"),
        )
    )
    in_force = sf.col("scenario") == "in force"
    absolute = sf.col("scenario").startswith("=") & sf.col("quota").isNotNull()
    by_tenant = by_scenario.groupBy(*TENANT).agg(
        sf.array_sort(sf.collect_list(sf.when(absolute, sf.struct("quota", "share")))).alias(
            "candidates"
        ),
        sf.max(sf.when(in_force, sf.col("quota"))).alias("in_force"),
        sf.max(sf.when(in_force, sf.col("peak_rate"))).alias("peak_replayed"),
        sf.max(sf.when(in_force, sf.col("unknown"))).alias("unknown"),
    )
    too_much = sf.filter("candidates", lambda each: each["share"] > terms.target)
    most = sf.coalesce(sf.array_max(too_much["quota"]), sf.lit(-1.0))
    enough = sf.filter("candidates", lambda each: each["quota"] > sf.col("too_small"))
    return by_tenant.withColumn("too_small", most).withColumn(
        "least", sf.array_min(enough["quota"])
    )


def _quota(terms: Terms) -> Column:
    """Round up to three digits."""
    floors = sf.create_map(*(sf.lit(each) for pair in terms.floors.items() for each in pair))
    floor = sf.coalesce(floors[sf.col("quota_type")], sf.lit(0.0))
    rate = sf.greatest("least", sf.col("percentile_rate") * (1 + terms.margin), floor)
    digit = sf.pow(sf.lit(10.0), sf.floor(sf.log10(rate)) - 2)
    return sf.round(sf.ceil(sf.round(rate / digit, 6)) * digit, 6)


def _refused(terms: Terms) -> Column:
    cluster = [f"user={user}" for user in sorted(terms.cluster_users)]
    least = terms.least_coverage
    uncovered = sf.concat(
        sf.lit("the logs cover "),
        sf.floor(sf.col("coverage") * 100),
        sf.lit(f" % of the time, less than {least * 100:.3g} %"),
    )
    unseen = sf.concat(
        sf.round(_unknown() * 100).cast("int"),
        sf.lit(
            " % of the charges have unknown amounts, such as throttled fetches; raise the quota"
            " for a while, and log again"
        ),
    )
    return (
        sf.when(sf.col("entity").isin(cluster), "a broker's own principal, not to be throttled")
        .when(sf.col("coverage") < least, uncovered)
        .when(_unknown() > _MOST_UNKNOWN, unseen)
        .when(
            sf.coalesce(sf.size("candidates"), sf.lit(0)) == 0,
            "no candidate was replayed; use `pipeline replay` with --candidates",
        )
        .when(
            sf.col("least").isNull(),
            f"every candidate throttles more than {terms.target * 100:.3g} %; replay larger ones",
        )
    )


def _completed(decided: DataFrame, capacity: Mapping[str, float]) -> DataFrame:
    keys = sf.create_map(*(sf.lit(each) for pair in KEYS.items() for each in pair))
    whole = Window.partitionBy("quota_type").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    known = [sf.lit(each) for pair in capacity.items() for each in pair]
    has = sf.create_map(*known)[sf.col("quota_type")] if known else sf.lit(None).cast("double")
    below = sf.filter("candidates", lambda each: each["quota"] <= sf.col("quota"))
    return (
        decided.withColumn("dt", sf.to_date(sf.timestamp_seconds("newest")))
        .withColumn("key", keys[sf.col("quota_type")])
        .withColumn("peak_rate", sf.coalesce("peak_replayed", "peak_seen"))
        .withColumn("throttled_share", sf.try_element_at(below["share"], sf.lit(-1)))
        .withColumn("confidence", _confidence())
        .withColumn(
            # The current quota stays if the recommendation is refused.
            "share_of_capacity",
            sf.sum(sf.coalesce("quota", "in_force")).over(whole) / has,
        )
    )


def _unknown() -> Column:
    """The share of a tenant's charges with an unknown amount."""
    return sf.coalesce("unknown", sf.lit(0)) / sf.greatest("events", sf.lit(1))


def _confidence() -> Column:
    def stands(coverage: float, hours: float, events: int) -> Column:
        enough = (sf.col("hours") >= hours) & (sf.col("events") >= events)
        return enough & (sf.col("coverage") >= coverage) & sf.col("refused").isNull()

    is_throttled = sf.col("throttled") > _MOST_THROTTLED * sf.col("events")
    sure = sf.when(stands(*_HIGH), "high").when(stands(*_MEDIUM), "medium").otherwise("low")
    return sf.when(is_throttled, "low").otherwise(sure)
