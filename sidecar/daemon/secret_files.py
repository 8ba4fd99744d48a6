"""Follows the files with secrets, certificates and keys, and reads them again when they change.

Every two seconds the sidecar compares the files' metadata, and at once after a refused login and
before it refuses a token. A volume of Kubernetes is followed through its symlinks: when ``..data``
is swapped, the files behind it are others. Changed files are read when two looks in a row see the
same, so that a certificate and its key are read together. They are checked before use: if one can't
be used, nothing changes, and the sidecar logs it once and continues with what it read before.
Connections that work stay. Of a settings file, only secrets and certificates are used. All files
are read in threads of their own, since a disk may hang.

Example: cert-manager replaces ``tls.crt`` and ``tls.key`` at 0 s. The look at 1 s sees that, the
look at 3 s reads both, and new connections use them.
"""

import asyncio
import logging
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.daemon.reload import Reload
from sidecar.errors import SidecarError
from sidecar.settings import Settings, read_again, secret_files
from sidecar.threads import OwnThreads

_log = logging.getLogger(__name__)

LOOK_S: Final = 2.0
DEADLINE_S: Final = 10.0
"""How long a look may take. After that the disk hangs, and no other look is begun until it ends."""

HURRY_S: Final = 0.5
"""How long a poll or a request waits for a look. If a disk hangs, later ones do not wait."""
SETTLED_S: Final = 0.1
"""How long changed files must have been the same for whoever waits; others wait for two looks."""

Stamps = Mapping[Path, object]
"""File -> what changes with its content; None if the file can't be found."""


def stamps_of(files: Iterable[Path]) -> Stamps:
    """Return what the system knows of each file."""
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> object:
    try:
        status = file.stat()
    except OSError:
        return None
    own = os.path.realpath(file), status.st_dev, status.st_ino
    if stat.S_ISDIR(status.st_mode):
        # Of a folder, the certificates count. Its own times change with any other file.
        return own, *map(_stamp, sorted(file.glob("*.crt")))
    # A change of owner or mode counts too, because the file may be readable now.
    return own, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@dataclass(frozen=True, slots=True)
class _Seen:
    """Changed files that were read.

    Attributes:
        settings: the settings that named the files.
        stamps: the files.
        apply: uses them; None if they can't be used.
        problem: why not.
    """

    settings: Settings
    stamps: Stamps
    apply: Callable[[], None] | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Look:
    """A look that a thread makes.

    Attributes:
        future: its result.
        began_at: when it began, by the loop's clock.
        settled: whether it waits for a second look that sees the same.
    """

    future: asyncio.Future[_Seen | None]
    began_at: float
    settled: bool


def _now() -> float:
    return asyncio.get_running_loop().time()


class SecretFiles:
    """The files of a running daemon.

    Args:
        reload: reads the files and uses them.
        stamps: the files as the daemon read them at its start.
    """

    def __init__(self, reload: Reload, stamps: Stamps) -> None:
        self._reload = reload
        self._used = stamps
        self._last = stamps
        self._problem = ""
        self._look: _Look | None = None
        self._threads = OwnThreads("files with secrets")

    async def run(self) -> None:
        """Follow the files until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look(settled=True)
            self._reload.credentials.tokens.log_end_of_former()

    async def look(self, *, settled: bool = False) -> None:
        """Look at the files, and use them if they have changed.

        Args:
            settled: whether changed files wait for a second look that sees the same. Otherwise
                a caller waits for the answer, at most ``HURRY_S``.
        """
        settings = self._reload.settings
        is_done = not secret_files(settings)
        while not is_done:
            look = self._look
            is_done = settled or look is None or not look.settled
            if look is None:
                call = self._threads.call(self._read, settings, settled)
                look = self._look = _Look(asyncio.ensure_future(call), _now(), settled)
            wait_s = DEADLINE_S if settled else max(0.0, look.began_at + HURRY_S - _now())
            await asyncio.wait({look.future}, timeout=wait_s)
            if not look.future.done():
                if settled:
                    self._stay(f"the files with secrets were not read within {DEADLINE_S:g} s")
                return
            if look is self._look:
                # The first of those who waited for this look.
                self._look = None
                if (seen := look.future.result()) is not None:
                    self._take(seen, settled=look.settled)

    def _read(self, settings: Settings, settled: bool) -> _Seen | None:
        files = secret_files(settings)
        stamps = stamps_of(files)
        before, self._last = self._last, stamps
        if stamps == self._used and not self._problem:
            return None
        if settled and stamps != before:
            return None
        if not settled:
            time.sleep(SETTLED_S)
        try:
            again = read_again(settings, self._reload.load)
            apply = self._reload.prepare(again, redial=False)
            seen = _Seen(settings, stamps, apply)
        except SidecarError as error:
            seen = _Seen(settings, stamps, None, "; ".join(str(error).splitlines()))
        # Files that changed meanwhile may be of two generations.
        return seen if stamps_of(files) == stamps else None

    def _take(self, seen: _Seen, *, settled: bool) -> None:
        if seen.settings is not self._reload.settings:
            return  # SIGHUP has read the files meanwhile
        if seen.apply is None:
            # In a hurry, the certificate may be there before its key.
            if settled:
                self._stay(seen.problem)
            return
        seen.apply()
        admin = seen.settings.kafka_admin
        mixed = () if admin is None else admin.settings_files
        changed = [
            f"the secrets in {file}" if file in mixed else str(file)
            for file, stamp in seen.stamps.items()
            if stamp != self._used.get(file)
        ]
        self._used = seen.stamps
        self._problem = ""
        _log.info("read again, for new connections: %s", ", ".join(changed) or "the same files")

    def _stay(self, problem: str) -> None:
        if problem != self._problem:
            _log.error(
                "%s; nothing was changed, and the sidecar continues with what it read before: "
                "correct the files, and it reads them again by itself",
                problem,
            )
        self._problem = problem
