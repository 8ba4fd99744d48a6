"""Request logs as a stream: a Spark data source that follows files as they grow and are rotated.

``spark.readStream.format("requestlog-stream")`` gives SILVER_REQUEST's rows (QUARANTINE's with the
option ``table``) without what they are partitioned by. A batch reads every broker's log up to the
same time (``rate_limiter``), and is identified by how much of each file was read
(``source_offsets``): a batch that is done again after a kill reads the same lines, wherever the
files are by then.

Example: 4 logs of 150 MB and 64 MiB a batch: 9 batches. Killed in the fourth, the next run reads
the same 64 MiB as the fourth, then the rest.

The files are read where they are, on a disk of every machine that Spark runs on; object storage has
no files that grow.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from sidecar.pipeline.ingest.growing_logs import Packed, first_bytes, is_packed, opened
from sidecar.pipeline.ingest.lines import Block, Unread, blocks
from sidecar.pipeline.ingest.paths import RequestLogsError, Zones
from sidecar.pipeline.ingest.records import REJECTED, ROWS, parse_block
from sidecar.pipeline.ingest.stored_logs import log_files
from sidecar.pipeline.streaming.rate_limiter import Unread as UnreadLog
from sidecar.pipeline.streaming.rate_limiter import ends_in_step
from sidecar.pipeline.streaming.source_offsets import (
    Followed,
    Follower,
    LostLinesError,
    Offset,
    advanced,
    head_of,
)
from sidecar.pipeline.tables.schemas import QUARANTINE, SILVER_REQUEST, Table

FORMAT: Final = "requestlog-stream"
_PIECE_BYTES: Final = 16 << 20
"""Of a file for one task."""
_TABLES: Final = {table.name: table for table in (SILVER_REQUEST, QUARANTINE)}


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What is followed.

    Attributes:
        path: a file, folder or glob that takes in the rotated files too.
        zones: of the brokers' clocks, as ``Zones.of`` takes them, separated by commas.
        broker_pattern: a regular expression with a group ``broker``; "" for the default ones.
        table: of the rows: silver_request or quarantine.
        columns: the ones that are needed, separated by commas; "" for all.
        max_bytes: of a batch, unpacked.
        from_start: whether what is there at the first start is read; else only what comes.
    """

    path: str
    zones: str = "UTC"
    broker_pattern: str = ""
    table: str = SILVER_REQUEST.name
    columns: str = ""
    max_bytes: int = 1 << 30
    from_start: bool = True

    def spark_options(self) -> dict[str, str]:
        """As options of Spark's reader."""
        return {
            "path": self.path,
            "zones": self.zones,
            "brokerPattern": self.broker_pattern,
            "table": self.table,
            "columns": self.columns,
            "maxBytes": str(self.max_bytes),
            "fromStart": str(self.from_start).lower(),
        }

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> "StreamOptions":
        """From options of Spark's reader."""
        return cls(
            path=texts["path"],
            zones=texts.get("zones", "UTC"),
            broker_pattern=texts.get("brokerPattern", ""),
            table=texts.get("table", SILVER_REQUEST.name),
            columns=texts.get("columns", ""),
            max_bytes=int(texts.get("maxBytes", 1 << 30)),
            from_start=texts.get("fromStart", "true") == "true",
        )

    @property
    def selected(self) -> tuple[tuple[str, str], ...]:
        """The columns' names and types in Spark's SQL, in the table's order."""
        table: Table = _TABLES[self.table]
        wanted = self.columns.split(",") if self.columns else table.names
        return tuple(
            (column.name, column.type)
            for column in table.columns
            if column.name in wanted and column.name != "dt"
        )


@dataclass
class Piece(InputPartition):
    """Whole lines of a file for one task.

    Attributes:
        key: of the file, by its beginning.
        broker: whose log it is.
        zone: the name of its clock's.
        path: where it was when the batch was planned.
        name: in the tables.
        start: its first byte.
        end: the byte after its last.
    """

    key: str
    broker: int
    zone: str
    path: str
    name: str
    start: int
    end: int


class RequestLogStream(DataSource):
    """The data source; its options are ``StreamOptions.spark_options``."""

    @classmethod
    def name(cls) -> str:
        """Of the format."""
        return FORMAT

    def schema(self) -> str:
        """Of the requested columns."""
        columns = StreamOptions.of(self.options).selected
        return ", ".join(f"`{name}` {type_}" for name, type_ in columns)

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":  # noqa: ARG002, N802  Spark's
        """The reader."""
        return _Reader(StreamOptions.of(self.options))


def check_followed(options: StreamOptions) -> None:
    """Refuses what can't be followed.

    Raises:
        RequestLogsError: there are no files, or the broker of one is unknown, or they are in
            object storage.
    """
    files = log_files(options.path, Zones(), options.broker_pattern or None)
    if any("://" in file.path for file in files):
        raise RequestLogsError(
            f"{options.path}: files are followed on a disk, not in object storage; a batch reads"
            " that: throttle-sidecar pipeline run"
        )


