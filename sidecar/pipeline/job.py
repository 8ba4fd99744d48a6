"""The batch job: the one place where the pipeline's tables are read and written.

Each stage reads what the stages before it wrote, in this run or an earlier one, and writes its own
tables beside the last good ones; at the end all that was written is put in their place, or nothing
is (``sidecar.pipeline.publish``). Two runs never write to one folder at a time.

A day is replaced whole. A request that was answered after midnight and charged before it belongs to
the day before in the gold tables, so that day is made anew too.

Example: ``run(spark, "tables", inputs, options)`` of logs of 21 November replaces that day in
silver_request and gold_usage_1s, and 20 November in the latter if a line of 00:00:00.020 was
charged at 23:59:59.990.
"""

import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from sidecar.errors import SidecarError
from sidecar.pipeline.dim_topic import dim_topic
from sidecar.pipeline.files import HadoopFiles
from sidecar.pipeline.lock import locked
from sidecar.pipeline.paths import log_files
from sidecar.pipeline.publish import Output, recover
from sidecar.pipeline.silver_request import RequestLogs, both_of, silver_request
from sidecar.pipeline.silver_volume import silver_volume
from sidecar.pipeline.store import Store
from sidecar.pipeline.tables import (
    DIM_TOPIC,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_REQUEST,
    SILVER_VOLUME,
    Table,
)
from sidecar.pipeline.usage import gold_usage_1s

_DAY: Final = timedelta(days=1)


class InputsError(SidecarError):
    """A stage lacks what it reads."""


class Stage(StrEnum):
    """A part of the job, in the order in which they are run."""

    SILVER = "silver"
    """Request logs and volume history as tables."""
    USAGE = "usage"
    """gold_usage_1s."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the job reads besides its own tables.

    Attributes:
        request_logs: None for none.
        volumes: the folder, file or glob of the volume history; None for none.
    """

    request_logs: RequestLogs | None = None
    volumes: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How it is run.

    Attributes:
        as_of: now, for what is told of the future.
        since: requests that were answered before are not read; None: from the first.
        until: requests that were answered then or later are not read; None: to the last.
        allow_fewer: whether a day may be replaced by fewer requests than it has.
    """

    as_of: datetime
    since: datetime | None = None
    until: datetime | None = None
    allow_fewer: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did.

    Attributes:
        days: that were replaced, in any table.
        rows: of each table that was written, in the days that were.
        files: of request logs, that were read.
        bytes: of them, as they are stored.
        quarantined: lines that can't be read.
        unknown: requests whose bytes or partitions no line tells.
        rolled_forward: whether an earlier run, that was killed, was finished first.
    """

    days: tuple[date, ...]
    rows: dict[str, int]
    files: int
    bytes: int
    quarantined: int
    unknown: int
    rolled_forward: bool


@dataclass(slots=True)
class _Run:
    spark: SparkSession
    store: Store
    inputs: Inputs
    options: Options
    files: int = field(default=0, init=False)
    bytes: int = field(default=0, init=False)
    quarantined: int = field(default=0, init=False)
    unknown: int = field(default=0, init=False)


def run(
    spark: SparkSession,
    out: str,
    inputs: Inputs,
    options: Options,
    *,
    stages: Iterable[Stage] = tuple(Stage),
    tell: Callable[[Stage], None] = lambda _: None,
) -> Outcome:
    """Runs stages, and puts their tables in place of the last good ones: all, or none.

    Args:
        spark: its time zone is UTC.
        out: the folder of the tables, made if need be.
        inputs: what is read.
        options: how.
        stages: which, in their order.
        tell: is told each stage when it begins.

    Raises:
        SidecarError: it can't be done, and says what to do; the tables are as they were.
    """
    files = HadoopFiles(spark)
    output = Output(files, out)
    holder = f"process {os.getpid()} on {socket.gethostname()}, since {options.as_of:%FT%TZ},"
    with locked(out, files, files.local(out), holder):
        rolled_forward = recover(output)
        job = _Run(spark, Store(spark, output), inputs, options)
        for stage in stages:
            tell(stage)
            _STAGES[stage](job)
        rows = {table.name: _count(job, table) for table in job.store.written()}
        days = job.store.written_days()
        job.store.publish(None if options.allow_fewer else SILVER_REQUEST)
    return Outcome(days, rows, job.files, job.bytes, job.quarantined, job.unknown, rolled_forward)


