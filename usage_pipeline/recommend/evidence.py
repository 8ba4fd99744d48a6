"""The rates of each tenant, and the amount of data behind them.

A rate is the usage of a broker over 10 s, like Kafka's first rate; for producer ids, whose quota is
per hour, over 10 hours. Times without usage have no rate. A quota applies to all brokers alike, so
the broker with the highest rate decides. The weight of a rate halves with every half-life before
the end. Ten minutes of a broker without a charged request count as not covered. A quota applies on
each broker, so of the brokers that a tenant uses, the one with the least coverage counts. This
leaves out controllers, which log few requests.

Example: alice sent 3,000,000 bytes in 10 s on broker 1 and 90,000,000 on broker 2, so her rate is
9 MB/s. Two half-lives later, this rate has a quarter of the weight of a current one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from usage_pipeline.kernels.cover import COVERED, covered
from usage_pipeline.kernels.decayed import RATES, Decayed
from usage_pipeline.kernels.delay import delays_until
from usage_pipeline.kernels.packed import EVER_S
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.replay.entities import quotas_of
from usage_pipeline.usage.usage_reader import UsageRows, in_shards, packed_by_name

TENANT: Final = ("quota_type", "entity")
"""The key of a row."""
_DAY_S: Final = 86_400
_DAY_HOURS: Final = 24


def evidence(usage: UsageRows, config: DataFrame, terms: Terms) -> DataFrame:
    """Return the rates and the amount of data of each tenant.

    Args:
        usage: rows of GOLD_USAGE_1S.
        config: rows of SILVER_QUOTA_CONFIG, which define the clients that share a quota.
        terms: the terms of recommendations.

    Returns:
        For each TENANT: ``percentile_rate``, ``peak_seen`` and the lowest rate of each delay of
        ``delays_until`` (``delay_rates``; nulls for ids) in the quota's unit, the numbers of
        ``events`` and of ``throttled`` events, the ``hours`` with events, the ``used_days`` (days
        since 1970), and the second of the ``newest`` event. The ``coverage`` of the time is a
        share: that of ``least_covered``, the tenant's broker with the least, or the
        ``mean_coverage`` of all brokers if the tenant uses controllers only.
    """
    quotas, coverage = quotas_of(config), _coverage(usage)
    half_life_s, delays_s = _DAY_S * terms.half_life_days, delays_until(terms.longest_wait_s)
    decayed = Decayed(terms.percentile, half_life_s, delays_s)

    def shared_now(quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
        """Name the group that shares a client's latest quota, also for earlier usage."""
        *_, last = quotas[quota_type].of_client(user, client_id)
        return [(-EVER_S, last.shared_by)]

    def of_shard(table: pa.Table) -> pa.Table:
        return decayed.rows(table)

    ends = packed_by_name(usage, shared_now).withColumn("end", sf.lit(coverage.end_s))
    of_brokers = in_shards(ends, usage).applyInArrow(of_shard, RATES)
    known = [sf.lit(each) for pair in coverage.of_brokers.items() for each in pair]
    own = sf.create_map(*known)[sf.col("broker")] if known else sf.lit(None).cast("double")
    hours = sf.array_distinct(sf.flatten(sf.collect_list("hours")))
    of_tenants = of_brokers.groupBy(*TENANT).agg(
        *(sf.max(name).alias(name) for name in ("percentile_rate", "peak_seen", "newest")),
        sf.array(*(sf.max(sf.col("delay_rates")[at]) for at in range(len(delays_s)))).alias(
            "delay_rates"
        ),
        *(sf.sum(name).alias(name) for name in ("events", "throttled")),
        hours.alias("hours"),
        sf.min(sf.when(own.isNotNull(), sf.struct(own.alias("coverage"), "broker"))).alias("least"),
    )
    mean = sf.lit(coverage.mean)
    days = sf.transform("hours", lambda hour: sf.floor(hour / _DAY_HOURS).cast("int"))
    return (
        of_tenants.withColumn("used_days", sf.array_distinct(days))
        .withColumn("hours", sf.size("hours"))
        .withColumn("coverage", sf.coalesce(sf.col("least.coverage"), mean))
        .withColumn("least_covered", sf.col("least.broker"))
        .withColumn("mean_coverage", mean)
        .drop("least")
    )


@dataclass(frozen=True, slots=True)
class _Coverage:
    """How much of the time the logs cover.

    Attributes:
        end_s: the end of the time, seconds since 1970.
        mean: the share of the 10-minute intervals of all brokers with a charge.
        of_brokers: the share of each broker that clients produce to or fetch from.
    """

    end_s: int
    mean: float
    of_brokers: Mapping[int, float]


def _coverage(usage: UsageRows) -> _Coverage:
    of_slots = usage.mapped(("quota_type", "broker", "window_start"), covered, COVERED)
    slots = of_slots.groupBy("broker", "slot").agg(
        sf.max("last").alias("last"), sf.max("has_records").alias("has_records")
    )
    of_brokers = slots.groupBy("broker").agg(
        sf.count("*").alias("slots"),
        sf.min("slot").alias("first"),
        sf.max("slot").alias("newest"),
        sf.max("last").alias("last"),
        sf.max("has_records").alias("has_records"),
    )
    rows = of_brokers.collect()
    if not rows:
        return _Coverage(0, 0.0, {})
    expected = max(row.newest for row in rows) - min(row.first for row in rows) + 1
    return _Coverage(
        max(row.last for row in rows),
        sum(row.slots for row in rows) / (expected * len(rows)),
        {row.broker: row.slots / expected for row in rows if row.has_records},
    )