def file_rows(
    spark: SparkSession,
    options: StreamOptions,
    table: Table,
    columns: Iterable[str] | None = None,
) -> DataFrame:
    """The rows of files, as a stream.

    Args:
        spark: whose machines all have the files.
        options: which files; their table and columns are not used.
        table: SILVER_REQUEST, whose rows are without what they are partitioned by; or QUARANTINE.
        columns: only these; None for all.

    Raises:
        RequestLogsError: as of ``check_followed``.
    """
    check_followed(options)
    spark.dataSource.register(RequestLogStream)
    wanted = replace(options, table=table.name, columns=",".join(columns or ()))
    return spark.readStream.format(FORMAT).options(**wanted.spark_options()).load()


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver, and reads pieces in workers."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._follower = Follower(self._files, self._zone)
        self._last: Mapping[str, int] | None = None
        self._ends = False

    def initialOffset(self) -> Offset:  # noqa: N802  Spark's
        """Nothing was read; or all that is there, when only what comes is wanted."""
        if self._options.from_start:
            return {}
        files = self._follower.look({})
        return advanced({}, files, {file.key: file.end for file in files})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's
        """Bytes, unpacked."""
        return ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's
        """What comes after the first batch is planned is not read."""
        self._ends = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802  Spark's
        """Up to where the next batch reads."""
        files = self._follower.look(start)
        if self._ends and self._last is None:
            self._last = {file.key: file.end for file in files}
        ends = {file.key: self._readable(file) for file in files}
        unread = [
            UnreadLog(file.key, file.at, ends[file.key], file.lines)
            for file in files
            if file.at < ends[file.key]
        ]
        if not unread:
            return start
        most = None if isinstance(limit, ReadAllAvailable) else self._options.max_bytes
        return advanced(start, files, ends_in_step(unread, most))

    def partitions(self, start: Offset, end: Offset) -> Sequence[Piece]:
        """The pieces of a batch."""
        begun = {key: int(start.get(key, {}).get("at", 0)) for key in end}
        wanted = {key: int(known["at"]) for key, known in end.items()}
        files = {file.key: file for file in self._follower.look(end)}
        pieces: list[Piece] = []
        for key, stop in wanted.items():
            if begun[key] == stop:
                continue
            if key not in files:
                raise LostLinesError(_gone(str(end[key]["path"]), begun[key], stop))
            pieces.extend(_pieces(files[key], begun[key], stop))
        return pieces

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        if not isinstance(partition, Piece):
            raise TypeError(f"{partition} is no piece of a log")
        names = [name for name, _ in self._options.selected]
        zone = ZoneInfo(partition.zone)
        is_rows = self._options.table == SILVER_REQUEST.name
        # Columns that are not requested are not made.
        schema = pa.schema([field for field in ROWS if not is_rows or field.name in names])
        for one in lines_of_piece(partition):
            if isinstance(one, Block):
                parsed = parse_block(
                    one.data,
                    broker=partition.broker,
                    zone=zone,
                    src_file=partition.name,
                    offset=one.offset,
                    schema=schema,
                )
                yield (parsed.rows if is_rows else parsed.rejected).select(names)
            elif not is_rows:
                yield _rejected(one, partition).select(names)

    def _readable(self, file: Followed) -> int:
        if self._last is None:
            return file.end
        return max(file.at, min(file.end, self._last.get(file.key, file.at)))

    def _files(self) -> list[tuple[Path, int]]:
        options = self._options
        try:
            found = log_files(options.path, Zones(), options.broker_pattern or None)
        except RequestLogsError:
            # None now; ``file_rows`` has refused what can never be.
            return []
        return [(Path(file.path), file.broker) for file in found]

    def _zone(self, broker: int) -> ZoneInfo:
        return ZoneInfo(Zones.of(self._options.zones.split(",")).name_of(broker))


def lines_of_piece(piece: Piece) -> Iterator[Block | Unread]:
    """A piece's whole lines.

    Raises:
        LostLinesError: the file is gone, under any name in its folder.
    """
    with opened(_find(piece)) as file:
        at = piece.start
        for one in blocks(file, piece.start, piece.end):
            yield one
            at = one.offset + (len(one.data) if isinstance(one, Block) else one.bytes + 1)
        if at < piece.end:
            raise LostLinesError(_gone(piece.path, at, piece.end))


def _rejected(unread: Unread, piece: Piece) -> pa.RecordBatch:
    row = {
        "broker": piece.broker,
        "src_file": piece.name,
        "src_offset": unread.offset,
        "kind": unread.kind,
        "reason": unread.reason,
        "bytes": unread.bytes,
    }
    return pa.RecordBatch.from_pylist([row], schema=REJECTED)


def _pieces(file: Followed, start: int, end: int) -> Iterator[Piece]:
    zone = str(file.zone)
    # A packed file is unpacked from its beginning by each task.
    step = end - start if isinstance(file.lines, Packed) else _PIECE_BYTES
    while start < end:
        stop = end if end - start <= step else file.lines.line_from(start + step, end)
        yield Piece(file.key, file.broker, zone, str(file.path), file.name, start, stop)
        start = stop


def _find(piece: Piece) -> Path:
    """Where the file is now: it may have been renamed or packed since the batch was planned."""
    head = head_of(piece.key)
    path = Path(piece.path)
    for candidate in (path, *sorted(path.parent.iterdir())):
        try:
            if head.begins(first_bytes(candidate)) and _has(candidate, piece.end):
                return candidate
        except (OSError, EOFError):
            continue
    raise LostLinesError(_gone(piece.path, piece.start, piece.end))


def _has(path: Path, end: int) -> bool:
    # A file that was copied and truncated begins with nothing or with other lines.
    return is_packed(path) or path.stat().st_size >= end


def _gone(path: str, start: int, end: int) -> str:
    return (
        f"what was the log {path} is gone, and its bytes {start} to {end} were not read: put it"
        " back under any name that is followed, or begin anew with a new checkpoint and output"
    )
