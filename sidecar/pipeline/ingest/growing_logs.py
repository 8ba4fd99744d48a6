"""Log files that grow, are renamed and packed: which is which, and their whole lines.

A file is known by its first bytes, not by its name or inode: the first line has the time in
milliseconds, the connection and its correlation id, so no two files begin alike, and a file that is
renamed, copied or packed keeps its beginning. How many bytes that is, up to 1,024, is part of the
name, since a file may be seen when it is still shorter.

Only whole lines are there. What follows the last line end is left for later, unless the file is
packed, and so done with.

Example: ``kafka-request.log`` is first seen with 700 bytes, the head ``700:52a1...``. It grows to
100 MB and is packed to ``kafka-request.log.1.gz``: its first 700 bytes say that it is the same one.

A packed file can't be read from the middle. It is unpacked once to note where some of its lines
begin and their times, one in 256 KiB; batches end at those.

Source: log4j's RollingFileAppender and DailyRollingFileAppender rename; logrotate may copy and
truncate, or pack.
"""

import gzip
import hashlib
import os
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import BufferedIOBase
from pathlib import Path
from typing import Final, Self
from zoneinfo import ZoneInfo

HEAD: Final = 1024
"""Bytes that a file is known by, at most."""

_GZIP: Final = b"\x1f\x8b"
_PIECE: Final = 1 << 16
_LOOKED_FOR_TIME: Final = 1 << 22
"""Bytes in which a line with a time is searched: a line of 1,000 partitions has 100 kB."""

_MARK_EVERY: Final = 1 << 18
_TIME: Final = re.compile(rb"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)")


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file, which it is known by: its length in bytes, > 0, and digest."""

    length: int
    digest: str

    @classmethod
    def of(cls, first: bytes) -> Self | None:
        """Of a file that begins so; None while it has no whole line and is short."""
        length = HEAD if len(first) >= HEAD else first.rfind(b"\n") + 1
        return cls.cut(first, length) if length else None

    @classmethod
    def cut(cls, first: bytes, length: int) -> Self:
        """Of so many of a file's first bytes."""
        return cls(length, _digest(first[:length]))

    def begins(self, first: bytes) -> bool:
        """Whether a file that begins so is this one."""
        return len(first) >= self.length and _digest(first[: self.length]) == self.digest


def first_bytes(path: Path) -> bytes:
    """The first ``HEAD`` bytes of a file, unpacked.

    Raises:
        OSError: it can't be read.
        EOFError: it is packed, and not to its end yet.
    """
    with opened(path) as file:
        return file.read(HEAD)


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """A file to be read unpacked, whether it is packed is seen by its first bytes."""
    # Without O_NONBLOCK, opening a named pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as raw:
        packed = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        if not packed:
            yield raw
            return
        with gzip.open(raw) as unpacked:
            yield unpacked


def is_packed(path: Path) -> bool:
    """Whether a file is packed, by its first bytes.

    Raises:
        OSError: it can't be read.
    """
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


class Plain:
    """The lines of a file that isn't packed."""

    packed: Final = False

    def __init__(self, path: Path, zone: ZoneInfo) -> None:
        self._path = path
        self._zone = zone

    def __repr__(self) -> str:
        return f"Plain({str(self._path)!r})"

    def end(self) -> int:
        """Where its last whole line ends."""
        with self._path.open("rb", buffering=0) as file:
            at = file.seek(0, os.SEEK_END)
            while at > 0:
                begin = max(0, at - _PIECE)
                found = os.pread(file.fileno(), at - begin, begin).rfind(b"\n")
                if found >= 0:
                    return begin + found + 1
                at = begin
            return 0

    def line_from(self, at: int, end: int) -> int:
        """Where the first line begins that begins at this byte or later; ``end`` if none does."""
        if at == 0:
            return 0
        with self._path.open("rb", buffering=0) as file:
            return _line_from(file.fileno(), at, end)

    def time_ms(self, at: int, end: int) -> int | None:
        """When the first line was logged that begins at this byte or later and has a time."""
        with self._path.open("rb", buffering=0) as file:
            begin = _line_from(file.fileno(), at, end) if at else 0
            stop = min(end, begin + _LOOKED_FOR_TIME)
            while begin < stop:
                time = line_time_ms(os.pread(file.fileno(), 40, begin), self._zone)
                if time is not None:
                    return time
                begin = _line_from(file.fileno(), begin + 1, end)
        return None


class Packed:
    """The lines of a packed file: where some begin, and when they were logged."""

    packed: Final = True

    def __init__(self, path: Path, zone: ZoneInfo) -> None:
        """Unpacks all of it.

        Raises:
            OSError: it can't be read.
            EOFError: it is not packed to its end yet.
        """
        self._path = path
        self._places: list[int] = []
        self._times: list[int] = []
        self._size = 0
        next_at = 0
        with opened(path) as file:
            for line in file:
                if self._size >= next_at:
                    time = line_time_ms(line[:40], zone)
                    if time is not None:
                        self._places.append(self._size)
                        self._times.append(time)
                        next_at = self._size + _MARK_EVERY
                self._size += len(line)

    def __repr__(self) -> str:
        return f"Packed({str(self._path)!r})"

    def end(self) -> int:
        """Where it ends."""
        return self._size

    def line_from(self, at: int, end: int) -> int:
        """Where the first noted line begins that begins at this byte or later, or ``end``."""
        found = bisect_left(self._places, at)
        return min(end, self._places[found]) if found < len(self._places) else end

    def time_ms(self, at: int, end: int) -> int | None:
        """When the first noted line was logged that begins at this byte or later."""
        found = bisect_left(self._places, at)
        if found == len(self._places) or self._places[found] >= end:
            return None
        return self._times[found]


def lines_of(path: Path, zone: ZoneInfo) -> Plain | Packed:
    """A file's lines.

    Raises:
        OSError: it can't be read.
        EOFError: it is packed, and not to its end yet.
    """
    try:
        return Packed(path, zone) if is_packed(path) else Plain(path, zone)
    except zlib.error as error:
        raise OSError(0, f"damaged: {error}", str(path)) from error


def line_time_ms(line: bytes, zone: ZoneInfo) -> int | None:
    """When a line was logged.

    Returns:
        Milliseconds since 1970, UTC; None when the line doesn't begin with a time.
    """
    found = _TIME.match(line)
    if found is None:
        return None
    try:
        time = datetime.fromisoformat(found[1].decode().replace(",", "."))
    except ValueError:
        return None
    return int(time.replace(tzinfo=zone).timestamp() * 1000)


def _line_from(descriptor: int, at: int, end: int) -> int:
    at -= 1
    while at < end:
        piece = os.pread(descriptor, min(_PIECE, end - at), at)
        if not piece:
            return end
        found = piece.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(piece)
    return end


def _digest(first: bytes) -> str:
    return hashlib.blake2b(first, digest_size=8).hexdigest()
