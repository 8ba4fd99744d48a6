"""The stages of the batch job: what each reads, and the tables that it writes.

Stages read what those before them wrote, in this run or an earlier one, through the run's store.

A day is replaced whole. A request that was answered after midnight and charged before it belongs to
the day before in the gold tables, so that day is made anew too.

Example: of logs of 21 November, ``usage`` replaces that day in gold_usage_1s, and 20 November too
if a line of 00:00:00.020 was charged at 23:59:59.990.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql

from sidecar.errors import SidecarError
from sidecar.pipeline.days import asked_days, no_requests
from sidecar.pipeline.dim_topic import dim_topic
from sidecar.pipeline.events import CONTROLLER_MUTATION, charges, is_mutation_line
from sidecar.pipeline.forecast import disk_forecast
from sidecar.pipeline.paths import log_files
from sidecar.pipeline.peaks import peaks
from sidecar.pipeline.quota_config import (
    CHANGES,
    is_quota_line,
    silver_quota_config,
    snapshot_rows,
)
from sidecar.pipeline.recommend import cluster_users, gold_recommendation
from sidecar.pipeline.recommended import Terms
from sidecar.pipeline.replay import replay
from sidecar.pipeline.requests import Requests
from sidecar.pipeline.silver_files import OUTCOME, Span, write_requests
from sidecar.pipeline.silver_request import (
    RequestLogs,
    both_of,
    quarantine_of,
    requests_of,
    silver_request,
)
from sidecar.pipeline.silver_volume import one_per_slot, silver_volume
from sidecar.pipeline.source import Part, parts_of
from sidecar.pipeline.store import Store
from sidecar.pipeline.sweep import IN_FORCE, Scenario, sweep
from sidecar.pipeline.tables import (
    DIM_TOPIC,
    GOLD_DISK_FORECAST,
    GOLD_RECOMMENDATION,
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_QUOTA_CONFIG,
    SILVER_REQUEST,
    SILVER_VOLUME,
)
from sidecar.pipeline.usage import mutations_of_days, usage_of_days
from sidecar.pipeline.usage_files import write_usage
from sidecar.pipeline.used import UsageRows
from sidecar.pipeline.volume_forecast import Forecasting
from sidecar.quotas.entities import ClientQuotas

_DAY: Final = timedelta(days=1)


class InputsError(SidecarError):
    """A stage lacks what it reads."""


class Stage(StrEnum):
    """A part of the job, in the order in which they are run."""

    SILVER = "silver"
    """Request logs, volume history and quotas as tables."""
    USAGE = "usage"
    """gold_usage_1s."""
    REPLAY = "replay"
    """gold_replay."""
    RECOMMEND = "recommend"
    """gold_recommendation."""
    FORECAST = "forecast"
    """gold_disk_forecast."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The quotas that were set.

    Attributes:
        quotas: of all entities.
        as_of: when, UTC.
    """

    quotas: ClientQuotas
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the job reads besides its own tables.

    Attributes:
        request_logs: None for none.
        volumes: the folder, file or glob of the volume history; None for none.
        quotas: None for none: only what the logs tell is known then.
    """

    request_logs: RequestLogs | None = None
    volumes: str | None = None
    quotas: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How it is run.

    Attributes:
        now: when the run began, UTC.
        as_of: when forecasts begin, UTC; None: with the newest reading of a volume.
        since: requests that were answered before are not read; None: from the first.
        until: requests that were answered then or later are not read; None: to the last.
        allow_fewer: whether a day may be replaced by fewer requests than it has.
        candidates: how many quotas are tried for each who share one; 0 for none.
        scenarios: to be replayed besides those and the quotas in force.
        terms: on which quotas are recommended.
        capacity: of the smallest broker, by quota type.
        forecasting: how disks are forecast.
    """

    now: datetime
    as_of: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None
    allow_fewer: bool = False
    candidates: int = 20
    scenarios: tuple[Scenario, ...] = ()
    terms: Terms = field(default_factory=Terms)
    capacity: Mapping[str, float] = field(default_factory=dict)
    forecasting: Forecasting = field(default_factory=Forecasting)


@dataclass(slots=True)
class Run:
    """A run of stages.

    Attributes:
        spark: its time zone is UTC.
        store: of the tables.
        inputs: what is read.
        options: how.
        files: of request logs, that were read.
        bytes: of them, as they are stored.
        quarantined: lines that can't be read.
        unknown: requests whose bytes or partitions no line tells.
    """

    spark: SparkSession
    store: Store
    inputs: Inputs
    options: Options
    files: int = field(default=0, init=False)
    bytes: int = field(default=0, init=False)
    quarantined: int = field(default=0, init=False)
    unknown: int = field(default=0, init=False)


def _silver(run: Run) -> None:
    given = run.inputs
    if given.request_logs is None and given.volumes is None and given.quotas is None:
        raise InputsError("name what to read: --request-logs, --volumes, --quotas")
    if given.request_logs is not None:
        _silver_request(run, given.request_logs)
    if given.request_logs is not None or given.quotas is not None:
        _told_by_admins(run)
    if given.volumes is not None:
        _silver_volume(run, given.volumes)


def _told_by_admins(run: Run) -> None:
    """Topics and quotas: of few lines, that are looked for once for both."""
    given, silver = run.inputs, run.store.read(SILVER_REQUEST)
    changes = silver.where(is_mutation_line() | is_quota_line()).select(*CHANGES).persist()
    try:
        if given.request_logs is not None:
            run.store.write(DIM_TOPIC, dim_topic(changes))
        rows = () if given.quotas is None else snapshot_rows(given.quotas.quotas)
        as_of = None if given.quotas is None else given.quotas.as_of
        run.store.write(SILVER_QUOTA_CONFIG, silver_quota_config(changes, rows, as_of))
    finally:
        changes.unpersist()


def _silver_request(run: Run, logs: RequestLogs) -> None:
    # Asked for here, so that what is wrong with the path is told in its own words.
    files = log_files(logs.path, logs.zones, logs.broker_pattern)
    run.files, run.bytes = len(files), sum(file.size for file in files)
    target = run.store.local(SILVER_REQUEST)
    if target is None:
        _written_by_spark(run, logs)
    else:
        _written_by_tasks(run, parts_of(files, logs.split_bytes), target)
    if not run.store.written_days(SILVER_REQUEST):
        raise InputsError(_none_read(run, logs))
    _quarantine(run)


def _written_by_tasks(run: Run, parts: Sequence[Part], target: Path) -> None:
    span = Span(run.options.since, run.options.until)
    rows: Counter[date] = Counter()
    for file in write_requests(run.spark, parts, target, span):
        if file.day is None:
            run.quarantined += file.rows
        else:
            rows[file.day] += file.rows
            run.unknown += file.unknown
    run.store.wrote(SILVER_REQUEST, rows)


def _written_by_spark(run: Run, logs: RequestLogs) -> None:
    """Where tasks see no disk that is everyone's: object storage, HDFS."""
    both = both_of(run.spark, logs)
    # Lines are read once for both tables: those that can't be read have no day, and so a place of
    # their own, from where they are taken. Their outcome is in columns that are theirs anyhow.
    is_read = sql.col("rejected_kind").isNull()
    marked = both.where(~is_read | _asked(run.options)).withColumns(
        {
            name: sql.when(is_read, sql.col(name)).otherwise(sql.col(f"rejected_{outcome}"))
            for outcome, name in OUTCOME.items()
        }
    )
    run.store.write(SILVER_REQUEST, silver_request(marked))
    unknown = ~sql.coalesce("bytes_known", sql.lit(True)) | ~sql.coalesce(
        "mutations_known", sql.lit(True)
    )
    days = run.store.written_days(SILVER_REQUEST)
    run.unknown = run.store.read(SILVER_REQUEST, days).where(unknown).count()
    run.quarantined = run.store.without_day(SILVER_REQUEST).count()


