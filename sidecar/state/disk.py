"""The disk for the state: reads files, and replaces them atomically.

The new content is written to another file, which is synced and renamed. So the file always has the
complete old content or the complete new content.

Example: the power fails while 2 MB are written. The file then has its previous content.
"""

import os
from pathlib import Path
from typing import Protocol


class Disk(Protocol):
    """Reads and replaces files; failures raise OSError."""

    def read(self, path: Path) -> bytes:
        """Read a file."""

    def replace(self, path: Path, content: bytes) -> None:
        """Replace a file's content; if that fails, the old content stays."""

    def rename(self, path: Path, to: Path) -> None:
        """Rename a file; a file with the new name is replaced."""


class MachineDisk:
    """The disk of this machine."""

    def read(self, path: Path) -> bytes:
        """See ``Disk``."""
        return path.read_bytes()

    def replace(self, path: Path, content: bytes) -> None:
        """See ``Disk``."""
        # The path may be a link to another disk, which a restart reads.
        path = Path(os.path.realpath(path))
        # Always the same name, so the next write overwrites a file that a crash left.
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
        # The rename is on disk only after its folder is synced.
        sync_folder(path.parent)

    def rename(self, path: Path, to: Path) -> None:
        """See ``Disk``."""
        path.replace(to)


def sync_folder(path: Path) -> None:
    """Return once the names of files in a folder are on disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
