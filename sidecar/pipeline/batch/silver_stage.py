"""The first stage: request logs, volume history and quotas as tables.

Example: of logs of 21 November, silver_request's day is replaced; volumes are added to those that
are there.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from sidecar.pipeline.batch.run import InputsError, Options, Run, time_of
from sidecar.pipeline.ingest.log_parts import Part, parts_of
from sidecar.pipeline.ingest.stored_logs import log_files
from sidecar.pipeline.silver.dim_topic import dim_topic
from sidecar.pipeline.silver.quota_config import silver_quota_config, snapshot_rows
from sidecar.pipeline.silver.request_table import (
    RequestLogs,
    both_of,
    quarantine_of,
    requests_of,
    silver_request,
)
from sidecar.pipeline.silver.request_writer import OUTCOME, Span, write_requests
from sidecar.pipeline.silver.volume_table import one_per_slot, silver_volume
from sidecar.pipeline.tables.schemas import (
    DIM_TOPIC,
    QUARANTINE,
    SILVER_CHANGE,
    SILVER_QUOTA_CONFIG,
    SILVER_REQUEST,
    SILVER_VOLUME,
)


def silver(run: Run) -> None:
    """Writes the tables of all inputs.

    Raises:
        SidecarError: there is nothing in it, or it can't be read.
    """
    inputs = run.inputs
    if inputs.request_logs is None and inputs.volumes is None and inputs.quotas is None:
        raise InputsError("name what to read: --request-logs, --volumes, --quotas")
    if inputs.request_logs is not None:
        _silver_request(run, inputs.request_logs)
    if inputs.request_logs is not None or inputs.quotas is not None:
        _topics_and_quotas(run)
    if inputs.volumes is not None:
        _silver_volume(run, inputs.volumes)


def changes(run: Run) -> DataFrame:
    """The requests about topics and quotas, of all days.

    They are few, and what makes tables of them needs those of every day: so they have a table of
    their own, in which the days that the run replaces are made anew. Where there is none yet all
    requests are read for it.

    Returns:
        Of SILVER_CHANGE.
    """
    store, made = run.store, None
    days = store.written_days(SILVER_REQUEST)
    if not store.has(SILVER_CHANGE):
        made = run.all_requests().of_admins()
    elif days and SILVER_CHANGE not in store.written():
        others = store.read(SILVER_CHANGE).where(~sql.to_date("log_ts").isin(*days))
        made = others.unionByName(run.requests_of(days).of_admins())
    if made is not None:
        # One file: each task would write its own, of some rows or none.
        store.write(SILVER_CHANGE, made.repartition(1))
    return store.read(SILVER_CHANGE)


def _topics_and_quotas(run: Run) -> None:
    inputs, store = run.inputs, run.store
    found = changes(run)
    if inputs.request_logs is not None:
        store.write(DIM_TOPIC, dim_topic(found))
    rows = () if inputs.quotas is None else snapshot_rows(inputs.quotas.quotas)
    as_of = None if inputs.quotas is None else inputs.quotas.as_of
    store.write(SILVER_QUOTA_CONFIG, silver_quota_config(found, rows, as_of))


def _silver_request(run: Run, logs: RequestLogs) -> None:
    parts = found(run, logs)
    target = run.store.local(SILVER_REQUEST)
    if target is None:
        _written_by_spark(run, logs)
    else:
        _written_by_tasks(run, parts, target)
    if not run.store.written_days(SILVER_REQUEST):
        raise InputsError(none_read(run, logs))
    outcome = {name: outcome for outcome, name in OUTCOME.items()}
    quarantine(run, run.store.without_day(SILVER_REQUEST).withColumnsRenamed(outcome))


def found(run: Run, logs: RequestLogs) -> list[Part]:
    """The parts of the logs, whose files the run takes note of.

    Raises:
        RequestLogsError: what is wrong with the path.
    """
    files = log_files(logs.path, logs.zones, logs.broker_pattern)
    run.files, run.bytes = len(files), sum(file.size for file in files)
    return parts_of(files, logs.split_bytes)


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
    marked = both.where(~is_read | _selected(run.options)).withColumns(
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


def none_read(run: Run, logs: RequestLogs) -> str:
    """Why no request was read; the logs are read again for it."""
    times = requests_of(run.spark, logs, ["log_ts"]).agg(
        sql.min(sql.unix_micros("log_ts")), sql.max(sql.unix_micros("log_ts"))
    )
    first, last = (time_of(us) for us in times.collect()[0])
    if first is None or last is None:
        bad = quarantine_of(run.spark, logs).orderBy("src_file", "src_offset").limit(1).collect()
        why = f" ({bad[0]['src_file']}: {bad[0]['reason']})" if bad else ""
        return f"{logs.path}: there is no line of a request in it{why}; name the request logs"
    return (
        f"{logs.path} has requests from {first:%FT%TZ} to {last:%FT%TZ}, and none of the"
        " requested time: see --since, --until and --zone"
    )


def quarantine(run: Run, unread: DataFrame) -> None:
    """Writes the lines that can't be read, in place of those that their files had before."""
    kept = run.store.read(QUARANTINE)
    if not run.quarantined:
        run.store.write(QUARANTINE, kept)
        return
    rejected = QUARANTINE.select(unread)
    files = rejected.select("src_file").distinct()
    others = kept.join(sql.broadcast(files), "src_file", how="left_anti")
    run.store.write(QUARANTINE, QUARANTINE.select(others).unionByName(rejected))


def _silver_volume(run: Run, path: str) -> None:
    """What is read is added to the days that are there: the oldest history goes by the hour."""
    there = run.store.days_of(SILVER_VOLUME)
    try:
        readings = silver_volume(run.spark.read.text(path, recursiveFileLookup=True))
        found = readings.select("dt").distinct().collect() if there else ()
        days = [row["dt"] for row in found]
    except AnalysisException as error:
        raise InputsError(f"{path}: there is no volume history; name its folder") from error
    kept = run.store.read(SILVER_VOLUME, days).unionByName(readings)
    run.store.write(SILVER_VOLUME, one_per_slot(kept))


def _selected(options: Options) -> Column:
    selected = sql.lit(True)
    if options.since is not None:
        selected &= sql.col("log_ts") >= sql.lit(options.since)
    if options.until is not None:
        selected &= sql.col("log_ts") < sql.lit(options.until)
    return selected
