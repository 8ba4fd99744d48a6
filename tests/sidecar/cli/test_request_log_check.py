"""``request-log check``: what of a file can be read."""

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from tests.sidecar.requestlog.lines import BY_HAND, LAYOUTS


def check(file: object, text: bytes | None = None) -> Result:
    return CliRunner().invoke(group, ["request-log", "check", str(file)], input=text)


def test_a_log_that_is_read() -> None:
    """The layout, the time, and that it is in whole seconds."""
    result = check(LAYOUTS / "strimzi-log4j2-kafka-4.0.log")
    assert 0 == result.exit_code
    assert "Requests      3 of 3 are read\nLayout        %d DEBUG [data-plane" in result.stdout
    assert "Time          2026-03-04 05:06:07.000 to" in result.stdout
    assert "without an offset from UTC\n" in result.stdout
    assert "whole seconds" in result.stdout


def test_milliseconds_that_are_0_are_no_whole_seconds() -> None:
    """The layout has them, whatever they are."""
    result = check("-", BY_HAND[0].replace(b"10:00:00,123", b"10:00:00,000"))
    assert 0 == result.exit_code
    assert "whole seconds" not in result.stdout


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("truncated-8k", "Not read      1 torn: the end is missing; syslog and some"),
        ("text-0.10", "Not read      2 text: not JSON: text of Kafka before 2.7\n"),
        ("kafkaapis-trace", 'no requests: is the log on? "throttle-sidecar request-log status"'),
    ],
)
def test_a_log_that_is_not_read(name: str, expected: str) -> None:
    """The reason, and exit code 1."""
    result = check(LAYOUTS / f"{name}.log")
    assert 1 == result.exit_code
    assert expected in result.stdout


def test_a_layout_of_its_own() -> None:
    """The pattern's time is shown; without the pattern the log can't be read."""
    text = BY_HAND[0].replace(b"[2026-11-20 10:00:00,123]", b"20 Nov 2026 10:00:00,123")
    assert 1 == check("-", text).exit_code
    words = ["request-log", "check", "-", "--layout", "%d{DATE} %p %m (%c)%n"]
    result = CliRunner().invoke(group, words, input=text)
    assert 0 == result.exit_code
    assert "Time          2026-11-20 10:00:00.123 to" in result.stdout


def test_a_pattern_that_can_not_be_used() -> None:
    """The error names the option and the conversion."""
    result = CliRunner().invoke(group, ["request-log", "check", "-", "--layout", "%q %m"])
    assert 2 == result.exit_code
    assert "'--layout': %q can't be used here" in result.stderr


def test_a_pipe_and_a_compressed_file(tmp_path: Path) -> None:
    """Both give what the file gives."""
    text = (LAYOUTS / "cri.log").read_bytes()
    expected = check(LAYOUTS / "cri.log").stdout
    packed = tmp_path / "cri.log.gz"
    packed.write_bytes(gzip.compress(text))
    assert [expected, expected] == [check(packed).stdout, check("-", text).stdout]


WHOLE = gzip.compress(bytes(range(256)) * 100)


@pytest.mark.parametrize("content", [WHOLE[:-9], WHOLE[:40] + b"\xff" * 40 + WHOLE[80:]])
def test_a_damaged_file(tmp_path: Path, content: bytes) -> None:
    """It is an error that names the file."""
    packed = tmp_path / "a.log.gz"
    packed.write_bytes(content)
    result = check(packed)
    assert 2 == result.exit_code
    assert f"{packed} can't be read" in result.stderr


def test_a_compressed_file_without_its_name(tmp_path: Path) -> None:
    """It is no log without requests, also from a pipe."""
    file = tmp_path / "kafka-request.log"
    file.write_bytes(WHOLE)
    for result, name in ((check(file), file), (check("-", WHOLE), "standard input")):
        assert 2 == result.exit_code
        assert f"{name} is compressed: uncompress it, or let a gzip file end in" in result.stderr
