"""Replays through Spark: events a second of one quota, of twenty at once, and with a busy entity.

From silver_request in Parquet to GOLD_REPLAY, all quotas types, as ``pipeline replay`` alone does
it: who the clients are and which lines are admins' is asked each time. An event is one charge
against one quota; twenty candidates simulate twenty times as many.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from benchmarks.rows import Row
from sidecar.quotas.entities import ClientQuotas, Entity, QuotaKey
from usage_pipeline.replay.replay_table import replay, replay_events
from usage_pipeline.replay.scenarios import Scenario
from usage_pipeline.silver.dim_topic import dim_topic
from usage_pipeline.silver.quota_config import silver_quota_config, snapshot_rows
from usage_pipeline.silver.requests import Requests
from usage_pipeline.tables.commits import pinned
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import SILVER_REQUEST
from usage_pipeline.tables.store import Store
from usage_pipeline.usage.mutations import MutationRequests

_TURNS: Final = 3
_ONE: Final = 0.6e6
_SWEEP: Final = 8e6
_CANDIDATES: Final = 20
_SKEW: Final = 1.5
_QUOTAS: Final[ClientQuotas] = {
    Entity.of({"user": None}): {QuotaKey.PRODUCE: 1e6, QuotaKey.FETCH: 2e6, QuotaKey.REQUEST: 10.0}
}


def measure(spark: SparkSession, tables: Path, work: Path) -> Iterator[Row]:
    """One quota, a sweep, and half of the events in one entity.

    Args:
        spark: of the cores that count.
        tables: a folder of tables.
        work: a folder for what is made.
    """
    store = _store(spark, tables)
    rows = store.read(SILVER_REQUEST)
    found = rows.select(sql.to_date("quota_ts").alias("day")).distinct().collect()
    days = frozenset(row["day"] for row in found)
    requests = partial(Requests, spark, store.files(SILVER_REQUEST), days)
    snapshot = snapshot_rows(_QUOTAS)
    config = _table(
        work / "config", silver_quota_config(rows, snapshot, datetime(2026, 1, 1, tzinfo=UTC))
    )
    topics = _table(work / "topics", dim_topic(rows))
    all_requests = requests()
    mutations = MutationRequests.from_changes(all_requests.of_admins(), topics)
    count = replay_events(all_requests, mutations, config).count()
    one = _rates(requests, topics, config, [Scenario("x1", factor=1.0)], count)
    many = [Scenario(f"x{number}", factor=number / 10) for number in range(1, _CANDIDATES + 1)]
    rates = _rates(requests, topics, config, many, count)
    swept = [rate * _CANDIDATES for rate in rates]
    yield Row(
        "replay of one quota",
        median(one),
        "events/s",
        _ONE,
        remark=f"{count:,} events",
        at_least=True,
    )
    yield Row(
        f"sweep of {_CANDIDATES} quotas", median(swept), "simulated events/s", _SWEEP, at_least=True
    )
    times = median(swept) / median(one)
    yield Row("the sweep beside one", times, "times the events/s", 10.0, at_least=True)
    busy = sql.when(sql.col("src_offset") % 2 == 0, "busy").otherwise(sql.col("user"))
    skewed_store = _store(spark, work / "skewed")
    skewed_store.write(SILVER_REQUEST, rows.withColumn("user", busy))
    skewed_requests = partial(Requests, spark, skewed_store.files(SILVER_REQUEST), days)
    skewed = _rates(skewed_requests, topics, config, [Scenario("x1", factor=1.0)], count)
    cost = median(one) / median(skewed)
    yield Row("half of the events in one entity", cost, "times the cost", _SKEW)


def _store(spark: SparkSession, folder: Path) -> Store:
    return Store(spark, pinned(Folder.parse(str(folder))))


def _table(folder: Path, rows: DataFrame) -> DataFrame:
    """Rows as a stage reads them from the table that another wrote."""
    rows.write.parquet(str(folder))
    return rows.sparkSession.read.parquet(str(folder))


def _rates(
    asked: Callable[[], Requests],
    topics: DataFrame,
    config: DataFrame,
    scenarios: Sequence[Scenario],
    count: int,
) -> list[float]:
    rates = []
    for turn in range(_TURNS + 1):
        begin = time.perf_counter()
        requests = asked()
        of_admins = requests.of_admins().persist()
        mutations = MutationRequests.from_changes(of_admins, topics)
        replayed = replay(requests, mutations, config, scenarios)
        replayed.write.format("noop").mode("overwrite").save()
        of_admins.unpersist()
        if turn:
            rates.append(count / (time.perf_counter() - begin))
    return rates
