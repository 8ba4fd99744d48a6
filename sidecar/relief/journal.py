"""The journal of deletions: a line before each step and after it, in a file for each day (UTC).

Each line is synced before the sidecar goes on, so that a step that was begun is always found. After
a kill, the line after a step is missing. The next start reads the first offsets of its partitions
and writes that line. A line that a kill cut off is ignored. A start removes the files of days that
are 90 days before it, and before the last line.

A third kind of line, "gain", says whether a volume had more available once the relief had to show
its effect.

Example: ``{"kind":"begin","step":"a1-7","at":1764370000.0,"cluster_id":"x","broker_id":1,
"log_dir":"/data","available_bytes":900,"deletions":[{"topic":"logs","partition":0,"leader":1,
"from_offset":100,"to_offset":200,"about_bytes":500}]}``.
"""

import asyncio
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from sidecar.state.disk import sync_folder
from sidecar.threads import OwnThreads
from sidecar.volumes import LogDir

KEPT_DAYS: Final = 90
MOST: Final = 1000
"""The most lines in memory, the newest."""

_NAME: Final = re.compile(r"relief-(\d{8})\.jsonl")
_THREADS: Final = OwnThreads("relief journal")
_YEAR_3000_S: Final = 32_503_680_000
"""A time from then on is damaged, and from the year 10000 on it can't be written as a date."""


class Deleted(msgspec.Struct, omit_defaults=True, frozen=True):
    """A deletion in a partition; first offset and failure are known after it."""

    topic: str
    partition: int
    leader: int
    from_offset: int
    to_offset: int
    about_bytes: int
    first_offset: int | None = None
    failure: str = ""
    topic_id: str = ""


class Entry(msgspec.Struct, omit_defaults=True, frozen=True):
    """A line. ``found`` says that a later start read the outcome of the step."""

    kind: Literal["begin", "end", "gain"]
    step: str
    at: Annotated[float, msgspec.Meta(ge=0, lt=_YEAR_3000_S)]
    cluster_id: str
    broker_id: int
    log_dir: str
    available_bytes: int
    why: str = ""
    deletions: tuple[Deleted, ...] = ()
    found: bool = False
    gained: bool | None = None

    @property
    def volume(self) -> LogDir:
        """The volume that was relieved."""
        return self.broker_id, self.log_dir


class Journal:
    """The lines of the last days.

    Attributes:
        entries: the newest ``MOST``, oldest first.
    """

    def __init__(self, folder: Path | None) -> None:
        """Start empty; None as the folder keeps lines in memory only, for a dry run."""
        self.entries: deque[Entry] = deque(maxlen=MOST)
        self._folder = folder

    @property
    def cluster_id(self) -> str | None:
        """The cluster of the last line; None without one."""
        return self.entries[-1].cluster_id if self.entries else None

    @property
    def open(self) -> list[Entry]:
        """The steps without a line after them."""
        ended = {entry.step for entry in self.entries if entry.kind == "end"}
        return [each for each in self.entries if each.kind == "begin" and each.step not in ended]

    def until(self, now_s: float) -> list[Entry]:
        """The lines up to a time, in epoch seconds, oldest first.

        A later one is of a clock that was ahead: it does not tell how long ago it was written.
        """
        return [each for each in self.entries if each.at <= now_s]

    def about(self, volume: LogDir, kind: str, now_s: float) -> list[Entry]:
        """The lines of a kind about a volume up to a time; see ``until``."""
        lines = self.until(now_s)
        return [each for each in lines if each.kind == kind and each.volume == volume]

    def load(self, now_s: float) -> None:
        """Read the lines, and remove old files; ``now_s`` in epoch seconds.

        Raises:
            OSError: the folder or a file can't be read.
        """
        if self._folder is None:
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        found = [path for path in self._folder.iterdir() if _NAME.fullmatch(path.name)]
        today = self._folder / _name(now_s)
        self.entries.clear()
        # Lines of a clock that was ahead must not displace newer ones from memory.
        for path in sorted(found, key=lambda path: (path <= today, path)):
            self.entries.extend(_lines(path))
        # Nor does a clock that is ahead now make a line old.
        last_s = max((each.at for each in self.entries), default=now_s)
        oldest = self._folder / _name(min(now_s, last_s) - KEPT_DAYS * 86_400)
        for path in found:
            if path < oldest:
                path.unlink(missing_ok=True)

    async def append(self, entry: Entry) -> None:
        """Write a line, and return once it is on disk.

        Raises:
            OSError: it could not be written.
            TimeoutError: by the caller's deadline; the disk may still write it.
        """
        try:
            if self._folder is not None:
                await _THREADS.call(_append, self._folder / _name(entry.at), entry)
        except asyncio.CancelledError:
            # The line will be there. A step that was not taken gets its end in the next round.
            self.entries.append(entry)
            raise
        self.entries.append(entry)


def _name(at_s: float) -> str:
    return time.strftime("relief-%Y%m%d.jsonl", time.gmtime(at_s))


def _lines(path: Path) -> Iterator[Entry]:
    for line in path.read_bytes().splitlines():
        try:
            yield msgspec.json.decode(line, type=Entry)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # A kill cut it off: nothing was deleted yet, or the next start reads the outcome.
            continue


def _append(path: Path, entry: Entry) -> None:
    line = msgspec.json.encode(entry) + b"\n"
    is_new = not path.exists()
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            line = b"\n" + line
        if os.write(file, line) < len(line):
            raise OSError(f"{path} could not be written completely")
        os.fsync(file)
    finally:
        os.close(file)
    if is_new:
        sync_folder(path.parent)
