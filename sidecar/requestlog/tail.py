r"""Following a log file that another process writes and rotates: its whole lines, as they come.

``read`` reads once, takes at most ``read_bytes`` and never waits; ``follow`` calls it for ever, in
a thread, because a disk can make any read wait. A file that is there at the start is followed from
its end, one that appears later from its beginning.

Rotation by rename: the old file stays open until it is read to its end, and so do ``most_files``
when they are rotated faster than read. Truncation: read again from the beginning. A line is
returned when its end is there; a line longer than ``longest_line`` is dropped as a whole. What has
to be dropped is counted, in bytes and lines.

Memory is bounded: ``read_bytes`` and the lines made of them, and one line that is not whole yet.

Example: of a file ``a\nb`` the first line is ``a``; when ``c\n`` is appended, ``bc`` is next.

What can't be seen: a file that came and went between two reads (250 ms apart when there is nothing
to read), and a file that was truncated and has grown beyond where it was; the latter's first line
is torn, and ``parse`` reports it.
"""

import asyncio
import os
import stat
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from sidecar.requestlog.line_splitter import Cutter
from sidecar.requestlog.tail_read import TailCounts, TailRead, TailSettings


@dataclass(slots=True)
class _File:
    """An open file and where it was read to."""

    descriptor: int
    identity: tuple[int, int]
    position: int

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def close(self) -> None:
        os.close(self.descriptor)


class Tail:
    """Reads what a path's file gets; one reader at a time.

    Args:
        path: of the log file; it need not be there yet.
        settings: how much is read and retained.
        from_start: whether a file that is there already is read from its beginning.
    """

    __slots__ = (
        "_closed",
        "_counts",
        "_cutter",
        "_files",
        "_from_start",
        "_lock",
        "_path",
        "_settings",
    )

    def __init__(
        self, path: Path, settings: TailSettings | None = None, *, from_start: bool = False
    ) -> None:
        self._path = path
        self._settings = settings or TailSettings()
        self._from_start = from_start
        self._cutter = Cutter(self._settings.longest_line)
        self._files: deque[_File] = deque()
        self._counts = TailCounts()
        self._lock = threading.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"Tail({str(self._path)!r}, {len(self._files)} open)"

    @property
    def counts(self) -> TailCounts:
        """As of now."""
        skipped = self._counts.dropped_bytes
        return replace(
            self._counts,
            dropped_lines=self._cutter.dropped_lines,
            dropped_bytes=skipped + self._cutter.dropped_bytes,
        )

    @property
    def idle_s(self) -> float:
        """Seconds until the next read when there is nothing new."""
        return self._settings.idle_s

    def read(self) -> TailRead:
        """Reads once; a file that can't be read is a failure in the answer."""
        try:
            with self._lock:
                return self._read()
        finally:
            self._release()

    def close(self) -> None:
        """Closes the files; a read that is under way closes them when it ends."""
        self._closed = True
        self._release()

    def _release(self) -> None:
        # Whoever comes last closes: a descriptor must not be closed under a thread that reads it.
        if self._closed and self._lock.acquire(blocking=False):
            try:
                while self._files:
                    self._files.popleft().close()
            finally:
                self._lock.release()

    def _read(self) -> TailRead:
        if self._closed:
            return TailRead(there=False)
        missed = self._trying(self._notice)
        lines: list[bytes] = []
        # What is open is read to its end, even if the path can't be opened any more.
        stuck = self._trying(lambda: lines.extend(self._take()))
        self._counts.lines += len(lines)
        behind = self._behind()
        # A file that can't be read now is tried again after a while, not at once.
        more = stuck is None and (behind > 0 or len(self._files) > 1)
        return TailRead(tuple(lines), more, behind, stuck or missed, bool(self._files))

    def _trying(self, step: Callable[[], None]) -> str | None:
        try:
            step()
        except OSError as error:
            self._counts.failures += 1
            return error.strerror or str(error)
        return None

    def _notice(self) -> None:
        """Opens the path's file if it is another than the newest that is open."""
        newest = self._files[-1] if self._files else None
        try:
            found = self._path.stat()
            if newest is not None and newest.identity == (found.st_dev, found.st_ino):
                return
            opened = _open(self._path)
        except FileNotFoundError:
            # It was not there: what comes is new from its first byte on.
            self._from_start = True
            return
        if newest is None and not self._from_start:
            opened.position = opened.size()
            if opened.position and os.pread(opened.descriptor, 1, opened.position - 1) != b"\n":
                self._cutter.skip()
        elif newest is not None:
            self._counts.rotations += 1
        self._files.append(opened)

    def _catch_up(self) -> None:
        """Drops the oldest when too much is not read yet."""
        while len(self._files) > 1 and (
            len(self._files) > self._settings.most_files
            or self._behind() > self._settings.most_behind
        ):
            oldest = self._files.popleft()
            self._counts.dropped_files += 1
            self._counts.dropped_bytes += max(0, oldest.size() - oldest.position)
            self._cutter.restart()
            oldest.close()
        behind = self._behind()
        if behind > self._settings.most_behind:
            # Half of it, so that this does not come again at once.
            skipped = behind - self._settings.most_behind // 2
            self._files[0].position += skipped
            self._counts.dropped_bytes += skipped
            self._cutter.skip()

    def _take(self) -> list[bytes]:
        self._catch_up()
        if not self._files:
            return []
        file = self._files[0]
        piece = os.pread(file.descriptor, self._settings.read_bytes, file.position)
        if piece:
            file.position += len(piece)
            self._counts.bytes += len(piece)
            return self._cutter.cut(piece)
        if file.size() < file.position:
            self._counts.truncations += 1
            self._cutter.restart()
            file.position = 0
        elif len(self._files) > 1:
            # The writer opened the next one, so it is done with this one.
            self._files.popleft().close()
            return self._cutter.rest()
        return []

    def _behind(self) -> int:
        return sum(max(0, file.size() - file.position) for file in self._files)


def _open(path: Path) -> _File:
    # Without O_NONBLOCK, opening a named pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file")
    return _File(descriptor, (status.st_dev, status.st_ino), 0)


Run = Callable[[Callable[[], TailRead]], Awaitable[TailRead]]
"""Runs what may wait for a disk, away from the loop."""


async def follow(tail: Tail, run: Run = asyncio.to_thread) -> AsyncGenerator[TailRead, None]:
    """Every read, for ever; closes the tail at its end (use ``contextlib.aclosing``).

    Whoever iterates sets the pace: nothing is read ahead. Nobody else may read the tail.
    """
    try:
        while True:
            read = await run(tail.read)
            yield read
            if not read.more:
                await asyncio.sleep(tail.idle_s)
    finally:
        tail.close()
