"""The pipeline on a Spark cluster: a master and two workers, of the pyspark that is installed."""

import asyncio
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.support.waiting import seen
from tests.usage_pipeline.build import rows_in
from usage_pipeline.sample import Sample, write_sample
from usage_pipeline.tables.schemas import TABLES, Table

pytestmark = pytest.mark.timeout(900)

SPARK = Path(pyspark.__file__).parent / "bin"
DEPLOY = Path(__file__).parents[2] / "deploy" / "spark"
HERE = "127.0.0.1"
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
ENVIRONMENT = {**CLEAN, "SPARK_LOCAL_IP": HERE, "PYSPARK_PYTHON": sys.executable}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Spark cluster that runs.

    Attributes:
        url: of the master.
        work: the folders of its workers.
    """

    url: str
    work: tuple[Path, ...]

    def executors(self) -> list[list[Path]]:
        """The folders of each worker's executors, of all applications."""
        return [sorted(folder.glob("app-*/*")) for folder in self.work]


@contextmanager
def daemon(log: Path, *command: str) -> Iterator[None]:
    """A process of Spark's, ended at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [SPARK / "spark-class", *command], stdout=output, stderr=output, env=ENVIRONMENT
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def said(log: Path, pattern: str) -> str:
    """What a process has written, once it has."""

    def search() -> re.Match[str] | None:
        return re.search(pattern, log.read_text(errors="replace"))

    found = asyncio.run(seen(f"{pattern} in {log}", search))
    assert found is not None
    return found[1]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Two workers of one core and a gigabyte each; what executors were sent is removed."""
    package = "org.apache.spark.deploy"
    folders = (tmp_path / "work-a", tmp_path / "work-b")
    with ExitStack() as running:
        log = tmp_path / "master.log"
        where = ("--host", HERE, "--port", "0", "--webui-port", "0")
        running.enter_context(daemon(log, f"{package}.master.Master", *where))
        url = said(log, r"Starting Spark master at (spark://\S+)")
        for folder in folders:
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder))
            worker_log = folder.with_suffix(".log")
            command = (f"{package}.worker.Worker", "--host", HERE, "--webui-port", "0", *size, url)
            running.enter_context(daemon(worker_log, *command))
            said(worker_log, r"(Successfully registered with master)")
        yield Cluster(url, folders)
    for folder in folders:
        shutil.rmtree(folder)


@dataclass(frozen=True, slots=True)
class Made:
    """The tables that one machine makes.

    Attributes:
        arguments: of ``pipeline``, without --out: what they were made of.
        out: their folder.
    """

    arguments: tuple[str, ...]
    out: Path

    def again(self, out: Path) -> None:
        """Asserts that another folder has the same rows in each table."""
        for table in TABLES:
            here = rows(self.out, table)
            assert here or table.name in {"quarantine", "gold_cost"}, table.name
            assert same(here, rows(out, table)), table.name


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The tables of a made-up cluster's logs."""
    folder = tmp_path_factory.mktemp("local")
    sample = write_sample(folder / "sample", Sample(2_000_000, brokers=2))
    arguments = (
        *("run", "--candidates", "3"),
        *("--request-logs", str(sample.request_logs), "--volumes", str(sample.volumes)),
        *("--quotas", str(sample.quotas), "--capacity", str(sample.capacity)),
    )
    made = Made(arguments, folder / "tables")
    command = [sys.executable, "-m", "sidecar", "pipeline", *arguments, "--master", "local[2]"]
    subprocess.run([*command, "--out", str(made.out)], check=True, env=ENVIRONMENT)
    return made


def rows(out: Path, table: Table) -> list[dict[str, object]]:
    found = [{name: row[name] for name in table.names} for row in rows_in(out, table)]
    return sorted(found, key=lambda row: [str(row[name]) for name in table.names])


def same(one: Sequence[dict[str, object]], other: Sequence[dict[str, object]]) -> bool:
    """Whether rows are equal, but for the last digits of sums of fractions."""
    return len(one) == len(other) and all(
        math.isclose(value, match, rel_tol=1e-9)
        if isinstance(value, float) and isinstance(match, float)
        else value == match
        for left, right in zip(one, other, strict=True)
        for value, match in zip(left.values(), right.values(), strict=True)
    )


def test_a_cluster_makes_the_tables_of_one_machine(
    cluster: Cluster, local: Made, tmp_path: Path
) -> None:
    """It makes all of them, of the same logs; both workers took part."""
    out = tmp_path / "tables"
    command = [sys.executable, "-m", "sidecar", "pipeline", *local.arguments, "--out", str(out)]
    subprocess.run([*command, "--master", cluster.url], check=True, env=ENVIRONMENT)
    local.again(out)
    assert all(cluster.executors())


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python without a package of ours, or any other."""
    folder = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    listed = "import importlib.metadata as m; print([found.name for found in m.distributions()])"
    found = subprocess.run([python, "-c", listed], check=True, capture_output=True, env=CLEAN)
    assert b"[]\n" == found.stdout
    return python


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Path]:
    """What ``deploy/spark/pack`` makes, not compressed, and the same unpacked in ``here``."""
    file = tmp_path / "packed" / "packages.tar"
    subprocess.run([DEPLOY / "pack", file], check=True, env={**CLEAN, "PYTHON": sys.executable})
    shutil.unpack_archive(file, file.parent / "here", filter="tar")
    yield file
    shutil.rmtree(file.parent)


def test_workers_without_a_package_are_sent_what_they_need(
    cluster: Cluster, local: Made, bare_python: Path, archive: Path, tmp_path: Path
) -> None:
    """spark-submit sends it, from a machine without packages too; compiled kernels are kept."""
    out = tmp_path / "tables"
    command = (
        *(str(SPARK / "spark-submit"), "--master", cluster.url),
        *("--archives", f"{archive}#sidecar-packages"),
        *("--conf", "spark.executorEnv.PYTHONPATH=sidecar-packages"),
        *(str(DEPLOY / "submit.py"), "pipeline", *local.arguments, "--out", str(out)),
    )
    here = {"PYSPARK_PYTHON": str(bare_python), "PYTHONPATH": str(archive.parent / "here")}
    subprocess.run(command, check=True, env={**ENVIRONMENT, **here})
    local.again(out)
    assert all(cluster.executors())
    # Logs are read without kernels, and what needs them may be one executor's task.
    kernels = "sidecar-packages/usage_pipeline/kernels/__pycache__/*.nbc"
    assert any(
        [*executor.glob(kernels)] for executors in cluster.executors() for executor in executors
    )
