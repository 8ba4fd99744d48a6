"""One run at a time in a folder of tables.

On this machine's disk the lock ends with the process that holds it, however it ends. In HDFS and in
object storage it is a file that says who holds it: after a kill it has to be removed by hand, since
nobody there can distinguish a killed run from a slow one. A folder that was made for a run which
left nothing in it is removed with its lock.

Example: a second run in the same folder raises ``LockedError``, which names the first.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sidecar.errors import SidecarError
from sidecar.pipeline.tables.files import Files

_NAME: Final = "_lock"


class LockedError(SidecarError):
    """Another run writes to the same folder."""


class UnwritableError(SidecarError):
    """There can be no folder of tables, or nothing can be written there."""


@contextmanager
def locked(root: str, files: Files, local: Path | None, holder: str) -> Iterator[None]:
    """Holds the lock of a folder.

    Raises:
        LockedError: another run holds it.
        UnwritableError: the folder can't be made or written to.
    """
    if local is None:
        path = f"{root.rstrip('/')}/{_NAME}"
        if not files.create(path, holder):
            raise LockedError(
                f"{files.read(path)} writes to {root}: wait until it has ended,"
                f" or remove {path} if it was killed"
            )
        try:
            yield
        finally:
            files.remove(path)
        return
    is_new = not local.exists()
    try:
        local.mkdir(parents=True, exist_ok=True)
        handle = os.open(local / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        text = f"nothing can be written to {root}: {error.strerror}; give --out another folder"
        raise UnwritableError(text) from error
    try:
        _hold(handle, root)
        os.ftruncate(handle, 0)
        os.pwrite(handle, holder.encode(), 0)
        try:
            yield
        finally:
            if is_new and all(one.name == _NAME for one in local.iterdir()):
                (local / _NAME).unlink()
                local.rmdir()
    finally:
        os.close(handle)


def refuse_locked(root: str, local: Path) -> None:
    """Refuses a folder that another run writes to now; nothing is written, and no lock is taken.

    Raises:
        LockedError: another run holds its lock.
    """
    try:
        handle = os.open(local / _NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        # There is none, or it can't be written to: whoever takes the lock gets the error.
        return
    try:
        _hold(handle, root)
    finally:
        os.close(handle)


def _hold(handle: int, root: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        name = os.pread(handle, 1000, 0).decode(errors="replace")
        raise LockedError(f"{name} writes to {root}: wait until it has ended") from error
    if os.fstat(handle).st_nlink == 0:
        # Its holder has ended since it was opened, and removed it.
        raise LockedError(f"another run on {root} has ended this moment: run it again")
