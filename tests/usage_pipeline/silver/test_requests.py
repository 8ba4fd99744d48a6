"""Requests as workers read and lay them out, against what the daemon's rules make of each line."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs
from pyspark.sql import SparkSession

from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity, QuotaKey
from sidecar.quotas.rate import QuotaWindow
from sidecar.requestlog.mutation_counts import TopicSizes
from tests.support.charges import charges
from tests.support.prediction import Predictor
from tests.usage_pipeline import charged_lines
from tests.usage_pipeline.build import files_of
from tests.usage_pipeline.parsed_logs import requests_of, silver_request
from tests.usage_pipeline.silver_tables import row
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.kernels.charge_times import charged_at_ms
from usage_pipeline.replay.replay_table import replay_events
from usage_pipeline.sample import Sample, write_sample
from usage_pipeline.silver.dim_topic import dim_topic
from usage_pipeline.silver.quota_config import silver_quota_config, snapshot_rows
from usage_pipeline.silver.requests import Requests
from usage_pipeline.tables.commits import recovered
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import GOLD_USAGE_1S, SILVER_REQUEST
from usage_pipeline.tables.store import Store
from usage_pipeline.usage.mutations import MutationRequests, usage_of
from usage_pipeline.usage.quota_types import KEYS
from usage_pipeline.usage.usage_writer import write_usage

FIRST = date(2026, 1, 5)
QUOTAS: ClientQuotas = {
    Entity(user=DEFAULT): {
        QuotaKey.PRODUCE: 2e4,
        QuotaKey.FETCH: 5e4,
        QuotaKey.REQUEST: 0.02,
        QuotaKey.CONTROLLER_MUTATION: 0.5,
    },
    Entity(client_id="etl"): {QuotaKey.PRODUCE: 1e4},
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> RequestLogs:
    """Two brokers' requests of an hour over midnight."""
    folder = tmp_path_factory.mktemp("requests")
    begin = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)
    write_sample(folder, Sample(size_bytes=4_000_000, brokers=2, hours=1, start=begin))
    return RequestLogs(str(folder / "request-logs"))


@pytest.fixture(scope="module")
def store(
    spark: SparkSession, logs: RequestLogs, tmp_path_factory: pytest.TempPathFactory
) -> Store:
    """The table of those requests."""
    found, _ = recovered(Folder.parse(str(tmp_path_factory.mktemp("tables"))))
    store = Store(spark, found)
    store.write(SILVER_REQUEST, silver_request(requests_of(spark, logs)))
    return store


@pytest.fixture
def requests(spark: SparkSession, store: Store) -> Requests:
    """Requests that were charged on the first day; the files also have requests of the second."""
    return Requests(spark, store.files(SILVER_REQUEST), frozenset({FIRST}))


@pytest.fixture
def mutations(store: Store) -> MutationRequests:
    """Requests about topics on the first day."""
    rows = store.read(SILVER_REQUEST)
    return MutationRequests.from_changes(
        rows.where(f"to_date(quota_ts) = '{FIRST}'"), dim_topic(rows)
    )


@pytest.mark.spark
def test_usage_of_a_day_is_what_its_lines_are_charged_with(
    logs: RequestLogs, store: Store, requests: Requests, mutations: MutationRequests
) -> None:
    """Only one day's lines count, and mutations depend on the sizes of topics at that time."""
    usage = charged_lines.usage_of(logs, TopicSizes())
    expected = [row for row in usage if row["dt"] == FIRST]
    assert 0 < len(expected) < len(usage)
    store.write(GOLD_USAGE_1S, usage_of(mutations))
    store.add(GOLD_USAGE_1S, write_usage(requests, store.target(GOLD_USAGE_1S)))
    found = store.read(GOLD_USAGE_1S).toArrow().to_pylist()
    assert expected == charged_lines.in_order(found)


@pytest.mark.spark
def test_a_replay_of_a_day_is_what_the_daemon_predicts_of_its_lines(
    logs: RequestLogs, store: Store, requests: Requests, mutations: MutationRequests
) -> None:
    """Each broker's charges wait as long as the daemon predicts; it predicts no fetches."""
    none = store.read(SILVER_REQUEST).where("false")
    config = silver_quota_config(none, snapshot_rows(QUOTAS), datetime(2026, 1, 1, tzinfo=UTC))
    replayed = replay_events(requests, mutations, config).where("quota_type <> 'fetch'").collect()
    expected = predicted(logs)
    assert {QuotaKey.PRODUCE, QuotaKey.REQUEST, QuotaKey.CONTROLLER_MUTATION} == {
        key for *_, key, _, wait_ms, _ in expected if wait_ms
    }
    assert expected == sorted(
        (r.src_file, r.src_offset, KEYS[r.quota_type], r.at_ms, r.throttle_ms, r.logged_throttle_ms)
        for r in replayed
        if r.quota_type != "producer_ids"
    )


