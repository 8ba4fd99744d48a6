"""What the request log costs a real broker: bytes and CPU time for 1,000 requests of each kind.

One broker with the JVM's own defaults of the compiler, one connection that sends the same bytes
over and over, with the request log off and on in turn. The CPU time is that of the threads that
read, handle and answer requests and that collect garbage, as the kernel counts it; what is reported
is the difference that the log makes. A line is written for a request when it was answered, so its
size is that of request and answer as JSON: it grows with the partitions in them, not with the bytes
of the records.

Example: 1,000 produce requests to one partition that make the file 0.9 MB longer and take the
broker 0.055 s of CPU time instead of 0.038 s cost 0.9 MB and 0.017 s.
"""

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks.harness.machine import threads_cpu_s
from benchmarks.rows import Row, median_row
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.processes import STARTED
from kafka_lab.waiting import deadline, until
from sidecar.kafka.broker_loggers import REQUEST_LOGGER, set_levels
from sidecar.kafka.client.connection import dial
from sidecar.kafka.client.security import load_security
from sidecar.settings import HostPort, KafkaAdmin

_PARTITIONS: Final = 50
_ROUNDS: Final = 5
_IN_FLIGHT: Final = 50
_WARM_UP: Final = 3
"""Rounds before the first that counts, each off and on: the JVM compiles what runs often."""
_THREADS: Final = ("data-plane-kafk", "GC ", "G1 ")
"""Of the others, compilers and checkpoints, the log needs nothing."""
_READY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """Requests of one kind.

    Attributes:
        name: for a person.
        request: what is sent.
        count: how many in a round.
    """

    name: str
    request: Request[Any]
    count: int


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round of requests took: CPU seconds of the broker, and bytes of its request log."""

    cpu_s: float
    log_bytes: int


@dataclass(frozen=True, slots=True)
class MeasuredBroker:
    """The broker that is measured.

    Attributes:
        pid: its process.
        log: its log file; the request log is the file beside it.
        admin: how it is reached.
    """

    pid: int
    log: Path
    admin: KafkaAdmin

    def cpu_s(self) -> float:
        """The CPU time that its threads have taken so far, seconds."""
        return threads_cpu_s(self.pid, _THREADS)

    def log_bytes(self) -> int:
        """The size of its request log with the files before it, bytes."""
        return sum(
            file.stat().st_size for file in self.log.parent.glob(f"{self.log.name}.requests*")
        )

    def forget_old_logs(self) -> None:
        """Remove the files before the current one; the broker itself would, at the eighth."""
        for file in self.log.parent.glob(f"{self.log.name}.requests.*"):
            file.unlink()

    async def set_log(self, level: str) -> None:
        """Turn the request log on or off."""
        result = await set_levels(self.admin, {0: level}, REQUEST_LOGGER)
        if result != {0: level}:
            raise RuntimeError(f"the request log was not set: {result}")


def run() -> list[Row]:
    """Starts a broker and measures it."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    async with Cluster(environ=os.environ, brokers=1, volumes=1) as cluster:
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic("t", assignment=[[0]] * _PARTITIONS)
        broker = await optimised(cluster)
        endpoint = broker.admin.bootstrap_servers[0]
        rows: list[Row] = []
        for kind in _kinds():
            frame = await frame_of(broker.admin, kind.request, "bench")
            reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
            try:
                rows += await _rows(broker, _Client(reader, writer, frame), kind)
            finally:
                writer.transport.abort()
    return rows


async def optimised(cluster: Cluster) -> MeasuredBroker:
    """The cluster's broker again, without what makes a demo's start quick and its work slow."""
    broker = cluster.brokers[0]
    command = _command(broker.pid)
    log = broker.log.with_name("measured.log")
    dropped = ("-XX:TieredStopAtLevel", "-XX:+UseSerialGC", "-XX:SharedArchiveFile")
    kept = [word for word in command if not word.startswith(dropped)]
    words = [f"-Dkafka.log.file={log}" if "-Dkafka.log.file=" in each else each for each in kept]
    await cluster.stop_broker(0)
    pid = await cluster.run_beside("the measured broker", words, log)
    async with deadline(_READY_S, "the broker was not ready"):
        await until(lambda: STARTED in log.read_bytes() if log.exists() else False)
    host, _, port = cluster.bootstrap.rpartition(":")
    return MeasuredBroker(pid, log, KafkaAdmin(bootstrap_servers=(HostPort(host, int(port)),)))


