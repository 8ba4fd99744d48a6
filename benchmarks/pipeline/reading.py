"""From logs to tables, as shares of S, and the peers on the same files and cores.

Every figure is MB of log text a second, the median of several turns; the stages take turns, so that
what else the machine does meets all of them alike. Usage is written as Parquet, by DuckDB too.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from benchmarks.pipeline import peers
from benchmarks.rows import Row
from usage_pipeline.batch.run import Inputs, Options, Run
from usage_pipeline.batch.stages import STAGES, Stage
from usage_pipeline.ingest.log_parts import SPLIT_BYTES, Part, in_tasks, parse_part, parts_of
from usage_pipeline.ingest.paths import ALL_UTC
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.ingest.stored_logs import log_files
from usage_pipeline.runtime.by_workers import Batches, by_workers
from usage_pipeline.silver.request_writer import Span, write_requests
from usage_pipeline.tables.commits import begin, pinned
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.parquet_files import files_of
from usage_pipeline.tables.schemas import QUARANTINE, SILVER_REQUEST
from usage_pipeline.tables.store import Store, commit_all
from usage_pipeline.tables.table_files import TableFile

_TURNS: Final = 3
_PARSE: Final = 0.25
_SILVER: Final = 0.20
_USAGE: Final = 0.17


def measure(spark: SparkSession, logs: Path, part: Path, cores: int) -> Iterator[Row]:
    """S, the stages beside it, and the peers.

    Args:
        spark: warm or not: the first turn is not counted.
        logs: a folder of plain files, each below a folder called broker-N.
        part: another with fewer, for peers that are slow.
        cores: that Spark has; the peers get as many, where they can use them.
    """
    files, megabytes = _files(logs)
    with TemporaryDirectory() as folder:
        out, by_duckdb = Path(folder) / "tables", Path(folder) / "duckdb.parquet"
        works: dict[str, Callable[[], object]] = {
            "S": lambda: _scan(spark, logs),
            "parse": lambda: _parsed(spark, logs),
            "silver": lambda: written(spark, logs, out),
            "usage": lambda: _usage(spark, logs, out),
            "DuckDB": lambda: peers.by_duckdb(files, cores, by_duckdb),
        }
        speeds = _speeds(works, megabytes)
    s = median(speeds["S"])
    remark = f"{megabytes:,.0f} MB in {len(files)} files, {cores} cores"
    yield Row("S: bare scan by Spark, warm", s, "MB/s", remark=_spread(speeds["S"], remark))
    duckdb = median(speeds["DuckDB"])
    yield _share("parse", speeds["parse"], s, _PARSE)
    yield _share("logs to silver_request (Parquet)", speeds["silver"], s, _SILVER)
    yield _share("logs to gold_usage_1s", speeds["usage"], s, _USAGE)
    usage = median(speeds["usage"])
    yield Row(
        "the same, beside DuckDB, which does less", usage / duckdb, "times", 1.0, at_least=True
    )
    yield Row("peer: DuckDB", duckdb, "MB/s", remark=_spread(speeds["DuckDB"], f"{cores} cores"))
    yield from _slow_peers(part, cores)


def _files(logs: Path) -> tuple[list[Path], float]:
    """The logs, and how many MB they are."""
    files = sorted(file for file in logs.rglob("*") if file.is_file())
    return files, sum(file.stat().st_size for file in files) / 1e6


def _slow_peers(logs: Path, cores: int) -> Iterator[Row]:
    files, megabytes = _files(logs)
    begin = time.perf_counter()
    peers.by_msgspec(files)
    speed = megabytes / (time.perf_counter() - begin)
    yield Row("peer: plain Python with msgspec", speed, "MB/s", remark="1 core, one turn")
    os.environ["POLARS_MAX_THREADS"] = str(cores)
    begin = time.perf_counter()
    peers.by_polars(files)
    speed = megabytes / (time.perf_counter() - begin)
    yield Row("peer: polars", speed, "MB/s", remark=f"{cores} cores, one turn")


def _scan(spark: SparkSession, logs: Path) -> None:
    read = spark.read.option("recursiveFileLookup", value=True)
    read.text(str(logs)).select(sql.sum(sql.octet_length("value"))).collect()


def written(spark: SparkSession, logs: Path, out: Path) -> tuple[TableFile, ...]:
    """The table as the job writes and commits it, anew each time."""
    shutil.rmtree(out, ignore_errors=True)
    store, requests = _store(spark, out), RequestLogs(str(logs))
    parts = parts_of(log_files(requests.path, ALL_UTC), SPLIT_BYTES)
    rejected = store.target(QUARANTINE)
    reports = write_requests(spark, parts, store.target(SILVER_REQUEST), rejected, Span())
    store.add(SILVER_REQUEST, files_of(reports, SILVER_REQUEST))
    commit_all([store], "a benchmark", datetime.now(UTC))
    return _store(spark, out).files(SILVER_REQUEST)


def _usage(spark: SparkSession, logs: Path, out: Path) -> None:
    """As ``pipeline usage --request-logs`` writes and commits it."""
    shutil.rmtree(out, ignore_errors=True)
    store, now, asked = _store(spark, out), datetime.now(UTC), RequestLogs(str(logs))
    STAGES[Stage.USAGE](Run(spark, store, Inputs(asked), Options(now), asked.files()))
    commit_all([store], "a benchmark", now)


def _store(spark: SparkSession, out: Path) -> Store:
    tables = pinned(Folder.parse(str(out)))
    begin(tables)
    return Store(spark, tables)


def _parsed(spark: SparkSession, logs: Path) -> None:
    """Parses all lines in the tasks that read them, and writes nothing."""
    parts = parts_of(log_files(str(logs), ALL_UTC, None), SPLIT_BYTES)

    def parse(_: int, some: Sequence[Part]) -> Batches:
        rows = sum(parsed.rows.num_rows for part in some for parsed in parse_part(part))
        yield pa.RecordBatch.from_arrays([pa.array([rows])], ["rows"])

    tasks = in_tasks(parts, spark.sparkContext.defaultParallelism)
    by_workers(spark, tasks, parse, "rows bigint").collect()


def _speeds(works: dict[str, Callable[[], object]], megabytes: float) -> dict[str, list[float]]:
    speeds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(_TURNS + 1):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            if turn:
                speeds[name].append(megabytes / (time.perf_counter() - begin))
    return speeds


def _share(name: str, speeds: list[float], s: float, target: float) -> Row:
    speed = median(speeds)
    remark = _spread(speeds, f"{speed / s:.2f} S")
    return Row(name, speed, "MB/s", target * s, remark=remark, at_least=True)


def _spread(speeds: list[float], remark: str) -> str:
    return f"{remark}; {min(speeds):,.0f} to {max(speeds):,.0f}"
