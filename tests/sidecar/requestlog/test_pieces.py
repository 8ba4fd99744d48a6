"""Long lines in the logs of containers."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.requestlog.layout import Layout
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.pieces import Pieces
from sidecar.requestlog.rejected import Rejected, RejectedKind
from tests.sidecar.requestlog.lines import line

LONG = line(0, client_id="wide", request={"acks": 1, "topicData": [{"name": "t" * 5_000}] * 10})


def cri(text: bytes, size: int, stream: str = "stdout") -> list[bytes]:
    """Returns a line as containerd logs it."""
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    tags = [*["P"] * (len(parts) - 1), "F"]
    return [
        f"2026-11-20T10:00:00.{at:09}Z {stream} {tag} ".encode() + part
        for at, (tag, part) in enumerate(zip(tags, parts, strict=True))
    ]


def docker(text: bytes, size: int, stream: str = "stdout") -> list[bytes]:
    """Returns a line as Docker's json-file has it."""
    whole = text.decode() + "\n"
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    return [
        json.dumps(
            {"log": part, "stream": stream, "time": "2026-11-20T10:00:09Z"}, separators=(",", ":")
        ).encode()
        for part in parts
    ]


@pytest.mark.parametrize("made", [cri, docker])
@pytest.mark.parametrize("text", [LONG, line(3)])
def test_a_long_line_is_read_when_its_last_piece_is_there(
    made: Callable[[bytes, int], list[bytes]], text: bytes
) -> None:
    """The pieces before are no requests that can't be read, and the next line is one by itself."""
    layout = Layout()
    lines = made(text, 16_384)
    *pieces, last = [parse(each, layout) for each in (*lines, *lines)]
    first = pieces[len(lines) - 1]
    assert isinstance(first, Line)
    assert first == last == parse(text)
    for each in (*pieces[: len(lines) - 1], *pieces[len(lines) :]):
        assert isinstance(each, Rejected)
        assert RejectedKind.OTHER == each.kind


def test_streams_are_apart() -> None:
    """What a container writes to its two outputs may alternate; a whole line has the tag F."""
    pieces = Pieces()
    out, error = cri(b"abcd", 2), cri(b"efgh", 2, "stderr")
    assert (None, None) == (pieces.join(out[0]), pieces.join(error[0]))
    assert pieces.join(error[1]) == error[0].replace(b" P ", b" F ") + b"gh"
    assert pieces.join(out[1]) == out[0].replace(b" P ", b" F ") + b"cd"


def test_streams_of_docker_are_apart() -> None:
    """A line on stderr comes between the two pieces of a line on stdout."""
    pieces = Pieces()
    begun, *middle, last = docker(b"abcdef", 3)
    (error,) = docker(b"ghi", 5, "stderr")
    assert pieces.join(begun) is None
    assert error == pieces.join(error)
    assert [None] == [pieces.join(each) for each in middle]
    assert docker(b"abcdef", 9) == [pieces.join(last)]


def test_a_piece_that_ends_with_a_brace_is_no_whole_request() -> None:
    """The thread's name comes first in Strimzi's layout, so nothing follows the JSON."""
    text = LONG.partition(b" (kafka.request.logger)")[0]
    lines = cri(text, text.rindex(b"},{") + 1)
    assert lines[0].endswith(b"}")
    layout = Layout()
    for _ in range(3):
        *_, found = [parse(each, layout) for each in lines]
        assert isinstance(found, Line)


@pytest.mark.parametrize("made", [cri, docker])
def test_the_pieces_of_a_line_that_is_too_long_are_dropped(
    made: Callable[[bytes, int], list[bytes]],
) -> None:
    """The next line is read."""
    layout = Layout(longest_line=40_000)
    results = [parse(each, layout) for each in made(LONG, 1 << 12)]
    assert not any(isinstance(each, Line) for each in results)
    assert [True] == [isinstance(parse(each, layout), Line) for each in made(line(3), 1 << 16)]


@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from([*cri(LONG, 20_000), *docker(LONG, 20_000)]),
        max_size=8,
    )
)
def test_any_lines(lines: list[bytes]) -> None:
    """No order of pieces is an exception."""
    layout = Layout()
    for each in lines:
        parse(each, layout)
