"""Spark's log is hidden from a person, and named when it is needed."""

import errno
import logging
import os
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException

from sidecar.errors import SidecarError
from usage_pipeline.cli.spark_log import SparkFailedError, spark_log
from usage_pipeline.runtime.session import NoSparkError
from usage_pipeline.streaming.stream import StreamError

FULL = os.strerror(errno.ENOSPC)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def fail(log: Path, said: str, error: Exception) -> None:
    log.write_text(said)
    raise error


def test_a_failure_is_three_lines(temporary: Path) -> None:
    """The lines say what failed, what to do, and which file has the trace, Java's with it."""
    failed = AnalysisException("[TASK_WRITE_FAILED]")
    # Spark's client raises it so: Java's own words are hidden.
    failed.__context__ = Py4JNetworkError(f"java.io.IOException: {FULL}")
    failed.__suppress_context__ = True
    with pytest.raises(SparkFailedError) as caught, spark_log() as log:
        fail(log, "WARNING: Using incubator modules\n", failed)
    what, advice, where = str(caught.value).splitlines()
    assert what.startswith("Spark has failed: ")
    assert FULL in what
    assert advice.startswith("Free space: ")
    (log,) = temporary.iterdir()
    assert f"Output: {log}" == where
    said = log.read_text()
    assert said.startswith("WARNING: Using incubator")
    assert "test_spark_log.py" in said
    assert "java.io.IOException" in said


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (NoSparkError("Spark can't start on x"), "Spark can't start on x: "),
        (StreamError("gold_usage_1s: [STREAM_FAILED]"), "The stream has ended unexpectedly: "),
        (ConnectionRefusedError("refused"), "Spark has failed: "),
    ],
)
def test_what_failed_is_reported(error: Exception, what: str) -> None:
    """The start, a stream or the rest failed."""
    with pytest.raises(SparkFailedError) as caught, spark_log():
        raise error
    assert str(caught.value).startswith(what)


def test_what_could_not_be_started_is_reported_by_its_cause() -> None:
    """Our own words for it are not printed twice."""
    error = NoSparkError("Spark can't start on x")
    error.__cause__ = Py4JNetworkError("empty")
    said = "26/11/21 14:37:01 ERROR A: Reason: All masters are unresponsive! Giving up.\n"
    with pytest.raises(SparkFailedError) as caught, spark_log() as log:
        fail(log, said, error)
    (first, *_) = str(caught.value).splitlines()
    assert first.startswith("Spark can't start on x: ")
    assert "All masters are" in first


def test_a_refusal_and_a_bug_are_left_as_they_are(temporary: Path) -> None:
    """A refusal says what to do already, a bug is ours; no file is left behind."""
    for error in (SidecarError("name another"), ValueError("a bug"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, spark_log():
            raise error
        assert error is caught.value
    assert [] == list(temporary.iterdir())


def test_errors_that_did_not_end_the_run_are_not_hidden(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A task that was run again is one, say; the rest of the log is hidden."""
    with spark_log() as log:
        log.write_text("WARNING: Using incubator modules: jdk.incubator.vector\n")
    assert ("", []) == (capsys.readouterr().err, list(temporary.iterdir()))
    with spark_log() as log:
        log.write_text("26/11/21 13:31:21 ERROR Executor: Exception in task 1.0\n")
        assert [] == list(temporary.iterdir())
    (trace_file,) = temporary.iterdir()
    assert f"Spark had errors and continued. Output: {trace_file}\n" == capsys.readouterr().err
    assert "Exception in task 1.0" in trace_file.read_text()


def test_its_clients_loggers_speak_there_too(capfd: pytest.CaptureFixture[str]) -> None:
    """The loggers don't write to standard error, and are as before afterwards."""
    logger = logging.getLogger("py4j")
    before = (list(logger.handlers), logger.propagate)
    with spark_log() as log:
        logging.getLogger("py4j.clientserver").error("There was an exception")
        logging.getLogger("SQLQueryContextLogger").error("unresolved")
        said = log.read_text()
    assert "" == capfd.readouterr().err
    assert (True, True) == ("There was an exception" in said, "unresolved" in said)
    assert before == (logger.handlers, logger.propagate)


def test_a_disk_that_is_full_does_not_hide_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The full disk has the temporary files, to which the log would be written."""
    full = OSError(errno.ENOSPC, FULL)
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", Mock(side_effect=full))
    with pytest.raises(SparkFailedError) as caught, spark_log():
        raise Py4JNetworkError("gone")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("Spark has failed: ")
    assert f"Output can't be stored: {FULL}" == lines[-1]