def _none_read(run: Run, logs: RequestLogs) -> str:
    """Why no request was read; the logs are read again for it."""
    times = requests_of(run.spark, logs, ["log_ts"]).agg(
        sql.min(sql.unix_micros("log_ts")), sql.max(sql.unix_micros("log_ts"))
    )
    first, last = (_time(us) for us in times.collect()[0])
    if first is None or last is None:
        bad = quarantine_of(run.spark, logs).orderBy("src_file", "src_offset").limit(1).collect()
        why = f" ({bad[0]['src_file']}: {bad[0]['reason']})" if bad else ""
        return f"{logs.path}: there is no line of a request in it{why}; name the request logs"
    return (
        f"{logs.path} has requests from {first:%FT%TZ} to {last:%FT%TZ}, and none of the time that"
        " is asked for: look at --since, --until and --zone"
    )


def _quarantine(run: Run) -> None:
    kept = run.store.read(QUARANTINE)
    if not run.quarantined:
        run.store.write(QUARANTINE, kept)
        return
    outcome = {name: outcome for outcome, name in OUTCOME.items()}
    told = run.store.without_day(SILVER_REQUEST).withColumnsRenamed(outcome)
    rejected = QUARANTINE.select(told)
    files = rejected.select("src_file").distinct()
    others = kept.join(sql.broadcast(files), "src_file", how="left_anti")
    run.store.write(QUARANTINE, QUARANTINE.select(others).unionByName(rejected))


def _silver_volume(run: Run, path: str) -> None:
    """What is read is added to the days that are there: the oldest history goes by the hour."""
    there = run.store.days_of(SILVER_VOLUME)
    try:
        readings = silver_volume(run.spark.read.text(path, recursiveFileLookup=True))
        told = readings.select("dt").distinct().collect() if there else ()
        days = [row["dt"] for row in told]
    except AnalysisException as error:
        raise InputsError(f"{path}: there is no volume history; name its folder") from error
    kept = run.store.read(SILVER_VOLUME, days).unionByName(readings)
    run.store.write(SILVER_VOLUME, one_per_slot(kept))


