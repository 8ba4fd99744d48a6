"""The pipeline's stream as a process, and what it has written."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from tests.support.tables import files_of, of_duckdb

START_S = 240.0
"""Spark's start and first batch, on a machine that does other things too."""
STARTS = 3
"""Spark lets a Python worker take 10 s to start, which a busy machine may exceed; an operator's
supervisor starts the stream again then too."""


@contextmanager
def streaming(out: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """``pipeline stream`` into a folder; killed at the end, Spark's JVM with it."""
    command = [sys.executable, "-m", "sidecar", "pipeline", "stream", "--out", str(out)]
    said = out.with_suffix(".err")
    with said.open("ab") as errors:
        process = subprocess.Popen(
            [*command, "--master", "local[2]", "--trigger", "0.2s", *words],
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def streamed(out: Path, *words: str) -> None:
    """Streams until all is read that is there."""
    for _ in range(STARTS):
        with streaming(out, "--until-read", *words) as process:
            if 0 == await asyncio.wait_for(asyncio.to_thread(process.wait), START_S):
                return
    pytest.fail(out.with_suffix(".err").read_text())


def counted(out: Path, table: str, column: str) -> Counter[str]:
    """How often each value of a column is in a table."""
    if not files_of(out, table):
        return Counter()
    query = f"SELECT {column}, count(*) FROM {of_duckdb(out, table)} GROUP BY ALL"
    return Counter(dict(duckdb.execute(query).fetchall()))
