"""Log files that grow, and which is which."""

import gzip
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from sidecar.pipeline.ingest.growing_logs import (
    HEAD,
    Head,
    Packed,
    Plain,
    first_bytes,
    line_time_ms,
    lines_of,
    opened,
)
from tests.pipeline.growing_logs import START, line, lines, pack

UTC = ZoneInfo("UTC")
START_MS = int(START.timestamp() * 1000)


def test_a_file_is_known_by_its_beginning() -> None:
    """It is known once it has a whole line, and stays the same one as it grows."""
    whole = line(0, 1)
    assert Head.of(whole[:-1]) is None
    head = Head.of(whole)
    assert head is not None
    assert len(whole) == head.length
    assert head.begins(whole + line(1, 2))
    assert not head.begins(line(0, 2))
    assert not head.begins(whole[:-1])


def test_a_file_with_a_long_first_line_is_known_too() -> None:
    """It is known by the bytes of its beginning that are read."""
    head = Head.of(b"x" * 5000)
    assert head is not None
    assert HEAD == head.length


def test_the_beginning_is_the_same_when_it_is_packed(tmp_path: Path) -> None:
    """The beginning is of the unpacked bytes."""
    path = tmp_path / "a.log"
    path.write_bytes(lines(10))
    first = first_bytes(path)
    assert first == first_bytes(pack(path))
    assert HEAD == len(first)


def test_only_whole_lines_are_there(tmp_path: Path) -> None:
    """They are read up to the last line end, however long what follows is."""
    path = tmp_path / "a.log"
    path.write_bytes(lines(3) + b"x" * 200_000)
    assert len(lines(3)) == Plain(path, UTC).end()
    path.write_bytes(b"x" * 200_000)
    assert 0 == Plain(path, UTC).end()


def test_lines_and_their_times_are_found_from_any_byte(tmp_path: Path) -> None:
    """It is the line that begins there or next; lines without a time are passed over."""
    path = tmp_path / "a.log"
    first, odd, last = line(0), b"java.io.IOException\n" + b"y" * 100_000 + b"\n", line(5_000)
    path.write_bytes(first + odd + last)
    found = Plain(path, UTC)
    end = found.end()
    assert 0 == found.line_from(0, end)
    assert len(first) == found.line_from(1, end) == found.line_from(len(first), end)
    assert end == found.line_from(end - 1, end)
    assert START_MS == found.time_ms(0, end)
    assert START_MS + 5_000 == found.time_ms(1, end)
    assert found.time_ms(end - 1, end) is None


def test_a_packed_file_notes_some_of_its_lines(tmp_path: Path) -> None:
    """Each noted place begins a line, with its time; the last line may lack its end."""
    path = tmp_path / "a.log"
    text = lines(2_000) + b"torn"
    path.write_bytes(text)
    found = lines_of(pack(path), UTC)
    assert isinstance(found, Packed)
    assert len(text) == found.end()
    at = found.line_from(1, found.end())
    assert 1 << 18 <= at < (1 << 18) + 2_000
    assert b"\n[" == text[at - 1 : at + 1]
    number = text[:at].count(b"\n")
    assert START_MS + number * 100 == found.time_ms(1, found.end())
    assert found.time_ms(1, at) is None
    assert found.time_ms(len(text) - 10, len(text)) is None
    assert len(text) == found.line_from(len(text) - 10, len(text))


def test_a_file_that_is_being_packed_is_not_there_yet(tmp_path: Path) -> None:
    """Its end is missing."""
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(lines(2_000))[:-100])
    with pytest.raises(EOFError):
        lines_of(path, UTC)


def test_a_packed_file_with_damage_is_refused(tmp_path: Path) -> None:
    """It is refused as one that can't be read."""
    path = tmp_path / "a.log.gz"
    packed = bytearray(gzip.compress(lines(2_000)))
    packed[200:400] = bytes(200)
    path.write_bytes(packed)
    with pytest.raises(OSError, match=r"damaged|CRC|Error"):
        lines_of(path, UTC)


def test_a_file_is_read_unpacked(tmp_path: Path) -> None:
    """Its name doesn't matter."""
    path = tmp_path / "a.log"
    path.write_bytes(gzip.compress(b"abc"))
    with opened(path) as file:
        assert b"abc" == file.read()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"[2026-11-20 10:00:00,123] DEBUG", START_MS + 123),
        (b"2026-11-20 10:00:00.123 DEBUG", START_MS + 123),
        (b"2026-11-20T10:00:00 DEBUG", START_MS),
        (b"2026-11-31 10:00:00,123", None),
        (b"java.lang.Exception", None),
        (b"", None),
    ],
)
def test_a_line_begins_with_its_time(text: bytes, expected: int | None) -> None:
    """Either pattern has one; another line has none."""
    assert expected == line_time_ms(text, UTC)


def test_a_time_is_of_the_brokers_clock() -> None:
    """10:00 in Berlin in winter is 9:00 UTC."""
    berlin = line_time_ms(b"[2026-11-20 10:00:00,000]", ZoneInfo("Europe/Berlin"))
    assert START_MS - 3_600_000 == berlin
