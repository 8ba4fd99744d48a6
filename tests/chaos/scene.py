"""Sets the scene: three brokers with the jar, a sidecar beside each, producers of both kinds.

Each broker leads one partition of each topic, and has a replica of all: every volume fills with
all that is sent, 9 MB/s. Half of that librdkafka sends, one producer to each partition, and half
Kafka's own client, three producers to all of them. A volume of 256 MB is at its limit some 10 s
after it was cleaned; 130 MB are left then for what gets past it. Each callback asks all sidecars,
its own first.

Example: ``await play(plan(1, 600.0), out, say)`` takes eleven minutes and is a course to be judged.
"""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES
from kafka_lab.cluster import Cluster
from kafka_lab.nodes import Broker
from kafka_lab.scenario import INTERVAL, MINIMUM_INTERVAL, PAUSE_MAX_S
from kafka_lab.series import Series
from kafka_lab.sidecar_processes import start_sidecars
from kafka_lab.traffic import Traffic
from kafka_lab.waiting import deadline, until
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError
from tests.chaos.bound import Bound, Clients, Rules
from tests.chaos.callbacks import CallbackWatch
from tests.chaos.cleaner import Cleaner
from tests.chaos.course import Course, Producer
from tests.chaos.found import callback_errors, ended_tasks, tracebacks
from tests.chaos.injector import Injector
from tests.chaos.schedule import clock
from tests.chaos.watch import Watch
from tests.support.java_traffic import JavaTraffic

BROKERS: Final = 3
VOLUME_BYTES: Final = 256_000_000
LIMIT_BYTES: Final = 130_000_000
BYTES_PER_S: Final = 4.5e6
"""Of all producers of one kind."""

_TOPICS: Final = ("librdkafka", "java")
_PARTITIONS: Final = tuple(
    tuple((first + other) % BROKERS for other in range(BROKERS)) for first in range(BROKERS)
)
_QUEUE_BYTES: Final = 4 << 20
"""What each producer may have waiting."""
_BATCH_BYTES: Final = 1_000_000
_JAVA_REQUEST_BYTES: Final = BROKERS * (16 << 10)
_FIRST_BYTES_S: Final = 30.0
_SEGMENT_BYTES: Final = 1 << 20
"""The demo's brokers'."""

BOUND: Final = Bound(
    Rules(
        interval_s=1.0,
        deadline_s=2.0,
        retry_s=0.5,
        look_s=0.25,
        apply_s=0.5,
        pause_max_s=PAUSE_MAX_S,
        leak_ratio=0.01,
    ),
    (
        Clients(BROKERS, _BATCH_BYTES, int(BYTES_PER_S)),
        Clients(BROKERS * BROKERS, _JAVA_REQUEST_BYTES, int(BYTES_PER_S)),
    ),
    brokers=BROKERS,
    apart_bytes=len(_TOPICS) * len(_PARTITIONS) * _SEGMENT_BYTES,
)
"""Of the settings below, the callback's defaults and these producers; half a second until a look is
in force, on two slow cores."""

_SETTINGS: Final = {
    "SIDECAR_STORAGE_CHECK_INTERVAL": INTERVAL,
    "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": MINIMUM_INTERVAL,
    "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(LIMIT_BYTES),
}

Say = Callable[[str], None]


async def play(course: Course, out: Path, say: Say) -> None:
    """Start everything, let the faults happen, and end everything.

    Args:
        course: gets what is seen; it is whole also when this is cancelled.
        out: a folder for the logs.
        say: called with each event, in words.

    Raises:
        ClusterError: the scene can't be set.
    """
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(_cluster(refuses=course.refuses))
        if not cluster.volumes_are_real:
            raise ClusterError(f"this needs real volumes: {cluster.isolation.why_not}")
        # Before the cluster's folder is removed, however this ends.
        stack.callback(_read_logs, course, cluster, out)
        async with Admin(cluster.bootstrap) as admin:
            for topic in _TOPICS:
                await admin.create_topic(topic, assignment=_PARTITIONS)
        await start_sidecars(cluster, _SETTINGS)
        callbacks = await stack.enter_async_context(CallbackWatch())
        for broker in cluster.brokers.values():
            callbacks.follow(broker.id, broker.pid)
        producers = await stack.enter_async_context(_producing(cluster))
        await _first_bytes(producers)
        began = time.monotonic()
        try:
            await _run(course, cluster, callbacks, say, began)
        finally:
            course.producers = [_as_data(*each, began) for each in producers]


