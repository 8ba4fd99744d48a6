"""Parquet files of tables: written by the tasks that make the rows, where they belong.

A task writes a file for each partition of its rows, row group after row group, and reports them.
What it has written is in a table only once the driver commits it (``commits``): what a task that
failed, or was done twice, has left is nobody's, and upkeep removes it.

Example: a task with requests of broker 3 on 20 and 21 November reports two files, of which one is
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
from usage_pipeline.tables.table_files import TableFile, Values, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPORTS: Final = "report binary"
"""The rows that tasks give to Spark: a ``Report`` of each, as JSON."""
_GROUP_BYTES: Final = 1 << 26
"""Of rows in memory, that are gathered before they are written: 250,000 requests or so."""
_SMALL_BYTES: Final = 1 << 26
"""Files of fewer bytes are brought together, to files of no more than the next."""
_MERGED_BYTES: Final = 1 << 28
_FEW: Final = 4
"""Small files of a partition that may stay: to bring them together costs more than to read them."""
_ROWS: Final = 1 << 17


class NotWrittenError(SidecarError):
    """Files of a table can't be written."""


class Report(msgspec.Struct, frozen=True):
    """What a task did.

    Attributes:
        files: that it wrote, by table.
        problem: why it couldn't, for a person; None when it could.
        unknown: requests that it wrote, whose bytes or partitions no line has.
        days: on which requests were answered that it wrote.
        times: of the first and the last request that it read, microseconds since 1970.
        example: of a line that can't be read, for a person.
        positions: of a stream, what it has read up to, as JSON.
        resent: lines or files that it left out, since they were taken before.
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
        """A row of REPORTS."""
        report = pa.array([msgspec.json.encode(self)], pa.binary())
        return pa.RecordBatch.from_arrays([report], ["report"])


@dataclass(frozen=True, slots=True)
class Target:
    """Where the tasks of a run write a cluster's rows of a table.

    Attributes:
        folder: with the tables.
        table: that is written.
        run: no other run's files have it in their names.
        cluster: whose rows they are.
    """

    folder: Folder
    table: Table
    run: str
    cluster: str = UNNAMED

    def writer(self, number: int) -> "Writer":
        """Of a task that has this number, or of one of its groups."""
        from pyspark import TaskContext  # noqa: PLC0415 - of a worker

        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        return Writer(self, f"part-{number:05}-{attempt}-{self.run}.parquet")


@dataclass(slots=True)
class Writer:
    """Writes rows of a table, in one task.

    A disk that fails is reported at the end, not raised: Spark would do the task three times more.

    Attributes:
        target: where.
        name: of its files.
        problem: why it couldn't write; None while it can.
    """

    target: Target
    name: str
    problem: str | None = field(default=None, init=False)
    _pending: dict[Values, list[pa.Table]] = field(default_factory=dict, init=False)
    _pending_bytes: int = field(default=0, init=False)
    _open: dict[Values, "_File"] = field(default_factory=dict, init=False)

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Writes rows with all of the table's columns, in any order, of types that can be cast."""
        whole = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        for values, some in _by_partition(whole, self.target.table.partitions):
            self.write_to((self.target.cluster, *values), some)

    def write_to(self, values: Values, rows: pa.Table) -> None:
        """Writes rows of a folder, without the columns that its name has."""
        self._pending.setdefault(values, []).append(rows)
        self._pending_bytes += rows.nbytes
        if self._pending_bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> dict[str, list[Written]]:
        """The files, by table, which are whole now; none where there was a problem."""
        self._flush()
        written = []
        for values, file in self._open.items():
            try:
                written.append(Written(self._path(values), values, file.rows, file.close()))
            except OSError as error:
                self.problem = self.problem or str(error)
        return {self.target.table.name: [] if self.problem else written}

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, {}, 0
        if self.problem is not None:
            return
        try:
            for values, tables in pending.items():
                if values not in self._open:
                    path = f"{self.target.table.name}/{self._path(values)}"
                    self._open[values] = _File.begun(self.target, path)
                self._open[values].write(pa.concat_tables(tables))
        except OSError as error:
            self.problem = str(error)

    def _path(self, values: Values) -> str:
        names = self.target.table.folders
        folders = (f"{name}={value}" for name, value in zip(names, values, strict=True))
        return "/".join([*folders, self.name])


