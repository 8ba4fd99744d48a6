"""One writer at a time in a folder of tables, said before the work is done twice.

A run renews its lease every two seconds, for as long as it lives; a lease that has not been renewed
for ten is of a run that was killed, and the next one takes it over. Ten seconds are measured by who
waits, so that no two clocks are compared. Of a process of this machine that is gone nobody waits.

The lease spares work and says who is at it; it is not what keeps tables right. Two runs that both
have it, as after a machine that stood still, can't both commit (``commits``).

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

_NAME: Final = "_lease.json"
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
def leased(folder: Folder, holder: str, renewed_s: float = RENEWED_S) -> Iterator[None]:
    """Holds the lease of a folder.

    Args:
        folder: with the tables.
        holder: who it is, for a person.
        renewed_s: how often it is renewed.

    Raises:
        LockedError: another run holds it.
        FolderError: nothing can be written there.
    """
    refuse_leased(folder)
    own = _Lease(holder, socket.gethostname(), os.getpid())
    if not folder.create(_NAME, msgspec.json.encode(own)):
        raise LockedError(f"another run on {folder} has begun this moment: wait until it has ended")
    ended = threading.Event()
    renewal = threading.Thread(target=_renew, args=(folder, own, ended, renewed_s), daemon=True)
    renewal.start()
    try:
        yield
    finally:
        ended.set()
        renewal.join()
        folder.remove(_NAME)


def refuse_leased(folder: Folder, sleep: Callable[[float], None] = time.sleep) -> None:
    """Refuses a folder that another run writes to now; waits where that is not known yet.

    The lease of a run that was killed is removed.

    Raises:
        LockedError: another run holds its lease.
    """
    text = folder.read(_NAME)
    if text is None:
        return
    seen = _decoded(text)
    if seen is not None and not _is_dead(seen):
        for _ in range(round(STALE_S / _STEP_S)):
            sleep(_STEP_S)
            now = folder.read(_NAME)
            if now is None:
                return
            if now != text:
                holder = (_decoded(now) or seen).holder
                raise LockedError(f"{holder} writes to {folder}: wait until it has ended")
    folder.remove(_NAME)


def _renew(folder: Folder, own: _Lease, ended: threading.Event, renewed_s: float) -> None:
    number = 0
    while not ended.wait(renewed_s):
        number += 1
        renewed = msgspec.structs.replace(own, renewed=number)
        # A store that fails now may be back at the next one; commits are safe without a lease.
        with suppress(Exception):
            folder.replace(_NAME, msgspec.json.encode(renewed))


def _decoded(text: bytes) -> _Lease | None:
    try:
        return msgspec.json.decode(text, type=_Lease)
    except msgspec.MsgspecError:
        return None


def _is_dead(lease: _Lease) -> bool:
    """Whether its process was one of this machine's, and is gone."""
    if lease.host != socket.gethostname():
        return False
    try:
        os.kill(lease.process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
