"""How pieces of text are joined to whole lines."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sidecar.requestlog.line_splitter import LineSplitter


def test_the_example() -> None:
    """The docstring's example."""
    splitter = LineSplitter(5)
    assert [b"abc", b"k"] == _split(splitter, b"ab", b"c\nd", b"efghi", b"j\nk\n")
    assert (1, 8) == (splitter.dropped_lines, splitter.dropped_bytes)


def test_the_longest_line_is_returned() -> None:
    """The bound itself is allowed; one byte more is not, in one piece or in two."""
    splitter = LineSplitter(3)
    assert [b"abc", b"ghi"] == _split(splitter, b"abc\n", b"defg\nghi\n")
    assert [b"klm"] == _split(splitter, b"ab", b"cd\nklm\n")
    assert (2, 10) == (splitter.dropped_lines, splitter.dropped_bytes)


def test_a_long_line_is_not_buffered_while_its_end_is_awaited() -> None:
    """A line without end costs no memory."""
    splitter = LineSplitter(10)
    for _ in range(100):
        splitter.split_piece(b"x" * 8)
        assert len(splitter._begun) <= 10
    assert (1, 800) == (splitter.dropped_lines, splitter.dropped_bytes)


def test_skipping_ends_with_the_line() -> None:
    """What was begun and the rest of that line are dropped, and no line is counted."""
    splitter = LineSplitter(10)
    splitter.split_piece(b"ab")
    splitter.skip()
    assert [b"f"] == _split(splitter, b"cd", b"e\nf\n")
    assert (0, 6) == (splitter.dropped_lines, splitter.dropped_bytes)


def test_after_a_restart_a_line_begins() -> None:
    """What was begun is dropped, even a line that is being skipped."""
    splitter = LineSplitter(3)
    splitter.split_piece(b"abcd")
    splitter.restart()
    assert [b"e"] == _split(splitter, b"e\n")
    splitter.split_piece(b"fg")
    splitter.restart()
    assert [b"h"] == _split(splitter, b"h\n")
    assert 6 == splitter.dropped_bytes


def test_the_rest_is_a_line() -> None:
    """A file's last line may have no end; nothing is left for the next file."""
    splitter = LineSplitter(3)
    splitter.split_piece(b"a\nbc")
    assert [b"bc"] == splitter.rest()
    assert [] == splitter.rest()
    splitter.split_piece(b"abcd")
    assert [] == splitter.rest()
    assert [b"e"] == _split(splitter, b"e\n")


@given(st.binary(), st.lists(st.integers(0, 200)), st.integers(1, 20))
def test_where_it_is_cut_does_not_matter(text: bytes, cuts: list[int], longest: int) -> None:
    """Any pieces of a text have the same lines and counts; each byte is returned or counted."""
    whole = LineSplitter(longest)
    lines = [*whole.split_piece(text), *whole.rest()]
    assert [line for line in text.split(b"\n") if len(line) <= longest] in (lines, [*lines, b""])

    pieces = LineSplitter(longest)
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    found = _split(pieces, *(text[start:end] for start, end in pairwise(ends)))
    assert lines == [*found, *pieces.rest()]
    assert (whole.dropped_lines, whole.dropped_bytes) == (
        pieces.dropped_lines,
        pieces.dropped_bytes,
    )


def _split(splitter: LineSplitter, *pieces: bytes) -> list[bytes]:
    return [line for piece in pieces for line in splitter.split_piece(piece)]
