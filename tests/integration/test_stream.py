"""The pipeline's stream as a process: killed with SIGKILL and started again, nothing lost."""

import asyncio
import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import duckdb
import pytest
from confluent_kafka import Producer

from sidecar.demo.admin import Admin
from sidecar.demo.cluster import Cluster
from tests.pipeline.logs import line, lines, pack, write
from tests.support.maven import jars_of
from tests.support.streams import START_S, STARTS, counted, streamed, streaming
from tests.support.tables import of_duckdb
from tests.support.waiting import seen

_POM = Path(__file__).parents[2] / "deploy/spark/kafka-connector/pom.xml"


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


@pytest.mark.timeout(900)
async def test_a_killed_stream_of_rotated_logs_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """It is killed twice while two brokers rotate theirs, packed or not; each line has its user."""
    out, logs = tmp_path / "live", tmp_path / "logs"
    words = ["--request-logs", f"{logs}/*/kafka-request.log.*"]
    words += ["--table", "silver_request", "--table", "gold_usage_1s"]
    written: list[str] = []

    def rotate(count: int) -> None:
        """Each file is complete once it has its name, as log4j's are."""
        first = len(written)
        written.extend(f"u{number}" for number in range(first, first + count))
        text = b"".join(line(at * 20, at, user=f"u{at}") for at in range(first, first + count))
        beside = write(tmp_path / "growing", 1 + first % 2, str(first), text)
        target = logs / beside.parent.name / beside.name
        target.parent.mkdir(parents=True, exist_ok=True)
        (pack(beside) if first % 3 == 0 else beside).rename(
            target.with_name(target.name + ".gz" * (first % 3 == 0))
        )

    for _ in range(8):
        rotate(50)
    for more_than in (100, 400):
        async with killed_after(out, '"user"', more_than, *words, "--max-bytes", "100000"):
            for _ in range(20):
                rotate(21)
                await asyncio.sleep(0.05)
    await streamed(out, *words)
    assert Counter(written) == counted(out, "silver_request", '"user"')
    # A produce and a request quota for each.
    assert Counter(written * 2) == counted(out, "gold_usage_1s", '"user"')


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
    words += ["--table", "silver_request", "--table", "gold_usage_1s", "--table", "quarantine"]
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