def _usage(run: Run) -> None:
    days = _gold_days(run)
    requests, topics = _charged(run, days), run.store.read(DIM_TOPIC)
    target = run.store.local(GOLD_USAGE_1S)
    if target is None:
        run.store.write(GOLD_USAGE_1S, usage_of_days(requests, topics), days)
        return
    run.store.write(GOLD_USAGE_1S, mutations_of_days(requests, topics), days)
    write_usage(requests, target)


def _replay(run: Run) -> None:
    days = _gold_days(run)
    config = run.store.read(SILVER_QUOTA_CONFIG)
    scenarios = [IN_FORCE, *run.options.scenarios]
    if run.options.candidates:
        usage = UsageRows(run.store.read(GOLD_USAGE_1S, days), run.store.files(GOLD_USAGE_1S, days))
        found = peaks(usage, config).collect()
        rows = sorted((row["quota_type"], row["shared_by"], row["peak"]) for row in found)
        scenarios += sweep(rows, run.options.candidates)
    requests = _charged(run, days)
    mutations = charges(requests.changes(), run.store.read(DIM_TOPIC), [CONTROLLER_MUTATION])
    run.store.write(GOLD_REPLAY, replay(mutations, config, scenarios, requests=requests), days)


def _recommend(run: Run) -> None:
    options, store = run.options, run.store
    usage = UsageRows(
        store.read(GOLD_USAGE_1S),
        store.files(GOLD_USAGE_1S, store.days_of(GOLD_USAGE_1S)),
        options.since,
        options.until,
    )
    brokers = {row["user"] for row in cluster_users(run.store.read(SILVER_REQUEST)).collect()}
    found = gold_recommendation(
        usage,
        store.read(GOLD_REPLAY),
        replace(options.terms, cluster_users=options.terms.cluster_users | brokers),
        options.capacity,
    )
    run.store.write(GOLD_RECOMMENDATION, found)


def _forecast(run: Run) -> None:
    volumes = run.store.read(SILVER_VOLUME)
    newest = sql.max(sql.unix_micros("observed_ts"))
    as_of = run.options.as_of or _time(volumes.agg(newest).collect()[0][0])
    if as_of is None:
        raise InputsError(
            "there is no volume history in the tables:"
            " make it with `throttle-sidecar pipeline silver --volumes PATH`"
        )
    made = disk_forecast(volumes, as_of, run.options.forecasting)
    run.store.write(GOLD_DISK_FORECAST, made)


STAGES: Final[Mapping[Stage, Callable[[Run], None]]] = {
    Stage.SILVER: _silver,
    Stage.USAGE: _usage,
    Stage.REPLAY: _replay,
    Stage.RECOMMEND: _recommend,
    Stage.FORECAST: _forecast,
}
"""What each does; raises ``SidecarError`` when it can't."""


def _time(us: int | None) -> datetime | None:
    # From a number: a time that Spark gives back is of this process's zone, and does not say so.
    return None if us is None else datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)


def _asked(options: Options) -> Column:
    asked = sql.lit(True)
    if options.since is not None:
        asked &= sql.col("log_ts") >= sql.lit(options.since)
    if options.until is not None:
        asked &= sql.col("log_ts") < sql.lit(options.until)
    return asked


def _gold_days(run: Run) -> tuple[date, ...]:
    """The days that gold tables are made for: those of the requests, by when they were charged.

    Raises:
        InputsError: there are none.
    """
    days = run.store.written_days(SILVER_REQUEST) or _asked_days(run)
    if not days:
        raise InputsError(no_requests(run.store.days_of(SILVER_REQUEST)))
    before = {day - _DAY for day in days} - set(days)
    first = run.store.read(SILVER_REQUEST, [day + _DAY for day in before]).where("hour = 0")
    charged = first.select(sql.to_date("quota_ts").alias("day")).distinct()
    late = {row["day"] for row in charged.collect()}
    return tuple(sorted({*days, *(before & late)}))


def _asked_days(run: Run) -> tuple[date, ...]:
    days = run.store.days_of(SILVER_REQUEST)
    return asked_days(days, run.options.since, run.options.until)


def _charged(run: Run, days: Iterable[date]) -> Requests:
    """The requests that were charged in these days, some answered in the first hour after."""
    days = frozenset(days)
    answered = {*days, *(day + _DAY for day in days)}
    silver = run.store.read(SILVER_REQUEST, sorted(answered))
    in_time = sql.col("dt").isin(*days) | (sql.col("hour") == 0)
    charged = silver.where(in_time & sql.to_date("quota_ts").isin(*days))
    return Requests(charged, run.store.files(SILVER_REQUEST, answered), days)
