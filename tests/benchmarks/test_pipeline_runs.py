"""The pipeline's benchmarks measure what they say, of logs so small that figures mean nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

STAGES = ["Spark", "silver", "usage", "replay", "recommend", "forecast"]


def run(tmp_path: Path, module: str, *words: str) -> str:
    """Returns the tables that a benchmark makes."""
    out = tmp_path / "tables.md"
    command = [sys.executable, "-m", module, "--out", str(out), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=850, check=False)
    assert 0 == done.returncode, done.stderr
    return out.read_text()


def first_cells(table: str) -> list[str]:
    """Returns the first column of all tables."""
    return re.findall(r"^\| ([^|]+?) *\|", table, re.MULTILINE)


def test_the_pipeline_on_two_cores(tmp_path: Path) -> None:
    """Each figure is there, with a number."""
    table = run(tmp_path, "benchmarks.pipeline", "--size", "0.02")
    assert {
        "cold, to all tables and the report",
        "memory of that, JVM and workers",
        "stream, 1-s usage, warm",
        "logs to silver_request (Parquet)",
        "logs to gold_usage_1s",
        "replay of one quota",
        "half of the events in one entity",
        "the same day 16x",
    } <= set(first_cells(table))
    assert not re.search(r"\| (0|nan|inf) [a-zA-Z]", table)


def test_the_pipeline_on_a_cluster(tmp_path: Path) -> None:
    """Each stage's seconds, each process's memory, and few files beside many."""
    sizes = ["--size", "0.01", "--clients", "100", "--files", "200"]
    table = run(tmp_path, "benchmarks.pipeline.cluster", *sizes, "--work", str(tmp_path))
    cells = first_cells(table)
    assert cells[1:7] == STAGES
    assert {"driver's JVM", "driver's Python", "executor 3, both", "report's Python"} <= set(cells)
    assert ["2", "200"] == cells[-2:]
