"""A log shipper's configuration on a real broker.

What it sends again is in the tables once; excluded as the docs say, it is never throttled.
"""

import asyncio
import os
import subprocess
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import duckdb
import pytest
import pytest_asyncio
from confluent_kafka import Consumer, TopicPartition

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic
from sidecar.requestlog.line import Line, parse
from tests.support.clusters import SHIPPER
from tests.support.daemon import FULL_BYTES, Start, settings
from tests.support.maven import jars_of
from tests.support.request_logs import logged
from tests.support.streams import counted, streamed
from tests.support.tables import of_duckdb
from tests.support.waiting import seen
from tests.usage_pipeline.logs import line

_CHECKOUT = Path(__file__).parents[2]
_DEPLOY = _CHECKOUT / "deploy"
_TOPIC = "request-log"
_OWN = b'"clientId":"request-log-shipper"'


@pytest.fixture(scope="module")
def kafka_jars() -> Path:
    """The connector's jars, which Maven fetches once for each version of its pom."""
    return asyncio.run(jars_of(_DEPLOY / "spark/kafka-connector/pom.xml"))


Ships = Callable[[Cluster, str], subprocess.Popen[bytes]]
"""Starts rsyslog on logs (a pattern), into a cluster."""


@pytest.fixture
def start_rsyslog(tmp_path: Path) -> Iterator[Ships]:
    """Starts rsyslog as the file says how; what still runs is killed."""
    started: list[subprocess.Popen[bytes]] = []
    state = tmp_path / "state"
    state.mkdir()

    def start(cluster: Cluster, logs: str) -> subprocess.Popen[bytes]:
        environ = {
            "BROKER_ID": "3",
            "REQUEST_LOGS": logs,
            "TOPIC": _TOPIC,
            "BOOTSTRAP_SERVERS": cluster.bootstrap,
            "STATE": str(state),
        }
        # Killed, it leaves the file, and the next one refuses to start beside it.
        pid = state / "pid"
        pid.unlink(missing_ok=True)
        command = ["rsyslogd", "-n", "-f", str(_DEPLOY / "shipper/rsyslog.conf"), "-i", str(pid)]
        with (tmp_path / "rsyslog.err").open("ab") as errors:
            process = subprocess.Popen(command, env=os.environ | environ, stderr=errors)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


class _Log:
    """A broker's log, as log4j writes and rotates it; each line has a user of its own."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir()
        path.touch()
        self.path = path
        self.users: list[str] = []
        self._files = 0

    def write(self, count: int) -> None:
        """Appends lines, and as many of the shipper's own requests."""
        with self.path.open("ab") as file:
            for at in range(len(self.users), len(self.users) + count):
                self.users.append(f"u{at:04}")
                file.write(line(at * 20, at, user=self.users[-1]))
                own = line(at * 20 + 10, at, user="shipper")
                file.write(own.replace(b'"clientId":"etl"', _OWN))

    def rotate(self) -> None:
        """Renames the file, and begins another one."""
        self.path.rename(self.path.with_name(f"{self.path.name}.2026-11-20-1{self._files}"))
        self.path.touch()
        self._files += 1


