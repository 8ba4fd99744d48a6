"""Batches of a stream into a table: each once, however often it is written.

Spark does a batch again when it was killed in it. So each is one commit, whose transaction is the
stream's id and the batch's number; one that is there already is passed over, and its files are
nobody's.

The id is the checkpoint's: a stream with a new checkpoint would read everything again, so it is
refused where another one has written. Which one that was is in ``_streams/<table>``.

Example: batch 7 of the stream 3f2a9c01 was committed and the checkpoint did not know when the
stream was killed: it is written again, and not committed.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from sidecar.errors import SidecarError
from sidecar.pipeline.tables.commits import STREAMS, append, compact, newest, upkeep
from sidecar.pipeline.tables.folder import Folder
from sidecar.pipeline.tables.parquet_files import Target, written_by_tasks
from sidecar.pipeline.tables.schemas import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_TIDIED_BATCHES: Final = 200
"""Half an hour of them, and more."""
_RETAINED: Final = timedelta(days=7)


class OtherStreamError(SidecarError):
    """Another stream has written to the table."""


@dataclass(frozen=True, slots=True)
class BatchSink:
    """Writes a stream's batches to a table.

    Attributes:
        folder: with the tables.
        table: that is written.
        stream: the stream's id.
        parts: how many files a batch has for each partition, at most, > 0.
    """

    folder: Folder
    table: Table
    stream: str
    parts: int = 1

    def check(self) -> None:
        """Refuses a table that another stream has written to.

        Raises:
            OtherStreamError: it has.
        """
        name = f"{STREAMS}/{self.table.name}"
        if self.folder.create(name, self.stream.encode()):
            return
        if self.folder.read(name) != self.stream.encode():
            raise OtherStreamError(
                f"{self.folder.uri(self.table.name)} has what a stream with another checkpoint"
                " wrote, and this one would write it again: name that checkpoint, or another output"
            )

    def write(self, frame: "DataFrame", batch_id: int) -> None:
        """Writes a batch, unless an earlier attempt has committed it."""
        target = Target(self.folder, self.table, f"{self.stream[:8]}-{batch_id:010}")
        files = written_by_tasks(frame.coalesce(self.parts), target)
        if files:
            now = datetime.now(UTC)
            append(self.folder, self.table, files, (self.stream, batch_id), now)
        if batch_id % _TIDIED_BATCHES == _TIDIED_BATCHES - 1:
            self.tidy()

    def tidy(self) -> None:
        """Brings small files together, and removes those that were replaced a week ago."""
        compact(self.folder, self.table)
        upkeep(newest(self.folder), [self.table.name], _RETAINED)
