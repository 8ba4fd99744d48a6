"""Runs the pipeline for ``demo-pipeline``, and reads from its tables what the checks compare."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
    GOLD_RECOMMENDATION,
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

Advice = Sequence[Mapping[str, object]]
"""Rows of GOLD_RECOMMENDATION."""

_DOUBLED: Final = "x2"


def compared(rounds: Sequence[Round], out: Path, log: Path) -> tuple[list[Check], Advice]:
    """Run the pipeline over all rounds and compare; the tables and the report remain.

    Returns:
        The checks, and the recommendations for the tenants of the last round.
    """
    once, doubled, advised = rounds
    # There is little data, so more tasks would take longer to start than to run.
    spark = session(settings={"spark.sql.shuffle.partitions": "2"}, log=log, brief=True)
    try:
        first = _run(spark, once, (Stage.SILVER, Stage.USAGE, Stage.REPLAY, Stage.RECOMMEND))
        second = _run(spark, doubled, (Stage.SILVER,))
        third = _run(spark, advised, (Stage.SILVER, Stage.USAGE, Stage.REPLAY, Stage.RECOMMEND))
        advice = [row.asDict() for row in third.read(GOLD_RECOMMENDATION).collect()]
        checks = [
            *usage_checks(_sent(once), _used(first.read(GOLD_USAGE_1S))),
            *replay_checks(_waits(first)),
            *doubled_checks(_predicted(first.read(GOLD_REPLAY)), _reported(second)),
        ]
    finally:
        spark.stop()
    now = datetime.now(UTC)
    page = report(read_tables(pinned(Folder.parse(_out(once))), now.date()), now)
    (out / "report.html").write_text(page, encoding="utf-8")
    return checks, advice


def _run(spark: "SparkSession", round_: Round, stages: Sequence[Stage]) -> Store:
    """Run stages and return their tables."""
    quotas = Snapshot(read_quota_file(round_.folder / "quotas.json"), round_.began)
    inputs = Inputs(RequestLogs(str(round_.folder / "logs")), None, quotas)
    options = Options(datetime.now(UTC), scenarios=(scenario(_DOUBLED),))
    run(spark, _out(round_), inputs, options, stages=stages)
    return Store(spark, pinned(Folder.parse(_out(round_))))


def _out(round_: Round) -> str:
    return str(round_.folder / "tables")


def _sent(round_: Round) -> dict[Client, Amount]:
    ledger = round_.ledger
    sent = {(PRODUCE, *names): counted for names, counted in ledger.produced.items()}
    sent |= {(FETCH, *names): counted for names, counted in ledger.fetched.items()}
    return {client: Amount(counted.requests, counted.bytes) for client, counted in sent.items()}


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
    """Yield charges except for time: the line, the entity, the reported and the predicted wait."""
    changes = tables.read(SILVER_CHANGE)
    requests = Requests(changes.sparkSession, tables.files(SILVER_REQUEST))
    mutations = MutationRequests.from_changes(changes, tables.read(DIM_TOPIC))
    replayed = replay_events(requests, mutations, tables.read(SILVER_QUOTA_CONFIG))
    compared = replayed.where(replayed["quota_type"].isin(PRODUCE, FETCH, CONTROLLER_MUTATION))
    for row in compared.collect():
        line = (row["src_file"], row["src_offset"])
        yield line, row["entity"], row["logged_throttle_ms"], row["throttle_ms"]


def _waits(tables: Store) -> list[Wait]:
    """Return the wait of each request, which is the longest of its charges."""
    waits: dict[tuple[str, int], Wait] = {}
    for line, _, logged_throttle_ms, predicted_ms in _charged(tables):
        before = waits.get(line, Wait(0, 0))
        waits[line] = Wait(logged_throttle_ms, max(before.predicted_ms, predicted_ms))
    return list(waits.values())


def _reported(tables: Store) -> dict[str, Waits]:
    """Return the waits that brokers reported, by entity."""
    reported: dict[tuple[str, tuple[str, int]], int] = {}
    for line, entity, logged_throttle_ms, _ in _charged(tables):
        if logged_throttle_ms:
            reported[entity, line] = logged_throttle_ms
    times_of: dict[str, list[int]] = defaultdict(list)
    for (entity, _), logged_throttle_ms in reported.items():
        times_of[entity].append(logged_throttle_ms)
    return {entity: Waits(len(times), sum(times)) for entity, times in times_of.items()}


def _predicted(replayed: "DataFrame") -> dict[str, Waits]:
    """Return the replay's waits under doubled quotas, by entity."""
    rows = replayed.where(replayed["scenario"] == _DOUBLED)
    predicted: dict[str, Waits] = {}
    for row in rows.where(rows["quota_type"].isin(PRODUCE, CONTROLLER_MUTATION)).collect():
        before = predicted.get(row["entity"], Waits(0, 0))
        predicted[row["entity"]] = Waits(
            before.throttled + row["throttled"], before.total_ms + row["throttle_ms_total"]
        )
    return {entity: waits for entity, waits in predicted.items() if waits.throttled}
