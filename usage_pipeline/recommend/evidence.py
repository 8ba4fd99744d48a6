"""The rates of each tenant, and the amount of data behind them.

A rate is the usage of a broker over 10 s, like Kafka's first rate; for producer ids, whose quota is
per hour, over 10 hours. Times without usage have no rate. A quota applies to all brokers alike, so
the broker with the highest rate decides. The weight of a rate halves with every half-life before
the end. Ten minutes of a broker without a charged request count as not covered.

Example: alice sent 3,000,000 bytes in 10 s on broker 1 and 90,000,000 on broker 2, so her rate is
9 MB/s. Two half-lives later, this rate has a quarter of the weight of a current one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from usage_pipeline.kernels.cover import COVER_S, COVERED, covered
from usage_pipeline.kernels.decayed import RATES, Decayed
from usage_pipeline.kernels.delay import delays_until
from usage_pipeline.kernels.packed import EVER_S
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.replay.entities import Quotas, quotas_of
from usage_pipeline.usage.usage_reader import UsageRows, in_shards, packed_by_name

TENANT: Final = ("quota_type", "entity")
"""The key of a row."""
_RATE_S: Final = 10
"""The time of a rate, seconds: the least time by which Kafka divides."""
_HOURS_OF_IDS: Final = 10
"""The time of a rate of producer ids, seconds, for KIP-936's windows of an hour."""
_DAY_S: Final = 86_400


def evidence(usage: UsageRows, config: DataFrame, terms: Terms) -> DataFrame:
    """Return the rates and the amount of data of each tenant.

    Args:
        usage: rows of GOLD_USAGE_1S.
        config: rows of SILVER_QUOTA_CONFIG, which define the clients that share a quota.
        terms: the terms of recommendations.

    Returns:
        For each TENANT: ``percentile_rate``, ``peak_seen`` and the lowest rate of each delay of
        ``delays_until`` (``delay_rates``; nulls for ids) in the quota's unit, the numbers of
        ``events`` and of ``throttled`` events, the ``hours`` with events, the second of the
        ``newest`` event, and the ``coverage`` of the time as a share.
    """
    bounds = sf.broadcast(_bounds(usage))
    packed_usage = packed_by_name(usage, _SharedNow(quotas_of(config)))
    return _percentiles(packed_usage, usage, bounds, terms)


@dataclass(frozen=True, slots=True)
class _SharedNow:
    """Map clients to the groups that share their latest quotas, also for earlier usage."""

    quotas: Mapping[str, Quotas]

    def __call__(self, quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
        *_, last = self.quotas[quota_type].of_client(user, client_id)
        return [(-EVER_S, last.shared_by)]


def _percentiles(
    packed_usage: DataFrame, usage: UsageRows, bounds: DataFrame, terms: Terms
) -> DataFrame:
    """For each tenant: the highest percentile and peak of all brokers, with their data."""
    half_life_s, delays_s = _DAY_S * terms.half_life_days, delays_until(terms.longest_wait_s)
    decayed = Decayed(_RATE_S, _HOURS_OF_IDS, terms.percentile, half_life_s, delays_s)

    def of_shard(table: pa.Table) -> pa.Table:
        return decayed.rows(table)

    of_brokers = in_shards(packed_usage.crossJoin(bounds), usage).applyInArrow(of_shard, RATES)
    return of_brokers.groupBy(*TENANT).agg(
        *(sf.max(name).alias(name) for name in ("percentile_rate", "peak_seen", "newest")),
        sf.array(*(sf.max(sf.col("delay_rates")[at]) for at in range(len(delays_s)))).alias(
            "delay_rates"
        ),
        *(sf.sum(name).alias(name) for name in ("events", "throttled")),
        sf.size(sf.array_distinct(sf.flatten(sf.collect_list("hours")))).alias("hours"),
        sf.any_value("coverage").alias("coverage"),
    )


def _bounds(usage: UsageRows) -> DataFrame:
    """One row: the end, and the share of 10-minute intervals of all brokers with a charge."""
    since, until = usage.since, usage.until
    slots_covered = usage.mapped(("broker", "window_start"), covered, COVERED)
    slots = slots_covered.groupBy("broker", "slot").agg(sf.max("last").alias("last"))
    first = sf.min("slot") if since is None else sf.lit(int(since.timestamp()) // COVER_S)
    last = sf.max("slot") if until is None else sf.lit(int(until.timestamp() - 1) // COVER_S)
    brokers = sf.size(sf.collect_set("broker"))
    expected = brokers * sf.greatest(sf.lit(1), last - first + 1)
    end = sf.max("last") if until is None else sf.lit(int(until.timestamp()))
    return slots.agg((sf.count("*") / expected).alias("coverage"), end.alias("end"))
