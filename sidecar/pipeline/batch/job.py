"""The batch job: the one place where the pipeline's tables are read and written.

Stages write files that are in no table yet; at the end all that was written is put in place of what
was, or nothing is (``tables.commits``). Two runs never write to one folder at a time.

Example: ``run(spark, "tables", inputs, options, stages=[Stage.SILVER, Stage.USAGE])`` of logs of
21 November replaces that day in silver_request and gold_usage_1s. Killed before its end, it has
changed nothing.
"""

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from operator import itemgetter

from pyspark.sql import SparkSession

from sidecar.errors import SidecarError
from sidecar.pipeline.batch.run import Inputs, Options, Run
from sidecar.pipeline.batch.stages import STAGES, Stage
from sidecar.pipeline.runtime.object_storage import storage_failures
from sidecar.pipeline.tables.commits import Pinned, begin, recovered, upkeep, withdraw
from sidecar.pipeline.tables.folder import Folder
from sidecar.pipeline.tables.lease import leased
from sidecar.pipeline.tables.schemas import GOLD_RECOMMENDATION, GOLD_REPLAY
from sidecar.pipeline.tables.store import Store
from sidecar.pipeline.tables.writers import refuse_batch


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did.

    Attributes:
        days: that were replaced, in any table.
        rows: of each table that was written, in the days that were.
        files: of request logs, that were read.
        bytes: of them, as they are stored.
        quarantined: lines that can't be read.
        unknown: requests whose bytes or partitions no line has.
        recommended: the rows of gold_recommendation that were made.
        replayed: quota types with whose quotas they were or who shared them, where scenarios were
            asked for.
        rolled_forward: whether an earlier run, that was killed, was finished first.
    """

    days: tuple[date, ...]
    rows: Mapping[str, int]
    files: int
    bytes: int
    quarantined: int
    unknown: int
    recommended: tuple[Mapping[str, object], ...]
    replayed: frozenset[tuple[str, str]]
    rolled_forward: bool


def run(
    spark: SparkSession,
    out: str,
    inputs: Inputs,
    options: Options,
    *,
    stages: Iterable[Stage] = tuple(Stage),
    report: Callable[[Stage], None] = lambda _: None,
) -> Outcome:
    """Runs stages, and puts their tables in place of the last good ones: all, or none.

    Raises:
        SidecarError: it can't be done, and says what to do; the tables are as they were.
    """
    folder = Folder.of(out)
    holder = f"process {os.getpid()} on {socket.gethostname()}, since {options.now:%FT%TZ},"
    with storage_failures(), leased(folder, holder):
        refuse_batch(folder)
        before, was_finished = recovered(folder)
        is_new = begin(before)
        job = Run(spark, Store(spark, before), inputs, options)
        try:
            outcome, after = _outcome(job, stages, report, holder, was_finished=was_finished)
        except SidecarError:
            # What a kill leaves, upkeep removes in time; this run may be the last.
            job.store.discard()
            if is_new:
                withdraw(before)
            raise
        upkeep(after, outcome.rows, options.retained)
        return outcome


def _outcome(
    job: Run,
    stages: Iterable[Stage],
    report: Callable[[Stage], None],
    holder: str,
    *,
    was_finished: bool,
) -> tuple[Outcome, Pinned]:
    store = job.store
    for stage in stages:
        report(stage)
        STAGES[stage](job)
    rows = {table.name: store.rows(table) for table in store.written()}
    days = store.written_days()
    recommended = _recommended(store)
    replayed = _replayed(store) if job.options.scenarios else frozenset()
    keeps_rows = None if job.options.allow_fewer else job.replaces
    after = store.commit(holder, job.options.now, keeps_rows)
    outcome = Outcome(
        days=days,
        rows=rows,
        files=job.files,
        bytes=job.bytes,
        quarantined=job.quarantined,
        unknown=job.unknown,
        recommended=recommended,
        replayed=replayed,
        rolled_forward=was_finished,
    )
    return outcome, after


def _recommended(store: Store) -> tuple[Mapping[str, object], ...]:
    if GOLD_RECOMMENDATION not in store.written():
        return ()
    found = store.read(GOLD_RECOMMENDATION, store.written_days(GOLD_RECOMMENDATION))
    rows = (row.asDict() for row in found.collect())
    return tuple(sorted(rows, key=itemgetter("quota_type", "entity")))


def _replayed(store: Store) -> frozenset[tuple[str, str]]:
    if GOLD_REPLAY not in store.written():
        return frozenset()
    found = store.read(GOLD_REPLAY, store.written_days(GOLD_REPLAY))
    names = found.select("quota_type", "entity", "shared_by").distinct().collect()
    return frozenset(
        (row["quota_type"], name) for row in names for name in (row["entity"], row["shared_by"])
    )