@dataclass(slots=True)
class _File:
    """A file that is being written."""

    output: pa.NativeFile
    writer: parquet.ParquetWriter
    schema: pa.Schema
    rows: int = 0

    @classmethod
    def begun(cls, target: Target, path: str) -> "_File":
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
        """Returns its size, bytes."""
        self.writer.close()
        size = int(self.output.tell())
        self.output.close()
        return size


def collected(reports: "DataFrame") -> list[Report]:
    """Has the tasks write.

    Args:
        reports: of REPORTS.

    Raises:
        NotWrittenError: one couldn't.
    """
    found = [msgspec.json.decode(bytes(row["report"]), type=Report) for row in reports.collect()]
    for report in found:
        if report.problem is not None:
            raise NotWrittenError(
                f"{report.problem}. Is there room, and may this user write there? Or name another"
                " folder with --out"
            )
    return found


def files_of(reports: Iterable[Report], table: Table) -> list[Written]:
    """The files of a table."""
    return [file for report in reports for file in report.files.get(table.name, ())]


def written_by_tasks(frame: "DataFrame", target: Target) -> list[Written]:
    """Has tasks write a frame, as few as it needs.

    Args:
        frame: with the table's columns.
        target: the table.

    Raises:
        NotWrittenError: a file can't be written.
    """

    def of_batches(batches: Batches) -> Batches:
        writer = target.writer(task_number())
        for batch in batches:
            writer.write(batch)
        files = writer.close()
        yield Report(files, writer.problem).as_batch()

    # A stage that makes rows in Python and writes them would have two workers for each core.
    rows = target.table.select(frame).hint("rebalance").mapInArrow(of_batches, REPORTS)
    return files_of(collected(rows), target.table)


def merged(
    spark: "SparkSession", targets: Sequence[tuple[Target, Sequence[Written]]]
) -> list[list[Written]]:
    """Brings small files of a folder together; they are nobody's yet, and are removed.

    Args:
        spark: whose tasks do it.
        targets: tables of clusters, and what was written of each.

    Returns:
        What each target has then.

    Raises:
        NotWrittenError: a file can't be written.
    """
    kept: list[list[Written]] = []
    bins: list[tuple[Target, list[Written]]] = []
    for target, files in targets:
        of_table = [some for some in _bins(files) if len(some) > _FEW]
        bins += ((target, some) for some in of_table)
        gone = {file.path for some in of_table for file in some}
        kept.append([file for file in files if file.path not in gone])
    if not bins:
        return kept

    def merge(number: int, task: tuple[Target, list[Written]]) -> Batches:
        target, some = task
        writer = target.writer(number)
        names = [column.name for column in target.table.in_files]
        for written in some:
            file = TableFile(target.folder, target.table, written)
            for group in file.groups(target.table.few_values):
                for batch in group.batches(_ROWS, names):
                    writer.write_to(written.values, pa.Table.from_batches([batch]))
        files = writer.close()
        yield Report(files, writer.problem).as_batch()

    reports = collected(by_workers(spark, bins, merge, REPORTS))
    for target, some in bins:
        for file in some:
            target.folder.remove(f"{target.table.name}/{file.path}")
    for (target, _), own in zip(targets, kept, strict=True):
        made = files_of(reports, target.table)
        own.extend(file for file in made if file.cluster == target.cluster)
    return kept


def _bins(files: Iterable[Written]) -> Iterator[list[Written]]:
    """Small files of a partition, as many as become one."""
    partitions: dict[Values, list[Written]] = {}
    for file in files:
        if file.bytes < _SMALL_BYTES:
            partitions.setdefault(file.values, []).append(file)
    for some in partitions.values():
        together: list[Written] = []
        size = 0
        for file in some:
            if size + file.bytes > _MERGED_BYTES:
                yield together
                together, size = [], 0
            together.append(file)
            size += file.bytes
        yield together


def _by_partition(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[Values, pa.Table]]:
    """Rows of each partition, without what they are partitioned by."""
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
    """Of the task that calls it, among those of its stage."""
    from pyspark import TaskContext  # noqa: PLC0415 - of a worker

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
