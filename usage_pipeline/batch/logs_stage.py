"""Makes usage directly from request logs, for runs that do not need the requests themselves.

Days are those of the charges, and so are ``--since`` and ``--until`` here. A log of 21 November
begins with requests that were charged before midnight and answered after it. They do not replace
20 November, if the table has that day.

Example: logs of 21 November replace that day of gold_usage_1s; silver_request is unchanged.
"""

from datetime import date

from usage_pipeline.batch.run import NoneReadError, Run
from usage_pipeline.batch.silver_stage import quarantine, why_none_read
from usage_pipeline.ingest.log_parts import parts_of
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.silver.request_writer import Span
from usage_pipeline.tables.parquet_files import files_of
from usage_pipeline.tables.schemas import GOLD_USAGE_1S, QUARANTINE
from usage_pipeline.tables.table_files import day_of
from usage_pipeline.usage.usage_of_logs import write_usage_of_logs


def usage_of_logs(run: Run, logs: RequestLogs) -> None:
    """Write gold_usage_1s, and the lines that can't be read.

    Raises:
        SidecarError: the logs have no request, or can't be read.
    """
    store, span = run.store, Span(run.options.since, run.options.until)
    parts = parts_of(run.logs, logs.split_bytes)
    run.replaces = GOLD_USAGE_1S
    usage, rejected = store.target(GOLD_USAGE_1S), store.target(QUARANTINE)
    reports = write_usage_of_logs(run.spark, parts, span, usage, rejected)
    run.unknown = sum(report.unknown for report in reports)
    # If these logs have no request answered on a day, they have only its last few requests.
    answered = {date.fromisoformat(day) for report in reports for day in report.days}
    left_out = set(store.days_of(GOLD_USAGE_1S)) - answered
    days = [(day_of(GOLD_USAGE_1S, file), file) for file in files_of(reports, GOLD_USAGE_1S)]
    store.add(GOLD_USAGE_1S, [file for day, file in days if day not in left_out])
    store.leave_out(GOLD_USAGE_1S, (file for day, file in days if day in left_out))
    quarantine(run, reports, parts)
    if not store.written_days(GOLD_USAGE_1S):
        raise NoneReadError(why_none_read(logs, reports))
