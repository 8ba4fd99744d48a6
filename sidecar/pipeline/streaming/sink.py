"""Batches of a stream into a table's folder: each once, however often it is written.

Spark does a batch again when it was killed in it. So a batch is written beside the table, under
``_stream``; then its files of an earlier attempt are removed, and the new ones are moved to their
partitions under names that say which batch they are of. Whoever reads the folder sees plain Parquet
files and needs to know nothing of the stream.

The names begin with the stream's id, which is the checkpoint's: a stream with a new checkpoint
would read everything again, so it is refused where another one has written.

Example: batch 7 of the stream 3f2a9c01 is ``dt=2026-11-20/3f2a9c01-0000000007-0.parquet``. Killed
after it was written and before the checkpoint knew: the file is removed and written again.

A batch that is being moved is seen in part, for milliseconds on a disk. Small files add up: what is
to last, a batch run makes in a folder of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sidecar.errors import SidecarError
from sidecar.pipeline.tables.files import Files
from sidecar.pipeline.tables.schemas import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BESIDE: Final = "_stream"
_ID_LENGTH: Final = 8


class OtherStreamError(SidecarError):
    """Another stream has written to the table."""


@dataclass(slots=True)
class BatchSink:
    """Writes a stream's batches to a table.

    Attributes:
        files: where the tables are.
        root: the folder of the tables.
        table: that is written.
        stream: the stream's id.
        parts: how many files a batch has for each partition, at most, > 0.
    """

    files: Files
    root: str
    table: Table
    stream: str
    parts: int = 1
    _begun: bool = field(default=False, init=False)

    def check(self) -> None:
        """Refuses a folder that another stream has written to.

        Raises:
            OtherStreamError: it has.
        """
        for folder in self._partitions(self._place()):
            for name in self.files.names(folder):
                if _is_batch(name) and not name.startswith(self._prefix()):
                    raise OtherStreamError(
                        f"{self._place()} has what a stream with another checkpoint wrote, and"
                        " this one would write it again: name that checkpoint, or another output"
                    )

    def write(self, frame: "DataFrame", batch_id: int) -> None:
        """Writes a batch in place of what an earlier attempt left of it."""
        beside = f"{self.root.rstrip('/')}/{_BESIDE}/{self.table.name}"
        self.files.remove(beside)
        self._write(self.table.select(frame), beside)
        if not self._begun:
            # Only the first batch of a run can have been written before.
            self._remove(batch_id)
            self._begun = True
        for folder in self._partitions(beside):
            within = folder[len(beside) :]
            names = [name for name in self.files.names(folder) if name.endswith(".parquet")]
            for number, name in enumerate(names):
                self.files.move(
                    f"{folder}/{name}",
                    f"{self._place()}{within}/{self._prefix()}{batch_id:010d}-{number}.parquet",
                )
        self.files.remove(beside)

    def _write(self, frame: "DataFrame", path: str) -> None:
        if self.table.partitions:
            frame.coalesce(self.parts).write.partitionBy(*self.table.partitions).parquet(path)
            return
        # Without partitions Spark writes a file without rows too, one in every batch.
        frame.persist()
        try:
            if frame.count() > 0:
                frame.coalesce(1).write.parquet(path)
        finally:
            frame.unpersist()

    def _remove(self, batch_id: int) -> None:
        for folder in self._partitions(self._place()):
            for name in self.files.names(folder):
                if name.startswith(f"{self._prefix()}{batch_id:010d}-"):
                    self.files.remove(f"{folder}/{name}")

    def _partitions(self, root: str) -> Iterator[str]:
        """The folders of a table that have files."""
        folders = [root]
        for column in self.table.partitions:
            folders = [
                f"{folder}/{name}"
                for folder in folders
                for name in self.files.names(folder)
                if name.startswith(f"{column}=")
            ]
        yield from folders

    def _place(self) -> str:
        return f"{self.root.rstrip('/')}/{self.table.name}"

    def _prefix(self) -> str:
        return f"{self.stream[:_ID_LENGTH]}-"


def _is_batch(name: str) -> bool:
    stream, _, rest = name.partition("-")
    batch, _, _ = rest.partition("-")
    return len(stream) == _ID_LENGTH and len(batch) == 10 and batch.isdecimal()
