"""The pipeline at the size of a cluster: how long each stage takes, and how much memory who takes.

``python -m benchmarks.pipeline.cluster --size 20`` makes 20 GB of logs of 60,000 client-ids in an
S3 server that stores on this machine's disk, and has ``pipeline run`` make all tables of them
there, by a master and four executors of Spark's own: a driver with a heap of 1 GB, executors of
2 GB, most of it for Python. Then it has logs of the same bytes in 1,000 files and in 100,000 there.

It takes half as much room again as the logs, for tables and what is sent between executors. It
measures and does not judge. A run that fails ends it with what the command has said; the report may
fail.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.harness.machine import Stolen, describe
from benchmarks.pipeline.memory import DRIVERS_JAVA, DRIVERS_PYTHON, Roles
from benchmarks.pipeline.servers import environment, spark, store
from usage_pipeline.sample import Sample, write_sample

_EXECUTORS: Final = 4
_BROKERS: Final = 4
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "640m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
    # As this program has it where Spark is a part of the command: memory is returned to the system.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
}
_DRIVER_BYTES: Final = 1.0e9
_EXECUTOR_BYTES: Final = 2.0e9
_MORE_BYTES: Final = 200e6
_REPORT_BYTES: Final = 8e9
_STEP: Final = re.compile(r"^(\w+) ([\d.]+) s$", re.MULTILINE)
_MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended.

    Attributes:
        seconds: of it all.
        steps: their names and seconds, in order.
        peak_bytes: of each role (``Roles``).
    """

    seconds: float
    steps: Sequence[tuple[str, float]]
    peak_bytes: Mapping[str, int]


class FailedError(Exception):
    """A command has failed; what it has said is on standard error.

    Attributes:
        ran: how far it came.
    """

    def __init__(self, message: str, ran: Ran) -> None:
        super().__init__(message)
        self.ran = ran


