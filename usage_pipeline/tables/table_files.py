"""Files of tables, and their row groups as workers read them.

A row group has some 64 MB of rows in memory, a file as many groups as it has rows for: those of a
large file are read by several tasks, so that a table which was brought together in few files keeps
all of a cluster busy.

Example: two files of 90 and 45 MB are read by three tasks of 45 MB each.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from pyarrow import parquet

from usage_pipeline.runtime.by_workers import Batches, by_workers
from usage_pipeline.tables.arrow import arrow_type
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PART_BYTES: Final = 1 << 23
"""Of a file's part, at least: two row groups or so."""

Values = tuple[str, ...]
"""Of a table's ``folders``."""


class Written(msgspec.Struct, frozen=True):
    """A file that a task wrote.

    Attributes:
        path: below the table's folder.
        values: of the table's ``folders``; days as 2026-11-21.
        rows: in it.
        bytes: of it.
    """

    path: str
    values: Values
    rows: int
    bytes: int

    @property
    def cluster(self) -> str:
        """Whose rows it has."""
        return self.values[0]


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that workers read, or a part of it.

    Attributes:
        folder: with the tables.
        table: whose it is.
        written: the file.
        part: which one of its parts, from 0 on.
        parts: how many it has, each with about as many row groups.
    """

    folder: Folder
    table: Table
    written: Written
    part: int = 0
    parts: int = 1

    def groups(self, read_dictionary: Sequence[str] = ()) -> "Iterator[RowGroup]":
        """The row groups of this part, each of which is to be read before the next.

        Args:
            read_dictionary: columns of few values, that are read as numbers of them.

        Raises:
            OSError: it can't be read.
        """
        # Of a path: a file that is opened for it would not be closed with it.
        system, path = self.folder.inner(f"{self.table.name}/{self.written.path}")
        names = list(read_dictionary)
        with parquet.ParquetFile(path, filesystem=system, read_dictionary=names) as opened:
            first, end = (
                opened.num_row_groups * part // self.parts for part in (self.part, self.part + 1)
            )
            for number in range(first, end):
                yield RowGroup(self, opened, number)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a file that is open.

    Attributes:
        file: whose it is.
        opened: the same.
        number: of the group, from 0 on.
    """

    file: TableFile
    opened: parquet.ParquetFile
    number: int

    def batches(self, size: int, columns: Sequence[str]) -> Batches:
        """Its rows.

        Args:
            size: of a batch, rows at most.
            columns: of the table; those that are in no file are made of the folders' names.
        """
        file = self.file
        for batch in self.opened.iter_batches(
            size,
            row_groups=[self.number],
            columns=[name for name in columns if name not in file.table.folders],
            use_threads=False,
        ):
            yield self._completed(batch, columns)

    def statistics(self, column: str) -> parquet.Statistics | None:
        """What the file's end says of a column; None if nothing."""
        group = self.opened.metadata.row_group(self.number)
        columns = map(group.column, range(group.num_columns))
        found = next(one.statistics for one in columns if one.path_in_schema == column)
        return found if found is not None and found.has_min_max else None

    def _completed(self, batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
        table = self.file.table
        values = dict(zip(table.folders, self.file.written.values, strict=True))
        types = {column.name: column.type for column in table.stored}
        columns = {
            name: pa.repeat(pa.scalar(values[name]).cast(arrow_type(types[name])), batch.num_rows)
            if name in values
            else batch[name]
            for name in names
        }
        return pa.RecordBatch.from_pydict(columns)


def day_of(table: Table, file: Written) -> date | None:
    """Of a file's rows; None in a table without days."""
    if not table.partitions:
        return None
    return date.fromisoformat(file.values[table.folders.index("dt")])


def read_by_workers(
    spark: "SparkSession",
    files: Sequence[TableFile],
    made: Callable[[Sequence[TableFile]], Batches],
    schema: str,
    tasks_per_core: int,
) -> "DataFrame":
    """What workers make of files.

    Spark's own scan hands rows to Python at some 5 us each, most of what a replay would cost; a
    worker that reads the columns it wants from Parquet itself needs a tenth of it.
    """
    tasks = shared_out(files, tasks_per_core * spark.sparkContext.defaultParallelism)

    def of_task(_: int, some: Sequence[TableFile]) -> Batches:
        return made(some)

    return by_workers(spark, tasks, of_task, schema)


def shared_out(files: Sequence[TableFile], tasks: int) -> list[list[TableFile]]:
    """Files of each task, or parts of them, of about the same size together."""
    size = max(_PART_BYTES, sum(file.written.bytes for file in files) // tasks)
    parts = [
        (file.written.bytes / count, replace(file, part=part, parts=count))
        for file in files
        for count in [max(1, round(file.written.bytes / size))]
        for part in range(count)
    ]
    shared: list[list[TableFile]] = [[] for _ in range(tasks)]
    sizes = [0.0] * tasks
    for of_part, file in sorted(parts, key=lambda part: (-part[0], part[1].written.path)):
        least = sizes.index(min(sizes))
        shared[least].append(file)
        sizes[least] += of_part
    return [files for files in shared if files]
