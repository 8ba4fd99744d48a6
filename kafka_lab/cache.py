"""What is made once and cached: folders that appear complete or not at all.

A folder is filled beside its final place and renamed when complete, under a lock between processes:
who comes second waits and finds it done. What a killed process left half-filled is removed by the
next one that fills.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from kafka_lab.waiting import POLL_S
from sidecar.errors import ClusterError

_PARTIAL = "partial-"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where it is cached: ``throttle-sidecar`` in the XDG base directory for caches."""
    base = environ.get("XDG_CACHE_HOME", "")
    # The specification says that a relative path is to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "throttle-sidecar"


@asynccontextmanager
async def filling(target: Path) -> AsyncIterator[Path | None]:
    """A folder to fill, which becomes ``target`` if the body ends well.

    Yields:
        The folder; None when ``target`` is there already, and there is nothing to do. The caller
        has the deadline: another process that fills is waited for.

    Raises:
        ClusterError: it can't be written.
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
                _put(partial, target)
        finally:
            if partial is not None:
                shutil.rmtree(partial, ignore_errors=True)
    finally:
        os.close(lock)


def _put(partial: Path, target: Path) -> None:
    partial.rename(target)


def _new_partial(target: Path) -> Path | None:
    """Under the lock: a folder to fill, or None when there is nothing to do."""
    if target.is_dir():
        return None
    # The lock is ours, so who left these is dead.
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
