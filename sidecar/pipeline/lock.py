"""One run at a time in a folder of tables.

On this machine's disk the lock ends with the process that holds it, however it ends. In HDFS and in
object storage it is a file that says who holds it: after a kill it has to be removed by hand, since
nobody there can tell a killed run from a slow one.

Example: a second run in the same folder raises ``LockedError``, which names the first.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sidecar.errors import SidecarError
from sidecar.pipeline.files import Files

_NAME: Final = "_lock"


class LockedError(SidecarError):
    """Another run writes to the same folder."""


class UnwritableError(SidecarError):
    """There can be no folder of tables, or nothing can be written there."""


@contextmanager
def locked(root: str, files: Files, local: Path | None, holder: str) -> Iterator[None]:
    """Holds the lock of a folder.

    Args:
        root: the folder.
        files: where it is.
        local: where it is on this machine's disk; None when it isn't.
        holder: who holds it, for a person.

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
    try:
        local.mkdir(parents=True, exist_ok=True)
        handle = os.open(local / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        text = f"nothing can be written to {root}: {error.strerror}; give --out another folder"
        raise UnwritableError(text) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            name = os.pread(handle, 1000, 0).decode(errors="replace")
            text = f"{name} writes to {root}: wait until it has ended"
            raise LockedError(text) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, holder.encode(), 0)
        yield
    finally:
        os.close(handle)
