"""What a person sees of the job while it runs."""

import io
import threading
from unittest.mock import Mock

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from rich.console import Console

from usage_pipeline.cli.progress import Progress


def steps(text: io.StringIO, error: Exception | None = None, *, terminal: bool = False) -> None:
    with Progress(Console(file=text, force_terminal=terminal, width=60)) as progress:
        progress.step("silver")
        progress.step("usage")
        if error is not None:
            raise error


def test_each_step_that_ended_has_a_line() -> None:
    """The line has the step's time, where there is no terminal."""
    steps(text := io.StringIO())
    assert ["silver 0.0 s", "usage 0.0 s"] == text.getvalue().splitlines()


def test_a_step_that_did_not_end_is_not_reported() -> None:
    """The step before it is printed."""
    with pytest.raises(ValueError, match="bad"):
        steps(text := io.StringIO(), ValueError("bad"))
    assert ["silver 0.0 s", "usage not done, after 0.0 s"] == text.getvalue().splitlines()
    with pytest.raises(ValueError, match="bad"):
        steps(text := io.StringIO(), ValueError("bad"), terminal=True)
    last = [each for each in text.getvalue().splitlines() if "usage" in each][-1]
    assert "not done" in last


def test_a_jvm_that_is_gone_ends_the_watching_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread's own traceback would be in the middle of what the command says."""
    asked, uncaught = threading.Event(), Mock()
    monkeypatch.setattr(threading, "excepthook", uncaught)
    monkeypatch.setattr("usage_pipeline.cli.progress._REFRESH_S", 0.001)

    def gone() -> None:
        asked.set()
        raise Py4JNetworkError("gone")

    spark = Mock()
    spark.sparkContext.statusTracker().getActiveStageIds = gone
    with Progress(Console(file=io.StringIO(), force_terminal=True)) as progress:
        progress.step("usage")
        progress.watch(spark)
        assert asked.wait(10)
    uncaught.assert_not_called()
