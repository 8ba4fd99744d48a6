"""Temporary folders that their owner's death frees: made, locked, and swept by the next start.

A folder belongs to the process that holds a lock (flock) on it. The kernel drops the lock when that
process ends, however it ends, so a folder that can be locked is stale: its owner is dead. No
process id is compared, so neither a reused id nor another container's ids can mislead. Folders of
other users are never touched.

Example: two demos side by side hold a lock each, and neither's sweep can take the other's folder;
after kill -9 of one the next start removes that one's folder.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from kafka_lab.closing import Closing

PREFIX = "throttle-sidecar-cluster-"


class OwnedFolder(Closing):
    """A new temporary folder, removed at the end, or by the next owner's start."""

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
            # Another start's sweep took it in the instant before it was locked.
        self.path = path
        self._lock_fd = fd

    def close(self) -> None:
        """Remove the folder and give up the lock; more than once is harmless."""
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
            # Not ignoring errors would let one odd file stop a start that doesn't need its space.
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                removed.append(path)
        finally:
            os.close(fd)
    return tuple(removed)


def _lock(path: Path) -> int | None:
    """The descriptor that holds the folder's lock; None if it is another's, gone, or not ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen = os.fstat(fd)
        # The lock is worth something only on the folder that still has this name.
        if seen.st_uid == os.geteuid() and os.path.samestat(seen, path.stat()):
            return fd
    except OSError:
        pass
    os.close(fd)
    return None
