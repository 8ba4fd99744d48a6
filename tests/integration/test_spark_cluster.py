"""The pipeline on a Spark cluster: a master and two workers, of the pyspark that is installed."""

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest

from sidecar.pipeline.sample import Sample, write_sample
from sidecar.pipeline.tables import TABLES, Table

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
HERE = "127.0.0.1"
ENVIRONMENT = {**os.environ, "SPARK_LOCAL_IP": HERE, "PYSPARK_PYTHON": sys.executable}


@contextmanager
def daemon(log: Path, *command: str) -> Iterator[None]:
    """A process of Spark's, ended at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [SPARK_CLASS, *command], stdout=output, stderr=output, env=ENVIRONMENT
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def said(log: Path, pattern: str, deadline_s: float = 60.0) -> str:
    """What a process has written, once it has."""
    until = time.monotonic() + deadline_s
    while time.monotonic() < until:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.1)
    pytest.fail(f"{log} has no {pattern}: {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster with two workers of one core and a gigabyte each."""
    package = "org.apache.spark.deploy"
    with ExitStack() as cluster:
        log = tmp_path / "master.log"
        where = ("--host", HERE, "--port", "0", "--webui-port", "0")
        cluster.enter_context(daemon(log, f"{package}.master.Master", *where))
        url = said(log, r"Starting Spark master at (spark://\S+)")
        for name in ("a", "b"):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"work-{name}"))
            worker_log = tmp_path / f"worker-{name}.log"
            command = (f"{package}.worker.Worker", "--host", HERE, "--webui-port", "0", *size, url)
            cluster.enter_context(daemon(worker_log, *command))
            said(worker_log, r"(Successfully registered with master)")
        yield url


def made(out: Path, master: str, *inputs: str) -> None:
    """Runs the whole job, as a person does."""
    command = [sys.executable, "-m", "sidecar", "pipeline", "run", "--master", master]
    subprocess.run(
        [*command, "--candidates", "3", "--out", str(out), *inputs], check=True, env=ENVIRONMENT
    )


def rows(out: Path, table: Table) -> list[dict[str, object]]:
    found = ds.dataset(out / table.name, partitioning="hive").to_table(list(table.names))
    return sorted(found.to_pylist(), key=lambda row: [str(row[name]) for name in table.names])


def same(one: Sequence[dict[str, object]], other: Sequence[dict[str, object]]) -> bool:
    """Whether rows are equal, but for the last digits of sums of fractions."""
    return len(one) == len(other) and all(
        math.isclose(value, match, rel_tol=1e-9)
        if isinstance(value, float) and isinstance(match, float)
        else value == match
        for left, right in zip(one, other, strict=True)
        for value, match in zip(left.values(), right.values(), strict=True)
    )


def test_a_cluster_makes_the_tables_of_one_machine(master: str, tmp_path: Path) -> None:
    """All of them, of the same logs; both workers took part."""
    sample = write_sample(tmp_path / "sample", Sample(2_000_000, brokers=2))
    inputs = (
        *("--request-logs", str(sample.request_logs), "--volumes", str(sample.volumes)),
        *("--quotas", str(sample.quotas), "--capacity", str(sample.capacity)),
    )
    made(tmp_path / "cluster", master, *inputs)
    made(tmp_path / "local", "local[2]", *inputs)
    for table in TABLES:
        here = rows(tmp_path / "local", table)
        assert here or table.name == "quarantine", table.name
        assert same(here, rows(tmp_path / "cluster", table)), table.name
    for name in ("a", "b"):
        assert [] != list((tmp_path / f"work-{name}").glob("app-*/*/stderr"))
