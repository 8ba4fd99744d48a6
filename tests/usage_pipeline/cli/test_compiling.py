"""Kernels that are compiled while Spark starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from usage_pipeline.cli.compiling import Compiling, compiling


def compiled(cache: Path, script: str) -> set[str]:
    """Runs a script whose kernels are stored in a folder; returns those that are there then."""
    cache.mkdir(exist_ok=True)
    environ = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", script], env=environ, check=True, timeout=300)
    return {file.name for file in cache.rglob("*.nbc")}


AHEAD = "from usage_pipeline.cli.kernels import PARTS; [part() for part in PARTS.values()]"
RUN = """
from tests.usage_pipeline.replay.test_shard import TRIED, WINDOWS, made_up, swept
from tests.usage_pipeline.kernels.requests import requests
from tests.sidecar.requestlog.lines import BY_HAND, REAL
from usage_pipeline.ingest.records import parse_block
from usage_pipeline.replay.encoder import request_charges
from usage_pipeline.replay.shard import Sweep
from zoneinfo import ZoneInfo
import random
text = b"\\n".join((*REAL, *BY_HAND, b"torn")) + b"\\n"
parse_block(text, broker=1, zone=ZoneInfo("Europe/Berlin"), src_file="a", offset=0)
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
    """Each part once: a second command finds it, another stage's kernels are compiled then."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("usage_pipeline.cli.compiling._MODULE", "tests.usage_pipeline.cli.says")
    for stages, expected in (
        (["silver", "usage", "forecast"], ["parse"]),
        (["silver", "replay"], ["replay"]),
        (["silver", "replay"], []),
    ):
        before = set(tmp_path.rglob("kernels-*"))
        with compiling(stages, is_here=True) as found:
            for stage in stages:
                found.wait_for(stage)
            made = set(tmp_path.rglob("kernels-*")) - before
        # What is compiled is not compiled again.
        assert bool(expected) == found.is_first
        assert expected == [file.name.rpartition("-")[2] for file in sorted(made)]


def test_a_compiler_that_fails_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers compile then; nothing is noted."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("usage_pipeline.cli.compiling._MODULE", "tests.there_is_none")
    with compiling(["silver", "replay"], is_here=True) as found:
        found.wait_for("silver")
        found.wait_for("replay")
    assert [] == list(tmp_path.iterdir())


def test_nothing_is_compiled_for_workers_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors of a cluster have folders of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("usage_pipeline.cli.compiling._MODULE", "tests.usage_pipeline.cli.says")
    with compiling(["silver"], is_here=False) as found:
        found.wait_for("silver")
    assert [] == list(tmp_path.iterdir())
    Compiling({}, None).wait_for("forecast")
