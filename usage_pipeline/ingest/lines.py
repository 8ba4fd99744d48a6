r"""Whole lines out of a part of a file: who reads which part, and where each line begins.

A large file is read in parts by several workers. A part has the lines that begin in it, the last of
which may end beyond it; so every line is in one part, wherever files are cut. A packed file is one
part, and places in it are those of its unpacked bytes. A line that doesn't end is left
out, and reported.

Example: ``ab\ncd\nef\n`` in parts of 4 bytes: 0-3 has ``ab`` and ``cd``, 4-7 has ``ef``, 8-8 has
nothing.
"""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Final, Protocol

from sidecar.requestlog.line import RejectedKind

BLOCK_BYTES: Final = 1 << 23
LONGEST_LINE: Final = 1 << 26
"""Bytes. A request of 10,000 partitions has a line of 2 MB."""
_LITTLE: Final = 1 << 16
"""Bytes that are read where an end of a line is expected soon."""


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines that follow each other; the file's last one may lack its end.

    Attributes:
        offset: of its first byte in the file, unpacked.
        data: the lines; never written to.
    """

    offset: int
    data: memoryview


@dataclass(frozen=True, slots=True)
class Unread:
    """A place without lines.

    Attributes:
        offset: of its first byte in the file, unpacked.
        bytes: how long it is, as far as that is known.
        kind: why; "long" for a line that is too long.
        reason: for a person.
    """

    offset: int
    bytes: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is read at once.

    Attributes:
        block: bytes, > 0.
        longest_line: bytes, > 0; a line that has no end after that much, and at most a block
            more, is left out.
    """

    block: int = BLOCK_BYTES
    longest_line: int = LONGEST_LINE


def parts(size: int, most: int) -> list[tuple[int, int]]:
    """Where the parts of a file begin and end.

    Args:
        size: of the file, bytes.
        most: bytes of a part, > 0.
    """
    return [(start, min(start + most, size)) for start in range(0, size, most)]


def blocks(
    file: BufferedIOBase, start: int, end: int, sizes: Sizes = Sizes()
) -> Iterator[Block | Unread]:
    """The lines that begin in a part of a plain file.

    Args:
        file: to be read; its position is moved.
        start: of the part, bytes.
        end: of the part; its first byte is not in it.
        sizes: how much is read at once.
    """
    position = start
    if start > 0:
        position = _next_line(file, start, sizes.block)
        if position >= end:
            return
    file.seek(position)
    yield from _cut(file, position, end, sizes)


def unpacked_blocks(file: BufferedIOBase, sizes: Sizes = Sizes()) -> Iterator[Block | Unread]:
    """All lines of a gzip file; one that ends early or is damaged is read as far as it goes."""
    reader = _Unpacked(file)
    yield from _cut(reader, 0, None, sizes)
    if reader.damage is not None:
        yield Unread(reader.read_lines, 0, str(RejectedKind.TORN), reader.damage)


class _Readable(Protocol):
    """What gives the next bytes."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Fills a buffer as far as it can: how much; 0 at the end."""
        ...


class _Unpacked:
    """A gzip file as plain bytes, up to where it is damaged."""

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
        # What a call that fails had unpacked is lost: pieces are small, so little is.
        if self.damage is None:
            try:
                return self._file.read1(most)
            except EOFError:
                self.damage = "the gzip file ends early"
            except (gzip.BadGzipFile, zlib.error):
                self.damage = "the gzip file is damaged"
        return b""


def _next_line(file: BufferedIOBase, start: int, step: int) -> int:
    """Where the first line begins that begins at ``start`` or later."""
    position = start - 1
    file.seek(position)
    while piece := file.read(min(step, _LITTLE)):
        found = piece.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(piece)
    return position


def _cut(file: _Readable, position: int, end: int | None, sizes: Sizes) -> Iterator[Block | Unread]:
    """Blocks from where the file stands, which is the start of a line, up to ``end``."""
    begun, searched = memoryview(b""), 0
    while end is None or position < end:
        left = None if end is None else end - position
        # Each block has bytes of its own, which nobody copies.
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
    """How much to read: not much of what is the next part's, but of a long line ever more."""
    return block if left is None else min(block, max(left - begun, begun, _LITTLE))


def _cut_at(data: bytearray, size: int, searched: int, left: int | None) -> int:
    """How much of what was read are whole lines of the part.

    Args:
        data: read, from the start of a line on.
        size: how much of it was.
        searched: how much of it is known to have no end of a line.
        left: bytes of the part from there on; None: all.
    """
    if left is not None and left <= size:
        # The line that begins last in the part ends here; what follows is the next part's.
        last = data.find(b"\n", max(searched, left - 1), size)
        if last >= 0:
            return last + 1
    return data.rfind(b"\n", searched, size) + 1


def _skip(file: _Readable, begun: int, step: int) -> tuple[int, memoryview]:
    """Drops the rest of a line: how long it is without its end, and what was read beyond it."""
    data = bytearray(step)
    while size := file.readinto(memoryview(data)):
        found = data.find(b"\n", 0, size)
        if found >= 0:
            return begun + found, memoryview(data)[found + 1 : size]
        begun += size
    return begun, memoryview(b"")
