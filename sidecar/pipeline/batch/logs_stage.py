"""Usage straight from request logs, where nobody wants the requests themselves.

Days are those on which requests were charged, and so are ``--since`` and ``--until`` here. A log of
21 November begins with what was charged before midnight and answered after it; that doesn't replace
the 20th, if that day is there.

Example: logs of 21 November replace that day of gold_usage_1s; silver_request stays as it is.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from pyspark.sql import functions as sql

from sidecar.pipeline.batch.run import InputsError, Run
from sidecar.pipeline.batch.silver_stage import found, none_read, quarantine
from sidecar.pipeline.ingest.log_parts import Part
from sidecar.pipeline.silver.request_table import RequestLogs, quarantine_of, requests_of
from sidecar.pipeline.silver.request_writer import Span
from sidecar.pipeline.tables.schemas import GOLD_USAGE_1S, QUARANTINE
from sidecar.pipeline.usage.usage_of_logs import write_usage_of_logs
from sidecar.pipeline.usage.usage_table import NEEDED, gold_usage_1s


def usage_of_logs(run: Run, logs: RequestLogs) -> None:
    """Writes gold_usage_1s, and the lines that can't be read.

    Raises:
        SidecarError: there is no request in the logs, or they can't be read.
    """
    parts = found(run, logs)
    run.replaces = GOLD_USAGE_1S
    target = run.store.local(GOLD_USAGE_1S)
    if target is None:
        _written_by_spark(run, logs)
    else:
        _written_by_tasks(run, parts, target)
    if not run.store.written_days(GOLD_USAGE_1S):
        raise InputsError(none_read(run, logs))


def _written_by_tasks(run: Run, parts: Sequence[Part], target: Path) -> None:
    span = Span(run.options.since, run.options.until)
    present = run.store.days_of(GOLD_USAGE_1S)
    written = write_usage_of_logs(run.spark, parts, span, target, present)
    rows: Counter[date] = Counter()
    for file in written.usage:
        if file.day is not None:
            rows[file.day] += file.rows
    run.store.wrote(GOLD_USAGE_1S, rows)
    run.quarantined, run.unknown = written.rejected, written.unknown
    quarantine(run, run.store.without_day(GOLD_USAGE_1S, QUARANTINE))


def _written_by_spark(run: Run, logs: RequestLogs) -> None:
    """Where tasks see no disk that is everyone's; the logs are read once more for each table."""
    requests = requests_of(run.spark, logs, NEEDED)
    if run.options.since is not None:
        requests = requests.where(sql.col("quota_ts") >= sql.lit(run.options.since))
    if run.options.until is not None:
        requests = requests.where(sql.col("quota_ts") < sql.lit(run.options.until))
    run.store.write(GOLD_USAGE_1S, gold_usage_1s(requests))
    rejected = quarantine_of(run.spark, logs).persist()
    try:
        run.quarantined = rejected.count()
        quarantine(run, rejected)
    finally:
        rejected.unpersist()
