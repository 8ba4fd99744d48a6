"""Where a stream's positions are between batches: a small file of each batch beside its tables.

A batch that Spark does again, because it was killed in it, must take the same lines. So it begins
with the file of a batch before it, never with its own, and a file is removed only when the batch
after it is there too.

Example: batch 7 reads ``_streams/3f2a9c01-…-positions-0000000006.json`` and writes …7.json, before
it commits to tables; then it removes …5.json. Killed after that, batch 7 reads …6.json again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from usage_pipeline.streaming.positions import State, merged
from usage_pipeline.tables.commits import STREAMS
from usage_pipeline.tables.folder import Folder


@dataclass(frozen=True, slots=True)
class StoredPositions:
    """A stream's positions before a batch.

    Attributes:
        folder: with the tables.
        stream: the stream's id.
        batch: the batch's number.
        state: what was taken before it.
        files: of batches before it, ascending.
    """

    folder: Folder
    stream: str
    batch: int
    state: State
    files: tuple[str, ...]

    @classmethod
    def before(cls, folder: Folder, stream: str, batch: int) -> "StoredPositions":
        """Those that a batch begins with, each time that it is done."""
        own = _name(stream, batch)
        files = tuple(
            name
            for name in folder.names(STREAMS)
            if name.startswith(own.rpartition("-")[0]) and name < own
        )
        text = folder.read(f"{STREAMS}/{files[-1]}") if files else None
        state = State() if text is None else msgspec.json.decode(text, type=State)
        return cls(folder, stream, batch, state, files)

    def store(self, changes: Iterable[State]) -> None:
        """Stores them with what the batch's tasks have changed, if anything."""
        after = merged(State(), changes)
        if after == State():
            return
        text = msgspec.json.encode(merged(self.state, [after]))
        self.folder.replace(f"{STREAMS}/{_name(self.stream, self.batch)}", text)
        for name in self.files[:-1]:
            self.folder.remove(f"{STREAMS}/{name}")


def _name(stream: str, batch: int) -> str:
    return f"{stream}-positions-{batch:010}.json"
