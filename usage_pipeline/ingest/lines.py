r"""Splits a file into parts, and reads the complete lines of a part.

Several workers read a large file in parts. A part contains the lines that begin in it, and its last
line may end beyond it. Every line is therefore in exactly one part. A compressed file is one part,
and offsets refer to its uncompressed bytes. A line without an end is skipped and reported.

Example: with parts of 4 bytes, ``ab\ncd\nef\n`` has three parts: 0-3 with ``ab`` and ``cd``, 4-7
with ``ef``, and 8-8 without a line.
"""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Final, Protocol

from sidecar.requestlog.rejected import RejectedKind

BLOCK_BYTES: Final = 1 << 23
LONGEST_LINE: Final = 1 << 26
"""The longest line in bytes. A request with 10,000 partitions has a line of 2 MB."""
_LITTLE: Final = 1 << 16
"""How many bytes are read at once if a line's end is expected soon."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive complete lines; the file's last line may lack its newline.

    Attributes:
        offset: the position of the first byte in the uncompressed file.
        data: the lines; read-only.
    """

    offset: int
    data: memoryview


@dataclass(frozen=True, slots=True)
class Unread:
    """A range without readable lines.

    Attributes:
        offset: the position of the first byte in the uncompressed file.
        bytes: the length, as far as it is known.
        kind: the cause; "long" for a line that is too long.
        reason: the cause in words.
    """

    offset: int
    bytes: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is read at once.

    Attributes:
        block: bytes, above 0.
        longest_line: bytes, above 0; a line without an end after this length, plus at most a block,
            is skipped.
    """

    block: int = BLOCK_BYTES
    longest_line: int = LONGEST_LINE


def parts(size: int, most: int) -> list[tuple[int, int]]:
    """Return where the parts of a file begin and end.

    Args:
        size: the size of the file in bytes.
        most: the largest size of a part in bytes, above 0.
    """
    return [(start, min(start + most, size)) for start in range(0, size, most)]


def blocks(
    file: BufferedIOBase, start: int, end: int, sizes: Sizes = Sizes()
) -> Iterator[Block | Unread]:
    """Yield the lines that begin in a part of a plain file.

    Args:
        file: the file; its position is moved.
        start: the first byte of the part.
        end: the first byte after the part.
        sizes: how much to read at once.
    """
    position = start
    if start > 0:
        position = next_line(file, start - 1, min(sizes.block, _LITTLE))
        if position >= end:
            return
    file.seek(position)
    yield from _cut(file, position, end, sizes)


def unpacked_blocks(file: BufferedIOBase, sizes: Sizes = Sizes()) -> Iterator[Block | Unread]:
    """Yield all lines of a gzip file; a damaged or cut file is read up to the damage."""
    reader = _Unpacked(file)
    yield from _cut(reader, 0, None, sizes)
    if reader.damage is not None:
        yield Unread(reader.read_lines, 0, str(RejectedKind.TORN), reader.damage)


class _Readable(Protocol):
    """A source of bytes."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill a buffer; return the number of bytes, 0 at the end."""
        ...


class _Unpacked:
    """The uncompressed bytes of a gzip file, up to any damage."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = gzip.GzipFile(fileobj=file)
        self.read_lines = 0
        self.damage: str | None = None

    def readinto(self, buffer: memoryview, /) -> int:
        filled = 0
        while filled < len(buffer) and (piece := self._piece(len(buffer) - filled)):
            buffer[filled : filled + len(piece)] = piece
            filled += len(piece)
        self.read_lines += filled
        return filled

    def _piece(self, most: int) -> bytes:
        # A failed call loses what it had uncompressed. Pieces are small, so little is lost.
        if self.damage is None:
            try:
                return self._file.read1(most)
            except EOFError:
                self.damage = "the gzip file ends early"
            except (gzip.BadGzipFile, zlib.error):
                self.damage = "the gzip file is damaged"
        return b""


def next_line(file: BufferedIOBase, position: int, piece_bytes: int) -> int:
    """Return where the line after the first newline from a byte on begins; at the end, the size.

    Args:
        file: the file; its position is moved.
        position: the byte.
        piece_bytes: how much to read at once.
    """
    file.seek(position)
    while piece := file.read(piece_bytes):
        newline = piece.find(b"\n")
        if newline >= 0:
            return position + newline + 1
        position += len(piece)
    return position


def _cut(file: _Readable, position: int, end: int | None, sizes: Sizes) -> Iterator[Block | Unread]:
    """Yield blocks from the current position, which is the start of a line, up to ``end``."""
    begun, searched = memoryview(b""), 0
    while end is None or position < end:
        left = None if end is None else end - position
        # Each block has its own bytes, so that they are never copied.
        data = bytearray(len(begun) + _step(left, len(begun), sizes.block))
        data[: len(begun)] = begun
        read = file.readinto(memoryview(data)[len(begun) :])
        size = len(begun) + read
        cut = _cut_at(data, size, searched, left)
        if not read and (left is None or cut < left):
            cut = size
        if cut > 0:
            yield Block(position, memoryview(data)[:cut].toreadonly())
            position += cut
        if not read:
            return
        begun = memoryview(data)[cut:size]
        searched = len(begun)
        if searched > sizes.longest_line and (end is None or position < end):
            skipped, begun = _skip(file, searched, sizes.block)
            searched = 0
            yield Unread(position, skipped, "long", f"longer than {sizes.longest_line} bytes")
            position += skipped + 1


def _step(left: int | None, begun: int, block: int) -> int:
    """Return how much to read: little beyond the part's end, but more and more of a long line."""
    return block if left is None else min(block, max(left - begun, begun, _LITTLE))


def _cut_at(data: bytearray, size: int, searched: int, left: int | None) -> int:
    """Return how many of the bytes read are complete lines of the part.

    Args:
        data: the buffer; it begins at the start of a line.
        size: how many bytes of it were read.
        searched: how many of these are known to contain no end of a line.
        left: how many bytes from there belong to the part; None means all.
    """
    if left is not None and left <= size:
        # The part's last line ends here; the rest belongs to the next part.
        last = data.find(b"\n", max(searched, left - 1), size)
        if last >= 0:
            return last + 1
    return data.rfind(b"\n", searched, size) + 1


def _skip(file: _Readable, begun: int, step: int) -> tuple[int, memoryview]:
    """Skip the rest of a line; return its length without newline, and the bytes read beyond it."""
    data = bytearray(step)
    while size := file.readinto(memoryview(data)):
        newline = data.find(b"\n", 0, size)
        if newline >= 0:
            return begun + newline, memoryview(data)[newline + 1 : size]
        begun += size
    return begun, memoryview(b"")
