"""Measures the pipeline and prints one table; ``--size`` of logs, 2.5 GB by default.

Everything runs on two cores, Spark, peers and clients alike. It measures and does not judge: a
target that is missed is marked, and the exit code is 0 all the same.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.harness.machine import describe, quiet_cores
from benchmarks.pipeline import peers, reading, replaying, whole
from benchmarks.rows import Row, as_table
from usage_pipeline.runtime.session import session
from usage_pipeline.sample import Sample, write_sample

_CORES: Final = 2
_TIMES: Final = (1, 4, 16)


def main() -> int:
    """Runs all of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--size", type=float, default=2.5, help="GB of logs")
    parser.add_argument("--out", type=Path, help="write the table there, too")
    asked = parser.parse_args()
    os.sched_setaffinity(0, set(quiet_cores(_CORES)))
    machine = [*describe(), f"{_CORES} of the cores for everything; peers: {peers.versions()}"]
    with TemporaryDirectory() as folder:
        figures = list(_printed(_measure(Path(folder), asked.size * 1e9)))
    text = "\n".join((*(f"- {line}" for line in machine), "", as_table(figures)))
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n", encoding="utf-8")
    return 0


def _measure(folder: Path, size: float) -> Iterator[Row]:
    sample = folder / "sample"
    write_sample(sample, Sample(size_bytes=round(size), brokers=4, hours=24))
    yield from whole.measure(sample, folder, _CORES)
    part = folder / "part"
    write_sample(part, Sample(size_bytes=round(size / 5), brokers=4, hours=2))
    spark = session(f"local[{_CORES}]")
    try:
        yield from reading.measure(spark, sample / "request-logs", part / "request-logs", _CORES)
        yield from replaying.measure(spark, folder / "tables", folder)
    finally:
        spark.stop()
    days = []
    for times in _TIMES:
        day = folder / f"day-{times}"
        size_bytes = round(size / max(_TIMES) * times)
        write_sample(day, Sample(size_bytes=size_bytes, brokers=4, hours=24))
        days.append((times, day))
    yield from whole.linear(folder, days)


def _printed(figures: Iterator[Row]) -> Iterator[Row]:
    for figure in figures:
        print(f"{figure.name}: {figure.value:,.3g} {figure.unit} {figure.remark}", file=sys.stderr)
        yield figure


if __name__ == "__main__":
    sys.exit(main())
