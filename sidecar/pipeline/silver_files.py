"""The files of silver_request, written by the tasks that read the logs, past the JVM's row path.

Each task parses some parts of the logs, writes the rows of each hour as a Parquet file into a folder
of attempts, that nobody reads, and tells what it wrote. Once all have told, the driver moves the
files that it was told of to their days and hours, as Spark names them, and removes the rest: what a
task that failed, or was done twice, has left there is never a part of the table. All tasks and the
driver must see the folder as a disk; where they don't, Spark writes the table (``stages``).

Lines that can't be read have no day; they go where Spark puts rows without one, in columns that are
theirs anyhow (``OUTCOME``).

Example: a part with lines of 09:59 to 10:03 becomes two files, of hours 9 and 10. Measured, logs of
600 MB on a busy machine: 14 s of CPU time, where Spark's own way of it takes 40 s.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from sidecar.errors import SidecarError
from sidecar.pipeline.publish import NO_DAY
from sidecar.pipeline.records import ROWS
from sidecar.pipeline.source import Part, parse_part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTCOME: Final = {"kind": "api", "reason": "user", "bytes": "quota_bytes"}
"""Where quarantine's columns are in rows without a day; those of its place have the same names."""
FILE_BYTES: Final = 1 << 26
"""Of rows in memory, that are gathered before they are written: 250,000 rows or so."""
TASK_BYTES: Final = 1 << 27
"""Of logs, that one task reads at most, unless a single part is larger."""
_TASKS_OF_A_CORE: Final = 4
_FEW_VALUES: Final = [
    *("broker", "user", "client_id", "listener", "api", "api_version"),
    *("acks", "throttle_ms", "src_file"),
]
"""Columns that are written as numbers of values: of the others nearly each row has its own."""
_NO_HOUR: Final = f"{NO_DAY}/hour={NO_DAY.removeprefix('dt=')}"
_HOUR_US: Final = 3_600_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOLD: Final = pa.schema(
    {
        "name": pa.string(),
        "hour": pa.int64(),
        "rows": pa.int64(),
        "unknown": pa.int64(),
        "problem": pa.string(),
    }
)
_TOLD_TO_SPARK: Final = "name string, hour bigint, rows bigint, unknown bigint, problem string"


class NotWrittenError(SidecarError):
    """Files of the table can't be written."""


@dataclass(frozen=True, slots=True)
class Span:
    """Which requests, by when they were answered.

    Attributes:
        since: UTC; those before are left out; None: from the first.
        until: UTC; those then or later are left out; None: to the last.
    """

    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a task wrote, or why it couldn't.

    Attributes:
        name: in the folder of attempts.
        hour: of its rows, hours since 1970, UTC; None: of lines that can't be read.
        rows: in it.
        unknown: requests among them whose bytes or partitions no line tells.
        problem: for a person; None when it was written.
    """

    name: str
    hour: int | None
    rows: int
    unknown: int
    problem: str | None = None

    @property
    def day(self) -> date | None:
        """Of its rows, UTC; None: of lines that can't be read."""
        return None if self.hour is None else _time(self.hour).date()

    @property
    def folder(self) -> str:
        """Of its rows, below the table's."""
        if self.hour is None:
            return _NO_HOUR
        time = _time(self.hour)
        return f"dt={time:%Y-%m-%d}/hour={time.hour}"


def write_requests(
    spark: "SparkSession", parts: Sequence[Part], target: Path, span: Span
) -> tuple[Written, ...]:
    """Reads the logs and writes the table's files.

    Args:
        spark: whose tasks see ``target``.
        parts: of the logs.
        target: the table's folder; nothing is there yet.
        span: of the requests.

    Returns:
        The files, that are in their places.

    Raises:
        NotWrittenError: one can't be written, or isn't there.
    """
    attempts = attempts_of(target)

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415  of a worker

        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        for batch in batches:
            for number in batch["number"].to_pylist():
                name = f"part-{number:05}-{attempt}"
                yield _as_batch(write_parts(tasks[number], attempts, name, span))

    tasks = in_tasks(parts, spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks))).withColumnRenamed("id", "number")
    rows = numbers.mapInArrow(told, _TOLD_TO_SPARK).collect()
    written = tuple(Written(**row.asDict()) for row in rows)
    place(written, target)
    return written


def attempts_of(target: Path) -> Path:
    """Where tasks write: beside the table's folder, on the same disk."""
    return target.with_name(f"{target.name}.attempts")


