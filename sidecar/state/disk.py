"""The disk that the state lies on: a file is read, and replaced whole.

A new content is written beside the file, synced and renamed over it, so that a reader finds the old
or the new one whole, whatever is cut off in between.

Example: the power fails while 2 MB are written: the file has what the write before left.
"""

import os
from pathlib import Path
from typing import Protocol


class Disk(Protocol):
    """Reads and replaces files; what fails raises OSError."""

    def read(self, path: Path) -> bytes:
        """A file's content."""

    def replace(self, path: Path, content: bytes) -> None:
        """Gives a file another content; the old one is whole if that fails."""

    def rename(self, path: Path, to: Path) -> None:
        """Gives a file another name, in the place of whatever had that."""


class MachineDisk:
    """The machine's own."""

    def read(self, path: Path) -> bytes:
        """See ``Disk``."""
        return path.read_bytes()

    def replace(self, path: Path, content: bytes) -> None:
        """See ``Disk``."""
        # Always the same name: what a crash leaves there is overwritten by the next write.
        beside = path.with_name(f".{path.name}.new")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        # The rename itself is on disk only once the folder is.
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def rename(self, path: Path, to: Path) -> None:
        """See ``Disk``."""
        path.replace(to)
