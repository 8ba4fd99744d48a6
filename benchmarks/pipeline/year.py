"""A year of daily runs over a small cluster, and what a run costs when the tables are older.

Each simulated day has logs of its own, and is added to the same tables by a run of all stages that
keeps 90 days. All runs share one process, so that its memory would show what a run leaves behind.

Example: ``python -m benchmarks.pipeline.year --days 40 --size 5`` has 40 days of 5 MB.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from benchmarks.harness.machine import describe, quiet_cores
from benchmarks.pipeline.memory import Resident
from benchmarks.rows import Row, as_table
from sidecar.quotas.quota_file import read_quota_file
from usage_pipeline.batch.job import run
from usage_pipeline.batch.run import Inputs, Options, Snapshot
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.runtime.session import session
from usage_pipeline.sample import Sample, write_sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CORES: Final = 2
_FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)
_KEEP: Final = timedelta(days=90)
_RETAINED: Final = timedelta(minutes=2)
"""Seven runs: files have the real time, and a simulated day takes some 20 s."""
_TENTH: Final = slice(7, 12)
"""The runs around the tenth; single runs differ by a fifth."""
_LAST: Final = slice(-5, None)


@dataclass(frozen=True, slots=True)
class _Day:
    """What a run cost, and what the tables were after it."""

    seconds: float
    memory_bytes: int
    files: int
    table_bytes: int


def main() -> int:
    """Runs all days and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline.year", description=__doc__)
    parser.add_argument("--days", type=int, default=365, help="at least 10")
    parser.add_argument("--size", type=float, default=20.0, help="MB of logs a day")
    parser.add_argument("--clients", type=int, default=60, help="client-ids of small tenants")
    parser.add_argument("--out", type=Path, help="write the table there, too")
    asked = parser.parse_args()
    os.sched_setaffinity(0, set(quiet_cores(_CORES)))
    days = []
    with TemporaryDirectory() as folder:
        spark = session(f"local[{_CORES}]")
        try:
            for day in _days(spark, Path(folder), asked):
                days.append(day)
                print(f"day {len(days)}: {day}", file=sys.stderr)
        finally:
            spark.stop()
    machine = [*describe(), f"{asked.days} days of {asked.size:g} MB, {_KEEP.days} of them kept"]
    text = "\n".join((*(f"- {line}" for line in machine), "", as_table(_rows(days))))
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n", encoding="utf-8")
    return 0


def _days(spark: "SparkSession", folder: Path, asked: argparse.Namespace) -> Iterator[_Day]:
    tables = folder / "tables"
    for number in range(asked.days):
        start, part = _FIRST + timedelta(days=number), folder / "day"
        sample = write_sample(
            part,
            Sample(
                round(asked.size * 1e6),
                seed=number + 1,
                hours=24.0,
                start=start,
                history_days=1,
                clients=asked.clients,
            ),
        )
        inputs = Inputs(
            RequestLogs(str(sample.request_logs)),
            str(sample.volumes),
            Snapshot(read_quota_file(sample.quotas), start),
        )
        options = Options(start + timedelta(hours=26), retained=_RETAINED, keep=_KEEP)
        begin = time.perf_counter()
        with Resident(os.getpid()) as resident:
            run(spark, str(tables), inputs, options)
        seconds = time.perf_counter() - begin
        shutil.rmtree(part)
        sizes = [file.stat().st_size for file in tables.rglob("*") if file.is_file()]
        yield _Day(seconds, resident.peak_bytes, len(sizes), sum(sizes))


def _rows(days: Sequence[_Day]) -> list[Row]:
    tenth, last = (_middle(days[part]) for part in (_TENTH, _LAST))
    # The tables are full after the days that are kept; a shorter trial never fills them.
    full = days[_KEEP.days :][:1] or days[-1:]
    number = days.index(full[0]) + 1
    return [
        Row("the tenth run", tenth.seconds, "s"),
        Row("the last run", last.seconds, "s", 1.3 * tenth.seconds),
        Row("memory of the process in the tenth run", tenth.memory_bytes / 1e6, "MB"),
        Row("memory of the process in the last run", last.memory_bytes / 1e6, "MB"),
        Row(f"files of the tables after {number} days", full[0].files, "files"),
        Row("files of the tables after the last day", last.files, "files"),
        Row(f"bytes of the tables after {number} days", full[0].table_bytes / 1e6, "MB"),
        Row("bytes of the tables after the last day", last.table_bytes / 1e6, "MB"),
    ]


def _middle(days: Sequence[_Day]) -> _Day:
    return _Day(
        median(day.seconds for day in days),
        max(day.memory_bytes for day in days),
        days[-1].files,
        days[-1].table_bytes,
    )


if __name__ == "__main__":
    sys.exit(main())
