"""The pipeline on a real S3 server: logs and history from a bucket, tables in a bucket.

The server is s3proxy over its memory (s3proxy/pom.xml): S3's protocol with signed requests, by two
clients that have nothing in common, Arrow's and Hadoop's. What it can't show is Amazon's own:
roles, regions, and throttling by the store.
"""

import asyncio
import gzip
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import pyarrow.dataset as ds
import pytest
from pyarrow import fs

from sidecar.demo.ports import Ports
from sidecar.pipeline.sample import Sample, write_sample
from sidecar.pipeline.tables.schemas import TABLES, Table
from tests.kafka.servers import raw_server
from tests.pipeline.growing_logs import lines
from tests.support.command import Done, command
from tests.support.gate import Gate
from tests.support.maven import jars_of
from tests.support.waiting import POLL_S, listens, seen

pytestmark = pytest.mark.timeout(900)

HERE = Path(__file__).parent
POM = HERE.parents[1] / "deploy/spark/s3-connector/pom.xml"
KEY, SECRET = "the-key", "hidden-from-all"
_RUN_S = 400.0
"""A run of Spark's, on a machine that does other things too."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running S3 server.

    Attributes:
        environ: with which a client finds it and may do all.
        port: on loopback.
        jars: the folder of Spark's.
    """

    environ: Mapping[str, str]
    port: int
    jars: Path

    def system(self) -> fs.S3FileSystem:
        """Returns a client of the store for the test itself."""
        return fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            endpoint_override=self.environ["AWS_ENDPOINT_URL"],
            allow_bucket_creation=True,
        )

    def put(self, bucket: str, name: str, content: bytes) -> None:
        """Writes a file."""
        with self.system().open_output_stream(f"{bucket}/{name}", compression=None) as file:
            file.write(content)

    def names(self, place: str) -> list[str]:
        """The names of the files below a place."""
        found = self.system().get_file_info(fs.FileSelector(place, recursive=True))
        return [each.path for each in found if each.type == fs.FileType.File]

    async def run(self, *words: str, **environ: str) -> Done:
        """A command of the pipeline's, with two cores; an empty variable is none."""
        reported = ("pipeline", *words, "--master", "local[2]", "--jars", str(self.jars))
        merged = {name: text for name, text in {**self.environ, **environ}.items() if text}
        return await command(*reported, environ=merged, timeout_s=_RUN_S)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the buckets "logs" and "tables"."""
    own, jars = (asyncio.run(jars_of(pom)) for pom in (HERE / "s3proxy/pom.xml", POM))
    folder = tmp_path_factory.mktemp("buckets")
    with Ports() as ports:
        port = ports.reserve()
        settings = folder.with_suffix(".properties")
        settings.write_text(
            f"s3proxy.endpoint=http://127.0.0.1:{port}\n"
            f"s3proxy.authorization=aws-v4\ns3proxy.identity={KEY}\ns3proxy.credential={SECRET}\n"
            "jclouds.provider=transient\njclouds.identity=x\njclouds.credential=x\n"
        )
        java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{own}/*", "org.gaul.s3proxy.Main"]
        with (
            folder.with_suffix(".log").open("wb") as log,
            subprocess.Popen(
                [*java, "--properties", str(settings)], stdout=log, stderr=log
            ) as process,
        ):
            try:
                asyncio.run(seen("an S3 server", partial(listens, port)))
                made = Server(_environ(port, folder), port, jars)
                for bucket in ("logs", "tables"):
                    made.system().create_dir(bucket)
                yield made
            finally:
                process.kill()


def _environ(port: int, folder: Path) -> dict[str, str]:
    plain = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    return plain | {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        # Else whoever has no key waits for a machine that would issue one.
        "AWS_EC2_METADATA_DISABLED": "true",
        "TMPDIR": str(folder.parent),
    }


def rows(place: str, system: fs.FileSystem, table: Table) -> Counter[tuple[str, ...]]:
    """The rows of a table, without where their lines were read."""
    names = [name for name in table.names if not name.startswith("src_")]
    found = ds.dataset(f"{place}/{table.name}", filesystem=system, partitioning="hive")
    return Counter(
        tuple(f"{value:.9g}" if isinstance(value, float) else str(value) for value in row.values())
        for row in found.to_table(names).to_pylist()
    )


def users(place: str, system: fs.FileSystem) -> Counter[str]:
    """The users of the requests in the tables."""
    found = ds.dataset(f"{place}/silver_request", filesystem=system, format="parquet")
    return Counter(found.to_table(["user"])["user"].to_pylist())


def ok(done: Done) -> str:
    """What a command that did all has said."""
    assert 0 == done.code, done.said
    assert SECRET not in done.said
    return done.said


def refusal(done: Done) -> str:
    """The line that a command has ended with; nothing that it said has a traceback or a secret."""
    assert 2 == done.code, done.said
    for part in (SECRET, "Traceback", "\tat "):
        assert part not in done.said
    return done.err.strip().splitlines()[-1]


async def test_a_bucket_has_the_same_tables_as_a_disk(server: Server, tmp_path: Path) -> None:
    """Logs are plain and packed, with any names and options; all tables and the history agree."""
    sample = write_sample(tmp_path / "sample", Sample(150_000, brokers=2))
    for number, file in enumerate(sorted(sample.volumes.iterdir())):
        if number < 3:
            server.put("logs", f"volumes/{file.name}", file.read_bytes())
        else:
            file.unlink()
    for number, log in enumerate(sorted(each for each in sample.request_logs.rglob("*.log*"))):
        name = f"my logs/{log.relative_to(sample.request_logs)}"
        content = log.read_bytes()
        packed = log.suffix == ".gz"
        if number % 2 == 0 and not packed:
            name, content = f"{name}.gz", gzip.compress(content)
        server.put("logs", name, content)
    assert {True, False} == {name.endswith(".gz") for name in server.names("logs/my logs")}
    rest = ("--quotas", str(sample.quotas), "--candidates", "2", "--quotas-at", "2026-01-01")
    # An option that could be taken for a broker's id.
    logs = f"s3://logs/my logs/?endpoint_override={server.environ['AWS_ENDPOINT_URL']}"
    there = ("--request-logs", logs, "--volumes", "s3a://logs/volumes", "--out", "s3://tables/all")
    ok(await server.run("run", *there, *rest))
    out = tmp_path / "tables"
    here = ("--request-logs", str(sample.request_logs), "--volumes", str(sample.volumes))
    ok(await server.run("run", *here, "--out", str(out), *rest))
    for table in TABLES:
        expected = rows(str(out), fs.LocalFileSystem(), table)
        assert expected or table.name == "quarantine", table.name
        assert expected == rows("tables/all", server.system(), table), table.name
    files = ds.dataset("tables/all/silver_request", filesystem=server.system(), format="parquet")
    read = {*files.to_table(["src_file"])["src_file"].to_pylist()}
    assert {f"s3://{name}" for name in server.names("logs/my logs")} == read


def kill_after(server: Server, last: str, *words: str) -> None:
    """Runs a command, and kills it between a request to the server and the next.

    Args:
        server: that it reads and writes.
        last: how the first line of the last request begins that is answered.
        words: the command.
    """
    reported = ("pipeline", *words, "--master", "local[2]", "--jars", str(server.jars))
    with (
        Gate(server.port, last.encode()) as gate,
        TemporaryFile() as said,
        subprocess.Popen(
            [sys.executable, "-m", "sidecar", *reported],
            env={**server.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{gate.port}"},
            stdout=said,
            stderr=said,
            start_new_session=True,
        ) as process,
    ):
        try:
            until = time.monotonic() + _RUN_S
            while not gate.blocked.wait(POLL_S):
                if process.poll() is None and time.monotonic() < until:
                    continue
                said.seek(0)
                text = said.read().decode(errors="replace")
                pytest.fail(f"{last} was not asked for, or nothing after it: {text}")
        finally:
            # This kills Spark's JVM with it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


async def test_a_day_in_a_bucket_is_replaced_whole_or_not_at_all(server: Server) -> None:
    """Killed while it writes, it is as it was; while it replaces, the next command finishes it."""
    place = "tables/killed"
    for name, user, count in (("old", "old", 50), ("new", "new", 60)):
        for broker in (1, 2):
            server.put("logs", f"{name}/broker-{broker}/a.log", lines(count, user=user))
    silver = ("silver", "--out", f"s3a://{place}", "--request-logs")
    ok(await server.run(*silver, "s3://logs/old"))
    await asyncio.to_thread(kill_after, server, f"PUT /{place}/_staging/", *silver, "s3://logs/new")
    assert {"old": 100} == users(place, server.system())
    refused = refusal(await server.run(*silver, "s3://logs/new"))
    assert f"s3a://{place}/_lock" in refused
    server.system().delete_file(f"{place}/_lock")
    placing = f"PUT /{place}/_journal.placing "
    await asyncio.to_thread(kill_after, server, placing, *silver, "s3://logs/new")
    assert f"{place}/_journal.placing" in server.names(place)
    assert not any(
        "/silver_request/dt=" in name for name in server.names(f"{place}/silver_request")
    )
    server.system().delete_file(f"{place}/_lock")
    ok(await server.run("usage", "--out", f"s3a://{place}"))
    assert {"new": 120} == users(place, server.system())
    refused = refusal(await server.run(*silver, "s3a://logs/old/broker-1"))
    assert all(each in refused for each in ("2026-11-20", "120", "50"))
    assert {"new": 120} == users(place, server.system())
    ok(await server.run(*silver, "s3://logs/old/*/a.log", "--allow-fewer"))
    assert {"old": 100} == users(place, server.system())
    assert [] == [name for name in server.names(place) if "/_" in name.replace("/_SUCCESS", "")]


LOGS_MISTAKES: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "no bucket": ("s3://nowhere/x", {}, "bucket"),
    "wrong secret": (
        "s3://logs",
        {"AWS_SECRET_ACCESS_KEY": f"{SECRET}-not"},
        "AWS_ACCESS_KEY_ID",
    ),
    "no credentials": (
        "s3://logs",
        {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
        "AWS_ACCESS_KEY_ID",
    ),
    "nobody there": (
        "s3://logs",
        {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
        "AWS_ENDPOINT_URL",
    ),
    "a secret in the path": (f"s3://{KEY}:{SECRET}@logs/x", {}, "credentials"),
    "an option that is none": ("s3://logs?regoin=a", {}, "regoin"),
}
"""What is wrong: the path, variables, and what the refusal names besides the place."""


@pytest.mark.parametrize("what", LOGS_MISTAKES)
async def test_logs_that_cant_be_had_are_reported_in_a_line(server: Server, what: str) -> None:
    """The line comes before Spark starts, says what to do, and has no secret."""
    path, environ, named = LOGS_MISTAKES[what]
    done = await server.run("silver", "--out", "s3://tables/x", "--request-logs", path, **environ)
    place = path.replace(f"{KEY}:{SECRET}@", "").partition("?")[0]
    line = refusal(done)
    assert line.startswith(f"{place}: ")
    assert named in line
    assert [line] == done.err.splitlines()


async def test_a_silent_store_is_abandoned(server: Server) -> None:
    """It is, after half a minute by the store's own clock; its client would wait for 99 s."""
    times: list[float] = []

    async def keep_silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        times.append(time.monotonic())
        await reader.read()
        times.append(time.monotonic())

    words = ("silver", "--out", "s3://tables/x", "--request-logs", "s3://logs")
    async with raw_server(keep_silent) as silent:
        done = await server.run(*words, AWS_ENDPOINT_URL=f"http://{silent}")
    assert refusal(done).startswith("s3://logs: ")
    assert "AWS_ENDPOINT_URL" in refusal(done)
    assert 20 < max(times) - min(times) < 90


