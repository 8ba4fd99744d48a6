"""The end of a log, for an error."""

from pathlib import Path

from sidecar.demo.processes import tail


def test_the_last_lines_are_shown(tmp_path: Path) -> None:
    """Fifteen lines are, each cut at 300 characters, from the end of a large file."""
    log = tmp_path / "log"
    log.write_bytes(b"x" * (1 << 20) + b"\n" + b"".join(b"line %d\n" % n for n in range(20)))
    assert [f"line {n}" for n in range(5, 20)] == tail(log).splitlines()
    log.write_bytes(b"\xff" + b"y" * 1000)
    assert 300 == len(tail(log))


def test_a_log_that_is_not_there_shows_nothing(tmp_path: Path) -> None:
    """The process may have died before its first line."""
    assert "" == tail(tmp_path / "log")
