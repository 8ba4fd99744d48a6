"""Writes the Parquet files of tables, in the tasks that make the rows.

A task writes a file for each partition of its rows, one row group after the other, and reports the
files. They belong to a table after the driver commits them (``commits``). Upkeep removes the files
of tasks that failed or ran twice.

Example: a task with requests of broker 3 on 20 and 21 November reports two files. One of them is
``cluster_id=eu/dt=2026-11-21/broker=3/part-00003-7-5f0c9d2e.parquet``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from sidecar.errors import SidecarError
from usage_pipeline.runtime.by_workers import Batches, by_workers
from usage_pipeline.tables.arrow import arrow_schema
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import UNNAMED, Table
from usage_pipeline.tables.statistics import statistics_of
from usage_pipeline.tables.table_files import TableFile, Values, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPORTS: Final = "report binary"
"""The rows that tasks return to Spark: a ``Report`` each, as JSON."""
_GROUP_BYTES: Final = 1 << 26
"""Bytes of rows that are buffered before they are written; about 250,000 requests."""
_SMALL_BYTES: Final = 1 << 26
"""Smaller files are merged."""
_MERGED_BYTES: Final = 1 << 28
"""The largest size of a merged file."""
_FEW: Final = 4
"""Small files of a partition that are not merged, because merging costs more than reading."""
_ROWS: Final = 1 << 17


class NotWrittenError(SidecarError):
    """A file of a table can't be written."""


class Report(msgspec.Struct, frozen=True):
    """The result of a task.

    Attributes:
        files: the written files, by table.
        problem: why a file could not be written; None if all were written.
        unknown: the number of written requests whose bytes or partitions are in no line.
        days: the days on which the written requests were answered.
        times: the times of the first and the last request read, in microseconds since 1970.
        example: why a line can't be read, for one of these lines.
        positions: the end of what a stream has read, as JSON.
        resent: the number of lines or files that were skipped because they were read before.
    """

    files: dict[str, list[Written]]
    problem: str | None = None
    unknown: int = 0
    days: list[str] = []
    times: tuple[int, int] | None = None
    example: str | None = None
    positions: msgspec.Raw = msgspec.Raw(b"{}")
    resent: int = 0

    def as_batch(self) -> pa.RecordBatch:
        """Return a row of REPORTS."""
        report = pa.array([msgspec.json.encode(self)], pa.binary())
        return pa.RecordBatch.from_arrays([report], ["report"])


@dataclass(frozen=True, slots=True)
class Target:
    """The place where the tasks of a run write a cluster's rows of a table.

    Attributes:
        folder: the folder of the tables.
        table: the table.
        run: an id of the run, which is part of the files' names.
        cluster: the cluster of the rows.
    """

    folder: Folder
    table: Table
    run: str
    cluster: str = UNNAMED

    def writer(self, number: int) -> "Writer":
        """Return the writer of the task, or of the group of rows, with this number."""
        from pyspark import TaskContext  # noqa: PLC0415 - of a worker

        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        return Writer(self, f"part-{number:05}-{attempt}-{self.run}.parquet")


@dataclass(slots=True)
class Writer:
    """Writes rows of a table, in one task.

    A disk error is reported at the end and not raised, because Spark would retry the task three
    times.

    Attributes:
        target: where to write.
        name: the name of the files.
        problem: why a file could not be written; None without an error.
    """

    target: Target
    name: str
    problem: str | None = field(default=None, init=False)
    _pending: dict[Values, list[pa.Table]] = field(default_factory=dict, init=False)
    _pending_bytes: int = field(default=0, init=False)
    _open: dict[Values, "_File"] = field(default_factory=dict, init=False)

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Write rows with all of the table's columns, in any order, whose types can be cast."""
        whole = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        for values, rows_of_partition in _by_partition(whole, self.target.table.partitions):
            self.write_to((self.target.cluster, *values), rows_of_partition)

    def write_to(self, values: Values, rows: pa.Table) -> None:
        """Write rows of one partition, without the columns in the names of its folders."""
        self._pending.setdefault(values, []).append(rows)
        self._pending_bytes += rows.nbytes
        if self._pending_bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> dict[str, list[Written]]:
        """Complete the files, and return them by table; none after an error."""
        self._flush()
        written = []
        for values, file in self._open.items():
            try:
                size = file.close()
            except OSError as error:
                self.problem = self.problem or str(error)
                continue
            if self.problem is None:
                path = self._path(values)
                written.append(Written(path, values, file.rows, size, file.statistics()))
        return {self.target.table.name: [] if self.problem else written}

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, {}, 0
        if self.problem is not None:
            return
        try:
            for values, tables in pending.items():
                if values not in self._open:
                    path = f"{self.target.table.name}/{self._path(values)}"
                    self._open[values] = _File.create(self.target, path)
                self._open[values].write(pa.concat_tables(tables))
        except OSError as error:
            self.problem = str(error)

    def _path(self, values: Values) -> str:
        names = self.target.table.folders
        folders = (f"{name}={value}" for name, value in zip(names, values, strict=True))
        return "/".join([*folders, self.name])


