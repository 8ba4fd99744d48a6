"""Makes gold_usage_1s directly from request logs, in one pass and without a table of requests.

The tasks that parse the logs also sum them (``kernels.seconds``), and send rows of about a megabyte
to Spark. Lines that can't be read go to files of their own.

Mutations count only what a request's own line states, and ``lower_bound`` shows that. The sizes of
topics are in other lines, so they need the table of requests (``mutations``).

Example: 2.5 GB of logs with 2.2 million lines become two thousand rows, 80 MB in total.
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from usage_pipeline.ingest.log_parts import Part, in_tasks, parse_part
from usage_pipeline.ingest.records import ROWS
from usage_pipeline.kernels.charging import (
    NEEDED_WITH_MUTATIONS,
    charged_with_mutations,
    micros,
)
from usage_pipeline.kernels.seconds import PACKED, packed, usage_rows
from usage_pipeline.runtime.by_workers import Batches, by_workers
from usage_pipeline.runtime.shards import by_shard
from usage_pipeline.silver.request_writer import Seen, Span
from usage_pipeline.tables.arrow import schema_of
from usage_pipeline.tables.parquet_files import REPORTS, Report, Target, Writer, collected
from usage_pipeline.usage.usage_writer import IN_SHARD, SHARDS_OF_A_CORE, written_shard

_NEEDED: Final = frozenset({*NEEDED_WITH_MUTATIONS, "log_ts"})
_SCHEMA: Final = pa.schema([field for field in ROWS if field.name in _NEEDED])
_US_PER_DAY: Final = 86_400_000_000
_EPOCH: Final = date(1970, 1, 1)
_LINE_BYTES: Final = 1000
"""The length of a line, rounded up."""
_WITH_REPORT: Final = f"{PACKED}, {REPORTS}"
_WITH_REPORT_SCHEMA: Final = schema_of(_WITH_REPORT)


def write_usage_of_logs(
    spark: SparkSession, parts: Sequence[Part], span: Span, usage: Target, rejected: Target
) -> list[Report]:
    """Read logs and write what clients used of brokers in each second, and the unread lines.

    Args:
        spark: the session whose tasks do it.
        parts: the parts of the logs.
        span: selects requests by the time of their charge.
        usage: the target for gold_usage_1s.
        rejected: the target for quarantine.

    Returns:
        Reports without usage from the tasks that read, and reports with only usage from the tasks
        that sum.

    Raises:
        NotWrittenError: a file can't be written.
    """
    cores = spark.sparkContext.defaultParallelism
    size = sum(part.text_bytes for part in parts)
    shards = max(SHARDS_OF_A_CORE * cores, size // (IN_SHARD * _LINE_BYTES))

    def read(number: int, some: Sequence[Part]) -> Batches:
        return _read(some, span, shards, rejected.writer(number))

    def written(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        shard = key[0].as_py()
        if shard is None:
            return table.select(["report"])
        return written_shard(usage, shard, usage_rows(table.drop_columns(["report"])))

    tasks = in_tasks(parts, cores)
    rows = by_workers(spark, tasks, read, _WITH_REPORT)
    return collected(by_shard(rows, shards).groupBy("shard").applyInArrow(written, REPORTS))


def _read(parts: Iterable[Part], span: Span, shards: int, lines: Writer) -> Batches:
    """Yield rows of PACKED, and one row without a shard, which is the task's own report."""
    days: set[date] = set()
    seen = Seen()

    def rows() -> Batches:
        for part in parts:
            for parsed in parse_part(part, _SCHEMA):
                selected = span.select(parsed.rows, "quota_ts")
                lines.write(parsed.rejected)
                seen.add(parsed, selected)
                days.update(_days(selected))
                yield selected

    for batch in packed(rows(), shards, charged_with_mutations):
        none = pa.nulls(batch.num_rows, pa.binary())
        yield pa.RecordBatch.from_arrays([*batch.columns, none], schema=_WITH_REPORT_SCHEMA)
    files = lines.close()
    answered = [day.isoformat() for day in sorted(days)]
    report = Report(
        files, lines.problem, seen.unknown, answered, seen.times, seen.example
    ).as_batch()
    nothing = [pa.nulls(1, field.type) for field in _WITH_REPORT_SCHEMA][:-1]
    yield pa.RecordBatch.from_arrays([*nothing, report["report"]], schema=_WITH_REPORT_SCHEMA)


def _days(rows: pa.RecordBatch) -> set[date]:
    days = np.unique(micros(rows, "log_ts") // _US_PER_DAY).tolist()
    return {_EPOCH + timedelta(days=day) for day in days}
