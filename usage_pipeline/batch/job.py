"""The batch job: the one place where the pipeline's tables are read and written.

Stages write files that are in no table yet; at the end all that was written is put in place of what
was, or nothing is (``tables.commits``). Two runs never write to one folder at a time. Each stage is
run for one cluster after the other (``clusters``).

Example: ``run(spark, "tables", inputs, options, stages=[Stage.SILVER, Stage.USAGE])`` of logs of
21 November replaces that day in silver_request and gold_usage_1s. Killed before its end, it has
changed nothing.
"""

import os
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from operator import itemgetter

from pyspark.sql import SparkSession

from sidecar.errors import SidecarError
from usage_pipeline.batch.clusters import runs_of
from usage_pipeline.batch.run import Inputs, NoneReadError, Options, Run
from usage_pipeline.batch.stages import STAGES, Stage, has_inputs
from usage_pipeline.runtime.object_storage import storage_failures
from usage_pipeline.tables.commits import begin, recovered, upkeep, withdraw
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.lease import leased
from usage_pipeline.tables.schemas import GOLD_RECOMMENDATION, GOLD_REPLAY
from usage_pipeline.tables.store import Store, commit_all
from usage_pipeline.tables.writers import refuse_batch


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did.

    Attributes:
        clusters: that it was about.
        left_out: other clusters, whose tables are as they were, with the reason.
        days: that were replaced, in any table.
        rows: of each table that was written, in the days that were.
        files: of request logs, that were read.
        bytes: of them, as they are stored.
        quarantined: lines that can't be read.
        unknown: requests whose bytes or partitions no line has.
        recommended: the rows of gold_recommendation that were made, where there is a plan.
        replayed: quota types with whose quotas they were or who shared them, where scenarios were
            asked for.
        rolled_forward: whether an earlier run, that was killed, was finished first.
    """

    clusters: tuple[str, ...]
    left_out: Mapping[str, str]
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
        try:
            with runs_of(spark, before, inputs, options) as runs:
                left_out = _run_stages(runs, stages, report)
                outcome = _outcome(runs, left_out, was_finished=was_finished)
                after = commit_all([one.store for one in runs], holder, options.now)
        except SidecarError:
            if is_new:
                withdraw(before)
            raise
        upkeep(after, outcome.rows, options.retained)
        return outcome


def _run_stages(
    runs: list[Run], stages: Iterable[Stage], report: Callable[[Stage], None]
) -> Mapping[str, str]:
    """Runs stages, and removes the runs of clusters whose logs have nothing of the requested time.

    Returns:
        Why, by cluster. Where that is all of them it is raised.
    """
    left_out: dict[str, str] = {}
    for stage in stages:
        report(stage)
        # Where no cluster has what it reads, the first one says what is missing.
        for one in [one for one in runs if has_inputs(stage, one)] or runs[:1]:
            try:
                STAGES[stage](one)
            except NoneReadError as error:
                if len(runs) == 1:
                    raise
                one.store.discard()
                runs.remove(one)
                left_out[one.store.cluster] = str(error)
    for one in runs:
        if not one.options.allow_fewer:
            one.store.refuse_fewer(one.replaces)
    return left_out


def _outcome(runs: Sequence[Run], left_out: Mapping[str, str], *, was_finished: bool) -> Outcome:
    rows: Counter[str] = Counter()
    for one in runs:
        rows.update({table.name: one.store.rows(table) for table in one.store.written()})
    replayed = [_replayed(one.store) for one in runs if one.options.scenarios]
    return Outcome(
        clusters=tuple(one.store.cluster for one in runs),
        left_out=left_out,
        days=tuple(sorted({day for one in runs for day in one.store.written_days()})),
        rows=rows,
        files=sum(one.files for one in runs),
        bytes=sum(one.bytes for one in runs),
        quarantined=sum(one.quarantined for one in runs),
        unknown=sum(one.unknown for one in runs),
        recommended=_recommended(runs[0].store) if runs[0].options.has_plan else (),
        replayed=frozenset[tuple[str, str]]().union(*replayed),
        rolled_forward=was_finished,
    )


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