class _Topic:
    """What the topic has: how often each user's line was sent."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "shipper-test"})
        self._consumer.assign([TopicPartition(_TOPIC, number, 0) for number in (0, 1)])
        self.partitions: set[int | None] = set()
        self.users: Counter[str] = Counter()

    def close(self) -> None:
        """Ends its connections."""
        self._consumer.close()

    def read(self) -> list[Line]:
        """Takes what has come; up to a tenth of a second."""
        lines = []
        for message in self._consumer.consume(1000, timeout=0.1):
            assert not message.error()
            shipped = parse((message.value() or b"").split(b":", 2)[2])
            assert isinstance(shipped, Line), shipped
            self.users[shipped.user] += 1
            self.partitions.add(message.partition())
            lines.append(shipped)
        return lines

    async def has(self, users: Collection[str]) -> None:
        """Waits until each has come."""

        def lacking() -> int:
            self.read()
            return len(set(users) - set(self.users))

        await seen("lines", lambda: asyncio.to_thread(lacking), lambda count: count == 0)


@asynccontextmanager
async def created(cluster: Cluster) -> AsyncIterator[_Topic]:
    """A topic of two partitions, both on broker 0."""
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic(_TOPIC, assignment=[[0], [0]])
    with closing(_Topic(cluster.bootstrap)) as made:
        yield made


@pytest_asyncio.fixture
async def topic(kafka: Cluster) -> AsyncIterator[_Topic]:
    """That topic on brokers without a callback."""
    async with created(kafka) as made:
        yield made


@pytest.mark.timeout(900)
async def test_what_a_killed_shipper_sends_again_is_there_once(
    kafka: Cluster,
    kafka_jars: Path,
    topic: _Topic,
    start_rsyslog: Ships,
    tmp_path: Path,
) -> None:
    """It is killed twice, and stopped; the log is rotated while it runs and while it is down."""
    out, log = tmp_path / "live", _Log(tmp_path / "logs/kafka-request.log")
    words = ["--topic", _TOPIC, "--bootstrap-server", kafka.bootstrap]
    words += ["--kafka-jars", str(kafka_jars)]
    words += ["--table", "silver_request", "--table", "gold_usage_1s"]
    start = partial(start_rsyslog, kafka, f"{log.path}*")
    rsyslog = start()

    def kill() -> subprocess.Popen[bytes]:
        """And begin again."""
        rsyslog.kill()
        rsyslog.wait()
        return start()

    log.write(300)
    await topic.has(log.users)
    log.rotate()
    log.write(200)
    await topic.has(log.users)
    rsyslog.kill()
    rsyslog.wait()
    await streamed(out, *words)
    assert Counter(log.users) == counted(out, "silver_request", '"user"')

    # It lacks the end of a file that has another name when it is there again.
    log.write(50)
    log.rotate()
    log.write(100)
    rsyslog = kill()
    await topic.has(log.users)
    log.write(50)
    await topic.has(log.users)
    rsyslog = kill()
    log.write(50)
    await topic.has(log.users)
    assert topic.users.total() >= len(log.users) + 300
    growing = {user: topic.users[user] for user in log.users[550:]}
    rsyslog.terminate()
    assert 0 == await asyncio.to_thread(rsyslog.wait)
    log.write(50)
    start()
    await topic.has(log.users)
    # Stopped, it knew where it was.
    assert growing == {user: topic.users[user] for user in growing}
    assert 1 == len(topic.partitions)

    await streamed(out, *words)
    assert 800 == len(log.users)
    assert Counter(log.users) == counted(out, "silver_request", '"user"')
    produced = duckdb.execute(
        f'SELECT "user", sum(events) FROM {of_duckdb(out, "gold_usage_1s")}'
        " WHERE quota_type = 'produce' GROUP BY ALL"
    )
    assert Counter(log.users) == Counter(dict(produced.fetchall()))
    assert Counter() == counted(out, "quarantine", "kind")
    assert "repeated, skipped" in out.with_suffix(".err").read_text()


@pytest.mark.timeout(300)
async def test_a_shipper_that_is_excluded_ships_while_others_are_throttled(
    obeying: Cluster, start: Start, start_rsyslog: Ships
) -> None:
    """A volume is full, and the log of what is throttled goes into the same broker."""
    assert f"excluded.clients={SHIPPER}\n" in (_CHECKOUT / "docs/pipeline.md").read_text()
    broker = obeying.brokers[0]
    listen = f"127.0.0.1:{broker.sidecar_port}"
    daemon = await start(obeying, settings(obeying.bootstrap, HTTP_LISTEN=listen))
    async with Admin(obeying.bootstrap) as admin:
        await admin.create_topic("etl", assignment=[[0]], config={"retention.bytes": "4194304"})
    async with created(obeying) as topic, logged(obeying) as logs:
        start_rsyslog(obeying, f"{broker.log}.requests")
        async with Traffic(obeying.bootstrap, "etl", bytes_per_s=2e6) as producer:
            await daemon.decides(1.0)
            await obeying.occupy(1, 0, FULL_BYTES)
            await daemon.decides(0.0)
            await seen("a throttled producer", lambda: producer.longest_throttle_s > 1.0)
            await logs.read_all()
            before = len(logs.lines[0])
            throttled = 0

            def shipped() -> int:
                nonlocal throttled
                throttled += sum(each.throttle_ms > 1000 for each in topic.read())
                return throttled

            await seen("throttled lines", partial(asyncio.to_thread, shipped), lambda n: n >= 5)
    waits: dict[str, list[int]] = defaultdict(list)
    for each in logs.lines[0][before:]:
        if each.api == "PRODUCE":
            waits[each.client_id].append(each.throttle_ms)
    shippers = waits.pop("request-log-shipper")
    assert len(shippers) >= 5
    assert 0 == max(shippers)
    assert max(map(max, waits.values())) > 1000
