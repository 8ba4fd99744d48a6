"""The pipeline's part of ``demo-pipeline``: its tables of both rounds, as the checks want them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_lab.pipeline.checks import (
    Amount,
    Check,
    Client,
    Wait,
    Waits,
    doubled_checks,
    replay_checks,
    usage_checks,
)
from kafka_lab.pipeline.recorded_cluster import Round
from sidecar.quotas.quota_file import read_quota_file
from usage_pipeline.batch.job import run
from usage_pipeline.batch.run import Inputs, Options, Snapshot
from usage_pipeline.batch.stages import Stage
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.replay.replay_table import replay_events
from usage_pipeline.replay.scenarios import scenario
from usage_pipeline.report.document import report
from usage_pipeline.report.reading import read_tables
from usage_pipeline.runtime.session import session
from usage_pipeline.silver.requests import Requests
from usage_pipeline.tables.commits import pinned
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import (
    DIM_TOPIC,
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    SILVER_CHANGE,
    SILVER_QUOTA_CONFIG,
    SILVER_REQUEST,
)
from usage_pipeline.tables.store import Store
from usage_pipeline.usage.mutations import MutationRequests
from usage_pipeline.usage.quota_types import CONTROLLER_MUTATION, FETCH, PRODUCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DOUBLED: Final = "x2"


def compared(rounds: Sequence[Round], out: Path, log: Path) -> list[Check]:
    """Runs the pipeline over both rounds and compares; leaves the tables and the report."""
    once, doubled = rounds
    # Little is to be done: more tasks take longer to start than to do it.
    spark = session(settings={"spark.sql.shuffle.partitions": "2"}, log=log, brief=True)
    try:
        first = _run(spark, once, (Stage.SILVER, Stage.USAGE, Stage.REPLAY, Stage.RECOMMEND))
        second = _run(spark, doubled, (Stage.SILVER,))
        checks = [
            *usage_checks(_sent(once), _used(first.read(GOLD_USAGE_1S))),
            *replay_checks(_waits(first)),
            *doubled_checks(_predicted(first.read(GOLD_REPLAY)), _reported(second)),
        ]
    finally:
        spark.stop()
    page = report(read_tables(pinned(Folder.of(_out(once)))), datetime.now(UTC))
    (out / "report.html").write_text(page, encoding="utf-8")
    return checks


def _run(spark: "SparkSession", one: Round, stages: Sequence[Stage]) -> Store:
    """Returns the tables that were made."""
    quotas = Snapshot(read_quota_file(one.folder / "quotas.json"), one.began)
    inputs = Inputs(RequestLogs(str(one.folder / "logs")), None, quotas)
    options = Options(datetime.now(UTC), scenarios=(scenario(_DOUBLED),))
    run(spark, _out(one), inputs, options, stages=stages)
    return Store(spark, pinned(Folder.of(_out(one))))


def _out(one: Round) -> str:
    return str(one.folder / "tables")


def _sent(one: Round) -> dict[Client, Amount]:
    ledger = one.ledger
    sent = {(PRODUCE, *who): its for who, its in ledger.produced.items()}
    sent |= {(FETCH, *who): its for who, its in ledger.fetched.items()}
    return {client: Amount(its.requests, its.bytes) for client, its in sent.items()}


def _used(usage: "DataFrame") -> dict[Client, Amount]:
    summed = usage.groupBy("quota_type", "user", "client_id").agg(
        {"events": "sum", "amount": "sum"}
    )
    return {
        (row["quota_type"], row["user"], row["client_id"]): Amount(
            row["sum(events)"], row["sum(amount)"]
        )
        for row in summed.collect()
    }


def _charged(tables: Store) -> Iterable[tuple[tuple[str, int], str, int, int]]:
    """Of charges but those of time: the line, whose quota, the reported and the predicted wait."""
    changes = tables.read(SILVER_CHANGE)
    requests = Requests(changes.sparkSession, tables.files(SILVER_REQUEST))
    mutations = MutationRequests.of(changes, tables.read(DIM_TOPIC))
    replayed = replay_events(requests, mutations, tables.read(SILVER_QUOTA_CONFIG))
    compared = replayed.where(replayed["quota_type"].isin(PRODUCE, FETCH, CONTROLLER_MUTATION))
    for row in compared.collect():
        line = (row["src_file"], row["src_offset"])
        yield line, row["entity"], row["logged_throttle_ms"], row["throttle_ms"]


def _waits(tables: Store) -> list[Wait]:
    """Of each request: a client waits for the greatest of its charges' times."""
    found: dict[tuple[str, int], Wait] = {}
    for line, _, logged_throttle_ms, predicted_ms in _charged(tables):
        before = found.get(line, Wait(0, 0))
        found[line] = Wait(logged_throttle_ms, max(before.predicted_ms, predicted_ms))
    return list(found.values())


def _reported(tables: Store) -> dict[str, Waits]:
    """What brokers reported, by whose quota it was."""
    reported: dict[tuple[str, tuple[str, int]], int] = {}
    for line, entity, logged_throttle_ms, _ in _charged(tables):
        if logged_throttle_ms:
            reported[entity, line] = logged_throttle_ms
    found: dict[str, list[int]] = defaultdict(list)
    for (entity, _), logged_throttle_ms in reported.items():
        found[entity].append(logged_throttle_ms)
    return {entity: Waits(len(times), sum(times)) for entity, times in found.items()}


def _predicted(replayed: "DataFrame") -> dict[str, Waits]:
    """What the replay said of doubled quotas."""
    rows = replayed.where(replayed["scenario"] == _DOUBLED)
    found: dict[str, Waits] = {}
    for row in rows.where(rows["quota_type"].isin(PRODUCE, CONTROLLER_MUTATION)).collect():
        before = found.get(row["entity"], Waits(0, 0))
        found[row["entity"]] = Waits(
            before.throttled + row["throttled"], before.total_ms + row["throttle_ms_total"]
        )
    return {entity: waits for entity, waits in found.items() if waits.throttled}
