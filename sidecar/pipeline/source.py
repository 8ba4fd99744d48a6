"""Request logs as a source of Spark: ``spark.read.format("requestlog")``.

Options: ``path``; ``zones`` (``Europe/Berlin,3=UTC``; default UTC); ``brokerPattern``; ``table``:
``silver_request`` (rows, default), ``quarantine`` (lines that can't be read) or ``both`` (rows,
and at their end ``rejected_kind``, ``rejected_reason`` and ``rejected_bytes``, which are null but
for a line that can't be read, whose other columns but its place are null: one reading for both);
``columns`` (names of silver_request's, separated by commas: others are not carried to Spark);
``splitBytes``, how large a part of a plain file is (a gzip file is one part).

Filters of ``api`` and ``log_ts`` are applied before rows are carried to Spark (``wanted``). A time
filter leaves out no file: nothing says which times a file has before it is read.

Example: a file of 150 MB in parts of 64 MiB is read by 3 tasks.

Source: pyspark.sql.datasource.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from sidecar.pipeline.lines import Unread, blocks, parts, unpacked_blocks
from sidecar.pipeline.paths import ALL_UTC, LogFile, Zones, log_files, open_input
from sidecar.pipeline.records import REJECTED, ROWS, Parsed, parse_block
from sidecar.pipeline.tables import QUARANTINE, SILVER_REQUEST
from sidecar.pipeline.wanted import Wanted

FORMAT: Final = "requestlog"
SPLIT_BYTES: Final = 1 << 26
ROW_COLUMNS: Final = tuple(
    column for column in SILVER_REQUEST.columns if column.name not in SILVER_REQUEST.partitions
)
"""What a row has of silver_request: dt and hour follow from log_ts."""
_TABLES: Final = (SILVER_REQUEST.name, QUARANTINE.name, "both")
_PLACE: Final = ("broker", "src_file", "src_offset")
_OUTCOME: Final = {"rejected_kind": "kind", "rejected_reason": "reason", "rejected_bytes": "bytes"}
"""Columns of ``both``, by the names that they have in quarantine."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for.

    Attributes:
        path: of a file, a folder or a glob.
        zones: of the brokers' clocks.
        broker_pattern: a regular expression with a group named ``broker``.
        table: silver_request, quarantine or both.
        columns: of rows, that are carried to Spark.
        split_bytes: of a part of a plain file, > 0.
    """

    path: str
    zones: Zones = ALL_UTC
    broker_pattern: str | None = None
    table: str = SILVER_REQUEST.name
    columns: tuple[str, ...] = tuple(column.name for column in ROW_COLUMNS)
    split_bytes: int = SPLIT_BYTES

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
        if split_bytes <= 0:
            raise ValueError(f"splitBytes {split_bytes} is not positive")
        told = (zone.strip() for zone in options.get("zones", "").split(","))
        return cls(
            path,
            Zones.of(filter(None, told)),
            options.get("brokerPattern"),
            table,
            _columns(options.get("columns")),
            split_bytes,
        )

    def schema(self) -> str:
        """Of what is given, in Spark's SQL."""
        if self.table == QUARANTINE.name:
            return QUARANTINE.schema
        types = {column.name: column.type for column in (*ROW_COLUMNS, *QUARANTINE.columns)}
        outcome = _OUTCOME if self.table == "both" else {}
        named = {name: name for name in self.columns} | outcome
        return ", ".join(f"`{name}` {types[source]}" for name, source in named.items())


@dataclass(frozen=True)
class Part(InputPartition):
    """What one task reads: the lines that begin in a part of a file.

    Attributes:
        file: whose they are.
        start: bytes.
        end: bytes; its first byte is not in it.
    """

    file: LogFile
    start: int
    end: int


def parts_of(files: Iterable[LogFile], split_bytes: int) -> list[Part]:
    """A part for each task.

    Args:
        files: of request logs.
        split_bytes: of a part of a plain file, > 0; a gzip file is one part.
    """
    return [
        Part(file, start, end)
        for file in files
        for start, end in ([(0, file.size)] if file.packed else parts(file.size, split_bytes))
    ]


def parse_part(part: Part, schema: pa.Schema = ROWS) -> Iterator[Parsed]:
    """Its rows, and its lines that can't be read, block after block.

    Args:
        part: of a file that is there.
        schema: as ``records.parse_block`` has it.

    Raises:
        OSError: the file can't be read.
    """
    file = part.file
    zone = ZoneInfo(file.zone)
    with open_input(file.path, file.options) as opened:
        pieces = unpacked_blocks(opened) if file.packed else blocks(opened, part.start, part.end)
        for piece in pieces:
            if isinstance(piece, Unread):
                empty = pa.RecordBatch.from_pylist([], schema=schema)
                yield Parsed(empty, _unread(piece, file))
                continue
            yield parse_block(
                piece.data,
                broker=file.broker,
                zone=zone,
                src_file=file.path,
                offset=piece.offset,
                schema=schema,
            )


class RequestLogSource(DataSource):
    """Brokers' request logs."""

    @classmethod
    def name(cls) -> str:
        """As it is asked for."""
        return FORMAT

    def schema(self) -> str:
        """Of what is asked for."""
        return Options.of(self.options).schema()

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  as Spark calls it
        """For a batch."""
        return RequestLogReader(Options.of(self.options))


@dataclass
class RequestLogReader(DataSourceReader):
    """Reads parts of files.

    Attributes:
        options: what was asked for.
        wanted: which rows.
    """

    options: Options
    wanted: Wanted = field(default_factory=Wanted)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Takes those that it can; Spark applies all of them again."""
        if self.options.table == SILVER_REQUEST.name:
            for one in filters:
                self.wanted = self.wanted.with_filter(one)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """A part for each task."""
        options = self.options
        files = log_files(options.path, options.zones, options.broker_pattern)
        return parts_of(files, options.split_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Its rows, or its lines that can't be read."""
        if not isinstance(partition, Part):
            raise TypeError("not a part of this source")
        needed = self.wanted.needed.union(self.options.columns)
        schema = pa.schema([field for field in ROWS if field.name in needed])
        for parsed in parse_part(partition, schema):
            yield from self._given([self.wanted.rows(parsed.rows)], [parsed.rejected])

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


def _columns(told: str | None) -> tuple[str, ...]:
    known = tuple(column.name for column in ROW_COLUMNS)
    if told is None:
        return known
    asked = {name.strip() for name in told.split(",")}
    if unknown := asked - set(known):
        raise ValueError(f"there is no column {', '.join(sorted(unknown))} in silver_request")
    return tuple(name for name in known if name in asked)


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """With a schema's columns; null where it lacks one."""
    columns = [
        batch[name]
        if name in batch.schema.names
        else pa.nulls(batch.num_rows, schema.field(name).type)
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _unread(piece: Unread, file: LogFile) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "broker": file.broker,
                "src_file": file.path,
                "src_offset": piece.offset,
                "kind": piece.kind,
                "reason": piece.reason,
                "bytes": piece.bytes,
            }
        ],
        schema=REJECTED,
    )
