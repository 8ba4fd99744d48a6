"""Writes a stream's batches to tables. Each batch is committed once, even if it is written again.

The tasks that receive a batch's lines parse them and write the rows of every table at once. Usage
is summed within a task. A second may therefore have several rows, which add up. The only state
between batches is how far shippers have sent their lines (``positions``), so no line is too late.

Spark repeats a batch if it was killed during the batch. So a batch is one commit for each table,
with a transaction of the stream's id and the batch's number. If a table already has the commit, the
repeated files remain unused. Positions are stored before the first commit (``stored_positions``),
so a repeated batch reads the same lines. The stream's id is that of its checkpoint. A stream with a
new checkpoint would read everything again, so it is refused if another stream has written to the
table (``_streams/<table>``).

Example: batch 7 of the stream 3f2a9c01 is killed after it has committed silver_request, and before
gold_usage_1s. It is written again, and committed to gold_usage_1s alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa

from sidecar.errors import SidecarError
from usage_pipeline.ingest.records import Parsed
from usage_pipeline.kernels.charging import charged_with_mutations
from usage_pipeline.kernels.seconds import packed, usage_rows
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.silver.request_writer import with_day
from usage_pipeline.streaming.positions import Positions, State
from usage_pipeline.streaming.stored_positions import StoredPositions
from usage_pipeline.tables.commits import STREAMS, append, pinned, upkeep
from usage_pipeline.tables.delta import compact
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.parquet_files import (
    REPORTS,
    Report,
    Target,
    Writer,
    collected,
    files_of,
    task_number,
)
from usage_pipeline.tables.schemas import (
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_REQUEST,
    UNNAMED,
    Table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Parse = Callable[[Batches, Positions], Iterator[Parsed]]
"""Parses the source's rows in a task, without lines that were read before."""
_TIDIED_BATCHES: Final = 200
"""The batches between two compactions: more than half an hour."""
RETAINED: Final = timedelta(days=7)


class OtherStreamError(SidecarError):
    """Another stream has written to the table."""


@dataclass(frozen=True, slots=True)
class BatchSink:
    """Writes a stream's batches.

    Attributes:
        folder: the folder of the tables.
        tables: the tables that are written, including QUARANTINE.
        stream: the stream's id.
        parse: parses the source's rows.
        cluster: the cluster of the rows.
        retained: how long files are kept after compaction has replaced them.
        resent: by batch, the lines or files that were left out because they were read before.
        unread: by batch, the lines in the quarantine.
    """

    folder: Folder
    tables: Sequence[Table]
    stream: str
    parse: Parse
    cluster: str = UNNAMED
    retained: timedelta = RETAINED
    resent: dict[int, int] = field(default_factory=dict)
    unread: dict[int, int] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse tables of another stream, and a change of this stream's tables.

        Raises:
            OtherStreamError: another stream has written, or the tables differ from the first start.
        """
        own = self.stream.encode()
        begun = {
            name
            for name in self.folder.names(STREAMS)
            if self.folder.read(f"{STREAMS}/{name}") == own
        }
        # Earlier versions wrote the quarantine only on request.
        if begun and (begun ^ {table.name for table in self.tables}) - {QUARANTINE.name}:
            raise OtherStreamError(
                f"this stream writes {', '.join(sorted(begun))} to {self.folder}, and other tables"
                " would lack the lines read so far: name the same tables, or another checkpoint and"
                " output"
            )
        for table in self.tables:
            name = f"{STREAMS}/{table.name}"
            if not self.folder.create(name, own) and self.folder.read(name) != own:
                raise OtherStreamError(
                    f"a stream with another checkpoint has written {self.folder.uri(table.name)},"
                    " and this stream would write the same rows again: name that checkpoint, or"
                    " another output"
                )

    def write(self, frame: "DataFrame", batch_id: int) -> None:
        """Write a batch, except to tables where an earlier attempt has committed it."""
        run, parse = f"{self.stream[:8]}-{batch_id:010}", self.parse
        targets = [Target(self.folder, table, run, self.cluster) for table in self.tables]
        before = StoredPositions.before(self.folder, self.stream, batch_id)
        state = before.state

        def of_batches(batches: Batches) -> Batches:
            number = task_number()
            writers = {target.table: target.writer(number) for target in targets}
            positions = Positions(state)
            report = _written(parse(batches, positions), writers)
            changed = msgspec.Raw(msgspec.json.encode(positions.changed()))
            yield msgspec.structs.replace(
                report, positions=changed, resent=positions.resent
            ).as_batch()

        reports = collected(frame.mapInArrow(of_batches, REPORTS))
        self.resent[batch_id] = sum(report.resent for report in reports)
        self.unread[batch_id] = sum(file.rows for file in files_of(reports, QUARANTINE))
        before.store(msgspec.json.decode(report.positions, type=State) for report in reports)
        for table in self.tables:
            files = files_of(reports, table)
            if files:
                now = datetime.now(UTC)
                append(self.folder, table, files, (self.stream, batch_id), now)
        if batch_id % _TIDIED_BATCHES == _TIDIED_BATCHES - 1:
            self.tidy()

    def tidy(self) -> None:
        """Compact small files, and remove files that were replaced long ago."""
        for table in self.tables:
            compact(self.folder, table)
        upkeep(pinned(self.folder), [table.name for table in self.tables], self.retained)


def _written(parsed: Iterator[Parsed], writers: dict[Table, Writer]) -> Report:
    """Write the rows of a task."""
    requests, usage = writers.get(SILVER_REQUEST), writers.get(GOLD_USAGE_1S)
    lines = writers[QUARANTINE]

    def rows() -> Batches:
        for part in parsed:
            if requests is not None:
                requests.write(with_day(part.rows))
            lines.write(part.rejected)
            if part.rows.num_rows:
                yield part.rows

    if usage is None:
        for _ in rows():
            pass
    else:
        sums = list(packed(rows(), 1, charged_with_mutations))
        if sums:
            usage.write(usage_rows(pa.Table.from_batches(sums)))
    files = {
        name: written for writer in writers.values() for name, written in writer.close().items()
    }
    problems = [writer.problem for writer in writers.values() if writer.problem is not None]
    return Report(files, problems[0] if problems else None)
