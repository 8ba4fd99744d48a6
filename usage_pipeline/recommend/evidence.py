"""What each tenant used, at which rates, and how much there is of it.

A rate is taken over 10 s, as Kafka's first one is (producer ids, whose quota is per hour: over 10
hours), on each broker, while there was any. The broker with the highest one counts, since a quota
is one number for all of them. What is decayed is the weight of a rate: it halves with every
half-life before the end. A broker's 10 minutes without any charged request are not covered.

Example: alice sent 3,000,000 bytes in 10 s on broker 1 and 90,000,000 on broker 2: 9 MB/s, and
should that have been two half-lives ago, it counts a quarter of what she sends now.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from usage_pipeline.kernels.cover import COVER_S, COVERED, covered
from usage_pipeline.kernels.decayed import RATES, Decayed
from usage_pipeline.kernels.packed import EVER_S
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.replay.entities import Quotas, quotas_of
from usage_pipeline.usage.usage_reader import UsageRows, in_shards, packed_by_name

TENANT: Final = ("quota_type", "entity")
"""What a row is of."""
_RATE_S: Final = 10
"""What a rate is taken over, seconds: the least time that Kafka divides by."""
_HOURS_OF_IDS: Final = 10
"""Likewise of producer ids, with KIP-936's windows of an hour."""
_DAY_S: Final = 86_400


def evidence(usage: UsageRows, config: DataFrame, terms: Terms) -> DataFrame:
    """What is known of each tenant's use.

    Args:
        usage: of GOLD_USAGE_1S.
        config: of SILVER_QUOTA_CONFIG: who shares quotas.
        terms: of recommendations.

    Returns:
        Of each TENANT ``percentile_rate`` and ``peak_seen`` in the quota's unit, ``events``, those
        ``throttled``, the ``hours`` in which there were any, the second of the ``newest``, and the
        ``coverage`` of the time, a share.
    """
    bounds = sf.broadcast(_bounds(usage))
    used = packed_by_name(usage, _SharedNow(quotas_of(config)))
    return _percentiles(used, usage, bounds, terms)


@dataclass(frozen=True, slots=True)
class _SharedNow:
    """Who shares a client's quotas as they were last, whenever it used what it did."""

    quotas: Mapping[str, Quotas]

    def __call__(self, quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
        *_, last = self.quotas[quota_type].of(user, client_id)
        return [(-EVER_S, last.shared_by)]


def _percentiles(used: DataFrame, usage: UsageRows, bounds: DataFrame, terms: Terms) -> DataFrame:
    """Of each tenant: the highest of all brokers' percentiles and peaks, and what they stand on."""
    decayed = Decayed(_RATE_S, _HOURS_OF_IDS, terms.percentile, _DAY_S * terms.half_life_days)

    def of_shard(table: pa.Table) -> pa.Table:
        return decayed.rows(table)

    of_brokers = in_shards(used.crossJoin(bounds), usage).applyInArrow(of_shard, RATES)
    return of_brokers.groupBy(*TENANT).agg(
        *(sf.max(name).alias(name) for name in ("percentile_rate", "peak_seen", "newest")),
        *(sf.sum(name).alias(name) for name in ("events", "throttled")),
        sf.size(sf.array_distinct(sf.flatten(sf.collect_list("hours")))).alias("hours"),
        sf.any_value("coverage").alias("coverage"),
    )


def _bounds(usage: UsageRows) -> DataFrame:
    """One row: the end, and the share of all brokers' 10 minutes in which anything was charged."""
    since, until = usage.since, usage.until
    slots_covered = usage.mapped(("broker", "window_start"), covered, COVERED)
    slots = slots_covered.groupBy("broker", "slot").agg(sf.max("last").alias("last"))
    first = sf.min("slot") if since is None else sf.lit(int(since.timestamp()) // COVER_S)
    last = sf.max("slot") if until is None else sf.lit(int(until.timestamp() - 1) // COVER_S)
    brokers = sf.size(sf.collect_set("broker"))
    expected = brokers * sf.greatest(sf.lit(1), last - first + 1)
    end = sf.max("last") if until is None else sf.lit(int(until.timestamp()))
    return slots.agg((sf.count("*") / expected).alias("coverage"), end.alias("end"))
