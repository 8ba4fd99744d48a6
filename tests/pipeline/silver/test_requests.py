"""Requests as workers read and lay them out, against Spark's own result."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sidecar.pipeline.ingest.request_logs import RequestLogs
from sidecar.pipeline.replay.replay_table import replay
from sidecar.pipeline.replay.scenarios import IN_FORCE, Scenario
from sidecar.pipeline.sample import Sample, write_sample
from sidecar.pipeline.silver.dim_topic import dim_topic
from sidecar.pipeline.silver.quota_config import silver_quota_config, snapshot_rows
from sidecar.pipeline.silver.requests import Requests
from sidecar.pipeline.tables.commits import recovered
from sidecar.pipeline.tables.folder import Folder
from sidecar.pipeline.tables.schemas import GOLD_USAGE_1S, SILVER_REQUEST
from sidecar.pipeline.tables.store import Store
from sidecar.pipeline.usage.events import CONTROLLER_MUTATION, charges
from sidecar.pipeline.usage.usage_table import gold_usage_1s, mutations_of_days
from sidecar.pipeline.usage.usage_writer import write_usage
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity, QuotaKey
from tests.pipeline.parsed_logs import requests_of, silver_request

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
def logs(tmp_path_factory: pytest.TempPathFactory) -> RequestLogs:
    """Two brokers' requests of an hour over midnight."""
    folder = tmp_path_factory.mktemp("requests")
    begin = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)
    write_sample(folder, Sample(size_bytes=4_000_000, brokers=2, hours=1, start=begin))
    return RequestLogs(str(folder / "request-logs"))


def different(one: DataFrame, other: DataFrame) -> int:
    return one.exceptAll(other).count() + other.exceptAll(one).count()


@pytest.mark.spark
def test_workers_compute_what_spark_computes(
    spark: SparkSession, logs: RequestLogs, tmp_path: Path
) -> None:
    """Usage and replay of one of two days are computed from files and from a frame."""
    rows = silver_request(requests_of(spark, logs))
    of_day = rows.where(sql.to_date("quota_ts") == sql.lit(FIRST))
    assert 0 < of_day.count() < rows.count()
    topics = dim_topic(of_day)
    usage = gold_usage_1s(of_day, topics)
    config = silver_quota_config(of_day, snapshot_rows(QUOTAS), datetime(2026, 1, 1, tzinfo=UTC))
    scenarios = [IN_FORCE, Scenario("x2", factor=2.0)]
    mutations = charges(of_day, topics, [CONTROLLER_MUTATION])
    by_rows = replay(charges(of_day, topics), config, scenarios)
    assert 0 < by_rows.where("throttled > 0").count()

    store = Store(spark, recovered(Folder.of(str(tmp_path)))[0])
    store.write(SILVER_REQUEST, rows)
    requests = Requests(spark, store.files(SILVER_REQUEST), frozenset({FIRST}))
    store.write(GOLD_USAGE_1S, mutations_of_days(of_day, topics))
    store.add(GOLD_USAGE_1S, write_usage(requests, store.target(GOLD_USAGE_1S)))
    assert 0 == different(usage, store.read(GOLD_USAGE_1S))
    assert 0 == different(by_rows, replay(mutations, config, scenarios, requests=requests))
    late = store.files(SILVER_REQUEST, [FIRST + timedelta(days=1)])
    assert {FIRST + timedelta(days=1)} == Requests(spark, late).charged_days()
    assert set() == Requests(spark, late, frozenset({FIRST})).charged_days()
