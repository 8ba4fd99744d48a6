"""The pipeline on a real S3 server: logs and history from a bucket, tables in a bucket.

The server is s3proxy (tests/support/s3_server.py), reached by two clients that have nothing in
common, Arrow's and Rust's, with TLS and without. Spark has no jars for it. What it can't show is
Amazon's own: roles, regions, and throttling by the store.
"""

import asyncio
import gzip
import os
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.command import Done
from tests.support.gate import Gate
from tests.support.kills import kill, seeded, session_of, sidecar, waited_for
from tests.support.raw_server import raw_server
from tests.support.s3_server import KEY, RUN_S, SECRET, Server, s3_server
from tests.usage_pipeline.build import rows_in
from tests.usage_pipeline.logs import lines, write
from usage_pipeline.sample import Sample, write_sample
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import TABLES, Table

KILLS: Final = max(1, int(os.environ.get("RUN_KILLS", "3")) // 2)
"""How often a run is killed at a random request: half as often as on a disk (test_killed_runs.py),
since each, with the retry, costs a minute here."""

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the buckets "logs" and "tables"."""
    with s3_server(tmp_path_factory.mktemp("buckets")) as started:
        yield started


Tables = dict[str, Counter[tuple[str, ...]]]


def comparable(rows: list[dict[str, Any]], table: Table) -> Counter[tuple[str, ...]]:
    """Rows without where their lines were read, and without the last digits of sums."""
    names = [name for name in table.names if not name.startswith("src_")]
    return Counter(
        tuple(
            f"{row[name]:.9g}" if isinstance(row[name], float) else str(row[name]) for name in names
        )
        for row in rows
    )


def tables_of(server: Server, place: str) -> Tables:
    """The rows of all tables as a reader sees them."""
    versions = server.versions(place)
    return {
        table.name: comparable(
            server.rows(place, table.name, versions[table.name]) if table.name in versions else [],
            table,
        )
        for table in TABLES
    }


def users(server: Server, place: str) -> Counter[str]:
    """The users of the requests in the tables."""
    version = server.versions(place)["silver_request"]
    return Counter(row["user"] for row in server.rows(place, "silver_request", version))


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
    found = tables_of(server, "tables/all")
    for table in TABLES:
        expected = comparable(rows_in(out, table), table)
        assert expected or table.name in {"quarantine", "gold_cost"}, table.name
        assert expected == found[table.name], table.name
    version = server.versions("tables/all")["silver_request"]
    read = {row["src_file"] for row in server.rows("tables/all", "silver_request", version)}
    assert {f"s3://{name}" for name in server.names("logs/my logs")} == read
    page = tmp_path / "report.html"
    ok(await server.run("report", "--out", "s3a://tables/all", "--html", str(page)))
    assert page.stat().st_size > 100_000


async def test_a_store_may_have_a_certificate_of_an_own_authority(
    server: Server, tmp_path: Path
) -> None:
    """A variable names it, for all who reach the store; without it the refusal says so."""
    server.put("logs", "tls/broker-1/a.log", lines(10, user="alice"))
    secure = {"AWS_ENDPOINT_URL": f"https://127.0.0.1:{server.secure_port}"}
    silver = ("silver", "--request-logs", "s3://logs/tls", "--out", "s3://tables/tls")
    ok(await server.run(*silver, SSL_CERT_FILE=str(server.ca_file), **secure))
    assert {"alice": 10} == users(server, "tables/tls")
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "broker-1/a.log").write_bytes(lines(10, user="alice"))
    of_disk = ("silver", "--request-logs", str(tmp_path), "--out", "s3://tables/tls")
    for words, place in ((silver, "s3://"), (of_disk, "s3://tables/tls")):
        line = refusal(await server.run(*words, **secure))
        assert line.startswith(place)
        assert "SSL_CERT_FILE" in line
    option = f"s3://logs/tls?tls_ca_file_path={server.ca_file}"
    assert "SSL_CERT_FILE" in refusal(await server.run(*silver[:2], option, *silver[3:]))


@contextmanager
def gated(
    server: Server, last: bytes | int | None, said: Path, *words: str
) -> Iterator[tuple[subprocess.Popen[bytes], Gate]]:
    """Runs a command behind a gate, which closes after a request; it is killed at the end.

    A closed gate lets the lease be renewed: whoever is stopped there is alive for others.

    Args:
        server: that it reads and writes.
        last: which request is the last one that is let through (``Gate``).
        said: the file that its output is appended to.
        words: the command.
    """
    with Gate(server.port, last, exempt=b"_lease.json") as gate:
        environ = {**server.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{gate.port}"}
        argv = sidecar("pipeline", *words, "--master", "local[2]")
        with session_of(argv, said, environ) as process:
            yield process, gate


@contextmanager
def stopped_after(
    server: Server, last: str, said: Path, *words: str
) -> Iterator[tuple[subprocess.Popen[bytes], Gate]]:
    """The same, once the request is let through and the next one is blocked."""
    with gated(server, last.encode(), said, *words) as (process, gate):
        assert waited_for(process, gate.blocked.is_set, RUN_S), said.read_text()
        yield process, gate


BEFORE_ITS_RECORD: Final = (
    "GET /tables?list-type=2&max-keys=1000&prefix={name}%2Fsilver_request%2Fcluster_id%3D"
)
"""The request in which a run looks whether its files are there."""

KILLED_AT: Mapping[str, tuple[str, bool]] = {
    "while it writes": ("POST /{place}/silver_request/cluster_id%3D", False),
    "before its record": (BEFORE_ITS_RECORD, False),
    "after its record": ("PUT /{place}/_commits/", True),
    "after a table": ("PUT /{place}/silver_request/_delta_log/", True),
}
"""After which request it is killed, and whether its tables are those that the next run sees."""


@pytest.mark.parametrize("when", KILLED_AT)
async def test_a_day_in_a_bucket_is_replaced_whole_or_not_at_all(
    server: Server, when: str, tmp_path: Path
) -> None:
    """Readers have the last good state meanwhile; a retry succeeds without a hand."""
    number = list(KILLED_AT).index(when)
    name = f"killed-{number}"
    place = f"tables/{name}"
    begins, is_decided = KILLED_AT[when]
    for user, count in (("old", 50), ("new", 60)):
        for broker in (1, 2):
            server.put("logs", f"{user}/broker-{broker}/a.log", lines(count, user=user))
    silver = ("silver", "--out", f"s3a://{place}", "--request-logs")
    ok(await server.run(*silver, "s3://logs/old"))
    last = begins.format(place=place, name=name)
    with stopped_after(server, last, tmp_path / "said", *silver, "s3://logs/new") as (process, _):
        kill(process)
    assert {"old": 100} == users(server, place)
    if is_decided:
        ok(await server.run("usage", "--out", f"s3a://{place}"))
        assert {"new": 120} == users(server, place)
    else:
        ok(await server.run(*silver, "s3://logs/new"))
        assert {"new": 120} == users(server, place)
    refused = refusal(await server.run(*silver, "s3a://logs/old/broker-1"))
    assert "broker 1 of 2026-11-20 has 60 rows and would have 50" in refused
    assert "broker 2 of 2026-11-20 has 60 rows and would have 0" in refused
    assert {"new": 120} == users(server, place)


def words_of(server: Server, folder: Path, seed: int, size_bytes: int, days: int) -> list[str]:
    """A run over made-up logs of a day in a bucket, their history, quotas and capacity."""
    sample = write_sample(
        folder, Sample(size_bytes, seed=seed, brokers=2, hours=0.2, history_days=days)
    )
    place = f"logs/sample-{seed}"
    server.upload(sample.request_logs, f"{place}/requests")
    server.upload(sample.volumes, f"{place}/volumes")
    return [
        *("run", "--candidates", "2"),
        *("--request-logs", f"s3://{place}/requests", "--volumes", f"s3://{place}/volumes"),
        *("--quotas", str(sample.quotas), "--capacity", str(sample.capacity)),
    ]


def requests_of(server: Server, said: Path, *words: str) -> list[str]:
    """Runs a command to its end, and returns the first lines of its requests."""
    with gated(server, None, said, *words) as (process, gate):
        assert 0 == process.wait(RUN_S), said.read_text()
        return gate.requests


@pytest.mark.timeout(600 + 240 * KILLS)
def test_a_run_that_is_killed_at_any_request_leaves_a_good_state(
    server: Server, tmp_path: Path
) -> None:
    """A reader has all tables of the run before or all of this one; a retry makes the latter.

    Half of the kills are from before the record that decides the run to behind the manifest.
    """
    chance, said = seeded(), tmp_path / "said"
    earlier = words_of(server, tmp_path / "earlier", 1, 300_000, 1)
    later = words_of(server, tmp_path / "later", 2, 400_000, 2)
    first, again = "tables/first", "tables/again"
    requests_of(server, said, *earlier, "--out", f"s3://{first}")
    old = tables_of(server, first)
    server.copy(first, again)
    requests = requests_of(server, said, *later, "--out", f"s3://{again}")
    record, manifest = (
        next(at for at, line in enumerate(requests) if line.startswith(f"PUT /{again}/{name}"))
        for name in ("_commits/0", "_manifest.json")
    )
    new = tables_of(server, again)
    same = {name for name in old if old[name] == new[name]}
    assert same <= {"quarantine", "gold_cost"}

    seen: Counter[str] = Counter()
    for number in range(KILLS):
        last = chance.randint(*chance.choice(((1, len(requests)), (record, manifest + 1))))
        place = f"tables/random-{number}"
        server.copy(first, place)
        with gated(server, last, said, *later, "--out", f"s3://{place}") as (process, gate):
            # Requests of several workers are not always as many: it may end before.
            if not waited_for(process, gate.blocked.is_set, RUN_S):
                assert 0 == process.wait(), said.read_text()
            kill(process)
        found = tables_of(server, place)
        states = [name for name, tables in (("old", old), ("new", new)) if tables == found]
        where = f"kill {number}, after request {last} of {len(requests)}: {gate.requests[-1]}"
        records = [name for name in server.names(place) if "/_commits/" in name]
        print(f"{where}: {states or 'BROKEN'}, {len(records)} records")
        assert states, where
        seen[states[0]] += 1
        requests_of(server, said, *later, "--out", f"s3://{place}")
        assert new == tables_of(server, place), where
    print(f"{KILLS} kills: {dict(seen)}")


async def test_a_second_run_beside_a_living_one_is_refused_by_its_name(
    server: Server, tmp_path: Path
) -> None:
    """The first is stopped where all is written and nothing decided; then it ends well."""
    place = "tables/two"
    for user, count in (("old", 10), ("new", 20), ("other", 30)):
        server.put("logs", f"two-{user}/broker-1/a.log", lines(count, user=user))
    silver = ("silver", "--out", f"s3://{place}", "--request-logs")
    ok(await server.run(*silver, "s3://logs/two-old"))
    last, said = BEFORE_ITS_RECORD.format(name="two"), tmp_path / "said"
    with stopped_after(server, last, said, *silver, "s3://logs/two-new") as (first, gate):
        names, manifest = server.names(place), server.read(f"{place}/_manifest.json")
        assert f"{place}/_lease.json" in names
        refused = refusal(await server.run(*silver, "s3://logs/two-other"))
        assert f"process {first.pid} on {socket.gethostname()}" in refused
        assert f"s3://{place}" in refused
        assert names == server.names(place)
        assert manifest == server.read(f"{place}/_manifest.json")
        gate.open()
        assert 0 == first.wait(RUN_S), said.read_text()
    assert {"new": 20} == users(server, place)


async def test_a_stream_into_a_bucket_that_is_killed_has_each_line_once(
    server: Server, tmp_path: Path
) -> None:
    """It is killed once its second batch is in one table; while it lives others are refused."""
    for broker in (1, 2):
        for hour in range(4):
            write(tmp_path / "logs", broker, f"2026-11-20-{10 + hour}", lines(50, first=50 * hour))
    place = "tables/live"
    logs = f"{tmp_path}/logs/*/kafka-request.log.*"
    of_logs = ("--out", f"s3a://{place}", "--request-logs", logs)
    tables = ("--table", "silver_request", "--table", "gold_usage_1s")
    stream = ("stream", *of_logs, *tables, "--until-read", "--max-bytes", "100000", "--checkpoint")
    checkpoint, said = str(tmp_path / "checkpoint"), tmp_path / "said"
    second_batch = "_delta_log/00000000000000000001.json"
    last = f"PUT /{place}/silver_request/{second_batch}"
    with stopped_after(server, last, said, *stream, checkpoint) as (process, _):
        others = {
            f"a stream (process {process.pid} on {socket.gethostname()})": (
                *stream,
                str(tmp_path / "other"),
            ),
            "`pipeline stream` writes quarantine and silver_request": ("silver", *of_logs),
        }
        # At once: the first would give up after half a minute without an answer.
        refused = await asyncio.gather(*(server.run(*words) for words in others.values()))
        for reason, done in zip(others, refused, strict=True):
            assert reason in refusal(done)
        kill(process)
    for table, is_there in (("silver_request", True), ("gold_usage_1s", False)):
        assert is_there == (f"{place}/{table}/{second_batch}" in server.names(place)), table
    ok(await server.run(*stream, checkpoint))
    requests = server.rows(place, "silver_request")
    assert {1} == set(Counter((row["src_file"], row["src_offset"]) for row in requests).values())
    assert {1: 200, 2: 200} == Counter(row["broker"] for row in requests)
    used: Counter[int] = Counter()
    for row in server.rows(place, "gold_usage_1s"):
        if row["quota_type"] == "produce":
            used[row["broker"]] += row["events"]
    assert {1: 200, 2: 200} == used


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
async def test_logs_that_cant_be_had_are_reported_in_a_line(
    server: Server, what: str, tmp_path: Path
) -> None:
    """The line comes before Spark starts, says what to do, and has no secret."""
    path, environ, named = LOGS_MISTAKES[what]
    out = str(tmp_path / "tables")
    done = await server.run("silver", "--out", out, "--request-logs", path, **environ)
    place = path.replace(f"{KEY}:{SECRET}@", "").partition("?")[0]
    line = refusal(done)
    assert line.startswith(f"{place}: ")
    assert named in line
    assert [line] == done.err.splitlines()


@pytest.mark.parametrize("silent_place", ["s3://logs", "s3://tables/x"])
async def test_a_silent_store_is_abandoned(
    server: Server, silent_place: str, tmp_path: Path
) -> None:
    """It is, after half a minute by the store's own clock; its client would wait for 99 s."""
    times: list[float] = []

    async def keep_silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        times.append(time.monotonic())
        await reader.read()
        times.append(time.monotonic())

    out = silent_place if silent_place == "s3://tables/x" else str(tmp_path / "tables")
    words = ("silver", "--out", out, "--request-logs", "s3://logs")
    async with raw_server(keep_silent) as silent:
        done = await server.run(*words, AWS_ENDPOINT_URL=f"http://{silent}")
    assert refusal(done).startswith(silent_place)
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
    """The line comes before Spark starts; nothing is left behind."""
    out, environ, named = TABLES_MISTAKES[what]
    done = await server.run("forecast", "--out", out, **environ)
    line = refusal(done)
    assert line.startswith(out.replace("s3a", "s3"))
    assert named in line
    assert [] == [name for name in server.names("tables") if name.startswith("tables/x")]


def test_of_several_who_make_a_file_at_once_one_succeeds(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store decides, not a listing before; the file has the text of the one that did."""
    for name, text in server.environ.items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, text)
    folder = Folder.parse("s3://tables/race")
    with ThreadPoolExecutor(8) as threads:
        for number in range(5):
            path = str(number)
            made = list(
                threads.map(lambda each, path=path: folder.create(path, b"%d" % each), range(8))
            )
            assert 1 == made.count(True)
            assert b"%d" % made.index(True) == folder.read(path)