TABLES_MISTAKES: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "no bucket": ("s3a://nowhere/x", {}, "bucket"),
    "nobody there": (
        "s3a://tables/x",
        {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
        "AWS_ENDPOINT_URL",
    ),
}


@pytest.mark.parametrize("what", TABLES_MISTAKES)
async def test_tables_that_cant_be_had_are_reported_in_a_line(server: Server, what: str) -> None:
    """Hadoop's client would try for an hour; nothing is left behind."""
    out, environ, named = TABLES_MISTAKES[what]
    done = await server.run("forecast", "--out", out, **environ)
    line = refusal(done)
    assert line.startswith(out)
    assert named in line
    assert [] == [name for name in server.names("tables") if name.startswith("tables/x")]


RACE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from sidecar.pipeline.tables.files import HadoopFiles
from sidecar.pipeline.runtime.session import session

files = HadoopFiles(session("local[2]", {"spark.jars": sys.argv[1]}))
with ThreadPoolExecutor(8) as threads:
    for number in range(5):
        place = f"s3://tables/race/{number}"
        created = list(threads.map(lambda each: files.create(place, str(each)), range(8)))
        print(created.count(True), files.read(place) == str(created.index(True)))
"""
"""Eight threads create one file at once; it has the text of the one that succeeded."""


def test_of_several_who_lock_at_once_one_succeeds(server: Server) -> None:
    """The store decides, not a listing before."""
    jars = ",".join(str(jar) for jar in server.jars.glob("*.jar"))
    done = subprocess.run(
        [sys.executable, "-c", RACE, jars],
        env=dict(server.environ),
        capture_output=True,
        text=True,
        timeout=_RUN_S,
        check=False,
    )
    assert ["1 True"] * 5 == done.stdout.splitlines(), done.stderr
