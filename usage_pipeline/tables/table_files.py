"""Files of tables, and their row groups as workers read them.

A row group has about 64 MB of rows in memory. Several tasks read the row groups of a large file,
so that a table of few files still occupies a whole Spark cluster.

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
"""The smallest part of a file, about two row groups."""

Values = tuple[str, ...]
"""A value for each of a table's ``folders``."""


class Written(msgspec.Struct, frozen=True):
    """A file that a task wrote.

    Attributes:
        path: its path below the table's folder.
        values: the values of the table's ``folders``; days as 2026-11-21.
        rows: the number of its rows.
        bytes: its size.
        statistics: its statistics for the commit, as Delta's JSON; empty once it is committed.
    """

    path: str
    values: Values
    rows: int
    bytes: int
    statistics: str = ""

    @property
    def cluster(self) -> str:
        """The cluster of its rows."""
        return self.values[0]


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that workers read, or a part of it.

    Attributes:
        folder: the folder of the tables.
        table: its table.
        written: the file.
        part: the number of this part, from 0.
        parts: the number of parts, which have about the same number of row groups.
    """

    folder: Folder
    table: Table
    written: Written
    part: int = 0
    parts: int = 1

    def groups(self, read_dictionary: Sequence[str] = ()) -> "Iterator[RowGroup]":
        """Yield the row groups of this part; read each before the next.

        Args:
            read_dictionary: columns of few values, which are read as dictionaries.

        Raises:
            OSError: the file can't be read.
        """
        # Given a path and not an open file, which the ParquetFile would not close.
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
    """A row group of an open file.

    Attributes:
        file: the file.
        opened: the same file, open.
        number: the number of the row group in the file, from 0.
    """

    file: TableFile
    opened: parquet.ParquetFile
    number: int

    def batches(self, size: int, columns: Sequence[str]) -> Batches:
        """Yield its rows.

        Args:
            size: the largest number of rows in a batch.
            columns: columns of the table; partition columns come from the names of the folders.
                Columns that were added to the table later are null.
        """
        in_file = set(self.opened.schema_arrow.names)
        for batch in self.opened.iter_batches(
            size,
            row_groups=[self.number],
            columns=[name for name in columns if name in in_file],
            use_threads=False,
        ):
            yield self._completed(batch, columns)

    def statistics(self, column: str) -> parquet.Statistics | None:
        """Return the statistics of a column in the file's footer; None if there are none."""
        group = self.opened.metadata.row_group(self.number)
        chunks = map(group.column, range(group.num_columns))
        named = (each.statistics for each in chunks if each.path_in_schema == column)
        statistics = next(named, None)
        return statistics if statistics is not None and statistics.has_min_max else None

    def _completed(self, batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
        table = self.file.table
        values = dict(zip(table.folders, self.file.written.values, strict=True))
        types = {column.name: column.type for column in table.stored}
        in_file = set(batch.schema.names)
        columns = {
            name: batch[name]
            if name in in_file
            else pa.repeat(
                pa.scalar(values.get(name)).cast(arrow_type(types[name])), batch.num_rows
            )
            for name in names
        }
        return pa.RecordBatch.from_pydict(columns)


def day_of(table: Table, file: Written) -> date | None:
    """Return the day of a file's rows; None in a table without days."""
    if not table.partitions:
        return None
    return date.fromisoformat(file.values[table.folders.index("dt")])


def read_by_workers(
    spark: "SparkSession",
    files: Sequence[TableFile],
    read: Callable[[Sequence[TableFile]], Batches],
    schema: str,
    tasks_per_core: int,
) -> "DataFrame":
    """Read files in workers, and return the rows that ``read`` makes of them.

    Spark's own scan takes about 5 us to pass a row to Python, which would be most of the time of a
    replay. A worker that reads only the needed columns from Parquet takes a tenth of this time.
    """
    tasks = shared_out(files, tasks_per_core * spark.sparkContext.defaultParallelism)
    return by_workers(spark, tasks, lambda _, task_files: read(task_files), schema)


def shared_out(files: Sequence[TableFile], tasks: int) -> list[list[TableFile]]:
    """Return the files, or parts of files, of each task; tasks have about the same size."""
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
