"""Kernels that are compiled while Spark starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from usage_pipeline.cli.compiling import compiling


def compiled(cache: Path, script: str) -> set[str]:
    """Runs a script whose kernels are stored in a folder; returns those that are there then."""
    cache.mkdir(exist_ok=True)
    environ = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", script], env=environ, check=True, timeout=300)
    return {file.name for file in cache.rglob("*.nbc")}


AHEAD = "from usage_pipeline.cli.kernels import compile_all; compile_all()"
RUN = """
from tests.usage_pipeline.replay.test_shard import TRIED, WINDOWS, made_up, swept
from usage_pipeline.replay.shard import Sweep
import random
swept(Sweep(WINDOWS, TRIED, most_retained=200), *made_up(random.Random(1), 5, 100))
"""


@pytest.mark.rare
@pytest.mark.timeout(600)
def test_all_that_a_run_needs_is_compiled_ahead(tmp_path: Path) -> None:
    """A worker that had to compile one more would take its seconds for each."""
    ahead = compiled(tmp_path / "cache", AHEAD)
    assert 15 < len(ahead)
    assert ahead == compiled(tmp_path / "cache", RUN)


def test_what_is_compiled_is_noted_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: a second command finds it, and a stage without kernels compiles nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("usage_pipeline.cli.compiling._MODULE", "tests.usage_pipeline.cli.nothing")
    for stages, is_first in (
        (["silver", "usage", "forecast"], False),
        (["silver", "replay"], True),
        (["silver", "replay"], False),
    ):
        before = set(tmp_path.rglob("kernels-*"))
        with compiling(stages, is_here=True) as wait_for:
            for stage in stages:
                wait_for(stage)
        assert is_first == (set(tmp_path.rglob("kernels-*")) != before)


def test_a_compiler_that_fails_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers compile then; nothing is noted."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("usage_pipeline.cli.compiling._MODULE", "tests.there_is_none")
    with compiling(["silver", "replay"], is_here=True) as wait_for:
        wait_for("silver")
        wait_for("replay")
    assert [] == list(tmp_path.iterdir())


def test_nothing_is_compiled_for_workers_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors of a cluster have folders of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("usage_pipeline.cli.compiling._MODULE", "tests.usage_pipeline.cli.nothing")
    with compiling(["replay"], is_here=False) as wait_for:
        wait_for("replay")
    assert [] == list(tmp_path.iterdir())
