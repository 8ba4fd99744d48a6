"""The batch job: the only module that reads and writes the pipeline's tables.

Stages write files that belong to no table yet. At the end, all of them replace the earlier ones, or
none does (``tables.commits``). Two runs never write to the same folder at the same time. Each stage
runs for one cluster after the other (``clusters``).

Example: ``run(spark, "tables", inputs, options, stages=[Stage.SILVER, Stage.USAGE])`` with logs of
21 November replaces that day in silver_request and gold_usage_1s. If the run is killed before its
end, it changes nothing.
"""

import os
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from operator import itemgetter

from pyspark.sql import SparkSession

from sidecar.errors import SidecarError
from usage_pipeline.batch.clusters import runs_of
from usage_pipeline.batch.keeping import old_days
from usage_pipeline.batch.run import Inputs, NoneReadError, Options, Run
from usage_pipeline.batch.stages import OF_A_RUN, STAGES, Stage, has_inputs
from usage_pipeline.costs.allocation import Cost
from usage_pipeline.ingest.paths import BrokerName, named_by, patterns_of
from usage_pipeline.runtime.object_storage import storage_failures
from usage_pipeline.tables.commits import begin, recovered, refuse_earlier, upkeep, withdraw
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.lease import leased
from usage_pipeline.tables.schemas import (
    GOLD_RECOMMENDATION,
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_REQUEST,
    Table,
)
from usage_pipeline.tables.store import Store, commit_all
from usage_pipeline.tables.writers import refuse_batch


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run.

    Attributes:
        clusters: the clusters of the run.
        left_out: other clusters with the reason; their tables are unchanged.
        days: the days that were replaced in any table.
        rows: for each table that was written, the rows of the replaced days.
        files: the number of request logs that were read.
        bytes: their stored size.
        brokers: the brokers of these logs, each with its number of files.
        quarantined: lines that can't be read.
        volume_faults: what was left out of the volume history, each with its number.
        unknown: requests whose bytes or partitions are in no line.
        entities: for each kind of quota, whom quotas are recommended for, and why.
        dropped: for each table, the number of days that are no longer kept.
        recommended: the new rows of gold_recommendation, if a plan was requested.
        costs: the new rows of gold_cost.
        replayed: quota types, each with an entity or a name that shares a quota, if scenarios were
            requested.
        rolled_forward: whether this run first completed an earlier run that was killed.
    """

    clusters: tuple[str, ...]
    left_out: Mapping[str, str]
    days: tuple[date, ...]
    rows: Mapping[str, int]
    files: int
    bytes: int
    brokers: Mapping[BrokerName, int]
    quarantined: int
    volume_faults: Mapping[str, int]
    unknown: int
    entities: Mapping[str, str]
    dropped: Mapping[str, int]
    recommended: tuple[Mapping[str, object], ...]
    costs: tuple[Cost, ...]
    replayed: frozenset[tuple[str, str]]
    rolled_forward: bool


def run(
    spark: SparkSession,
    out: str,
    inputs: Inputs,
    options: Options,
    *,
    stages: Iterable[Stage] = OF_A_RUN,
    report: Callable[[Stage], None] = lambda _: None,
) -> Outcome:
    """Run stages and replace the tables that they make: all tables, or none.

    Raises:
        SidecarError: the run failed; the message says what to do, and the tables are unchanged.
    """
    folder, stages = Folder.parse(out), list(stages)
    holder = f"process {os.getpid()} on {socket.gethostname()}, since {options.now:%FT%TZ},"
    with storage_failures(), leased(folder, holder):
        refuse_batch(folder, tables_of_logs(stages, reads_logs=inputs.request_logs is not None))
        before, was_finished = recovered(folder)
        refuse_earlier(before)
        is_new = begin(before)
        try:
            with runs_of(spark, before, inputs, options) as runs:
                left_out = _run_stages(runs, stages, report)
                old = [old_days(each) for each in runs]
                outcome = _outcome(runs, left_out, old, was_finished=was_finished)
                for each, of_tables in zip(runs, old, strict=True):
                    for table, days in of_tables.items():
                        each.store.add(table, (), days)
                after = commit_all([each.store for each in runs], holder, options.now)
        except SidecarError:
            if is_new:
                withdraw(before)
            raise
        upkeep(after, {*outcome.rows, *outcome.dropped}, options.retained)
        return outcome


def tables_of_logs(stages: Iterable[Stage], *, reads_logs: bool) -> set[Table]:
    """Return the tables of stages that a stream may write too.

    Args:
        stages: the stages of a run.
        reads_logs: whether the run reads request logs.
    """
    tables = {GOLD_USAGE_1S} if Stage.USAGE in stages else set()
    return tables | ({SILVER_REQUEST, QUARANTINE} if reads_logs else set())


def _run_stages(
    runs: list[Run], stages: Iterable[Stage], report: Callable[[Stage], None]
) -> Mapping[str, str]:
    """Run stages, and remove runs of clusters whose logs have nothing of the requested time.

    Returns:
        The reasons by cluster. If no cluster has any requests, the reason is raised.
    """
    left_out: dict[str, str] = {}
    for stage in stages:
        report(stage)
        # If no cluster has the stage's inputs, the first run raises an error about them.
        for cluster_run in [each for each in runs if has_inputs(stage, each)] or runs[:1]:
            try:
                STAGES[stage](cluster_run)
            except NoneReadError as error:
                if len(runs) == 1:
                    raise
                cluster_run.store.discard()
                runs.remove(cluster_run)
                left_out[cluster_run.store.cluster] = str(error)
    for cluster_run in runs:
        options = cluster_run.options
        if not options.allow_fewer:
            cluster_run.store.refuse_fewer(cluster_run.replaces, options.since, options.until)
    return left_out


def _outcome(
    runs: Sequence[Run],
    left_out: Mapping[str, str],
    old: Iterable[Mapping[Table, Sequence[date]]],
    *,
    was_finished: bool,
) -> Outcome:
    rows: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    for of_tables in old:
        dropped.update({table.name: len(days) for table, days in of_tables.items()})
    for cluster_run in runs:
        rows.update(
            {table.name: cluster_run.store.rows(table) for table in cluster_run.store.written()}
        )
    replayed = [
        _replayed(cluster_run.store) for cluster_run in runs if cluster_run.options.scenarios
    ]
    return Outcome(
        clusters=tuple(cluster_run.store.cluster for cluster_run in runs),
        left_out=left_out,
        days=tuple(
            sorted({day for cluster_run in runs for day in cluster_run.store.written_days()})
        ),
        rows=rows,
        files=sum(len(cluster_run.logs) for cluster_run in runs),
        bytes=sum(file.size for cluster_run in runs for file in cluster_run.logs),
        brokers=Counter(name for each in runs for name in _broker_names(each)),
        quarantined=sum(cluster_run.quarantined for cluster_run in runs),
        volume_faults=next((each.history.faults for each in runs if each.history is not None), {}),
        unknown=sum(cluster_run.unknown for cluster_run in runs),
        entities=runs[0].entities,
        dropped=dropped,
        recommended=_recommended(runs[0].store) if runs[0].options.has_plan else (),
        costs=tuple(runs[0].costs),
        replayed=frozenset[tuple[str, str]]().union(*replayed),
        rolled_forward=was_finished,
    )


def _broker_names(run: Run) -> Iterator[BrokerName]:
    logs = run.inputs.request_logs
    patterns = patterns_of(None if logs is None else logs.broker_pattern)
    for file in run.logs:
        yield BrokerName(run.store.cluster, file.broker, named_by(file.path, patterns))


def _recommended(store: Store) -> tuple[Mapping[str, object], ...]:
    table = store.read(GOLD_RECOMMENDATION, store.written_days(GOLD_RECOMMENDATION))
    rows = (row.asDict() for row in table.collect())
    return tuple(sorted(rows, key=itemgetter("quota_type", "entity")))


def _replayed(store: Store) -> frozenset[tuple[str, str]]:
    table = store.read(GOLD_REPLAY, store.written_days(GOLD_REPLAY))
    names = table.select("quota_type", "entity", "shared_by").distinct().collect()
    return frozenset(
        (row["quota_type"], name) for row in names for name in (row["entity"], row["shared_by"])
    )
