"""The smallest quota that keeps throttling under a target: GOLD_RECOMMENDATION.

For each tenant and quota type: the decayed percentile of its rates with a margin, or the smallest
candidate of the sweep whose replay keeps the share of throttled charges under the target, whichever
is greater; not under a floor. Rates are those of ``evidence``; the share is that of all brokers and
days together.

The replay has the last word on throttling: a percentile doesn't know of bursts within a window. The
reported share is that of the greatest candidate not above the quota, so at most that.

Example: alice's 99th percentile is 1.0 MB/s, with 15 % of margin 1.15 MB/s. Replayed, 1.0 MB/s
throttles 4 % of her requests, 1.4 MB/s 0.6 %; the target is 1 %: 1.4 MB/s.

It is refused where the logs cover too little of the time, where no candidate was replayed or none
is enough, and for the brokers' own principals. It is refused too where many charges are of unknown
amounts: a throttled FETCH is answered empty, so the log does not say how much a tenant requested
for whose fetches are throttled; that is not to be taken for no demand.

Confidence is low, whatever the evidence, where clients had to wait for more than 5 % of the
charges: they would have sent more, and the replay knows what they sent alone.

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
"""Coverage, hours and charges that a confidence needs."""
_MOST_UNKNOWN: Final = 0.05
"""Above this share of unknown charges it is refused: more was requested than is seen."""
_MOST_THROTTLED: Final = 0.05
"""Above this share of charges whose client had to wait, its demand is not seen as it is."""


def gold_recommendation(
    usage: UsageRows,
    replay: DataFrame,
    config: DataFrame,
    terms: Terms,
    capacity: Mapping[str, float],
) -> DataFrame:
    """What to set.

    Args:
        usage: of the requested time.
        replay: of GOLD_REPLAY, with candidates: the scenarios that begin with "=".
        config: of SILVER_QUOTA_CONFIG.
        terms: on which.
        capacity: of the smallest broker, by quota type: ``terms.capacity_of``.

    Returns:
        Of GOLD_RECOMMENDATION: a row for each tenant and quota type.
    """
    seen = evidence(usage, config, terms)
    found = seen.join(_candidates(replay, terms), list(TENANT), how="left")
    quota = _quota(terms)
    decided = found.withColumn("refused", _refused(terms)).withColumn(
        "quota", sf.when(sf.col("refused").isNull(), quota)
    )
    return GOLD_RECOMMENDATION.select(_completed(decided, capacity))


def _candidates(replay: DataFrame, terms: Terms) -> DataFrame:
    """Of each tenant: what the replay says, all brokers and days together."""
    # The rate as first proposed is shown beside the bucket, but brokers have the bucket.
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
    """To three digits, upwards."""
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
            " % of the charges have amounts that no line has, as throttled fetches have: raise"
            " its quota for a while, and log again"
        ),
    )
    return (
        sf.when(sf.col("entity").isin(cluster), "a broker's own principal, not to be throttled")
        .when(sf.col("coverage") < least, uncovered)
        .when(_unknown() > _MOST_UNKNOWN, unseen)
        .when(
            sf.coalesce(sf.size("candidates"), sf.lit(0)) == 0,
            "no candidate was replayed: `pipeline replay` with --candidates tries some",
        )
        .when(
            sf.col("least").isNull(),
            f"every candidate throttles more than {terms.target * 100:.3g} %: sweep higher ones",
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
            # What is refused leaves as it is what is set today.
            "share_of_capacity",
            sf.sum(sf.coalesce("quota", "in_force")).over(whole) / has,
        )
    )


def _unknown() -> Column:
    """The share of a tenant's charges whose amount isn't known."""
    return sf.coalesce("unknown", sf.lit(0)) / sf.greatest("events", sf.lit(1))


def _confidence() -> Column:
    def stands(coverage: float, hours: float, events: int) -> Column:
        enough = (sf.col("hours") >= hours) & (sf.col("events") >= events)
        return enough & (sf.col("coverage") >= coverage) & sf.col("refused").isNull()

    is_throttled = sf.col("throttled") > _MOST_THROTTLED * sf.col("events")
    sure = sf.when(stands(*_HIGH), "high").when(stands(*_MEDIUM), "medium").otherwise("low")
    return sf.when(is_throttled, "low").otherwise(sure)
