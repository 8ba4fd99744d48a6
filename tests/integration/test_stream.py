"""The pipeline's stream as a process: killed with SIGKILL and started again, nothing lost."""

import asyncio
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec
import pytest
from confluent_kafka import Producer

from sidecar.demo.admin import Admin
from sidecar.demo.cluster import Cluster
from sidecar.pipeline.sample import Sample, write_sample
from sidecar.pipeline.tables.schemas import GOLD_USAGE_1S, QUARANTINE, SILVER_REQUEST, Table
from tests.pipeline.build import rows_in
from tests.pipeline.logs import line, lines, pack
from tests.support.kills import seeded, session_of, sidecar, waited_for
from tests.support.maven import jars_of
from tests.support.streams import START_S, STARTS, counted, streamed, streaming
from tests.support.tables import of_duckdb
from tests.support.waiting import seen

_POM = Path(__file__).parents[2] / "deploy/spark/kafka-connector/pom.xml"

KILLS: Final = int(os.environ.get("STREAM_KILLS", "3"))
"""How often the stream of logs is killed; each costs Spark's start and as long as three batches."""
_FILE_LINES: Final = 20
_ROTATED: Final = 25
"""How many files are rotated from a start to a kill, at most; three batches have fewer."""
_FIRST_S: Final = 5.0
"""In which the first time as many are."""
_SUMS: Final = ("amount", "events", "throttled", "throttle_ms")


@asynccontextmanager
async def killed_after(out: Path, column: str, rows: int, *words: str) -> AsyncIterator[None]:
    """Streams; once silver_request has more rows than this, the body is run, and then a kill."""
    for _ in range(STARTS):
        with streaming(out, *words) as process:

            async def count(running: subprocess.Popen[bytes] = process) -> int:
                if running.poll() is not None:
                    return -1
                return sum(counted(out, "silver_request", column).values())

            seen_rows = await seen("rows", count, lambda found: not 0 <= found <= rows, START_S)
            if seen_rows < 0:
                continue
            yield
            assert process.poll() is None
            os.killpg(process.pid, signal.SIGKILL)
            return
    pytest.fail(out.with_suffix(".err").read_text())


class Rotation:
    """Brokers' logs that are rotated one after the other, a few lines each, some of them packed.

    Each file is complete once it has its name, as log4j's are.
    """

    __slots__ = ("_pieces", "rotated")

    def __init__(self, folder: Path, logs: Path, count: int) -> None:
        """Cuts made-up logs of two brokers into so many files and some more."""
        sample = write_sample(
            folder / "sample", Sample(round(count * _FILE_LINES * 1150), brokers=2, hours=24)
        )
        pieces: list[tuple[int, str, Path]] = []
        for log in sample.request_logs.glob("*/*"):
            text = log.read_bytes().splitlines(keepends=True)
            for first in range(0, len(text), _FILE_LINES):
                name = f"{log.name}.{first:05}"
                piece = folder / "growing" / log.parent.name / name
                piece.parent.mkdir(parents=True, exist_ok=True)
                torn = [b"torn\n"] * (first % 7 == 0)
                piece.write_bytes(b"".join([*text[first : first + _FILE_LINES], *torn]))
                is_packed = len(pieces) % 3 == 0
                pieces.append((first, name, pack(piece) if is_packed else piece))
        self._pieces = iter(
            [(piece, logs / piece.parent.name / piece.name) for *_, piece in sorted(pieces)]
        )
        self.rotated = 0

    def rotate(self) -> None:
        """Rotates a log, unless all are."""
        for piece, target in self._pieces:
            target.parent.mkdir(parents=True, exist_ok=True)
            piece.rename(target)
            self.rotated += 1
            break

    @contextmanager
    def going_on(self, every_s: float) -> Iterator[None]:
        """Rotates a log so often meanwhile."""
        stopped = threading.Event()

        def rotate() -> None:
            while not stopped.wait(every_s):
                self.rotate()

        thread = threading.Thread(target=rotate)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()


def holds_lease(out: Path, process: subprocess.Popen[bytes]) -> bool:
    """Whether a stream has begun: Spark is there, and small files are brought together."""
    lease = out / "_lease.json"
    return lease.exists() and process.pid == msgspec.json.decode(lease.read_bytes())["process"]


def batches(out: Path, kind: str) -> set[int]:
    """Those that a stream has begun ("offsets"), or ended ("commits")."""
    names = (out / "_checkpoint" / kind).glob("*")
    return {int(file.name) for file in names if file.name.isdigit()}


def ended(out: Path, count: int) -> bool:
    """Whether a stream has ended so many batches."""
    return len(batches(out, "commits")) >= count


