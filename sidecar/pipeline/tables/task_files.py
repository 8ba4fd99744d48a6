"""Files of a table that tasks write themselves, past the JVM's row path, and their commit.

Each task writes Parquet files into a folder of attempts, that nobody reads, and reports what it
wrote. Once all have reported, the driver moves the reported files to their days and hours,
as Spark names them, and removes the rest: what a task that failed, or was done twice, has left
there is never a part of the table. All tasks and the driver must see the folder as a disk; where
they don't, Spark writes the table (``stages``).

Example: task 3 reports ``part-00003-7-0-490000.parquet`` of hour 10; it becomes
``dt=2026-11-21/hour=10/part-00003-7-0-490000.parquet``.
"""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import parquet

from sidecar.errors import SidecarError
from sidecar.pipeline.tables.publish import NO_DAY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WRITTEN: Final = "name string, day date, hour int, rows bigint, unknown bigint, problem string"
"""The rows that tasks give to Spark."""
_NO_HOUR: Final = NO_DAY.removeprefix("dt=")
_SCHEMA: Final = pa.schema(
    {
        "name": pa.string(),
        "day": pa.date32(),
        "hour": pa.int32(),
        "rows": pa.int64(),
        "unknown": pa.int64(),
        "problem": pa.string(),
    }
)


class NotWrittenError(SidecarError):
    """Files of the table can't be written."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a task wrote, or why it couldn't.

    Attributes:
        name: in the folder of attempts.
        day: of its rows, UTC; None: of lines that can't be read.
        hour: of its rows, in a table that has hours; None: of lines that can't be read.
        rows: in it.
        unknown: requests among them whose bytes or partitions no line has.
        problem: for a person; None when it was written.
    """

    name: str
    day: date | None
    hour: int | None
    rows: int
    unknown: int = 0
    problem: str | None = None

    @property
    def folder(self) -> str:
        """Of its rows, below the table's."""
        if self.day is None:
            return f"{NO_DAY}/hour={_NO_HOUR}"
        return f"dt={self.day}" if self.hour is None else f"dt={self.day}/hour={self.hour}"


def attempts_of(target: Path) -> Path:
    """Where tasks write: beside the table's folder, on the same disk."""
    return target.with_name(f"{target.name}.attempts")


def attempt(number: int) -> str:
    """What the names of a task's files begin with; no other attempt's do."""
    from pyspark import TaskContext  # noqa: PLC0415  of a worker

    context = TaskContext.get()
    return f"part-{number:05}-{0 if context is None else context.taskAttemptId()}"


def write(rows: pa.Table, file: Path, few_values: Sequence[str]) -> str | None:
    """Writes rows; a disk that fails is reported, not raised.

    Args:
        rows: in the table's types, without its day and hour.
        file: in a folder that is made if need be.
        few_values: columns that are written as numbers of values.

    Returns:
        None, or why it couldn't be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(
            rows,
            file,
            row_group_size=max(1, rows.num_rows),
            compression="zstd",
            use_dictionary=list(few_values),
            store_schema=False,
        )
    except OSError as error:
        return str(error)
    return None


def as_batch(written: Sequence[Written]) -> pa.RecordBatch:
    """Rows of WRITTEN."""
    return pa.RecordBatch.from_pylist([asdict(file) for file in written], schema=_SCHEMA)


def committed(written_files: "DataFrame", target: Path) -> tuple[Written, ...]:
    """Has the tasks write, and returns what they report.

    Args:
        written_files: of WRITTEN, by tasks that write to ``attempts_of(target)``.
        target: the table's folder.

    Returns:
        The files, that are in their places.

    Raises:
        NotWrittenError: one can't be written, or isn't there.
    """
    written = collected(written_files)
    place(written, target)
    return written


def collected(written_files: "DataFrame") -> tuple[Written, ...]:
    """Has the tasks write.

    Args:
        written_files: of WRITTEN.
    """
    return tuple(Written(**row.asDict()) for row in written_files.collect())


def place(written: Iterable[Written], target: Path) -> None:
    """Moves reported files to their days and hours, and removes all others.

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
