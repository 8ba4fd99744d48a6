"""Writes observations to the history without delaying a poll.

Observations wait in a short queue, and a thread writes them one at a time. If the queue is full, or
an observation can't be written, the observation is lost and counted. The log shows when losses
begin and end.

Example: the disk hangs for five minutes while polls come every minute. One observation is being
written and three wait; the oldest waiting one is dropped for a new one. Then writing continues.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.history.folder import Folder
from sidecar.history.volume_line import to_line
from sidecar.threads import OwnThreads
from sidecar.volumes import Observation, Reading

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 3
"""The length of the queue. An observation of 12,000 volumes takes 3 MB of memory."""


@dataclass(slots=True)
class Counts:
    """Counts of observations.

    Attributes:
        written: how many are in a file.
        lost: how many were dropped.
    """

    written: int = 0
    lost: int = 0


class _Trouble:
    """A problem that may last for a while; it is logged when it begins and when it ends."""

    __slots__ = ("_is_on", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_on = False

    def begins(self, why: str) -> None:
        if not self._is_on:
            _log.warning("%s: %s", self._what, why)
        self._is_on = True

    def ends(self) -> None:
        if self._is_on:
            _log.info("%s: this is over", self._what)
        self._is_on = False


class History:
    """Writes a history.

    Attributes:
        folder: the folder of the history.
        counts: how many observations were written and lost.
    """

    def __init__(self, folder: Folder, wall: Callable[[float], float]) -> None:
        """Write nothing yet. ``wall`` converts steady seconds to epoch seconds."""
        self.folder = folder
        self.counts = Counts()
        self._wall = wall
        self._waiting: deque[tuple[float, Observation]] = deque()
        self._news = asyncio.Event()
        self._lock = asyncio.Lock()
        self._threads = OwnThreads("history")
        self._losing = _Trouble(f"the volume history in {folder.path} loses observations")
        self._untidy = _Trouble(f"the volume history in {folder.path} is not packed or bounded")
        self._is_bounded = False
        self._is_placed = False
        self._cluster_id: str | None = None

    def record(self, observation: Observation) -> None:
        """Queue an observation. A partial one belongs to the cluster that was named last."""
        if observation.membership is not None and observation.membership.cluster_id is not None:
            self._cluster_id = observation.membership.cluster_id
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self.counts.lost += 1
            self._losing.begins("the disk does not keep up")
        self._waiting.append((self._wall(observation.observed_at), observation))
        self._news.set()

    async def run(self) -> None:
        """Write observations until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write the queued observations."""
        # A write in a thread can't be cancelled, so the holder of its lock is not cancelled either.
        await asyncio.shield(asyncio.create_task(self._flush(), name="history"))

    async def leave(self, timeout_s: float) -> None:
        """Write the queued observations within a time limit; stop compressing."""
        self.folder.stop()
        try:
            async with asyncio.timeout(timeout_s):
                await self.flush()
        except TimeoutError:
            _log.warning("the volume history in %s is left behind", self.folder.path)

    async def _flush(self) -> None:
        async with self._lock:
            while self._waiting:
                observed_s, observation = self._waiting.popleft()
                try:
                    await self._threads.call(self._write, observation, observed_s)
                except Exception as error:  # noqa: BLE001 - no history is worth the daemon
                    self.counts.lost += 1
                    self._losing.begins(_describe(error))
                else:
                    self.counts.written += 1
                    self._losing.ends()
                # Also if it is lost: on a full disk, the bound makes space.
                await self._tidy(observed_s)

    def _write(self, observation: Observation, observed_s: float) -> None:
        if not self._is_placed:
            self._is_placed = True
            _warn_of_data_volume(self.folder, observation)
        line = to_line(observation, self.folder.origin, observed_s, self._cluster_id)
        self.folder.append(line, observed_s)

    async def _tidy(self, observed_s: float) -> None:
        try:
            await self._threads.call(self.folder.tidy, observed_s)
        except Exception as error:  # noqa: BLE001 - no history is worth the daemon
            self._untidy.begins(_describe(error))
            return
        self._untidy.ends()
        if self.folder.removed and not self._is_bounded:
            self._is_bounded = True
            _log.info(
                "the volume history in %s has reached its bound: the oldest hours are removed from"
                " now on",
                self.folder.path,
            )


def _describe(error: Exception) -> str:
    return getattr(error, "strerror", None) or repr(error)


def _warn_of_data_volume(folder: Folder, observation: Observation) -> None:
    """Warn about a history on a data volume, because it would fill the volume that it watches."""
    try:
        device = folder.path.stat().st_dev
        sizes = os.statvfs(folder.path)
    except OSError:
        return
    total_bytes = sizes.f_blocks * sizes.f_frsize
    for answer in observation.answers.values():
        for volume in answer.volumes if isinstance(answer, Reading) else ():
            # Compare the size too, because the path may be a different file system in the
            # container.
            if volume.total_bytes == total_bytes and _device(volume.log_dir) == device:
                _log.warning(
                    "the volume history in %s is on the volume of broker %d's log dir %s:"
                    " SIDECAR_HISTORY_DIR belongs on another",
                    folder.path,
                    volume.broker_id,
                    volume.log_dir,
                )
                return


def _device(path: str) -> int | None:
    try:
        return Path(path).stat().st_dev
    except OSError:
        return None
