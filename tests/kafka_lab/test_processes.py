"""The end of a log, for an error."""

from pathlib import Path

from kafka_lab.processes import tail


def test_the_last_lines_are_shown(tmp_path: Path) -> None:
    """Fifteen lines are, each cut at 300 characters, from the end of a large file."""
    log = tmp_path / "log"
    log.write_bytes(b"x" * (1 << 20) + b"\n" + b"".join(b"line %d\n" % n for n in range(20)))
    assert [f"line {n}" for n in range(5, 20)] == tail(log).splitlines()
    log.write_bytes(b"\xff" + b"y" * 1000)
    assert 300 == len(tail(log))


def test_the_last_error_is_shown_however_much_follows_it(tmp_path: Path) -> None:
    """The other threads of a broker that ends go on for a while, and write what they do."""
    why = ["[t] ERROR Encountered fatal fault (Handler)", "ConfigException: must be a number"]
    after = [f"[t] INFO {n} (Loader)" for n in range(20)]
    log = tmp_path / "log"
    log.write_text("\n".join(["[t] ERROR an earlier one", *why, "\tat Settings.java:1", *after]))
    assert [*why, *after[:13]] == tail(log).splitlines()
    log.write_text("\n".join(["before", *why, *after[:12]]))
    assert ["before", *why, *after[:12]] == tail(log).splitlines()


def test_a_log_that_is_not_there_shows_nothing(tmp_path: Path) -> None:
    """The process may have died before its first line."""
    assert "" == tail(tmp_path / "log")
