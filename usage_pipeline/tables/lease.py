"""A lease, so that only one run, and only one stream, at a time works on a folder of tables.

A run renews its lease every two seconds. If a lease is not renewed for ten seconds, its run was
killed, and the next run takes it over. The waiting run measures the ten seconds by its own clock.
It does not wait for a process of this machine that has ended.

The lease only saves work and names the running writer. It does not protect the tables: two runs can
both have it after a machine was paused, but only one of them can commit (``commits``).

Example: a second run in the same folder raises ``LockedError``, which names the first.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from sidecar.errors import SidecarError
from usage_pipeline.tables.folder import Folder

BATCH: Final = "_lease.json"
STREAM: Final = "_stream_lease.json"
"""The leases of a folder. A run and a stream write other tables, so each has its own."""
RENEWED_S: Final = 2.0
STALE_S: Final = 10.0
_STEP_S: Final = 0.5


class LockedError(SidecarError):
    """Another run writes to the same folder."""


class _Lease(msgspec.Struct, frozen=True):
    holder: str
    host: str
    process: int
    renewed: int = 0


@contextmanager
def leased(
    folder: Folder, holder: str, renewed_s: float = RENEWED_S, *, name: str = BATCH
) -> Iterator[None]:
    """Hold the lease of a folder.

    Args:
        folder: the folder of the tables.
        holder: a description of the run.
        renewed_s: the interval of renewals, seconds.
        name: the lease, BATCH or STREAM.

    Raises:
        LockedError: another run holds the lease.
        FolderError: the folder is not writable.
    """
    refuse_leased(folder, name=name)
    own = _Lease(holder, socket.gethostname(), os.getpid())
    if not folder.create(name, msgspec.json.encode(own)):
        raise LockedError(
            f"another run on {folder} has started at the same time; wait until it has ended"
        )
    ended = threading.Event()
    renewal = threading.Thread(
        target=_renew, args=(folder, name, own, ended, renewed_s), daemon=True
    )
    renewal.start()
    try:
        yield
    finally:
        ended.set()
        renewal.join()
        folder.remove(name)


def refuse_leased(
    folder: Folder, sleep: Callable[[float], None] = time.sleep, *, name: str = BATCH
) -> None:
    """Check that no other run writes to a folder, and wait while that is unknown.

    This removes the lease of a killed run.

    Raises:
        LockedError: another run holds its lease.
    """
    text = folder.read(name)
    if text is None:
        return
    seen = _decoded(text)
    if seen is not None and not _is_dead(seen):
        for _ in range(round(STALE_S / _STEP_S)):
            sleep(_STEP_S)
            now = folder.read(name)
            if now is None:
                return
            if now != text:
                holder = (_decoded(now) or seen).holder
                raise LockedError(f"{holder} writes to {folder}; wait until it has ended")
    folder.remove(name)


def _renew(
    folder: Folder, name: str, own: _Lease, ended: threading.Event, renewed_s: float
) -> None:
    number = 0
    while not ended.wait(renewed_s):
        number += 1
        renewed = msgspec.structs.replace(own, renewed=number)
        # The next renewal may succeed, and commits are safe without a lease.
        with suppress(Exception):
            folder.replace(name, msgspec.json.encode(renewed))


def _decoded(text: bytes) -> _Lease | None:
    try:
        return msgspec.json.decode(text, type=_Lease)
    except ValueError:
        return None


def _is_dead(lease: _Lease) -> bool:
    """Whether the holder was a process of this machine that has ended."""
    if lease.host != socket.gethostname():
        return False
    try:
        os.kill(lease.process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
