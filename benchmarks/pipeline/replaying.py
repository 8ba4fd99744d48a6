"""Replays through Spark: events a second of one quota, of twenty at once, and with a busy entity.

From silver_request in Parquet to GOLD_REPLAY, all quotas types. An event is one charge against one
quota; twenty candidates simulate twenty times as many.
"""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from benchmarks.pipeline.figures import Figure
from sidecar.pipeline.dim_topic import dim_topic
from sidecar.pipeline.events import charges
from sidecar.pipeline.quota_config import silver_quota_config, snapshot_rows
from sidecar.pipeline.replay import replay
from sidecar.pipeline.sweep import Scenario
from sidecar.quotas.entities import ClientQuotas, Entity, QuotaKey

_TURNS: Final = 3
_ONE: Final = 0.6e6
_SWEEP: Final = 8e6
_CANDIDATES: Final = 20
_SKEW: Final = 1.5
_QUOTAS: Final[ClientQuotas] = {
    Entity.of({"user": None}): {QuotaKey.PRODUCE: 1e6, QuotaKey.FETCH: 2e6, QuotaKey.REQUEST: 10.0}
}


def measure(spark: SparkSession, silver: Path) -> Iterator[Figure]:
    """One quota, a sweep, and half of the events in one entity.

    Args:
        spark: of the cores that count.
        silver: a folder of SILVER_REQUEST.
    """
    requests = spark.read.parquet(str(silver))
    snapshot = snapshot_rows(_QUOTAS)
    config = silver_quota_config(requests, snapshot, datetime(2026, 1, 1, tzinfo=UTC))
    topics = dim_topic(requests)
    events = charges(requests, topics)
    count = events.where("known").count()
    one = _rates(events, config, [Scenario("x1", factor=1.0)], count)
    many = [Scenario(f"x{number}", factor=number / 10) for number in range(1, _CANDIDATES + 1)]
    swept = [rate * _CANDIDATES for rate in _rates(events, config, many, count)]
    yield Figure("replay of one quota", median(one), "events/s", _ONE, f"{count:,} events")
    yield Figure(f"sweep of {_CANDIDATES} quotas", median(swept), "simulated events/s", _SWEEP)
    times = median(swept) / median(one)
    yield Figure("the sweep beside one", times, "times the events/s", 10.0)
    busy = requests.withColumn(
        "user", sql.when(sql.col("src_offset") % 2 == 0, "busy").otherwise(sql.col("user"))
    )
    skewed = _rates(charges(busy, topics), config, [Scenario("x1", factor=1.0)], count)
    cost = median(one) / median(skewed)
    yield Figure("half of the events in one entity", cost, "times the cost", _SKEW, most=True)


def _rates(
    events: DataFrame, config: DataFrame, scenarios: Sequence[Scenario], count: int
) -> list[float]:
    rates = []
    for turn in range(_TURNS + 1):
        begin = time.perf_counter()
        replay(events, config, scenarios).write.format("noop").mode("overwrite").save()
        if turn:
            rates.append(count / (time.perf_counter() - begin))
    return rates
