"""Batches of a stream into tables: each once, however often it is written.

The tasks that get a batch's lines parse them and write the rows of every table at once; usage is
summed up within a task, so that a second may have several rows, which add up. Of lines nothing is
retained from batch to batch but up to where shippers have sent them (``positions``), so nothing is
too late.

Spark does a batch again when it was killed in it. So each is one commit of each table, whose
transaction is the stream's id and the batch's number; one that is there already is passed over,
and its files are nobody's. Positions are stored before the first commit (``stored_positions``): a
batch that is done again takes the same lines. The id is the checkpoint's: a stream with a new
checkpoint would read everything again, so it is refused where another one has written
(``_streams/<table>``).

Example: batch 7 of the stream 3f2a9c01 has committed silver_request, and not yet gold_usage_1s,
when it is killed: it is written again, and committed to gold_usage_1s alone.
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
from usage_pipeline.kernels.seconds import packed, used
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.silver.request_writer import with_day
from usage_pipeline.streaming.positions import Positions, State
from usage_pipeline.streaming.stored_positions import StoredPositions
from usage_pipeline.tables.commits import STREAMS, append, newest, upkeep
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
"""What a task makes of what the source gives it, without lines that were taken before."""
_TIDIED_BATCHES: Final = 200
"""Half an hour of them, and more."""
RETAINED: Final = timedelta(days=7)


class OtherStreamError(SidecarError):
    """Another stream has written to the table."""


@dataclass(frozen=True, slots=True)
class BatchSink:
    """Writes a stream's batches.

    Attributes:
        folder: with the tables.
        tables: that are written, QUARANTINE among them.
        stream: the stream's id.
        parse: of what the source gives.
        cluster: whose rows they are.
        retained: for how long files are that were brought together.
        resent: lines or files of each batch that were left out, since they were taken before.
        unread: lines of each batch that are in the quarantine.
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
        """Refuses tables that are another stream's, and others than this one has begun with.

        Raises:
            OtherStreamError: they are.
        """
        own = self.stream.encode()
        begun = {
            name
            for name in self.folder.names(STREAMS)
            if self.folder.read(f"{STREAMS}/{name}") == own
        }
        # Earlier versions had a quarantine only if it was asked for.
        if begun and (begun ^ {table.name for table in self.tables}) - {QUARANTINE.name}:
            raise OtherStreamError(
                f"this stream writes {', '.join(sorted(begun))} to {self.folder}, and others would"
                " lack what it has read: name the same tables, or another checkpoint and output"
            )
        for table in self.tables:
            name = f"{STREAMS}/{table.name}"
            if not self.folder.create(name, own) and self.folder.read(name) != own:
                raise OtherStreamError(
                    f"{self.folder.uri(table.name)} has what a stream with another checkpoint"
                    " wrote, and this one would write it again: name that checkpoint, or another"
                    " output"
                )

    def write(self, frame: "DataFrame", batch_id: int) -> None:
        """Writes a batch, but to tables where an earlier attempt has committed it."""
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
        """Brings small files together, and removes those that were replaced long ago."""
        for table in self.tables:
            compact(self.folder, table)
        upkeep(newest(self.folder), [table.name for table in self.tables], self.retained)


def _written(parsed: Iterator[Parsed], writers: dict[Table, Writer]) -> Report:
    """Writes the rows of a task."""
    requests, usage = writers.get(SILVER_REQUEST), writers.get(GOLD_USAGE_1S)
    lines = writers[QUARANTINE]

    def rows() -> Batches:
        for one in parsed:
            if requests is not None:
                requests.write(with_day(one.rows))
            lines.write(one.rejected)
            if one.rows.num_rows:
                yield one.rows

    if usage is None:
        for _ in rows():
            pass
    else:
        sums = list(packed(rows(), 1, charged_with_mutations))
        if sums:
            usage.write(used(pa.Table.from_batches(sums)))
    files = {name: found for writer in writers.values() for name, found in writer.close().items()}
    problems = [writer.problem for writer in writers.values() if writer.problem is not None]
    return Report(files, problems[0] if problems else None)
