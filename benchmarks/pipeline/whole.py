"""Whole runs as a person starts them: cold, with all that they start, on the cores that count.

The command is run as a process of its own; its memory is that of the JVM and of all Python workers.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from benchmarks.pipeline.memory import Resident
from benchmarks.rows import Row

_DEADLINE_S: Final = 1800.0
_COLD_S: Final = 60.0
_COLD_BYTES: Final = 2.5e9
_MEMORY_BYTES: Final = 2e9
_STREAM: Final = 60.0
_BATCH: Final = re.compile(r"batch \d+: ([\d,]+) files?, ([\d,.]+) a second")


def measure(sample: Path, work: Path, cores: int) -> Iterator[Row]:
    """The cold run of everything, and the stream.

    Args:
        sample: as ``pipeline sample`` writes it.
        work: a folder for what is made.
        cores: that this process may use.
    """
    logs = sample / "request-logs"
    size = sum(file.stat().st_size for file in logs.rglob("*") if file.is_file())
    inputs = ["--request-logs", str(logs), "--volumes", str(sample / "volumes")]
    inputs += ["--quotas", str(sample / "quotas.json")]
    # What the first run retains for later ones, compiled kernels, is here.
    os.environ["NUMBA_CACHE_DIR"] = str(work / "kernels")
    os.environ["XDG_CACHE_HOME"] = str(work / "cache")
    first, _ = _timed("run", *inputs, "--out", str(work / "first"))
    seconds, peak = _timed("run", *inputs, "--out", str(work / "tables"))
    target = _COLD_S * size / _COLD_BYTES
    remark = f"{size / 1e9:.2f} GB of logs, {cores} cores, Spark's start in it"
    yield Row("cold, to all tables and the report", seconds, "s", target, remark=remark)
    yield Row("the same, the first on a machine", first, "s", remark="kernels are compiled")
    yield Row(
        "memory of that, JVM and workers",
        peak / 1e9,
        "GB",
        _MEMORY_BYTES / 1e9,
    )
    words = ("stream", "--request-logs", str(logs), "--out", str(work / "live"))
    log = work / "stream.log"
    with log.open("wb") as said:
        seconds, _ = _timed(*words, "--table", "gold_usage_1s", "--until-read", said=said)
    yield Row("stream, 1-s usage, cold", size / 1e6 / seconds, "MB/s", remark="Spark's start in it")
    batches = [
        (int(files.replace(",", "")), float(speed.replace(",", "")))
        for files, speed in _BATCH.findall(log.read_text())
    ]
    per_file = size / 1e6 / sum(files for files, _ in batches)
    remark = f"the last of {len(batches)} batches"
    yield Row(
        "stream, 1-s usage, warm",
        batches[-1][1] * per_file,
        "MB/s",
        _STREAM,
        remark=remark,
        at_least=True,
    )


def linear(work: Path, parts: list[tuple[int, Path]]) -> Iterator[Row]:
    """The same day in 1, 4 and 16 times the lines: what a byte costs.

    Args:
        work: a folder for what is made.
        parts: how many times, and the sample.
    """
    base = 0.0
    for times, sample in parts:
        shutil.rmtree(work / "day", ignore_errors=True)
        logs = sample / "request-logs"
        inputs = ["--request-logs", str(logs), "--volumes", str(sample / "volumes")]
        inputs += ["--quotas", str(sample / "quotas.json")]
        seconds, _ = _timed("run", *inputs, "--out", str(work / "day"))
        base = base or seconds
        yield Row(f"the same day {times}x", seconds, "s", remark=f"{seconds / base:.1f} times 1x")


def _timed(*arguments: str, said: BinaryIO | None = None) -> tuple[float, int]:
    """Seconds and the most memory of ``throttle-sidecar pipeline`` with these arguments."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "sidecar", "pipeline", *arguments]
    with (
        subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=said, env=os.environ
        ) as process,
        Resident(process.pid) as resident,
    ):
        code = process.wait(_DEADLINE_S)
    if code:
        raise RuntimeError(f"{' '.join(arguments)} ended with {code}")
    return time.perf_counter() - begin, resident.peak_bytes
