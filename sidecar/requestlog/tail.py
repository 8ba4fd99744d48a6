r"""Follows a log file that another process writes and rotates, and returns its whole lines.

``Tail.read`` reads once, at most ``read_bytes``. ``follow`` calls it again and again, in a thread,
because a disk can delay any read. If the file exists at the start, it is followed from its end. A
file that appears later is read from its beginning.

After a rotation by rename, the old file stays open until it has been read to its end and the new
one has bytes. Up to ``most_files`` stay open if files are rotated faster than they are read. After
a truncation, the file is read from its beginning. A line is returned when its end has been read. A
line longer than ``longest_line`` is dropped. Dropped bytes and lines are counted.

Memory is bounded: the bytes of one read, their lines, and one line that has no end yet.

Example: a file contains ``a\nb``. The first line is ``a``. After ``c\n`` is appended, the next line
is ``bc``.

Two cases go unnoticed: a file that appears and disappears between two reads (250 ms apart if there
is nothing to read), and a file that is truncated and then grows beyond the old position. In the
second case the first line is incomplete, and ``parse`` reports it.
"""

import asyncio
import os
import stat
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from sidecar.requestlog.line_splitter import LineSplitter
from sidecar.requestlog.tail_read import TailCounts, TailRead, TailSettings
from sidecar.threads import OwnThreads

T = TypeVar("T")


@dataclass(slots=True)
class _File:
    """An open file, and the position up to which it has been read."""

    descriptor: int
    identity: tuple[int, int]
    position: int

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def close(self) -> None:
        os.close(self.descriptor)


class Tail:
    """Reads the lines that are appended to a file; one reader at a time.

    Args:
        path: the log file; it need not exist yet.
        settings: how much is read and kept.
        from_start: whether a file that already exists is read from its beginning.
    """

    def __init__(
        self, path: Path, settings: TailSettings | None = None, *, from_start: bool = False
    ) -> None:
        self._path = path
        self._settings = settings or TailSettings()
        self._from_start = from_start
        self._splitter = LineSplitter(self._settings.longest_line)
        self._files: deque[_File] = deque()
        self._counts = TailCounts()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def counts(self) -> TailCounts:
        """The current counts."""
        skipped_bytes = self._counts.dropped_bytes
        return replace(
            self._counts,
            dropped_lines=self._splitter.dropped_lines,
            dropped_bytes=skipped_bytes + self._splitter.dropped_bytes,
        )

    @property
    def idle_s(self) -> float:
        """Seconds until the next read if there is nothing new."""
        return self._settings.idle_s

    def read(self) -> TailRead:
        """Reads once. If the file can't be read, the result contains the failure."""
        try:
            with self._lock:
                return self._read()
        finally:
            self._release()

    def close(self) -> None:
        """Closes the files, now or at the end of a read that another thread has begun."""
        self._closed = True
        self._release()

    def _release(self) -> None:
        # The last of read() and close() closes the files: a descriptor must not be closed while a
        # thread reads it.
        if self._closed and self._lock.acquire(blocking=False):
            try:
                while self._files:
                    self._files.popleft().close()
            finally:
                self._lock.release()

    def _read(self) -> TailRead:
        if self._closed:
            return TailRead(there=False)
        _, missed = _tried(self._open_new_file, None)
        # Open files are read to their end, even if the path can no longer be opened.
        lines, stuck = _tried(self._read_piece, list[bytes]())
        self._counts.lines += len(lines)
        behind, unmeasured = _tried(self._behind, 0)
        stuck = unmeasured or stuck
        # A file that can't be read is tried again after idle_s, not at once.
        more = stuck is None and behind > 0
        return TailRead(tuple(lines), more, behind, stuck or missed, bool(self._files))

    def _open_new_file(self) -> None:
        """Opens the file at the path, unless it is the newest open file."""
        newest = self._files[-1] if self._files else None
        try:
            status = self._path.stat()
            if newest is not None and newest.identity == (status.st_dev, status.st_ino):
                return
            opened = _open(self._path)
        except FileNotFoundError:
            # There is no file now, so all of a later file is new.
            self._from_start = True
            return
        if newest is None and not self._from_start:
            try:
                opened.position = opened.size()
                last = os.pread(opened.descriptor, 1, max(0, opened.position - 1))
            except OSError:
                opened.close()
                raise
            if opened.position and last != b"\n":
                self._splitter.skip()
        self._files.append(opened)

    def _catch_up(self) -> None:
        """Closes empty files between others, and drops the oldest bytes if too many are unread."""
        for file in tuple(self._files)[1:-1]:
            if not file.size():
                self._files.remove(file)
                file.close()
        while len(self._files) > 1 and (
            len(self._files) > self._settings.most_files
            or self._behind() > self._settings.most_behind
        ):
            oldest = self._files.popleft()
            self._counts.dropped_files += 1
            self._counts.dropped_bytes += max(0, oldest.size() - oldest.position)
            self._splitter.restart()
            oldest.close()
        behind = self._behind()
        if behind > self._settings.most_behind:
            # Keep half of the maximum, so that the next read does not have to drop again.
            skipped = behind - self._settings.most_behind // 2
            self._files[0].position += skipped
            self._counts.dropped_bytes += skipped
            self._splitter.skip()

    def _read_piece(self) -> list[bytes]:
        self._catch_up()
        if not self._files:
            return []
        file = self._files[0]
        piece = os.pread(file.descriptor, self._settings.read_bytes, file.position)
        if piece:
            file.position += len(piece)
            self._counts.bytes += len(piece)
            return self._splitter.split_piece(piece)
        if file.size() < file.position:
            self._splitter.restart()
            file.position = 0
        elif any(each.size() for each in tuple(self._files)[1:]):
            # The writer has opened the next file, so it writes no more to this one. While the next
            # one is empty, this is not known: logrotate makes it, and the broker opens it later.
            self._files.popleft().close()
            return self._splitter.rest()
        return []

    def _behind(self) -> int:
        return sum(max(0, file.size() - file.position) for file in self._files)


def _tried(step: Callable[[], T], otherwise: T) -> tuple[T, str | None]:
    """Return the result of a step, and None; or the other value, and why the step failed."""
    try:
        return step(), None
    except OSError as error:
        return otherwise, error.strerror or str(error)


def _open(path: Path) -> _File:
    # Without O_NONBLOCK, opening a named pipe would block until a writer opens it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
    except OSError:
        os.close(descriptor)
        raise
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file")
    return _File(descriptor, (status.st_dev, status.st_ino), 0)


THREADS: Final = OwnThreads("request log")

Run = Callable[[Callable[[], TailRead]], Awaitable[TailRead]]
"""Runs a function that may wait for a disk, outside the event loop."""


async def follow(tail: Tail, run: Run = THREADS.call) -> AsyncGenerator[TailRead, None]:
    """Yields the results of ``tail.read`` until cancelled, and then closes the tail.

    It reads when the caller asks for the next result, and not ahead. Use ``contextlib.aclosing``,
    and read the tail nowhere else.
    """
    try:
        while True:
            read = await run(tail.read)
            yield read
            if not read.more:
                await asyncio.sleep(tail.idle_s)
    finally:
        tail.close()