async def _run(
    course: Course, cluster: Cluster, callbacks: CallbackWatch, say: Say, began: float
) -> None:
    def now() -> float:
        return time.monotonic() - began

    def note(words: str) -> None:
        course.events.append((now(), words))
        say(f"{clock(now())}  {words}")

    def failed(words: str) -> None:
        course.ended.append((now(), words))
        note(words)

    injector = Injector(
        course.plan, cluster, callbacks, _SETTINGS, now=now, note=note, failed=failed
    )
    watch = Watch(course, cluster, callbacks, injector.since, now=now)

    def violates() -> bool:
        return any(
            available <= course.limit_bytes
            for broker_id, available in watch.available.items()
            if f"broker {broker_id}" in injector.since
        )

    cleaner = Cleaner(
        cluster.bootstrap, _TOPICS, course.plan.cleaning_s, violates=violates, note=note
    )
    async with asyncio.TaskGroup() as group:
        others = [
            group.create_task(injector.run(), name="injector"),
            group.create_task(cleaner.run(), name="cleaner"),
        ]
        watching = group.create_task(watch.run(), name="watch")
        await asyncio.wait({watching}, timeout=course.plan.duration_s)
        if watching.done() and not watching.cancelled() and watching.exception() is None:
            note("a volume is full")
        for task in (watching, *others):
            task.cancel()


def _cluster(*, refuses: bool) -> Cluster:
    def asks_every_sidecar(broker: Broker) -> dict[str, str]:
        # Its own counts first; the others are asked by turns.
        others = [each.sidecar_url for each in cluster.brokers.values() if each.id != broker.id]
        return {"client.quota.callback.sidecar.url": ",".join([broker.sidecar_url, *others])}

    properties = {**CALLBACK_PROPERTIES, "leader.imbalance.check.interval.seconds": "5"}
    cluster = Cluster(
        environ=os.environ,
        brokers=BROKERS,
        volumes=1,
        volume_bytes=VOLUME_BYTES,
        broker_jars=[callback_jar()],
        properties={**properties, **REFUSING_PROPERTIES} if refuses else properties,
        properties_of=asks_every_sidecar,
        # It is the controller that makes the first leaders lead again.
        controller_too=True,
    )
    return cluster


_Traffic = tuple[str, float, Traffic | JavaTraffic]
"""A producer's name, its rate, and what it does."""


@asynccontextmanager
async def _producing(cluster: Cluster) -> AsyncIterator[list[_Traffic]]:
    librdkafka, java = _TOPICS
    running: list[_Traffic] = []
    async with AsyncExitStack() as stack:
        for partition in range(BROKERS):
            rate = BYTES_PER_S / BROKERS
            traffic = Traffic(
                cluster.bootstrap,
                librdkafka,
                bytes_per_s=rate,
                partitions=[partition],
                config={"queue.buffering.max.kbytes": _QUEUE_BYTES >> 10},
            )
            await stack.enter_async_context(traffic)
            running.append((f"librdkafka, partition {partition}", rate, traffic))
        three = JavaTraffic(
            cluster.bootstrap,
            java,
            bytes_per_s=BYTES_PER_S,
            partitions=range(BROKERS),
            connections=BROKERS,
            config={"buffer.memory": _QUEUE_BYTES},
            heap_mb=256,
        )
        await stack.enter_async_context(three)
        running.append((f"Java, {BROKERS} producers", BYTES_PER_S, three))
        yield running


async def _first_bytes(producers: list[_Traffic]) -> None:
    """The first fault comes 10 s later: until then they are at their rate, or will not be."""
    async with deadline(_FIRST_BYTES_S, "a producer had nothing acknowledged"):
        await until(lambda: all(each.acknowledged_bytes > 0 for _, _, each in producers))


def _as_data(name: str, rate: float, traffic: Traffic | JavaTraffic, began: float) -> Producer:
    # A copy: librdkafka's thread adds to it meanwhile.
    acknowledged = Series((at - began, value) for at, value in list(traffic.samples))
    return Producer(name, rate, acknowledged, traffic.longest_throttle_s, traffic.failed_records)


def _read_logs(course: Course, cluster: Cluster, out: Path) -> None:
    """Keep the logs, and look for what none should say."""
    if cluster.folder is None:
        return
    end_s = course.samples[-1].at_s if course.samples else 0.0
    for log in sorted([*cluster.folder.glob("*.log"), *cluster.folder.glob("sidecar-*/*.log")]):
        name = str(log.relative_to(cluster.folder)).replace("/", "-")
        shutil.copyfile(log, out / name)
        text = log.read_text(errors="replace")
        if name.startswith("sidecar"):
            course.tracebacks += tracebacks(name, text)
            course.ended += [(end_s, line) for line in ended_tasks(name, text)]
        else:
            course.tracebacks += callback_errors(name, text)
