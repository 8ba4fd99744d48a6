"""Stores a stream's positions between batches, in a small file for each batch beside the tables.

If Spark repeats a batch that was killed, the batch must read the same lines. So it starts from the
file of an earlier batch, never from its own. A file is removed only after the next batch has
written its own file.

Example: batch 7 reads ``_streams/3f2a9c01-…-positions-0000000006.json`` and writes …7.json before
it commits to tables. Then it removes …5.json. If it is killed after that, it reads …6.json again.
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
        folder: the folder of the tables.
        stream: the stream's id.
        batch: the batch's number.
        state: what was read before the batch.
        files: the files of earlier batches, ascending.
    """

    folder: Folder
    stream: str
    batch: int
    state: State
    files: tuple[str, ...]

    @classmethod
    def before(cls, folder: Folder, stream: str, batch: int) -> "StoredPositions":
        """Return the positions before a batch; they are the same each time the batch runs."""
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
        """Store the positions with the changes of the batch's tasks, if there are any."""
        after = merged(State(), changes)
        if after == State():
            return
        text = msgspec.json.encode(merged(self.state, [after]))
        self.folder.replace(f"{STREAMS}/{_name(self.stream, self.batch)}", text)
        for name in self.files[:-1]:
            self.folder.remove(f"{STREAMS}/{name}")


def _name(stream: str, batch: int) -> str:
    return f"{stream}-positions-{batch:010}.json"
