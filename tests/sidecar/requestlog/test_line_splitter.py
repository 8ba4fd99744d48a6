"""How pieces of text are joined to whole lines."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sidecar.requestlog.line_splitter import Cutter


def test_the_example() -> None:
    """The docstring's example."""
    cutter = Cutter(5)
    assert [b"abc", b"k"] == _cut(cutter, b"ab", b"c\nd", b"efghi", b"j\nk\n")
    assert (1, 8) == (cutter.dropped_lines, cutter.dropped_bytes)


def test_the_longest_line_is_returned() -> None:
    """The bound itself is allowed; one byte more is not, in one piece or in two."""
    cutter = Cutter(3)
    assert [b"abc", b"ghi"] == _cut(cutter, b"abc\n", b"defg\nghi\n")
    assert [b"klm"] == _cut(cutter, b"ab", b"cd\nklm\n")
    assert (2, 10) == (cutter.dropped_lines, cutter.dropped_bytes)


def test_a_long_line_is_not_buffered_while_its_end_is_awaited() -> None:
    """A line without end costs no memory."""
    cutter = Cutter(10)
    for _ in range(100):
        cutter.cut(b"x" * 8)
        assert len(cutter._begun) <= 10
    assert (1, 800) == (cutter.dropped_lines, cutter.dropped_bytes)


def test_skipping_ends_with_the_line() -> None:
    """What was begun and the rest of that line are dropped, and no line is counted."""
    cutter = Cutter(10)
    cutter.cut(b"ab")
    cutter.skip()
    assert [b"f"] == _cut(cutter, b"cd", b"e\nf\n")
    assert (0, 6) == (cutter.dropped_lines, cutter.dropped_bytes)


def test_after_a_restart_a_line_begins() -> None:
    """What was begun is dropped, even a line that is being skipped."""
    cutter = Cutter(3)
    cutter.cut(b"abcd")
    cutter.restart()
    assert [b"e"] == _cut(cutter, b"e\n")
    cutter.cut(b"fg")
    cutter.restart()
    assert [b"h"] == _cut(cutter, b"h\n")
    assert 6 == cutter.dropped_bytes


def test_the_rest_is_a_line() -> None:
    """A file's last line may have no end; nothing is left for the next file."""
    cutter = Cutter(3)
    cutter.cut(b"a\nbc")
    assert [b"bc"] == cutter.rest()
    assert [] == cutter.rest()
    cutter.cut(b"abcd")
    assert [] == cutter.rest()
    assert [b"e"] == _cut(cutter, b"e\n")


@given(st.binary(), st.lists(st.integers(0, 200)), st.integers(1, 20))
def test_where_it_is_cut_does_not_matter(text: bytes, cuts: list[int], longest: int) -> None:
    """Any pieces of a text have the same lines and counts; each byte is returned or counted."""
    whole = Cutter(longest)
    lines = [*whole.cut(text), *whole.rest()]
    assert [line for line in text.split(b"\n") if len(line) <= longest] in (lines, [*lines, b""])

    pieces = Cutter(longest)
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    found = _cut(pieces, *(text[start:end] for start, end in pairwise(ends)))
    assert lines == [*found, *pieces.rest()]
    assert (whole.dropped_lines, whole.dropped_bytes) == (
        pieces.dropped_lines,
        pieces.dropped_bytes,
    )


def _cut(cutter: Cutter, *pieces: bytes) -> list[bytes]:
    return [line for piece in pieces for line in cutter.cut(piece)]
