"""A year of daily runs over a small cluster, and what a run costs when the tables are older.

Each simulated day has logs of its own, and is added to the same tables by a run of all stages that
keeps 90 days. Runs share a process, so that its memory shows what a run leaves behind. At the end,
the tenth day and the day after the last are run in processes of their own, as operators run them.

A machine may be faster or slower hours later, so the tenth day is run again in turns with the last
ones, each time on a copy of the tables of nine days.

Example: ``python -m benchmarks.pipeline.year --days 40 --size 5`` has 40 days of 5 MB. With
``--folder``, a benchmark that was ended goes on with its next day, in a new process; the memory of
the shared process can then be compared only from that day on.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
_TENTH: Final = 9
"""The number of the tenth day, from 0."""
_LAST: Final = 5
"""The last runs; single ones differ by a fifth."""


@dataclass(frozen=True, slots=True)
class _Day:
    """What a run cost, and what the tables were after it."""

    seconds: float
    memory_bytes: int
    files: int
    table_bytes: int


@dataclass(slots=True)
class _Year:
    """The runs of a year, in a folder.

    Attributes:
        spark: the session.
        folder: has the tables, those of nine days, and what the runs cost.
        size: bytes of logs a day.
        clients: client-ids of small tenants.
    """

    spark: "SparkSession"
    folder: Path
    size: int
    clients: int

    def days(self, count: int) -> tuple[list[_Day], list[_Day]]:
        """Run the days that are left; return all days, and the tenth in turns with the last."""
        tables, nine, copy = (self.folder / name for name in ("tables", "nine", "copy"))
        days, again = self._recorded("days"), self._recorded("again")
        for number in range(len(days), count):
            if number == _TENTH:
                shutil.rmtree(nine, ignore_errors=True)
                shutil.copytree(tables, nine)
            if number >= count - _LAST:
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(nine, copy)
                again.append(self._record("again", self._run(_TENTH, copy)))
            days.append(self._record("days", self._run(number, tables)))
            print(f"day {number + 1}: {days[-1]}", file=sys.stderr)
        return days, again

    def alone(self, number: int, name: str) -> _Day:
        """Run one day on a copy of the tables with this name."""
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder / name, copy)
        return self._run(number, copy)

    def _recorded(self, name: str) -> list[_Day]:
        file = self.folder / f"{name}.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [_Day(**json.loads(line)) for line in lines]

    def _record(self, name: str, day: _Day) -> _Day:
        with (self.folder / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(asdict(day)) + "\n")
        return day

    def _run(self, number: int, tables: Path) -> _Day:
        start, part = _FIRST + timedelta(days=number), self.folder / "day"
        # A run that was ended leaves its logs.
        shutil.rmtree(part, ignore_errors=True)
        sample = write_sample(
            part,
            Sample(
                self.size,
                seed=number + 1,
                hours=24.0,
                start=start,
                history_days=1,
                clients=self.clients,
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
            run(self.spark, str(tables), inputs, options)
        seconds = time.perf_counter() - begin
        shutil.rmtree(part)
        sizes = [file.stat().st_size for file in tables.rglob("*") if file.is_file()]
        return _Day(seconds, resident.peak_bytes, len(sizes), sum(sizes))


def main() -> int:
    """Runs all days and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline.year", description=__doc__)
    parser.add_argument("--days", type=int, default=365, help="15 or more")
    parser.add_argument("--size", type=float, default=20.0, help="MB of logs a day")
    parser.add_argument("--clients", type=int, default=60, help="client-ids of small tenants")
    parser.add_argument("--folder", type=Path, help="keep the tables there, and go on from them")
    parser.add_argument("--out", type=Path, help="write the table there, too")
    asked = parser.parse_args()
    if asked.days < _TENTH + 1 + _LAST:
        parser.error("--days: at least 15, for the tenth and the last five")
    os.sched_setaffinity(0, set(quiet_cores(_CORES)))
    with TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        size = round(asked.size * 1e6)
        spark = session(f"local[{_CORES}]")
        try:
            days, again = _Year(spark, folder, size, asked.clients).days(asked.days)
        finally:
            spark.stop()
        own = [
            _in_its_own_process(folder, size, asked.clients, number, name)
            for number, name in ((_TENTH, "nine"), (asked.days, "tables"))
        ]
    machine = [*describe(), f"{asked.days} days of {asked.size:g} MB, {_KEEP.days} of them kept"]
    table = as_table(_rows(days, again, own))
    text = "\n".join((*(f"- {line}" for line in machine), "", table))
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n", encoding="utf-8")
    return 0


def _in_its_own_process(folder: Path, size: int, clients: int, number: int, name: str) -> _Day:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_alone, (folder, size, clients, number, name))


def _alone(folder: Path, size: int, clients: int, number: int, name: str) -> _Day:
    spark = session(f"local[{_CORES}]", brief=True)
    try:
        return _Year(spark, folder, size, clients).alone(number, name)
    finally:
        spark.stop()


def _rows(days: Sequence[_Day], again: Sequence[_Day], own: Sequence[_Day]) -> list[Row]:
    last_days, last = days[-_LAST:], days[-1]
    tenth_s, last_s = (median(day.seconds for day in each) for each in (again, last_days))
    # The tables are full after the days that are kept; a shorter trial never fills them.
    full = days[_KEEP.days :][:1] or days[-1:]
    number = days.index(full[0]) + 1
    return [
        Row("the tenth run, in turns with the last", tenth_s, "s"),
        Row("the last run", last_s, "s", 1.3 * tenth_s),
        Row("the tenth run in its own process", own[0].seconds, "s"),
        Row("the run after the last in its own process", own[1].seconds, "s"),
        Row("memory of the tenth run in its own process", own[0].memory_bytes / 1e6, "MB"),
        Row("memory of the run after the last in its own process", own[1].memory_bytes / 1e6, "MB"),
        Row("memory of the shared process in the tenth run", days[_TENTH].memory_bytes / 1e6, "MB"),
        Row(f"memory of the shared process in run {number}", full[0].memory_bytes / 1e6, "MB"),
        Row("memory of the shared process in the last run", last.memory_bytes / 1e6, "MB"),
        Row(f"files of the tables after {number} days", full[0].files, "files"),
        Row("files of the tables after the last day", last.files, "files"),
        Row(f"bytes of the tables after {number} days", full[0].table_bytes / 1e6, "MB"),
        Row("bytes of the tables after the last day", last.table_bytes / 1e6, "MB"),
    ]


if __name__ == "__main__":
    sys.exit(main())
