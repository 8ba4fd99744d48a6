"""Requests as workers read and lay them out, against Spark's own result."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sidecar.pipeline.replay.replay_table import replay
from sidecar.pipeline.replay.scenarios import IN_FORCE, Scenario
from sidecar.pipeline.sample import Sample, write_sample
from sidecar.pipeline.silver.dim_topic import dim_topic
from sidecar.pipeline.silver.quota_config import silver_quota_config, snapshot_rows
from sidecar.pipeline.silver.request_table import RequestLogs, requests_of, silver_request
from sidecar.pipeline.silver.requests import Requests
from sidecar.pipeline.tables.schemas import SILVER_REQUEST
from sidecar.pipeline.usage.events import CONTROLLER_MUTATION, charges
from sidecar.pipeline.usage.usage_table import gold_usage_1s, usage_of_days
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity, QuotaKey

FIRST = date(2026, 1, 5)
QUOTAS: ClientQuotas = {
    Entity(user=DEFAULT): {
        QuotaKey.PRODUCE: 2e5,
        QuotaKey.FETCH: 5e5,
        QuotaKey.REQUEST: 1.0,
        QuotaKey.CONTROLLER_MUTATION: 0.5,
    },
    Entity(client_id="etl"): {QuotaKey.PRODUCE: 1e5},
}


@pytest.fixture(scope="module")
def silver(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two brokers' requests of an hour over midnight, as Spark writes the table."""
    folder = tmp_path_factory.mktemp("requests")
    begin = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)
    write_sample(folder, Sample(size_bytes=4_000_000, brokers=2, hours=1, start=begin))
    rows = silver_request(requests_of(spark, RequestLogs(str(folder / "request-logs"))))
    rows.write.partitionBy("dt", "hour").parquet(str(folder / "silver"))
    return folder / "silver"


def different(one: DataFrame, other: DataFrame) -> int:
    return one.exceptAll(other).count() + other.exceptAll(one).count()


@pytest.mark.spark
def test_workers_compute_what_spark_computes(spark: SparkSession, silver: Path) -> None:
    """Usage and replay of one of two days are computed from files and from a frame."""
    of_day = SILVER_REQUEST.select(
        spark.read.schema(SILVER_REQUEST.schema).parquet(str(silver))
    ).where(sql.to_date("quota_ts") == sql.lit(FIRST))
    assert 0 < of_day.count() < spark.read.parquet(str(silver)).count()
    topics = dim_topic(of_day)
    usage = gold_usage_1s(of_day, topics)
    snapshot = snapshot_rows(QUOTAS)
    config = silver_quota_config(of_day, snapshot, datetime(2026, 1, 1, tzinfo=UTC))
    scenarios = [IN_FORCE, Scenario("x2", factor=2.0)]
    mutations = charges(of_day, topics, [CONTROLLER_MUTATION])
    by_rows = replay(charges(of_day, topics), config, scenarios)
    assert 0 < by_rows.where("throttled > 0").count()
    for files in (tuple(silver.rglob("*.parquet")), None):
        requests = Requests(of_day, files, frozenset({FIRST}))
        assert 0 == different(usage, usage_of_days(requests, of_day, topics))
        assert 0 == different(by_rows, replay(mutations, config, scenarios, requests=requests))
