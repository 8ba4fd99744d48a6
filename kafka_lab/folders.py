"""Temporary folders that are removed when their owner dies, at the latest by the next start.

A folder belongs to the process that has a lock (flock) on it. The kernel releases the lock when the
process ends, for any reason. So a folder that can be locked is stale, because its owner is dead. No
process ids are compared, so a reused id or the ids of another container can't mislead. Folders of
other users are never touched.

Example: two demos at the same time have a lock each, and neither can sweep the folder of the other.
After kill -9 of one demo, the next start removes its folder.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from kafka_lab.closing import Closing

PREFIX = "throttle-sidecar-cluster-"


class OwnedFolder(Closing):
    """A new temporary folder, removed at the end, or by the start of the next owner."""

    __slots__ = ("_lock_fd", "path")

    def __init__(self, parent: Path | None = None) -> None:
        """Sweep the stale folders in ``parent`` (else the system's), then make a new one."""
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        sweep(parent)
        while True:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            fd = _lock(path)
            if fd is not None:
                break
            # Another start has swept the folder before it was locked.
        self.path = path
        self._lock_fd = fd

    def close(self) -> None:
        """Remove the folder and release the lock; it can be called more than once."""
        if self._lock_fd < 0:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock_fd)
        self._lock_fd = -1


def sweep(parent: Path) -> tuple[Path, ...]:
    """Remove the folders in ``parent`` whose owners are dead.

    Returns:
        The folders that were removed.
    """
    removed = []
    for path in sorted(parent.glob(PREFIX + "*")):
        fd = _lock(path)
        if fd is None:
            continue
        try:
            # Ignore errors, because a start must not fail if it can't remove another folder.
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                removed.append(path)
        finally:
            os.close(fd)
    return tuple(removed)


def _lock(path: Path) -> int | None:
    """Lock a folder; None if another process has the lock, or another user owns the folder."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen = os.fstat(fd)
        # The lock counts only if the path still leads to the locked folder.
        if seen.st_uid == os.geteuid() and os.path.samestat(seen, path.stat()):
            return fd
    except OSError:
        pass
    os.close(fd)
    return None