def predicted(logs: RequestLogs) -> list[tuple[str, int, str, int, int, int]]:
    """Returns each charge of the first day, with its wait and the one that its line has."""
    sizes, due = TopicSizes(), []
    for broker, file, offset, line in charged_lines.lines_of(logs):
        charged = charges(line, sizes).charges
        if datetime.fromtimestamp(charged_at_ms(line) / 1000, UTC).date() == FIRST:
            due += [(each.at_ms, file, offset, broker, line.throttle_ms, each) for each in charged]
    nodes: dict[int, Predictor] = {}
    found = []
    for at_ms, file, offset, broker, logged_throttle_ms, charge in sorted(
        due, key=lambda one: one[:3]
    ):
        node = nodes.setdefault(broker, Predictor(QuotaWindow()))
        node.set_quotas(QUOTAS)
        wait_ms = node.charge(charge).throttle_ms
        found.append((file, offset, charge.key, at_ms, wait_ms, logged_throttle_ms))
    return sorted(found)


@pytest.mark.spark
def test_the_days_on_which_requests_were_charged(spark: SparkSession, store: Store) -> None:
    """Requests in a day's files may be charged on another day."""
    second = FIRST + timedelta(days=1)
    late = store.files(SILVER_REQUEST, [second])
    assert {second} == Requests(spark, late).charged_days()
    assert set() == Requests(spark, late, frozenset({FIRST})).charged_days()


@pytest.mark.spark
def test_what_is_known_of_them_without_reading(spark: SparkSession, store: Store) -> None:
    """Days and brokers are those of files, and of the days before them; shards are by rows."""
    second = FIRST + timedelta(days=1)
    requests = Requests(spark, store.files(SILVER_REQUEST))
    days = (FIRST - timedelta(days=1), FIRST, second)
    assert {(day, broker) for day in days for broker in (0, 1)} == requests.days_and_brokers()
    of_first = Requests(spark, store.files(SILVER_REQUEST), frozenset({FIRST}))
    assert {(FIRST, 0), (FIRST, 1)} == of_first.days_and_brokers()
    many = [
        replace(file, written=structs.replace(file.written, rows=10**9)) for file in requests.files
    ]
    assert (64, 100) == (requests.shards(), requests.shards(100))
    assert len(many) * 500 == Requests(spark, tuple(many)).shards()
    assert len(many) * 1000 == Requests(spark, tuple(many)).shards(100, 10**6)


@pytest.mark.spark
def test_brokers_are_known_by_what_they_ask(spark: SparkSession, tmp_path: Path) -> None:
    """Fetches of replicas and heartbeats come from brokers; a tenant's fetches do not."""
    asked = [
        ("alice", "etl", False, "PRODUCE"),
        ("kafka", "broker-1-fetcher-0", True, "FETCH"),
        ("alice", "etl", False, "FETCH"),
        ("kafka", "1", False, "PRODUCE"),
        ("controller", "1", False, "BROKER_HEARTBEAT"),
        ("controller", "1", False, "ALTER_PARTITION"),
    ]
    rows = (
        row(user=user, client_id=client_id, is_follower=is_follower, api=api)
        for user, client_id, is_follower, api in asked
    )
    found = Requests(spark, files_of(tmp_path, SILVER_REQUEST, rows)).cluster_clients()
    assert {("kafka", "broker-1-fetcher-0"), ("controller", "1")} == found


@pytest.mark.spark
def test_the_lines_of_each_log_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A log has whole seconds only if all its lines do."""
    lines = [(0, "a.log", 0), (0, "a.log", 250), (0, "b.log", 0), (1, "a.log", 0), (1, "a.log", 0)]
    rows = (
        row(broker=broker, src_file=log, log_ts=datetime(2026, 1, 5, tzinfo=UTC) + after)
        for broker, log, ms in lines
        for after in [timedelta(milliseconds=ms)]
    )
    found = Requests(spark, files_of(tmp_path, SILVER_REQUEST, rows)).read_lines()
    expected = {(0, "a.log", 2, False), (0, "b.log", 1, True), (1, "a.log", 2, True)}
    assert expected == {tuple(each) for each in found.collect()}