def _command(pid: int) -> list[str]:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode().split("\0")


def _kinds() -> list[_Kind]:
    batch = batch_of(1000)

    def produce(partitions: int) -> ProduceRequest:
        return ProduceRequest(None, 1, 10_000, [("t", [(n, batch) for n in range(partitions)])])

    def fetch(partitions: int) -> FetchRequest:
        wanted = [(n, 0, 1) for n in range(partitions)]
        return FetchRequest(0, 0, 1, 0, [("t", wanted)])

    return [
        _Kind("produce to 1 partition, 1 kB", produce(1), 10_000),
        _Kind("produce to 10 partitions, 1 kB each", produce(10), 3000),
        _Kind("fetch of 1 partition", fetch(1), 10_000),
        _Kind(f"fetch of {_PARTITIONS} partitions", fetch(_PARTITIONS), 2000),
        _Kind(f"metadata of a topic of {_PARTITIONS} partitions", MetadataRequest(["t"]), 2000),
    ]


def batch_of(size: int) -> bytes:
    """A batch with one record of zeros."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, size + 1000)
    builder.append(0, 1_700_000_000_000, None, bytes(size), [])
    return bytes(builder.build())


async def _rows(broker: MeasuredBroker, client: "_Client", kind: _Kind) -> list[Row]:
    for level in ("WARN", "DEBUG") * _WARM_UP:
        await broker.set_log(level)
        await client.send(kind.count)
    broker.forget_old_logs()
    off: list[_Round] = []
    on: list[_Round] = []
    for _ in range(_ROUNDS):
        for level, rounds in (("WARN", off), ("DEBUG", on)):
            await broker.set_log(level)
            rounds.append(await _round(broker, client, kind))
    await broker.set_log("WARN")
    thousands = kind.count / 1000
    cpu = [(more.cpu_s - less.cpu_s) / thousands for more, less in zip(on, off, strict=True)]
    size = [each.log_bytes / thousands / 1e6 for each in on]
    without = median(each.cpu_s for each in off) / thousands
    name = f"request log, 1,000 times {kind.name}"
    return [
        median_row(f"{name}: file", size, "MB"),
        median_row(f"{name}: CPU more", cpu, "s"),
        Row(f"{name}: CPU without it", without, "s"),
    ]


async def _round(broker: MeasuredBroker, client: "_Client", kind: _Kind) -> _Round:
    cpu_s, size = broker.cpu_s(), broker.log_bytes()
    await client.send(kind.count)
    return _Round(broker.cpu_s() - cpu_s, broker.log_bytes() - size)


async def frame_of(admin: KafkaAdmin, request: Request[Any], client_id: str) -> bytes:
    """The bytes of a request, in the newest version that the broker and aiokafka know."""
    security = load_security(admin, time.monotonic)
    connection = await dial(admin.bootstrap_servers[0], security, "bench", time.monotonic)
    try:
        message = request.prepare(connection._versions)  # noqa: SLF001 - nothing else has them
    finally:
        await connection.close()
    header = message.build_request_header(correlation_id=1, client_id=client_id)
    body: bytes = header.encode() + message.encode()
    return len(body).to_bytes(4, "big") + body


class _Client:
    """Sends the same bytes again and again, and reads no more of the answers than their length."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = frame * _IN_FLIGHT

    async def send(self, count: int) -> None:
        """Send so many requests, a multiple of those in flight, and take their answers."""
        for _ in range(count // _IN_FLIGHT):
            self._writer.write(self._frames)
            for _ in range(_IN_FLIGHT):
                length = int.from_bytes(await self._reader.readexactly(4), "big")
                await self._reader.readexactly(length)
