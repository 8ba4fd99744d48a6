"""Caches folders that are expensive to make; a folder appears when it is complete.

A folder is filled beside its final place and renamed when it is complete, under a lock between
processes. A second process waits and then finds the complete folder. The next process that fills a
folder removes the remains of killed processes.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kafka_lab.waiting import POLL_S
from sidecar.errors import ClusterError

_PARTIAL = "partial-"


@asynccontextmanager
async def filling(target: Path) -> AsyncIterator[Path | None]:
    """Provide a folder to fill; it becomes ``target`` if the body succeeds.

    Yields:
        The folder, or None if ``target`` exists already. While another process fills the folder,
        this waits; the caller sets a deadline.

    Raises:
        ClusterError: the folder can't be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(target.parent / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ClusterError(f"{target.parent} can't be written: {error}") from error
    try:
        await _take(lock)
        partial = _new_partial(target)
        try:
            yield partial
            if partial is not None:
                partial.rename(target)
        finally:
            if partial is not None:
                shutil.rmtree(partial, ignore_errors=True)
    finally:
        os.close(lock)


def _new_partial(target: Path) -> Path | None:
    """Return a folder to fill, or None if the target exists; the caller has the lock."""
    if target.is_dir():
        return None
    # This process has the lock, so the processes that left these folders are dead.
    for stale in target.parent.glob(f"{_PARTIAL}*"):
        shutil.rmtree(stale)
    return Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=target.parent))


async def _take(lock: int) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(POLL_S)
        else:
            return
