"""Whole lines out of parts of files."""

import gzip
import io
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from usage_pipeline.ingest.lines import Block, Sizes, Unread, blocks, parts, unpacked_blocks

TEXTS = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"-")), max_size=12)


def lines_of(found: Iterator[Block | Unread]) -> list[tuple[int, bytes]]:
    """Returns the lines and where they begin, with their ends."""
    lines = []
    for block in found:
        assert isinstance(block, Block)
        offset = block.offset
        for line in bytes(block.data).splitlines(keepends=True):
            lines.append((offset, line))
            offset += len(line)
    return lines


@given(
    lines=TEXTS,
    ended=st.booleans(),
    part=st.integers(1, 40),
    block=st.integers(1, 40),
)
def test_every_line_is_in_one_part(lines: list[bytes], ended: bool, part: int, block: int) -> None:
    """However a file is cut, each line is read once, in order, with the place where it begins."""
    text = b"\n".join(line.replace(b"\r", b"-") for line in lines) + (b"\n" if ended else b"")
    text = bytes(byte for byte in text if byte < 128 and byte not in b"\x0b\x0c\x1c\x1d\x1e")
    found = [
        one
        for start, end in parts(len(text), part)
        for one in lines_of(blocks(io.BytesIO(text), start, end, Sizes(block)))
    ]
    expected = lines_of(iter([Block(0, memoryview(text))])) if text else []
    assert expected == found


def test_the_modules_example() -> None:
    """Of three lines in parts of four bytes two begin in the first, one in the second."""
    text = b"ab\ncd\nef\n"
    found = [list(blocks(io.BytesIO(text), *part)) for part in parts(len(text), 4)]
    assert [[Block(0, memoryview(b"ab\ncd\n"))], [Block(6, memoryview(b"ef\n"))], []] == found


@given(length=st.integers(11, 60), block=st.integers(1, 80), part=st.integers(1, 80))
def test_a_line_that_is_too_long_is_reported_and_the_next_is_read(
    length: int, block: int, part: int
) -> None:
    """Its place and length are reported; it is in one part, too."""
    text = b"ab\n" + b"x" * length + b"\nef\ngh"
    sizes = Sizes(min(block, 5), longest_line=5)
    found = [
        one
        for start, end in parts(len(text), part)
        for one in blocks(io.BytesIO(text), start, end, sizes)
    ]
    unread = [one for one in found if isinstance(one, Unread)]
    assert [(3, length, "long")] == [(one.offset, one.bytes, one.kind) for one in unread]
    read = lines_of(one for one in found if isinstance(one, Block))
    assert [(0, b"ab\n"), (length + 4, b"ef\n"), (length + 7, b"gh")] == read


@given(lines=TEXTS, block=st.integers(1, 40))
def test_a_packed_file_is_one_part(lines: list[bytes], block: int) -> None:
    """Its lines' places are those of the unpacked bytes; packed pieces may follow each other."""
    text = b"".join(line.replace(b"\r", b"-") + b"\n" for line in lines)
    text = bytes(byte for byte in text if byte < 128 and byte not in b"\x0b\x0c\x1c\x1d\x1e")
    packed = gzip.compress(text[:20]) + gzip.compress(text[20:])
    expected = lines_of(iter([Block(0, memoryview(text))])) if text else []
    assert expected == lines_of(unpacked_blocks(io.BytesIO(packed), Sizes(block)))


def test_a_packed_files_blocks_are_as_large_as_a_plain_ones() -> None:
    """A block's cost doesn't depend on how little of the file is unpacked at once."""
    text = b"".join(b"%d\n" % number for number in range(99_999))
    packed = gzip.compress(text)
    sizes = Sizes(200_000)
    plain_blocks = list(blocks(io.BytesIO(text), 0, len(text), sizes))
    assert plain_blocks == list(unpacked_blocks(io.BytesIO(packed), sizes))


def test_little_is_read_beyond_a_part() -> None:
    """Bytes of the next part aren't read twice."""
    text = b"".join(b"%07d\n" % number for number in range(99_999))
    file = io.BytesIO(text)
    assert [80_000] == [
        len(one.data) for one in blocks(file, 0, 80_000, Sizes()) if isinstance(one, Block)
    ]
    assert 80_000 <= file.tell() <= 80_000 + (1 << 16)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda packed: packed[: len(packed) // 2], "the gzip file ends early"),
        (lambda packed: packed[:-8] + bytes(8), "the gzip file is damaged"),
        (lambda packed: b"no gzip" + packed, "the gzip file is damaged"),
        (lambda packed: packed[:40] + b"\xff" * 9 + packed[49:], "the gzip file is damaged"),
    ],
    ids=["torn", "sum", "other", "bytes"],
)
def test_a_damaged_packed_file_is_read_as_far_as_it_goes(
    damage: Callable[[bytes], bytes], reason: str
) -> None:
    """The lines before the damage are read, and the rest is reported as missing."""
    text = b"".join(b"%d\n" % (number * 7919) for number in range(9_999))
    *found, last = unpacked_blocks(io.BytesIO(damage(gzip.compress(text))), Sizes(100))
    assert isinstance(last, Unread)
    assert ("torn", reason) == (last.kind, last.reason)
    read = b"".join(one.data for one in found if isinstance(one, Block))
    assert text.startswith(read)
    assert last.offset == len(read)
