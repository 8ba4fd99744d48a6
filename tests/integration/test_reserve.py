"""A broker that died of a full volume starts from its reserve, and refuses until there is space.

Kafka alone does not start: it maps index files of the metadata log or of topics into memory, and a
volume without a byte has no page for what it writes there.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.jars import DEFAULT_VERSION
from kafka_lab.nodes import Broker
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError
from tests.support.daemon import Daemon, Start, settings
from tests.support.diallers import Diallers, landed
from tests.support.java import bean
from tests.support.waiting import seen

MB = 1 << 20
RESERVE = 8 * MB
TOPIC = "t"
RECORD = 100_000
RECORDS = 30
FAULT = "a fault occurred in a recent unsafe memory access operation|No space left on device"
"""What Java makes of the signal SIGBUS: a mapped page has no block on the volume. On XFS, which has
kept some blocks, a log's own write fails first."""

PROPERTIES = {
    **CALLBACK_PROPERTIES,
    **REFUSING_PROPERTIES,
    "kafka.metrics.reporters": "throttlesidecar.ReserveReporter",
    "client.quota.callback.sidecar.reserve.bytes": str(RESERVE),
}
LIMIT = {"STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(16 * MB)}


@dataclass
class Full:
    """A broker, and the volume of it that is filled.

    Attributes:
        is_jbod: whether it has two volumes, and the metadata log elsewhere; else the metadata log
            is on the one volume, as by default.
        index: the volume to fill.
        ballast: the bytes of the foreign file there.
    """

    cluster: Cluster
    is_jbod: bool
    index: int = 0
    ballast: int = field(default=0, init=False)

    @property
    def log_dir(self) -> str:
        return self.cluster.brokers[0].volumes[self.index].path

    def holds(self, name: str) -> bool:
        """Whether the running broker has a file or folder of this name in the log dir."""
        return Path(f"/proc/{self.cluster.brokers[0].pid}/root{self.log_dir}/{name}").exists()

    async def figures(self) -> Mapping[str, Any]:
        return await bean(self.cluster, 0, "throttlesidecar:type=QuotaCallback")

    async def fill(self, leave: int = 0) -> None:
        """Leave so many bytes or less, by a foreign file; XFS keeps some blocks for itself."""
        step = 1 << 40
        while (more := (await self.cluster.usage(0, self.index))[1] - leave) > 0 and step:
            more = min(more, step)
            try:
                await self.cluster.occupy(0, self.index, self.ballast + more)
            except ClusterError:
                # The broker took some of it in the meantime; the rest of it is occupied.
                step = more // 2
                continue
            self.ballast += more

    def configure(self, *, has_jar: bool) -> None:
        """From the next start on, with the jar and its reserve, or as Kafka is without them."""

        def of(broker: Broker) -> dict[str, str]:
            metadata = {} if self.is_jbod else {"metadata.log.dir": broker.volumes[0].path}
            return metadata | (asks_its_sidecar(broker) if has_jar else {})

        jars = [callback_jar()] if has_jar else []
        self.cluster.configure(PROPERTIES if has_jar else {}, of, jars)


@pytest.fixture(
    params=[DEFAULT_VERSION, pytest.param("3.9.1", marks=pytest.mark.versions)],
)
def version(request: pytest.FixtureRequest) -> str:
    """Each version in turn."""
    return str(request.param)


def on_disk(kind: str) -> Any:
    """A file system that is made in a file: by root, with a loop device."""
    is_possible = os.geteuid() == 0 and Path("/dev/loop-control").exists()
    impossible = pytest.mark.skipif(
        not is_possible or shutil.which(f"mkfs.{kind}") is None,
        reason=f"needs root, a loop device, and mkfs.{kind}",
    )
    return pytest.param(kind, marks=[impossible, pytest.mark.slow])


@pytest_asyncio.fixture(params=["broker", "combined", "jbod", on_disk("ext4"), on_disk("xfs")])
async def full(request: pytest.FixtureRequest, version: str) -> AsyncIterator[Full]:
    """A broker with the metadata log on its volume, such a combined node, or one of two volumes.

    Their volumes are tmpfs. The first one runs on file systems of a disk, too.
    """
    is_jbod, is_combined = request.param == "jbod", request.param == "combined"
    async with Cluster(
        environ=os.environ,
        version=version,
        brokers=1,
        combined=is_combined,
        volumes=2 if is_jbod else 1,
        # No XFS is smaller.
        volume_bytes=(320 if request.param == "xfs" else 64) * MB,
        file_system=request.param if request.param in {"ext4", "xfs"} else "tmpfs",
    ) as cluster:
        full = Full(cluster, is_jbod)
        await cluster.stop_broker(0)
        if is_combined:
            # A controller's metadata log can't be fetched from another one.
            broker = cluster.brokers[0]
            words = ["sh", "-c", f"cp -a {broker.home}/metadata/* {broker.volumes[0].path}"]
            await cluster.run_beside("cp", words, broker.home / "cp.log")
            await seen("the copy", lambda: cluster.ended("cp") == 0)
        full.configure(has_jar=True)
        await cluster.start_broker(0)
        yield full


def produce(cluster: Cluster) -> None:
    """Produce the records, to partition 0."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for _ in range(RECORDS):
        producer.produce(TOPIC, bytes(RECORD), partition=0)
    assert 0 == producer.flush(60.0)


async def consume(cluster: Cluster) -> int:
    """How many of the records a group reads, and commits."""

    def read() -> int:
        found = 0
        config = {"group.id": "g", "auto.offset.reset": "earliest"}
        with Consumer({"bootstrap.servers": cluster.bootstrap, **config}) as consumer:
            consumer.subscribe([TOPIC])
            for _ in range(600):
                message = consumer.poll(0.1)
                found += message is not None and message.error() is None
                if found == RECORDS:
                    break
            consumer.commit(asynchronous=False)
        return found

    return await asyncio.to_thread(read)


async def delete_records(cluster: Cluster) -> None:
    """Delete the records of partition 0."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    (future,) = admin.delete_records([TopicPartition(TOPIC, 0, RECORDS)]).values()
    assert RECORDS == (await asyncio.to_thread(future.result, 30)).low_watermark


async def dies(full: Full) -> None:
    """Fill the volume, and prove that Kafka alone does not start on it."""
    cluster = full.cluster
    await full.fill()
    if full.is_jbod:
        # It would go on with its other volume.
        await cluster.kill_broker(0)
    await seen("it died", lambda: not cluster.is_running(0))
    full.configure(has_jar=False)
    with pytest.raises(ClusterError, match=FAULT):
        await cluster.start_broker(0)
    # That start may have given back some pages.
    await full.fill()


async def is_told(daemon: Daemon, log_dir: str, nbytes: int) -> None:
    """Wait until the API and the metrics have the reserve's bytes."""
    found = [{"log_dir": log_dir, "bytes": nbytes}]

    async def reserves() -> object:
        readers = (await daemon.get("/v1/readers"))["readers"]
        told = [each for reader in readers for each in reader["reserves"]]
        return [each for each in told if each["log_dir"] == log_dir]

    await seen(f"a reserve of {nbytes}", reserves, lambda now: found == now)
    metrics = await daemon.metrics()
    assert nbytes == metrics.value("reader_reserve_bytes", broker="0", log_dir=log_dir)


async def part(daemon: Daemon, log_dir: str) -> int:
    """The reserve's bytes among the parts of a volume near its limit; 0 without it."""
    volumes = (await daemon.get("/v1/growth"))["volumes"]
    parts = [each for volume in volumes if volume["log_dir"] == log_dir for each in volume["parts"]]
    return sum(each["size_bytes"] for each in parts if each["kind"] == "reserve")


@pytest.mark.timeout(300)
async def test_a_full_broker_starts_from_its_reserve(full: Full, start: Start) -> None:
    """It admits no byte, is read, and deletes; with space, it admits and has a reserve again."""
    cluster = full.cluster
    listen = f"127.0.0.1:{cluster.brokers[0].sidecar_port}"
    daemon = await start(cluster, settings(cluster.bootstrap, HTTP_LISTEN=listen, **LIMIT))
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic(TOPIC, assignment=[[0]] * (2 if full.is_jbod else 1))
    await asyncio.to_thread(produce, cluster)
    full.index = 0 if full.holds(f"{TOPIC}-0") else 1
    await is_told(daemon, full.log_dir, RESERVE)
    assert full.holds("throttle-sidecar-reserve")
    await full.fill(leave=4 * MB)
    await seen("a part", lambda: part(daemon, full.log_dir), lambda nbytes: nbytes == RESERVE)
    await dies(full)

    full.configure(has_jar=True)
    # They try from the first moment on.
    async with Diallers(cluster.bootstrap, TOPIC, record_bytes=RECORD) as writers:
        # Its deadline is a minute.
        await cluster.start_broker(0)
        await is_told(daemon, full.log_dir, 0)
        assert "started from its reserve" in (await daemon.ask("/")).text
        await seen("refusals", full.figures, lambda now: now["RefusedBelowStopLine"] > 10)
    assert RECORDS == await landed(cluster.bootstrap, TOPIC, 1)
    assert 0 == writers.acknowledged_bytes
    assert RECORDS == await consume(cluster)
    await delete_records(cluster)
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic("other", assignment=[[0]])
        await admin.delete_topic("other")

    await cluster.occupy(0, full.index, 0)
    async with Diallers(cluster.bootstrap, TOPIC, record_bytes=RECORD) as writers:
        await seen("records land", lambda: writers.acknowledged_bytes > 0)
    await is_told(daemon, full.log_dir, RESERVE)
