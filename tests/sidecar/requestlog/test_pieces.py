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


def docker(text: bytes, size: int) -> list[bytes]:
    """Returns a line as Docker's json-file has it."""
    whole = text.decode() + "\n"
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    return [
        json.dumps(
            {"log": part, "stream": "stdout", "time": "2026-11-20T10:00:09Z"}, separators=(",", ":")
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
    """What a container writes to its two outputs may alternate."""
    pieces = Pieces()
    out, error = cri(b"abcd", 2), cri(b"efgh", 2, "stderr")
    assert (None, None) == (pieces.join(out[0]), pieces.join(error[0]))
    assert pieces.join(error[1]) == error[0] + b"gh"
    assert pieces.join(out[1]) == out[0] + b"cd"


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