def in_tasks(parts: Sequence[Part], cores: int) -> list[list[Part]]:
    """Parts that follow each other, as many as are read by one task.

    A task costs Spark tens of milliseconds, and a file of an hour that has a few rows costs whoever
    reads it as much; so there are only as many tasks as the cores need to end at the same time.

    Args:
        parts: of the logs, by path.
        cores: that read at the same time, > 0.
    """
    total = sum(part.end - part.start for part in parts)
    most = min(TASK_BYTES, total // (_TASKS_OF_A_CORE * cores))
    tasks: list[list[Part]] = []
    room = 0
    for part in parts:
        size = part.end - part.start
        if not tasks or size > room:
            tasks.append([])
            room = max(most, size)
        tasks[-1].append(part)
        room -= size
    return tasks


def write_parts(
    parts: Iterable[Part], attempts: Path, name: str, span: Span
) -> tuple[Written, ...]:
    """Reads parts of the logs and writes their rows; a disk that fails is told, not raised.

    Args:
        parts: of the logs.
        attempts: the folder to write to, made if need be.
        name: what names of files begin with; no other attempt's do.
        span: of the requests.

    Raises:
        OSError: the logs can't be read.
    """
    written: list[Written] = []
    for number, rows in enumerate(_gathered(parts, span)):
        for hour, some in _by_hour(rows):
            file = f"{name}-{number}-{'none' if hour is None else hour}.parquet"
            problem = _write(some, attempts / file)
            unknown = 0 if hour is None else _unknown(some)
            written.append(Written(file, hour, some.num_rows, unknown, problem))
            if problem is not None:
                return tuple(written)
    return tuple(written)


def place(written: Iterable[Written], target: Path) -> None:
    """Moves files that were told of to their days and hours, and removes all others.

    Args:
        written: what tasks told.
        target: the table's folder; nothing is there yet.

    Raises:
        NotWrittenError: one wasn't written, or isn't there.
    """
    attempts = attempts_of(target)
    try:
        for file in written:
            if file.problem is not None:
                raise NotWrittenError(
                    f"{target}: {file.problem}. Is there room on the disk, and may this user write"
                    " there? Or name another folder with --out"
                )
            folder = target / file.folder
            folder.mkdir(parents=True, exist_ok=True)
            (attempts / file.name).rename(folder / file.name)
    except OSError as error:
        raise NotWrittenError(
            f"{target}: what a task wrote can't be put there: {error}. Do all of Spark's machines"
            " see the same folder there? If not, name one of object storage or HDFS with --out"
        ) from error
    finally:
        shutil.rmtree(attempts, ignore_errors=True)


def _gathered(parts: Iterable[Part], span: Span) -> Iterator[pa.Table]:
    """Rows of parts, as many as are written at once; then their lines that can't be read."""
    gathered: list[pa.RecordBatch] = []
    rejected: list[pa.RecordBatch] = []
    size = 0
    for parsed in chain.from_iterable(map(parse_part, parts)):
        rows = _asked(parsed.rows, span)
        gathered.append(rows)
        rejected.append(_as_row(parsed.rejected))
        size += rows.nbytes
        if size >= FILE_BYTES:
            yield pa.Table.from_batches(gathered, ROWS)
            gathered, size = [], 0
    yield pa.Table.from_batches([*gathered, *rejected], ROWS)


def _asked(rows: pa.RecordBatch, span: Span) -> pa.RecordBatch:
    if span.since is not None:
        rows = rows.filter(pc.greater_equal(rows["log_ts"], _scalar(span.since)))
    if span.until is not None:
        rows = rows.filter(pc.less(rows["log_ts"], _scalar(span.until)))
    return rows


def _scalar(time: datetime) -> pa.Scalar:
    return pa.scalar(time, ROWS.field("log_ts").type)


def _as_row(rejected: pa.RecordBatch) -> pa.RecordBatch:
    """Lines that can't be read in requests' columns; all others but their place are null."""
    source = {OUTCOME.get(name, name): name for name in rejected.schema.names}
    columns = [
        rejected[source[field.name]]
        if field.name in source
        else pa.nulls(rejected.num_rows, field.type)
        for field in ROWS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ROWS)


def _by_hour(rows: pa.Table) -> Iterator[tuple[int | None, pa.Table]]:
    """Rows of each hour since 1970, in their order; None for those that have no time."""
    times = rows["log_ts"].cast(pa.int64())
    hours = np.floor_divide(pc.fill_null(times, -1).to_numpy(), _HOUR_US)
    for hour in np.unique(hours).tolist():
        found = np.flatnonzero(hours == hour)
        first, many = int(found[0]), len(found)
        together = int(found[-1]) - first + 1 == many
        some = rows.slice(first, many) if together else rows.take(pa.array(found))
        yield (None if hour < 0 else hour), some


def _unknown(rows: pa.Table) -> int:
    bytes_known = rows["bytes_known"].fill_null(True)
    mutations_known = rows["mutations_known"].fill_null(True)
    return int(np.count_nonzero(~(bytes_known.to_numpy() & mutations_known.to_numpy())))


def _write(rows: pa.Table, file: Path) -> str | None:
    """None, or why it couldn't."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(
            rows,
            file,
            row_group_size=rows.num_rows,
            compression="zstd",
            use_dictionary=_FEW_VALUES,
            store_schema=False,
        )
    except OSError as error:
        return str(error)
    return None


def _as_batch(written: Sequence[Written]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([asdict(file) for file in written], schema=_TOLD)


def _time(hour: int) -> datetime:
    return _EPOCH + timedelta(hours=hour)