def main() -> int:
    """Runs both parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline.cluster")
    parser.add_argument("--size", type=float, default=20.0, help="GB of logs")
    parser.add_argument("--clients", type=int, default=60_000, help="client-ids")
    parser.add_argument("--files", type=int, default=100_000, help="small files of logs")
    parser.add_argument("--parts", nargs="+", choices=("size", "files"), default=("size", "files"))
    parser.add_argument("--work", type=Path, help="a folder on the disk for what is made")
    parser.add_argument("--out", type=Path, help="write the tables there, too")
    asked = parser.parse_args()
    stolen = Stolen()
    text = [f"- {line}" for line in describe()]
    text += [f"- {_EXECUTORS} executors of one core; {_settings_line()}"]
    with TemporaryDirectory(dir=asked.work) as name:
        folder = Path(name)
        if "size" in asked.parts:
            text += ["", *_printed(_of_size(folder, asked.size * 1e9, asked.clients))]
        if "files" in asked.parts:
            text += ["", *_printed(_of_files(folder, asked.files))]
    text += ["", f"{stolen}."]
    print("\n".join(text))
    if asked.out is not None:
        asked.out.write_text("\n".join(text) + "\n", encoding="utf-8")
    return 0


def _settings_line() -> str:
    return ", ".join(f"`{name}={value}`" for name, value in _SETTINGS.items())


def _of_size(folder: Path, size: float, clients: int) -> Iterator[str]:
    """Logs in a bucket to tables in another one, and the report."""
    buckets = folder / "buckets"
    (buckets / "tables").mkdir(parents=True)
    begun = time.perf_counter()
    sample = Sample(round(size), brokers=_BROKERS, hours=24, clients=clients)
    written = write_sample(buckets / "logs", sample)
    _report(f"{written.bytes / 1e9:.1f} GB written in {time.perf_counter() - begun:.0f} s")
    words = ["--request-logs", "s3://logs/request-logs", "--volumes", "s3://logs/volumes"]
    words += ["--quotas", str(written.quotas), "--capacity", str(written.capacity)]
    words += ["--out", "s3://tables/all"]
    page = folder / "report.html"
    with store(folder, buckets) as variables:
        environ = environment() | variables
        with spark(folder, _EXECUTORS, "1g", environ) as master:
            ran = _run(["run", "--master", master, *words, *_conf()], environ)
        tables = sum(file.stat().st_size for file in (buckets / "tables").rglob("*.parquet"))
        yield (
            f"{written.bytes / 1e9:.1f} GB of logs, {written.lines:,} lines of {clients:,}"
            f" client-ids and some, in S3; {tables / 1e9:.2f} GB of tables there:"
        )
        yield from ("", "| stage | seconds |", "|---|---|")
        yield from (f"| {name} | {seconds:,.1f} |" for name, seconds in ran.steps)
        yield f"| all, with Spark's start and the commit | {ran.seconds:,.1f} |"
        try:
            reported = _run(
                ["report", "--out", "s3://tables/all", "--html", str(page)], environ, _REPORT_BYTES
            )
            yield f"| report, {page.stat().st_size / _MB:.1f} MB | {reported.seconds:,.1f} |"
        except FailedError as failed:
            reported = failed.ran
            yield f"| report: FAILED, with {_REPORT_BYTES / 1e9:.0f} GB at most | |"
    yield from ("", "| process | peak, MB | at most |", "|---|---|---|")
    most = {DRIVERS_JAVA: _DRIVER_BYTES, DRIVERS_PYTHON: _DRIVER_BYTES}
    for role, peak in sorted(ran.peak_bytes.items()):
        bound = _EXECUTOR_BYTES if role.endswith("both") else most.get(role)
        yield f"| {role} | {peak / _MB:,.0f} | {'' if bound is None else f'{bound / _MB:,.0f}'} |"
    yield f"| report's Python | {reported.peak_bytes[DRIVERS_PYTHON] / _MB:,.0f} | |"
    shutil.rmtree(buckets)


def _of_files(folder: Path, count: int) -> Iterator[str]:
    """The same lines in few files and in many."""
    yield "| files, in S3 | seconds | driver's JVM, MB | driver's Python, MB | both, MB |"
    yield "|---|---|---|---|---|"
    words = ["--request-logs", "s3://logs/request-logs", "--out", "s3://tables/all"]
    both: list[int] = []
    for files in (count // 100, count):
        work = folder / f"files-{files}"
        buckets = work / "buckets"
        (buckets / "tables").mkdir(parents=True)
        _divided(work / "whole", buckets / "logs/request-logs", files, count)
        with store(folder, buckets) as variables:
            environ = environment() | variables
            with spark(folder, _EXECUTORS, "1g", environ) as master:
                ran = _run(["run", "--master", master, *words, *_conf()], environ)
        java, python = (ran.peak_bytes[role] for role in (DRIVERS_JAVA, DRIVERS_PYTHON))
        both.append(java + python)
        cells = (f"{each / _MB:,.0f}" for each in (java, python, java + python))
        yield f"| {files:,} | {ran.seconds:,.1f} | {' | '.join(cells)} |"
        steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in ran.steps)
        _report(f"{files:,} files: {steps}")
        shutil.rmtree(work)
    yield ""
    more = (both[1] - both[0]) / _MB
    yield f"The driver takes {more:,.0f} MB more; at most {_MORE_BYTES / _MB:,.0f} are to be."


def _divided(whole: Path, logs: Path, files: int, lines: int) -> None:
    """Logs of so many lines or some more, in so many files of about the same length.

    Args:
        whole: a folder for the same logs before they are divided.
        logs: where the files are to be.
        files: how many, about.
        lines: at least.
    """
    size = round(1.1 * lines * 1090)
    written = write_sample(whole, Sample(size, brokers=_BROKERS, hours=24))
    of_file = max(1, written.lines // files)
    for log in sorted(written.request_logs.glob("*/*")):
        text = log.read_bytes().splitlines(keepends=True)
        folder = logs / log.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        for first in range(0, len(text), of_file):
            name = folder / f"{log.name}.{first:06}"
            name.write_bytes(b"".join(text[first : first + of_file]))


def _conf() -> list[str]:
    return [word for each in _SETTINGS.items() for word in ("--conf", "=".join(each))]


def _run(words: Sequence[str], environ: Mapping[str, str], most_bytes: float | None = None) -> Ran:
    """A command of the pipeline's.

    Args:
        words: after ``throttle-sidecar pipeline``.
        environ: all of its variables.
        most_bytes: of memory of its own, so that the machine survives it; None: as it likes.

    Raises:
        FailedError: it has failed.
    """
    bound = [] if most_bytes is None else ["prlimit", f"--data={most_bytes:.0f}"]
    begun = time.perf_counter()
    command = [*bound, sys.executable, "-m", "sidecar", "pipeline", *words]
    with (
        subprocess.Popen(
            command,
            env=dict(environ),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process,
        Roles(process.pid) as roles,
    ):
        said, _ = process.communicate()
    seconds = time.perf_counter() - begun
    steps = [(name, float(took)) for name, took in _STEP.findall(said)]
    ran = Ran(seconds, steps, roles.peak_bytes)
    _report(said)
    if process.returncode:
        peaks = {role: f"{peak / _MB:,.0f} MB" for role, peak in roles.peak_bytes.items()}
        _report(f"peaks: {peaks}")
        raise FailedError(f"{words[0]} ended with {process.returncode}", ran)
    return ran


def _printed(lines: Iterator[str]) -> Iterator[str]:
    """The same, each reported once it is known: what follows may fail."""
    for line in lines:
        _report(line)
        yield line


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
