"""The pipeline's stream as a process: killed with SIGKILL and started again, nothing lost."""

import asyncio
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec
import pytest

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from tests.support.kills import seeded, session_of, sidecar, waited_for
from tests.support.maven import jars_of
from tests.support.shipping import Shipper, going_on
from tests.support.streams import START_S, STARTS, counted, streamed
from tests.support.tables import of_duckdb
from tests.usage_pipeline.build import rows_in
from tests.usage_pipeline.logs import pack
from usage_pipeline.sample import Sample, write_sample
from usage_pipeline.tables.schemas import GOLD_USAGE_1S, QUARANTINE, SILVER_REQUEST, Table

_POM = Path(__file__).parents[2] / "deploy/spark/kafka-connector/pom.xml"

KILLS: Final = int(os.environ.get("STREAM_KILLS", "3"))
"""How often the stream of logs is killed; each costs Spark's start and as long as three batches."""
TOPIC_KILLS: Final = max(1, KILLS // 5)
"""How often that of a topic is."""
_MANY: Final = 20
"""Of so many kills one is within a batch, surely: two thirds are."""
_FILE_LINES: Final = 20
_STEPS: Final = 25
"""How many files are rotated from a start to a kill, at most; three batches have fewer."""
_FIRST_S: Final = 5.0
"""In which the first time as many are."""
_PLACE: Final = ("src_file", "src_offset")
TABLES: Final = ("--table", SILVER_REQUEST.name, "--table", GOLD_USAGE_1S.name)
_SUMS: Final = ("amount", "events", "throttled", "throttle_ms")


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


def holds_lease(out: Path, process: subprocess.Popen[bytes]) -> bool:
    """Whether a stream has begun: Spark is there, and small files are brought together."""
    lease = out / "_stream_lease.json"
    # A stream that takes over removes the lease of the one before.
    with suppress(FileNotFoundError):
        return bool(process.pid == msgspec.json.decode(lease.read_bytes())["process"])
    return False


def batches(out: Path, kind: str) -> set[int]:
    """Those that a stream has begun ("offsets"), or ended ("commits")."""
    names = (out / "_checkpoint" / kind).glob("*")
    return {int(file.name) for file in names if file.name.isdigit()}


def ended(out: Path, count: int) -> bool:
    """Whether a stream has ended so many batches."""
    return len(batches(out, "commits")) >= count


def comparable(out: Path, table: Table, apart: Collection[str] = ()) -> Counter[tuple[str, ...]]:
    """The rows of a table; usage with a row for each second, as batches have it.

    Of topics that grow or are deleted a stream knows no sizes (docs/pipeline.md).

    Args:
        out: with the table.
        table: which.
        apart: columns that aren't compared.
    """
    rows: list[dict[str, Any]] = rows_in(out, table)
    names = [name for name in table.names if name not in apart]
    if table is not GOLD_USAGE_1S:
        return Counter(tuple(str(row[name]) for name in names) for row in rows)
    keys = [name for name in names if name not in (*_SUMS, "lower_bound")]
    sums: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        if row["quota_type"] != "controller_mutation":
            its = sums.setdefault(tuple(str(row[name]) for name in keys), [0.0] * len(_SUMS))
            sums[tuple(str(row[name]) for name in keys)] = [
                value + row[name] for value, name in zip(its, _SUMS, strict=True)
            ]
    return Counter((*key, *(f"{value:.9g}" for value in its)) for key, its in sums.items())


@dataclass(slots=True)
class Kills:
    """A stream that is killed at random moments, while logs go on.

    Moments are counted from when the stream has its lease, and reach as far as three batches took.

    Attributes:
        out: of the stream.
        words: its options.
        step: what goes on with the logs.
        chance: of the moments.
        within: kills within a batch, so far.
    """

    out: Path
    words: Sequence[str]
    step: Callable[[], None]
    chance: random.Random
    within: int = 0

    async def happen(self, count: int) -> None:
        """Starts the stream and kills it, so often and once before: a measure of three batches."""
        out, said, span = self.out, self.out.with_suffix(".err"), 0.0
        stream = sidecar("pipeline", "stream", "--out", str(out), "--master", "local[2]")
        for number in range(count + 1):
            for _ in range(4):
                self.step()
            for _ in range(STARTS):
                with session_of([*stream, *self.words], said) as process:
                    if not waited_for(process, partial(holds_lease, out, process), START_S):
                        continue
                    begun = time.monotonic()
                    with going_on(self.step, (span or _FIRST_S) / _STEPS):
                        if number:
                            await asyncio.sleep(self.chance.uniform(0, span))
                        else:
                            waited_for(process, partial(ended, out, 3), START_S)
                    if process.poll() is None:
                        span = span or time.monotonic() - begun
                        break
            else:
                pytest.fail(said.read_text())
            self.within += number > 0 and bool(batches(out, "offsets") - batches(out, "commits"))
        print(f"{count} kills within {span:.1f} s of a start, {self.within} of them within a batch")
        if count >= _MANY:
            assert self.within


def made_by_batch(out: Path, path: str) -> None:
    """Makes all tables of request logs."""
    run = sidecar("pipeline", "run", "--request-logs", path, "--out", str(out))
    said = out.with_suffix(".err")
    with session_of([*run, "--master", "local[2]", "--candidates", "0"], said) as process:
        assert 0 == process.wait(START_S), said.read_text()


@pytest.mark.timeout(600 + 60 * KILLS)
async def test_a_stream_of_rotated_logs_killed_at_any_moment_equals_the_batch(
    tmp_path: Path,
) -> None:
    """Brokers rotate their logs meanwhile; each line is there once, and so are its charges.

    Moments are counted from when the stream has its lease, and reach as far as three batches took.
    """
    out, logs = tmp_path / "live", tmp_path / "logs"
    rotation = Rotation(tmp_path, logs, 50 + (4 + _STEPS) * KILLS)
    path = f"{logs}/*/kafka-request.log.*"
    words = ["--request-logs", path, "--trigger", "0.2s", *TABLES]
    kills = Kills(out, [*words, "--max-bytes", "100000"], rotation.rotate, seeded())
    await kills.happen(KILLS)
    await streamed(out, *words, "--max-bytes", "100000000")
    batch = tmp_path / "batch"
    await asyncio.to_thread(made_by_batch, batch, path)
    assert rotation.rotated > 4 * KILLS
    for table in (SILVER_REQUEST, GOLD_USAGE_1S, QUARANTINE):
        expected = comparable(batch, table)
        assert expected, table.name
        assert expected == comparable(out, table), table.name


@pytest.fixture(scope="module")
def kafka_jars() -> Path:
    """The connector's jars, which Maven fetches once for each version of its pom."""
    return asyncio.run(jars_of(_POM))


@pytest.mark.timeout(600 + 60 * TOPIC_KILLS)
async def test_a_stream_of_a_topic_killed_at_any_moment_equals_the_batch(
    kafka: Cluster, kafka_jars: Path, tmp_path: Path
) -> None:
    """A shipper goes on meanwhile, and sends lines again; Spark's own connector reads the topic.

    A message's place is where a stream has read a line, so the columns of places aren't compared.
    """
    chance, out, logs = seeded(), tmp_path / "live", tmp_path / "logs"
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic("request-log", partitions=3)
    steps = 50 + (4 + _STEPS) * TOPIC_KILLS
    shipper = Shipper(tmp_path, logs, steps, kafka.bootstrap, "request-log", chance)
    words = ["--topic", "request-log", "--bootstrap-server", kafka.bootstrap]
    words += ["--kafka-jars", str(kafka_jars), "--trigger", "0.2s", *TABLES]
    kills = Kills(out, [*words, "--max-messages", "200"], shipper.ship, chance)
    await kills.happen(TOPIC_KILLS)
    await asyncio.to_thread(shipper.ship_all)
    await streamed(out, *words)
    batch = tmp_path / "batch"
    await asyncio.to_thread(made_by_batch, batch, str(logs))
    print(f"{shipper.sent} messages were sent, {shipper.resent} of them again")
    assert shipper.resent
    for table in (SILVER_REQUEST, GOLD_USAGE_1S, QUARANTINE):
        expected = comparable(batch, table, _PLACE)
        assert expected, table.name
        assert expected == comparable(out, table, _PLACE), table.name
    places = counted(out, "silver_request", "src_file || '@' || src_offset")
    assert {1} == set(places.values())
    of_brokers = duckdb.execute(
        f"SELECT DISTINCT broker, src_file FROM {of_duckdb(out, 'silver_request')}"
    )
    # A broker's key has the partition's number.
    assert {(id_, f"kafka:request-log/{id_}") for id_ in range(3)} == set(of_brokers.fetchall())
    assert {"other"} == set(counted(out, "quarantine", "kind"))