@dataclass(slots=True)
class _File:
    """An open file."""

    output: pa.NativeFile
    writer: parquet.ParquetWriter
    schema: pa.Schema
    rows: int = 0

    @classmethod
    def create(cls, target: Target, path: str) -> "_File":
        schema = arrow_schema(target.table.in_files)
        output = target.folder.open_output(path)
        writer = parquet.ParquetWriter(
            output,
            schema,
            compression="zstd",
            use_dictionary=list(target.table.few_values) or True,
            store_schema=False,
        )
        return cls(output, writer, schema)

    def write(self, rows: pa.Table) -> None:
        cast = rows.select(self.schema.names).cast(self.schema)
        self.writer.write_table(cast, row_group_size=max(1, rows.num_rows))
        self.rows += rows.num_rows

    def close(self) -> int:
        """Return its size in bytes."""
        self.writer.close()
        size = int(self.output.tell())
        self.output.close()
        return size

    def statistics(self) -> str:
        """Return the statistics of the closed file."""
        return statistics_of(self.writer.writer.metadata)


def collected(reports: "DataFrame") -> list[Report]:
    """Run the tasks that make rows of REPORTS, and return the reports.

    Raises:
        NotWrittenError: a task could not write a file.
    """
    decoded = [msgspec.json.decode(bytes(row["report"]), type=Report) for row in reports.collect()]
    for report in decoded:
        if report.problem is not None:
            raise NotWrittenError(
                f"{report.problem}. Check the free space and the permissions, or use another"
                " folder for --out"
            )
    return decoded


def files_of(reports: Iterable[Report], table: Table) -> list[Written]:
    """Return the files of a table."""
    return [file for report in reports for file in report.files.get(table.name, ())]


def written_by_tasks(frame: "DataFrame", target: Target) -> list[Written]:
    """Write rows with the table's columns, in as few tasks as they need.

    Raises:
        NotWrittenError: a file can't be written.
    """

    def write(batches: Batches) -> Batches:
        writer = target.writer(task_number())
        for batch in batches:
            writer.write(batch)
        files = writer.close()
        yield Report(files, writer.problem).as_batch()

    # Without the hint, a stage that makes rows in Python would have two workers for each core.
    rows = target.table.select(frame).hint("rebalance").mapInArrow(write, REPORTS)
    return files_of(collected(rows), target.table)


def merged(
    spark: "SparkSession", targets: Sequence[tuple[Target, Sequence[Written]]]
) -> list[list[Written]]:
    """Merge small files of each partition, and remove them; no commit has named them yet.

    Args:
        spark: the session whose tasks merge them.
        targets: the tables of clusters, and the files written for each.

    Returns:
        The files of each target after the merge.

    Raises:
        NotWrittenError: a file can't be written.
    """
    kept: list[list[Written]] = []
    bins: list[tuple[Target, list[Written]]] = []
    for target, files in targets:
        to_merge = [small for small in _bins(files) if len(small) > _FEW]
        bins += ((target, small) for small in to_merge)
        removed = {file.path for small in to_merge for file in small}
        kept.append([file for file in files if file.path not in removed])
    if not bins:
        return kept

    def merge(number: int, task: tuple[Target, list[Written]]) -> Batches:
        target, small = task
        writer = target.writer(number)
        names = [column.name for column in target.table.in_files]
        for written in small:
            file = TableFile(target.folder, target.table, written)
            for group in file.groups(target.table.few_values):
                for batch in group.batches(_ROWS, names):
                    writer.write_to(written.values, pa.Table.from_batches([batch]))
        files = writer.close()
        yield Report(files, writer.problem).as_batch()

    reports = collected(by_workers(spark, bins, merge, REPORTS))
    for target, small in bins:
        for file in small:
            target.folder.remove(f"{target.table.name}/{file.path}")
    for (target, _), files in zip(targets, kept, strict=True):
        merged_files = files_of(reports, target.table)
        files.extend(file for file in merged_files if file.cluster == target.cluster)
    return kept


def _bins(files: Iterable[Written]) -> Iterator[list[Written]]:
    """Yield groups of small files of a partition; each group becomes one file."""
    partitions: dict[Values, list[Written]] = {}
    for file in files:
        if file.bytes < _SMALL_BYTES:
            partitions.setdefault(file.values, []).append(file)
    for small in partitions.values():
        group: list[Written] = []
        size = 0
        for file in small:
            if size + file.bytes > _MERGED_BYTES:
                yield group
                group, size = [], 0
            group.append(file)
            size += file.bytes
        yield group


def _by_partition(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[Values, pa.Table]]:
    """Yield the rows of each partition, without the partition columns."""
    if not rows.num_rows:
        return
    if not names:
        yield (), rows
        return
    rest = rows.drop_columns(list(names))
    keys = rows.select(list(names)).group_by(list(names), use_threads=False).aggregate([])
    for key in keys.to_pylist():
        values = tuple(str(key[name]) for name in names)
        equal = (pc.equal(rows[name], pa.scalar(key[name], rows[name].type)) for name in names)
        yield values, rest if keys.num_rows == 1 else rest.filter(reduce(pc.and_, equal))


def task_number() -> int:
    """Return the number of the calling task in its stage."""
    from pyspark import TaskContext  # noqa: PLC0415 - of a worker

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
