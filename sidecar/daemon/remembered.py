"""Reads the state of an earlier run at the start, and starts without it while it can't be read.

A thread reads the file, again after ``RETRY_S`` if that fails. After ``DEADLINE_S`` the daemon
listens and polls without the state, and takes it over once it is read (``Board.take_over``). Until
then it writes no state, and gives readers no answer that may release what the state throttles
(``Board.withheld``). A file that can't be read for the validity is set aside like a damaged one.

Example: NFS hangs for a minute. The daemon listens after 3 s. All brokers are active and have
space, so it answers 1.0. The operator's override of before applies again after the minute.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from sidecar.control.board import PersistedState
from sidecar.daemon.start_files import check_state_folder
from sidecar.errors import SidecarError
from sidecar.state import Damaged, StateFile
from sidecar.threads import OwnThreads

_log = logging.getLogger(__name__)

DEADLINE_S: Final = 3.0
RETRY_S: Final = 1.0

Late = Callable[[], Awaitable[PersistedState | None]]
"""Returns the state once the disk answers; None if there is none that can be used."""


async def remembered(file: StateFile, now: float) -> tuple[PersistedState | None, Late | None, str]:
    """Read the state; if that takes too long, return a function that returns it later.

    Args:
        file: the state file.
        now: epoch seconds, which the steady clock equals at the start.

    Returns:
        The state, that function, and why it is not read yet; None, or "", if it is read.

    Raises:
        SettingsError: the folder of the file does not exist, or the file is none.
    """

    def read() -> PersistedState | Damaged | None:
        check_state_folder(file.path)
        return file.load(now)

    problem = "its disk does not answer"
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + file.rules.validity_s

    async def read_at_last() -> PersistedState | Damaged | None:
        nonlocal problem
        while True:
            try:
                return await OwnThreads("state file").call(read)
            except OSError as error:
                # The file may be whole, as after a stale handle of NFS.
                problem = error.strerror or str(error)
                if loop.time() > give_up_at:
                    return file.set_aside(f"it can't be read: {problem}")
                await asyncio.sleep(RETRY_S)

    reading = asyncio.ensure_future(read_at_last())
    await asyncio.wait({reading}, timeout=DEADLINE_S)
    if reading.done():
        return _usable(reading.result()), None, ""

    async def late() -> PersistedState | None:
        try:
            return _usable(await asyncio.shield(reading))
        except SidecarError as error:
            _log.error("%s; the sidecar continues without it", error)
            return None

    unread = f"the state file {file.path} is not read yet: {problem}"
    _log.error("%s; the sidecar starts without it, and takes it over once it is read", unread)
    return None, late, unread


def _usable(loaded: PersistedState | Damaged | None) -> PersistedState | None:
    if isinstance(loaded, Damaged):
        _log.error("%s; the sidecar starts without it", loaded.problem)
        return None
    return loaded
