"""Lets a throttle happen to several clients at once, each alone on a broker.

Whatever throttles a client knows its own broker only, so clients on different brokers have nothing
to do with each other but the machine. A sidecar beside each broker gets an override of 0.0, as by
an operator, and is rid of it again. When a record landed is what its broker says (LogAppendTime).
"""

import asyncio
import json
import os
import time
import urllib.request
import zipfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from benchmarks.clients.clients import Client
from benchmarks.clients.course import Course
from benchmarks.clients.figures import RECORD_BYTES
from sidecar.demo.admin import Admin
from sidecar.demo.cache import cache_folder
from sidecar.demo.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from sidecar.demo.cluster import Cluster
from sidecar.demo.jars import jars, java
from sidecar.demo.layout import PLAIN
from sidecar.demo.sidecar_processes import Sidecar, start_sidecars, write_token
from sidecar.demo.waiting import deadline
from sidecar.errors import ClusterError
from tests.support.java import bean, beans

BYTES_PER_S: Final = 2_000_000
BEFORE_S: Final = 14.0
"""At full speed before the throttle: longer than a quota window, which is of 11 s."""
AFTER_S: Final = 40.0
"""Watched after the release."""
ARMS: Final[Mapping[str, Mapping[str, str]]] = {
    "callback": {},
    "authorizer": {
        "authorizer.class.name": "throttlesidecar.SidecarAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    },
}
"""What throttles -> the brokers' properties besides the callback's."""
_AUTHORIZER_CLASS: Final = "throttlesidecar/SidecarAuthorizer.class"
_TOPIC: Final = {"message.timestamp.type": "LogAppendTime", "segment.bytes": str(128 << 20)}
_VOLUME_BYTES: Final = 4 << 30
_LIMIT_BYTES: Final = 1 << 20
_SOCKETS: Final = f"kafka.server:type=socket-server-metrics,listener={PLAIN},*"
_START_TIMEOUT_S: Final = 60.0
_OBEYS_TIMEOUT_S: Final = 30.0
_OUTCOMES_TIMEOUT_S: Final = 15.0
_READ_TIMEOUT_S: Final = 300.0
_CHECK_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Case:
    """What happens to them.

    Attributes:
        arm: what throttles, of ``ARMS``.
        throttle_s: for how long, seconds.
        partitions: of each client's topic.
        jar: the quota callback's.
    """

    arm: str
    throttle_s: float
    partitions: int
    jar: Path

    @property
    def is_possible(self) -> bool:
        """Whether the jar has what the arm needs."""
        if self.arm != "authorizer":
            return True
        with zipfile.ZipFile(self.jar) as opened:
            return _AUTHORIZER_CLASS in opened.namelist()

    def file(self, client: Client, folder: Path, kind: str) -> Path:
        """Where something of a client's run goes."""
        return folder / f"{client.key}.{self.arm}.{self.throttle_s:g}.{kind}"


async def happen(clients: Sequence[Client], case: Case, folder: Path) -> list[Course]:
    """Start brokers and producers, throttle and release.

    Args:
        clients: each gets a broker.
        case: what happens to them.
        folder: where the programs' reports and logs go.

    Raises:
        ClusterError: it could not be measured.
    """
    cluster = Cluster(
        environ=os.environ,
        brokers=len(clients),
        volumes=1,
        volume_bytes=_VOLUME_BYTES,
        properties={**CALLBACK_PROPERTIES, **ARMS[case.arm]},
        properties_of=asks_its_sidecar,
        broker_jars=(case.jar,),
        heap_mb=512,
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        token = write_token(cluster)
        settings = {
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(_LIMIT_BYTES),
            "SIDECAR_TOKEN_FILE": str(token),
        }
        sidecars = await start_sidecars(cluster, settings)
        headers = {
            "Authorization": f"Bearer {token.read_text().strip()}",
            "Content-Type": "application/json",
        }
        await _obey(cluster)
        async with Admin(cluster.bootstrap) as admin:
            for broker, client in enumerate(clients):
                leaders = [[broker]] * case.partitions
                await admin.create_topic(client.key, assignment=leaders, config=_TOPIC)
        network = [await _network(cluster, broker) for broker in cluster.brokers]
        runs = []
        for broker, client in enumerate(clients):
            files = [case.file(client, folder, kind) for kind in ("reports", "log")]
            run = _Run(client, *files)
            stack.push_async_callback(run.kill)
            await run.start(cluster, broker, case.partitions)
            runs.append(run)
        async with deadline(_START_TIMEOUT_S, "not every client had a record acknowledged"):
            while not all(run.counts()["acknowledged"] for run in runs):  # noqa: ASYNC110 - files
                await asyncio.sleep(_CHECK_S)
        await asyncio.sleep(BEFORE_S)
        throttled_at = time.time()
        await _override(sidecars, headers, 0.0)
        await asyncio.sleep(case.throttle_s)
        released_at = time.time()
        await _override(sidecars, headers, None)
        await asyncio.sleep(AFTER_S)
        ended_at = time.time()
        await asyncio.gather(*(run.end() for run in runs))
        courses = []
        for broker, run in enumerate(runs):
            times = (throttled_at, released_at, ended_at)
            course = Course(run.client.key, case.arm, case.throttle_s, *times)
            received, connections = await _network(cluster, broker)
            course.received = received - network[broker][0]
            course.connections = connections - network[broker][1]
            course.add_reports(run.reports.read_bytes().splitlines(keepends=True))
            course.landed = await asyncio.to_thread(
                _read_log, cluster.bootstrap, run.client.key, case.partitions
            )
            courses.append(course)
    return courses


class _Run:
    """A client's program, and its two files."""

    def __init__(self, client: Client, reports: Path, log: Path) -> None:
        self.client = client
        self.reports = reports
        self._log = log
        self._process: Process | None = None

    async def start(self, cluster: Cluster, broker: int, partitions: int) -> None:
        words = {
            "bootstrap": cluster.brokers[broker].address,
            "topic": self.client.key,
            "partitions": partitions,
            "rate": BYTES_PER_S,
            "size": RECORD_BYTES,
        }
        libraries = await jars(cluster.version, cache_folder(os.environ))
        command = self.client.command(
            java(os.environ), libraries, [f"{name}={value}" for name, value in words.items()]
        )
        with self.reports.open("wb") as reports, self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=reports, stderr=log
            )

    def counts(self) -> dict[str, int]:
        """How many records were sent, and how many were reported on."""
        if self._process is None or self._process.returncode is not None:
            said = self._log.read_text(errors="replace")[-2000:]
            raise ClusterError(f"the program of {self.client.name} has ended:\n{said}")
        text = self.reports.read_bytes()
        words = ("sent", "acknowledged", "failed")
        return {word: text.count(f'"{word}":'.encode()) for word in words}

    async def end(self) -> None:
        """Let it send nothing more, and wait for what is under way, but not for long."""
        self.counts()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        until = time.monotonic() + _OUTCOMES_TIMEOUT_S
        while time.monotonic() < until:
            counts = self.counts()
            if counts["sent"] <= counts["acknowledged"] + counts["failed"]:
                break
            await asyncio.sleep(1.0)
        await self.kill()

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


async def _obey(cluster: Cluster) -> None:
    """Wait until every callback has heard from its sidecar."""
    async with deadline(_OBEYS_TIMEOUT_S, "the callbacks did not hear from their sidecars"):
        for broker in cluster.brokers:
            while True:
                reported = await bean(cluster, broker, "throttlesidecar:type=QuotaCallback")
                if str(reported["Source"]).upper() == "SIDECAR":
                    break
                await asyncio.sleep(_CHECK_S)


async def _override(
    sidecars: Sequence[Sidecar], headers: Mapping[str, str], factor: float | None
) -> None:
    """Set the factor by hand; None: no longer."""
    document = {"factor": factor, "reason": "make bench-clients", "duration": "PT1H"}
    body = None if factor is None else json.dumps(document).encode()

    def one(sidecar: Sidecar) -> None:
        request = urllib.request.Request(
            f"{sidecar.url}/v1/override",
            data=body,
            headers=dict(headers),
            method="DELETE" if body is None else "PUT",
        )
        urllib.request.urlopen(request, timeout=5.0).close()

    await asyncio.gather(*(asyncio.to_thread(one, each) for each in sidecars))


async def _network(cluster: Cluster, broker: int) -> tuple[int, int]:
    """Since its start: bytes that a broker read from connections of clients, and how many."""
    found = (await beans(cluster, broker, _SOCKETS)).values()
    names = ("incoming-byte-total", "connection-creation-total")
    received, connections = (
        sum(int(float(each.get(name) or 0)) for each in found) for name in names
    )
    return received, connections


def _read_log(bootstrap: str, topic: str, partitions: int) -> list[tuple[float, int, int]]:
    """(time, partition, number) of each record."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "log_level": 0})
    landed = []
    try:
        ends = {
            each: consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=10.0)[1]
            for each in range(partitions)
        }
        consumer.assign([TopicPartition(topic, each, 0) for each in ends])
        until = time.monotonic() + _READ_TIMEOUT_S
        while ends:
            if time.monotonic() > until:
                raise ClusterError(f"the log of {topic} could not be read")
            for message in consumer.consume(1000, timeout=1.0):
                if message.error() is not None:
                    raise ClusterError(f"the log of {topic}: {message.error()}")
                partition, offset = message.partition() or 0, message.offset() or 0
                number = int((message.value() or b"")[:20].split(b" ", 1)[0])
                landed.append((message.timestamp()[1] / 1000, partition, number))
                if offset + 1 >= ends.get(partition, 0):
                    ends.pop(partition, None)
    finally:
        consumer.close()
    return landed