def _silver(job: _Run) -> None:
    if job.inputs.request_logs is None and job.inputs.volumes is None:
        raise InputsError("name what to read: --request-logs, --volumes or both")
    if job.inputs.request_logs is not None:
        _silver_request(job, job.inputs.request_logs)
        silver = job.store.read(SILVER_REQUEST)
        job.store.write(DIM_TOPIC, dim_topic(silver))
    if job.inputs.volumes is not None:
        lines = job.spark.read.text(job.inputs.volumes, recursiveFileLookup=True)
        job.store.write(SILVER_VOLUME, silver_volume(lines))


def _silver_request(job: _Run, logs: RequestLogs) -> None:
    # Asked for here, so that what is wrong with the path is told in its own words.
    files = log_files(logs.path, logs.zones, logs.broker_pattern)
    job.files, job.bytes = len(files), sum(file.size for file in files)
    both = both_of(job.spark, logs)
    # Lines are read once for both tables: those that can't be read have no day, and so a place of
    # their own, from where they are taken. Their outcome is in columns that are theirs anyhow.
    outcome = {"api": "rejected_kind", "user": "rejected_reason", "quota_bytes": "rejected_bytes"}
    is_read = sql.col("rejected_kind").isNull()
    marked = both.where(~is_read | _asked(job.options)).withColumns(
        {
            name: sql.when(is_read, sql.col(name)).otherwise(sql.col(rejected))
            for name, rejected in outcome.items()
        }
    )
    job.store.write(SILVER_REQUEST, silver_request(marked))
    rejected = job.store.without_day(SILVER_REQUEST).withColumnsRenamed(
        {"api": "kind", "user": "reason", "quota_bytes": "bytes"}
    )
    _quarantine(job, QUARANTINE.select(rejected))
    unknown = ~sql.coalesce("bytes_known", sql.lit(True)) | ~sql.coalesce(
        "mutations_known", sql.lit(True)
    )
    days = job.store.written_days(SILVER_REQUEST)
    job.unknown = job.store.read(SILVER_REQUEST, days).where(unknown).count()


def _quarantine(job: _Run, rejected: DataFrame) -> None:
    job.quarantined = rejected.count()
    files = rejected.select("src_file").distinct()
    others = job.store.read(QUARANTINE).join(sql.broadcast(files), "src_file", how="left_anti")
    job.store.write(QUARANTINE, QUARANTINE.select(others).unionByName(rejected))


def _usage(job: _Run) -> None:
    days = _gold_days(job)
    usage = gold_usage_1s(_charged(job, days), job.store.read(DIM_TOPIC))
    job.store.write(GOLD_USAGE_1S, usage.where(sql.col("dt").isin(*days)), days)


_STAGES: Final[dict[Stage, Callable[[_Run], None]]] = {
    Stage.SILVER: _silver,
    Stage.USAGE: _usage,
}


def _asked(options: Options) -> Column:
    asked = sql.lit(True)
    if options.since is not None:
        asked &= sql.col("log_ts") >= sql.lit(options.since)
    if options.until is not None:
        asked &= sql.col("log_ts") < sql.lit(options.until)
    return asked


def _gold_days(job: _Run) -> tuple[date, ...]:
    """The days that gold tables are made for: those of the requests, by when they were charged.

    Raises:
        InputsError: there are none.
    """
    days = job.store.written_days(SILVER_REQUEST) or _asked_days(job)
    if not days:
        raise InputsError(
            "there are no requests in the tables, of the days that are asked for:"
            " make them with `throttle-sidecar pipeline silver --request-logs PATH`"
        )
    before = {day - _DAY for day in days} - set(days)
    first = job.store.read(SILVER_REQUEST, [day + _DAY for day in before]).where("hour = 0")
    charged = first.select(sql.to_date("quota_ts").alias("day")).distinct()
    late = {row["day"] for row in charged.collect()}
    return tuple(sorted({*days, *(before & late)}))


def _asked_days(job: _Run) -> tuple[date, ...]:
    since, until = job.options.since, job.options.until
    return tuple(
        day
        for day in job.store.days_of(SILVER_REQUEST)
        if (since is None or day >= since.date())
        and (until is None or datetime.combine(day, datetime.min.time(), UTC) < until)
    )


def _charged(job: _Run, days: Iterable[date]) -> DataFrame:
    """The requests that were charged in these days, some answered in the first hour after."""
    days = tuple(days)
    next_days = {day + _DAY for day in days} - set(days)
    silver = job.store.read(SILVER_REQUEST, [*days, *next_days])
    in_time = sql.col("dt").isin(*days) | (sql.col("hour") == 0)
    return silver.where(in_time & sql.to_date("quota_ts").isin(*days))


def _count(job: _Run, table: Table) -> int:
    return job.store.read(table, job.store.written_days(table)).count()
