"""The first stage, which makes tables of request logs, volume history and quotas.

Example: logs of 21 November replace that day of silver_request. Volumes are added to the existing
ones.
"""

from collections.abc import Sequence
from datetime import date

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from usage_pipeline.batch.keeping import first_day
from usage_pipeline.batch.run import InputsError, NoneReadError, Run, time_of
from usage_pipeline.ingest.log_parts import Part, parts_of
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.silver.dim_topic import dim_topic
from usage_pipeline.silver.quota_config import silver_quota_config, snapshot_rows
from usage_pipeline.silver.request_writer import Span, write_requests
from usage_pipeline.silver.volume_table import History, one_per_slot
from usage_pipeline.tables.days import newest_day
from usage_pipeline.tables.parquet_files import Report, files_of
from usage_pipeline.tables.schemas import (
    DIM_TOPIC,
    QUARANTINE,
    SILVER_CHANGE,
    SILVER_QUOTA_CONFIG,
    SILVER_REQUEST,
    SILVER_VOLUME,
)


def silver(run: Run) -> None:
    """Write the tables of all inputs.

    Raises:
        SidecarError: an input is empty, or can't be read.
    """
    inputs = run.inputs
    if inputs.request_logs is None and inputs.volumes is None and inputs.quotas is None:
        raise InputsError("name what to read: --request-logs, --volumes, --quotas")
    if inputs.request_logs is not None and run.logs:
        _silver_request(run, inputs.request_logs)
    if run.logs or run.is_streamed or inputs.quotas is not None:
        _topics_and_quotas(run)
    if run.history is not None:
        _silver_volume(run, run.history)


def changes(run: Run) -> DataFrame:
    """Return the requests about topics and quotas, for all days.

    These requests are few, and the tables made from them need every day. So they have a table of
    their own, in which the run replaces its days. If the table does not exist, it is made from all
    requests, and if a stream writes the requests, it continues from its newest day until today.

    Returns:
        Rows of SILVER_CHANGE. They are cached: a run needs them four times, and each day has a
        file, which takes far longer to open than to read.
    """
    store = run.store
    if run.changes is not None:
        return run.changes
    if SILVER_CHANGE not in store.written():
        days: Sequence[date] = store.written_days(SILVER_REQUEST)
        if not store.has(SILVER_CHANGE):
            days = store.days_of(SILVER_REQUEST)
        elif run.is_streamed:
            days = store.days_of(SILVER_REQUEST)
            if known := store.days_of(SILVER_CHANGE):
                newest = newest_day(known, run.options.now.date())
                days = [day for day in days if day >= newest]
        if days:
            store.write(SILVER_CHANGE, run.requests_of(days).of_admins(), days)
    run.changes = store.read(SILVER_CHANGE).cache()
    return run.changes


def _topics_and_quotas(run: Run) -> None:
    inputs, store = run.inputs, run.store
    changed = changes(run)
    first = first_day(run)
    if run.logs or run.is_streamed:
        store.write(DIM_TOPIC, valid(dim_topic(changed), first))
    rows = () if inputs.quotas is None else snapshot_rows(inputs.quotas.quotas)
    as_of = None if inputs.quotas is None else inputs.quotas.as_of
    config = silver_quota_config(changed, rows, as_of)
    store.write(SILVER_QUOTA_CONFIG, valid(config, first))


def valid(rows: DataFrame, first: date | None) -> DataFrame:
    """Return the rows that are valid on a day or later; None for all rows."""
    if first is None:
        return rows
    valid_to = sql.col("valid_to")
    return rows.where(valid_to.isNull() | (sql.to_date(valid_to) >= sql.lit(first)))


def _silver_request(run: Run, logs: RequestLogs) -> None:
    store, span = run.store, Span(run.options.since, run.options.until)
    parts = parts_of(run.logs, logs.split_bytes)
    requests, rejected = store.target(SILVER_REQUEST), store.target(QUARANTINE)
    reports = write_requests(run.spark, parts, requests, rejected, span)
    run.unknown = sum(report.unknown for report in reports)
    store.add(SILVER_REQUEST, files_of(reports, SILVER_REQUEST))
    quarantine(run, reports, parts)
    if not store.written_days(SILVER_REQUEST):
        raise NoneReadError(why_none_read(logs, reports))


def why_none_read(logs: RequestLogs, reports: Sequence[Report]) -> str:
    """Explain why no request was written."""
    times = [report.times for report in reports if report.times is not None]
    if not times:
        examples = sorted(report.example for report in reports if report.example is not None)
        why = f" ({examples[0]})" if examples else ""
        return f"{logs.path} has no line of a request{why}; name the request logs"
    first, last = (
        time_of(us) for us in (min(first for first, _ in times), max(last for _, last in times))
    )
    return (
        f"{logs.path} has requests from {first:%FT%TZ} to {last:%FT%TZ}, and none of the"
        " requested time: check --since, --until and --zone"
    )


def quarantine(run: Run, reports: Sequence[Report], parts: Sequence[Part]) -> None:
    """Write the lines that can't be read; they replace the earlier ones of the same files."""
    store, files = run.store, files_of(reports, QUARANTINE)
    run.quarantined = sum(file.rows for file in files)
    if store.has(QUARANTINE):
        names = pa.table({"log": sorted({part.file.path.removesuffix(".gz") for part in parts})})
        read = sql.broadcast(run.spark.createDataFrame(names))
        # A log may have been compressed since the earlier run.
        log = sql.regexp_replace("src_file", r"\.gz$", "")
        others = store.read(QUARANTINE).join(read, log == read["log"], how="left_anti")
        store.write(QUARANTINE, others)
    store.add(QUARANTINE, files)


def _silver_volume(run: Run, history: History) -> None:
    """Add the readings to existing days, because the oldest history is removed hour by hour."""
    cluster = run.store.cluster
    kept = run.store.read(SILVER_VOLUME, history.days[cluster])
    run.store.write(SILVER_VOLUME, one_per_slot(kept.unionByName(history.readings_of(cluster))))