def comparable(out: Path, table: Table) -> Counter[tuple[str, ...]]:
    """The rows of a table; usage with a row for each second, as batches have it.

    Of topics that grow or are deleted a stream knows no sizes (docs/pipeline.md).
    """
    rows: list[dict[str, Any]] = rows_in(out, table)
    if table is not GOLD_USAGE_1S:
        return Counter(tuple(str(row[name]) for name in table.names) for row in rows)
    keys = [name for name in table.names if name not in (*_SUMS, "lower_bound")]
    sums: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        if row["quota_type"] != "controller_mutation":
            its = sums.setdefault(tuple(str(row[name]) for name in keys), [0.0] * len(_SUMS))
            sums[tuple(str(row[name]) for name in keys)] = [
                value + row[name] for value, name in zip(its, _SUMS, strict=True)
            ]
    return Counter((*key, *(f"{value:.9g}" for value in its)) for key, its in sums.items())


@pytest.mark.timeout(600 + 60 * KILLS)
async def test_a_stream_of_rotated_logs_killed_at_any_moment_equals_the_batch(
    tmp_path: Path,
) -> None:
    """Brokers rotate their logs meanwhile; each line is there once, and so are its charges.

    Moments are counted from when the stream has its lease, and reach as far as three batches took.
    """
    chance = seeded()
    out, logs = tmp_path / "live", tmp_path / "logs"
    rotation = Rotation(tmp_path, logs, 50 + (4 + _ROTATED) * KILLS)
    path, said = f"{logs}/*/kafka-request.log.*", out.with_suffix(".err")
    words = ["--request-logs", path, "--max-bytes", "100000", "--trigger", "0.2"]
    for table in (SILVER_REQUEST, GOLD_USAGE_1S):
        words += ["--table", table.name]
    stream = sidecar("pipeline", "stream", "--out", str(out), "--master", "local[2]", *words)
    # The first is killed after its third batch, whose time is a measure.
    span, within = 0.0, 0
    for number in range(KILLS + 1):
        for _ in range(4):
            rotation.rotate()
        for _ in range(STARTS):
            with session_of(stream, said) as process:
                if not waited_for(process, partial(holds_lease, out, process), START_S):
                    continue
                begun = time.monotonic()
                with rotation.going_on((span or _FIRST_S) / _ROTATED):
                    if number:
                        await asyncio.sleep(chance.uniform(0, span))
                    else:
                        waited_for(process, partial(ended, out, 3), START_S)
                if process.poll() is None:
                    span = span or time.monotonic() - begun
                    break
        else:
            pytest.fail(said.read_text())
        within += number > 0 and bool(batches(out, "offsets") - batches(out, "commits"))
    print(f"{KILLS} kills within {span:.1f} s of a start, {within} of them within a batch")
    await streamed(out, *words, "--max-bytes", "100000000")
    batch = tmp_path / "batch"
    run = sidecar("pipeline", "run", "--request-logs", path, "--out", str(batch))
    run += ["--master", "local[2]", "--candidates", "0"]
    with session_of(run, said) as process:
        assert 0 == process.wait(START_S), said.read_text()
    assert rotation.rotated > 4 * KILLS
    for table in (SILVER_REQUEST, GOLD_USAGE_1S, QUARANTINE):
        expected = comparable(batch, table)
        assert expected, table.name
        assert expected == comparable(out, table), table.name


@pytest.fixture(scope="module")
def kafka_jars() -> Path:
    """The connector's jars, which Maven fetches once for each version of its pom."""
    return asyncio.run(jars_of(_POM))


@pytest.mark.timeout(900)
async def test_a_killed_stream_of_a_topic_loses_and_doubles_nothing(
    kafka: Cluster, kafka_jars: Path, tmp_path: Path
) -> None:
    """Spark's own connector reads it, from a real topic whose messages' keys are broker ids."""
    out = tmp_path / "live"
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic("request-log", partitions=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def produce(first: int) -> None:
        for broker in (1, 2):
            for each in lines(500, first=first, user=f"u{broker}").splitlines():
                producer.produce("request-log", each, str(broker), partition=broker - 1)
        assert 0 == producer.flush(20)

    words = ["--topic", "request-log", "--bootstrap-server", kafka.bootstrap]
    words += ["--kafka-jars", str(kafka_jars)]
    words += ["--table", "silver_request", "--table", "gold_usage_1s"]
    await asyncio.to_thread(produce, 0)
    async with killed_after(out, "src_offset", 100, *words, "--max-messages", "200"):
        pass
    await asyncio.to_thread(produce, 500)
    producer.produce("request-log", line(3_600_000, user="last"), "1", partition=0)
    producer.produce("request-log", b"torn", "2", partition=1)
    assert 0 == producer.flush(20)
    await streamed(out, *words)
    places = counted(out, "silver_request", "src_file || '@' || src_offset")
    assert {1} == set(places.values())
    assert {"u1": 1000, "u2": 1000, "last": 1} == counted(out, "silver_request", '"user"')
    usage = of_duckdb(out, "gold_usage_1s")
    events = duckdb.execute(
        f"SELECT broker, sum(events) FROM {usage} WHERE quota_type = 'produce' GROUP BY ALL"
    )
    assert {1: 1001, 2: 1000} == dict(events.fetchall())
    assert {"other": 1} == counted(out, "quarantine", "kind")
