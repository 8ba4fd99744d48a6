"""Request logs as a source of Spark: ``spark.read.format("requestlog")``.

Options: ``path``; ``zones`` (``Europe/Berlin,3=UTC``; default UTC); ``brokerPattern``; ``table``:
``silver_request`` (rows, default), ``quarantine`` (lines that can't be read) or ``both`` (rows,
and at their end ``rejected_kind``, ``rejected_reason`` and ``rejected_bytes``, which are null but
for a line that can't be read, whose other columns but its place are null: one reading for both);
``columns`` (names of silver_request's, separated by commas: others are not carried to Spark);
``splitBytes``, how large a part of a plain file is (a gzip file is one part); ``cores``, for how
many parts are put together into tasks (default: each is a task of its own).

Filters of ``api`` and ``log_ts`` are applied before rows are carried to Spark (``pushdown``). A
time filter leaves out no file: nothing says which times a file has before it is read.

Example: a file of 150 MB in parts of 64 MiB is read by 3 tasks; with 96 files of 26 MB and
``cores`` 2, 5 files are read by a task (``log_parts``).

Source: pyspark.sql.datasource.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from sidecar.pipeline.ingest.log_parts import SPLIT_BYTES, Part, in_tasks, parse_part, parts_of
from sidecar.pipeline.ingest.paths import ALL_UTC, Zones
from sidecar.pipeline.ingest.pushdown import Wanted
from sidecar.pipeline.ingest.records import REJECTED, ROWS
from sidecar.pipeline.ingest.stored_logs import log_files
from sidecar.pipeline.runtime.worker_memory import freeze_retained
from sidecar.pipeline.tables.schemas import QUARANTINE, SILVER_REQUEST

FORMAT: Final = "requestlog"
ROW_COLUMNS: Final = SILVER_REQUEST.in_files
"""What a row has of silver_request: dt and hour follow from log_ts."""
_TABLES: Final = (SILVER_REQUEST.name, QUARANTINE.name, "both")
_OUTCOME: Final = {"rejected_kind": "kind", "rejected_reason": "reason", "rejected_bytes": "bytes"}
"""Columns of ``both``, by the names that they have in quarantine."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is read.

    Attributes:
        path: of a file, a folder or a glob.
        zones: of the brokers' clocks.
        broker_pattern: a regular expression with a group named ``broker``.
        table: silver_request, quarantine or both.
        columns: of rows, that are carried to Spark.
        split_bytes: of a part of a plain file, > 0.
        cores: that read at the same time, > 0; None: each part is a task.
    """

    path: str
    zones: Zones = ALL_UTC
    broker_pattern: str | None = None
    table: str = SILVER_REQUEST.name
    columns: tuple[str, ...] = tuple(column.name for column in ROW_COLUMNS)
    split_bytes: int = SPLIT_BYTES
    cores: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Options":
        """From Spark's.

        Raises:
            ValueError: one can't be used; says which, and what can.
        """
        path = options.get("path")
        if not path:
            raise ValueError("name the request logs: .load(path), or the option path")
        table = options.get("table", SILVER_REQUEST.name)
        if table not in _TABLES:
            raise ValueError(f"table {table!r} is none of {', '.join(_TABLES)}")
        split_bytes = int(options.get("splitBytes", SPLIT_BYTES))
        cores = int(options["cores"]) if "cores" in options else None
        for name, number in (("splitBytes", split_bytes), ("cores", cores)):
            if number is not None and number <= 0:
                raise ValueError(f"{name} {number} is not positive")
        zones = (zone.strip() for zone in options.get("zones", "").split(","))
        return cls(
            path,
            Zones.of(filter(None, zones)),
            options.get("brokerPattern"),
            table,
            _columns(options.get("columns")),
            split_bytes,
            cores,
        )

    def schema(self) -> str:
        """Of these columns, in Spark's SQL."""
        if self.table == QUARANTINE.name:
            return QUARANTINE.schema
        types = {column.name: column.type for column in (*ROW_COLUMNS, *QUARANTINE.columns)}
        outcome = _OUTCOME if self.table == "both" else {}
        named = {name: name for name in self.columns} | outcome
        return ", ".join(f"`{name}` {types[source]}" for name, source in named.items())


@dataclass(frozen=True)
class Task(InputPartition):
    """What one task reads."""

    parts: Sequence[Part]


class RequestLogSource(DataSource):
    """Brokers' request logs."""

    @classmethod
    def name(cls) -> str:
        """By its options."""
        return FORMAT

    def schema(self) -> str:
        """Of the requested rows."""
        return Options.of(self.options).schema()

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  as Spark calls it
        """For a batch."""
        return RequestLogReader(Options.of(self.options))


@dataclass
class RequestLogReader(DataSourceReader):
    """Reads parts of files."""

    options: Options
    wanted: Wanted = field(default_factory=Wanted)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Takes those that it can; Spark applies all of them again."""
        if self.options.table == SILVER_REQUEST.name:
            for one in filters:
                self.wanted = self.wanted.with_filter(one)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """All parts of the files, each in one task."""
        options = self.options
        files = log_files(options.path, options.zones, options.broker_pattern)
        parts = parts_of(files, options.split_bytes)
        if options.cores is None:
            return [Task([part]) for part in parts]
        return [Task(some) for some in in_tasks(parts, options.cores)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Its rows, or its lines that can't be read."""
        if not isinstance(partition, Task):
            raise TypeError("not a task of this source")
        needed = self.wanted.needed.union(self.options.columns)
        schema = pa.schema([field for field in ROWS if field.name in needed])
        for part in partition.parts:
            for parsed in parse_part(part, schema):
                yield from self._given([self.wanted.rows(parsed.rows)], [parsed.rejected])
        freeze_retained()

    def _given(
        self, rows: Iterable[pa.RecordBatch], rejected: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        table = self.options.table
        if table == QUARANTINE.name:
            yield from rejected
        elif table == SILVER_REQUEST.name:
            for batch in rows:
                yield batch.select(self.options.columns)
        else:
            schema = pa.schema(
                [ROWS.field(name) for name in self.options.columns]
                + [pa.field(name, REJECTED.field(source).type) for name, source in _OUTCOME.items()]
            )
            for batch in rows:
                yield _as(batch, schema)
            for batch in rejected:
                if batch.num_rows:
                    renamed = {source: name for name, source in _OUTCOME.items()}
                    names = [renamed.get(name, name) for name in REJECTED.names]
                    yield _as(batch.rename_columns(names), schema)


def _columns(listed: str | None) -> tuple[str, ...]:
    known = tuple(column.name for column in ROW_COLUMNS)
    if listed is None:
        return known
    wanted = {name.strip() for name in listed.split(",")}
    if unknown := wanted - set(known):
        raise ValueError(f"there is no column {', '.join(sorted(unknown))} in silver_request")
    return tuple(name for name in known if name in wanted)


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """With a schema's columns; null where it lacks one."""
    columns = [
        batch[name]
        if name in batch.schema.names
        else pa.nulls(batch.num_rows, schema.field(name).type)
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
