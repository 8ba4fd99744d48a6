"""gold_usage_1s straight from request logs, in one reading and with no table of requests.

The tasks that parse the logs sum them up at once (``kernels.seconds``); what they send to Spark is
some rows of a megabyte. Lines that can't be read go to files of their own.

Of mutations only what a request's own line has is counted, and ``lower_bound`` says so: the sizes
of topics are in other lines, which takes the table of requests (``usage_table.usage_of_days``).

Example: 2.5 GB of logs, 2.2 million lines, are two thousand rows of 80 MB together.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from sidecar.pipeline.ingest.log_parts import Part, in_tasks, parse_part
from sidecar.pipeline.ingest.records import REJECTED, ROWS
from sidecar.pipeline.kernels.charging import (
    NEEDED_WITH_MUTATIONS,
    charged_with_mutations,
    micros,
)
from sidecar.pipeline.kernels.seconds import PACKED, packed, used
from sidecar.pipeline.runtime.by_workers import Batches, by_workers
from sidecar.pipeline.silver.request_writer import Span, unknown
from sidecar.pipeline.tables.task_files import (
    WRITTEN,
    Written,
    as_batch,
    attempt,
    attempts_of,
    collected,
    place,
    write,
)
from sidecar.pipeline.usage.usage_writer import written_by_day

_NEEDED: Final = frozenset({*NEEDED_WITH_MUTATIONS, "log_ts"})
_SCHEMA: Final = pa.schema([field for field in ROWS if field.name in _NEEDED])
_US_PER_DAY: Final = 86_400_000_000
_EPOCH: Final = date(1970, 1, 1)
_LEAST_SHARDS: Final = 64
"""Groups of groups: enough to spread, few enough that each is worth a call."""
_SHARD_BYTES: Final = 1 << 31
"""Of logs: some two million lines, so that what a worker holds stays bounded."""
_OF_TASKS: Final = -1
"""The shard of the tasks' own counts."""
_TYPES: Final = (pa.int32(), pa.binary(), pa.binary())
_UNPACKED_TIMES: Final = 16
"""How much longer a gzip file is unpacked."""


class LogsUsage(NamedTuple):
    """What was written.

    Attributes:
        usage: files of gold_usage_1s, that are in their places.
        rejected: lines that can't be read.
        unknown: requests whose bytes or partitions no line has.
    """

    usage: tuple[Written, ...]
    rejected: int
    unknown: int


def write_usage_of_logs(
    spark: SparkSession,
    parts: Sequence[Part],
    span: Span,
    target: Path,
    present: Collection[date] = (),
) -> LogsUsage:
    """Reads logs and writes what clients used of brokers in each second.

    Args:
        spark: whose tasks see the folders.
        parts: of the logs.
        span: when requests were charged.
        target: the table's folder; lines that can't be read, of ``records.REJECTED``, get the
            place in it that Spark gives to rows without a day.
        present: days that other logs have rows of: what these logs have of such a day is left out,
            unless they have requests that were answered on it too.

    Raises:
        NotWrittenError: a file can't be written, or isn't there.
    """
    size = sum((part.end - part.start) * _times(part) for part in parts)
    shards = max(_LEAST_SHARDS, size // _SHARD_BYTES)
    attempts = attempts_of(target)

    def read(number: int, some: Sequence[Part]) -> Batches:
        return _read(some, span, shards, attempts / f"{attempt(number)}.parquet")

    def written(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        shard = key[0].as_py()
        if shard == _OF_TASKS:
            return pa.Table.from_batches([as_batch(_files(table))])
        return written_by_day(shard, used(table), attempts)

    tasks = in_tasks(parts, spark.sparkContext.defaultParallelism)
    rows = by_workers(spark, tasks, read, PACKED).groupBy("shard").applyInArrow(written, WRITTEN)
    collected_files = collected(rows)
    answered = {file.day for file in collected_files if not file.rows}
    files = [file for file in collected_files if file.day in answered or file.day not in present]
    place((file for file in files if file.rows), target)
    of_tasks = [file for file in files if file.day is None]
    return LogsUsage(
        tuple(file for file in files if file.day is not None and file.rows),
        sum(file.rows for file in of_tasks),
        sum(file.unknown for file in of_tasks),
    )


def _times(part: Part) -> int:
    return _UNPACKED_TIMES if part.file.packed else 1


def _read(parts: Iterable[Part], span: Span, shards: int, file: Path) -> Batches:
    """Rows of PACKED, and one with the counts, as files.

    Those are the file of lines that can't be read, maybe without any, and for each day on which a
    request was answered one without rows.
    """
    rejected: list[pa.RecordBatch] = []
    answered: set[date] = set()
    unmeasured = 0

    def rows() -> Batches:
        nonlocal unmeasured
        for part in parts:
            for parsed in parse_part(part, _SCHEMA):
                selected = span.of(parsed.rows, "quota_ts")
                unmeasured += unknown(pa.Table.from_batches([selected]))
                rejected.append(parsed.rejected)
                answered.update(_days(selected))
                yield selected

    yield from packed(rows(), shards, charged_with_mutations)
    lines = pa.Table.from_batches(rejected, REJECTED)
    problem = write(lines, file, ["src_file", "kind"]) if lines.num_rows else None
    files = [
        Written(file.name, None, None, lines.num_rows, unmeasured, problem),
        *(Written("", day, None, 0) for day in sorted(answered)),
    ]
    columns = [[_OF_TASKS], [b""], [msgspec.json.encode(files)]]
    yield pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, _TYPES, strict=True)],
        ["shard", "clients", "records"],
    )


def _files(table: pa.Table) -> list[Written]:
    rows = table["records"].to_pylist()
    return [each for row in rows for each in msgspec.json.decode(row, type=list[Written])]


def _days(rows: pa.RecordBatch) -> set[date]:
    days = np.unique(micros(rows, "log_ts") // _US_PER_DAY).tolist()
    return {_EPOCH + timedelta(days=day) for day in days}
