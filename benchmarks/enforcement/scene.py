"""Lets one scenario happen to one contender: fill, cross, throttle, free, come back.

Three brokers with two volumes each, three partitions with two replicas: broker 2 has a replica of
each, so that of 18 MB/s the fullest volume takes 12, two thirds of that by replication. Broker 2's
volumes begin with a file that takes part of their space and is removed to free it.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from benchmarks.enforcement.contenders import PAUSE_MAX_S, Contender, PollIntervals
from benchmarks.enforcement.course import Course, Leak
from benchmarks.enforcement.figures import back_at, throttled_at
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.series import Series, crossing
from kafka_lab.traffic import Traffic
from sidecar.errors import ClusterError
from tests.support.java import beans
from tests.support.java_traffic import JavaTraffic

TOPIC: Final = "traffic"
_ASSIGNMENT: Final = ((0, 2), (1, 2), (2, 0))
_FULLEST: Final = 2
_FULLEST_SHARE: Final = 2 / 3
THROTTLED_S: Final = 22.0
"""From the crossing to the freeing, if producers were throttled soon, unless it is to be longer."""
_THROTTLED_FOR_S: Final = 15.0
"""They are throttled for so long at least before space is freed."""
_SETTLE_S: Final = PAUSE_MAX_S + 1.0
_SAMPLE_S: Final = 0.02
_CHECK_S: Final = 0.5
BACKLOG_BYTES: Final = 96 << 20
"""What all producers together may have waiting: three times the Java client's default."""
_LEAK: Final = 0.05
"""For so much of the rate the limit has room in a long throttle."""
_SPARE_BYTES: Final = 32 << 20
_METERS: Final = "kafka.server:type=BrokerTopicMetrics,name="


@dataclass(frozen=True, slots=True)
class Scenario:
    """Who produces, and how often the volumes are polled.

    Attributes:
        key: short, for names of files.
        title: for a reader.
        client: "librdkafka" or "java".
        connections: how many producers.
        polls: how often.
        throttled_timeout_s: how long after the crossing producers may take to be throttled: the
            volumes have room for it.
        back_timeout_s: how long after the freeing their return is waited for.
        before_s: how long producers are at full speed before the crossing: longer than a quota
            window, which is of 11 s, and than the time between two polls.
        bytes_per_s: of all producers together.
        throttled_s: from the crossing to the freeing, if producers were throttled soon.
        after_s: watched once producers are back.
        backlog_bytes: what all producers together may have waiting.
        refuses: whether our brokers have the authorizer, too.
        rounds: how often it is measured at most.
    """

    key: str
    title: str
    client: str
    connections: int
    polls: PollIntervals
    throttled_timeout_s: float
    back_timeout_s: float
    before_s: float = 14.0
    bytes_per_s: float = 18e6
    throttled_s: float = THROTTLED_S
    after_s: float = 13.0
    backlog_bytes: int = BACKLOG_BYTES
    refuses: bool = False
    rounds: int | None = None

    @property
    def is_long(self) -> bool:
        """Whether producers are throttled for longer than it takes to see that they are."""
        return self.throttled_s > THROTTLED_S

    @property
    def fill(self) -> float:
        """What the fullest volume takes, bytes/s."""
        return self.bytes_per_s * _FULLEST_SHARE

    @property
    def limit_bytes(self) -> int:
        """The limit: room for what is written until producers are throttled, and what leaks."""
        leak = _LEAK * self.fill * (self.throttled_s - THROTTLED_S)
        return int(self.fill * self.throttled_timeout_s + leak) + _SPARE_BYTES

    @property
    def ballast_bytes(self) -> int:
        """What is freed: so much that the limit is not reached a second time."""
        after_s = self.throttled_timeout_s + self.after_s + 5.0
        return int(self.fill * after_s) + self.backlog_bytes

    @property
    def volume_bytes(self) -> int:
        """The size of each volume."""
        before = int(self.fill * self.before_s)
        return self.limit_bytes + before + self.ballast_bytes


class Producers(Protocol):
    """What ``Traffic`` and ``JavaTraffic`` tell."""

    acknowledged_bytes: int
    failed_records: int
    longest_throttle_s: float
    samples: Series


async def start(
    contender: Contender,
    polls: PollIntervals,
    limit_bytes: int,
    *,
    brokers: int,
    volumes: int,
    volume_bytes: int,
    properties: Mapping[str, str] | None = None,
    listeners: Sequence[Listener] = (),
    heap_mb: int = 384,
) -> Cluster:
    """A cluster, not yet entered, whose brokers are a contender's."""
    return Cluster(
        environ=os.environ,
        brokers=brokers,
        volumes=volumes,
        volume_bytes=volume_bytes,
        properties=properties,
        properties_of=lambda broker: contender.properties(broker, polls, limit_bytes),
        broker_jars=await contender.jars(),
        listeners=listeners,
        heap_mb=heap_mb,
    )


async def happen(scenario: Scenario, contender: Contender, phase: float = 0.0) -> Course:
    """Start brokers and producers, and let it happen.

    Args:
        scenario: what.
        contender: to whom.
        phase: how much later the limit is crossed, as a share of the time between two polls: who
            polls at an interval sees it at once or an interval later, as it comes.

    Raises:
        ClusterError: it could not be measured.
    """
    limit = scenario.limit_bytes
    cluster = await start(
        contender,
        scenario.polls,
        limit,
        brokers=3,
        volumes=2,
        volume_bytes=scenario.volume_bytes,
        properties=contender.refusing if scenario.refuses else None,
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        if not cluster.volumes_are_real:
            raise ClusterError(f"this needs real volumes: {cluster.isolation.why_not}")
        for index in range(2):
            await cluster.occupy(_FULLEST, index, scenario.ballast_bytes)
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic(TOPIC, assignment=_ASSIGNMENT)
        await contender.obey(cluster, scenario.polls, limit)
        await asyncio.sleep(phase * scenario.polls.period_s)
        course = Course(scenario.key, contender.key, scenario.connections, limit)
        producers = await stack.enter_async_context(_producing(scenario, cluster))
        watch = _Watch(cluster, scenario, course, producers)
        watching = asyncio.create_task(watch.run(), name="watching")
        try:
            await _act(scenario, cluster, course, watch)
        finally:
            watching.cancel()
            await asyncio.wait({watching})
        if not watching.cancelled() and (error := watching.exception()) is not None:
            raise error
        course.acknowledged = _by_their_own_clocks(course.acknowledged, producers)
    return course


def _by_their_own_clocks(seen: Series, producers: Sequence[Producers]) -> Series:
    """What was acknowledged, at the times at which it was read.

    A JVM reports it ten times a second: when that is read is up to a tenth of a second later, which
    would make some seconds look a tenth fuller than they were.
    """
    return Series((at, sum(each.samples.at(at) for each in producers)) for at, _ in seen)


async def _act(scenario: Scenario, cluster: Cluster, course: Course, watch: "_Watch") -> None:
    await _until(lambda: course.crossed_at is not None, 3 * scenario.before_s)
    if course.crossed_at is None:
        raise ClusterError("the limit was not reached")
    await _until(lambda: throttled_at(course) is not None, scenario.throttled_timeout_s)
    throttled_since = throttled_at(course)
    if throttled_since is None:
        course.notes.append(f"not throttled within {scenario.throttled_timeout_s:.0f} s")
        return
    free_at = max(course.crossed_at + scenario.throttled_s, throttled_since + _THROTTLED_FOR_S)
    await _sleep_until(throttled_since + _SETTLE_S)
    before = await _meters(cluster)
    await _sleep_until(free_at - 1.0)
    course.leaks = _leaks(before, await _meters(cluster))
    await watch.free()
    await _until(lambda: back_at(course) is not None, scenario.back_timeout_s)
    back = back_at(course)
    if back is not None:
        await _sleep_until(back + scenario.after_s)
    stopped = [key for key in cluster.brokers if not cluster.is_running(key)]
    course.notes += [f"broker {key} ended itself" for key in stopped]


class _Watch:
    """Samples clients and volumes."""

    def __init__(
        self, cluster: Cluster, scenario: Scenario, course: Course, producers: Sequence[Producers]
    ) -> None:
        self._cluster = cluster
        self._scenario = scenario
        self._course = course
        self._producers = producers

    async def run(self) -> None:
        while True:
            await self._sample()
            await asyncio.sleep(_SAMPLE_S)

    async def free(self) -> None:
        """Free the space."""
        # A sample at this very moment, so that what was free before is known.
        self._course.freed_at = await self._sample()
        for index in range(2):
            await self._cluster.occupy(_FULLEST, index, 0)

    async def _sample(self) -> float:
        course = self._course
        usages = [
            await self._cluster.usage(broker, index) for broker in range(3) for index in range(2)
        ]
        # Two samples may be under way at once; they are added in the order of their times.
        now = time.monotonic()
        available = [free for _, free in usages]
        course.available.add(now, min(available[2 * _FULLEST :]))
        if course.freed_at is None:
            course.stored.add(now, sum(total - free for total, free in usages))
        if course.crossed_at is None:
            course.crossed_at = crossing(course.available, self._scenario.limit_bytes)
        course.acknowledged.add(now, sum(each.acknowledged_bytes for each in self._producers))
        course.failed_records = sum(each.failed_records for each in self._producers)
        longest = max(each.longest_throttle_s for each in self._producers)
        course.longest_throttle_s = longest
        return now


@asynccontextmanager
async def _producing(scenario: Scenario, cluster: Cluster) -> AsyncIterator[Sequence[Producers]]:
    partitions = range(len(_ASSIGNMENT))
    waiting = scenario.backlog_bytes // scenario.connections
    async with AsyncExitStack() as stack:
        if scenario.client == "java":
            java = JavaTraffic(
                cluster.bootstrap,
                TOPIC,
                bytes_per_s=scenario.bytes_per_s,
                partitions=partitions,
                connections=scenario.connections,
                config={"buffer.memory": waiting},
            )
            yield [await stack.enter_async_context(java)]
        else:
            yield [
                await stack.enter_async_context(
                    Traffic(
                        cluster.bootstrap,
                        TOPIC,
                        bytes_per_s=scenario.bytes_per_s / scenario.connections,
                        partitions=partitions,
                        config={"queue.buffering.max.kbytes": waiting >> 10},
                    )
                )
                for _ in range(scenario.connections)
            ]


async def _meters(cluster: Cluster) -> list[Leak]:
    """Since their start: how long, appended bytes and requests of each broker's producers."""

    async def one(broker_id: int) -> Leak:
        found = await beans(cluster, broker_id, f"{_METERS}*")
        counts = [
            float(found[name]["Count"] or 0)
            for name in (f"{_METERS}BytesInPerSec", f"{_METERS}TotalProduceRequestsPerSec")
        ]
        return Leak(time.monotonic(), *counts)

    return list(await asyncio.gather(*(one(broker_id) for broker_id in cluster.brokers)))


def _leaks(before: Sequence[Leak], after: Sequence[Leak]) -> list[Leak]:
    return [
        Leak(last.seconds - first.seconds, last.bytes - first.bytes, last.requests - first.requests)
        for first, last in zip(before, after, strict=True)
    ]


async def _until(is_met: Callable[[], bool], timeout_s: float) -> None:
    """Poll every half second for so long; the caller checks the outcome."""
    end = time.monotonic() + timeout_s
    while not is_met() and time.monotonic() < end:  # noqa: ASYNC110 - figures announce nothing
        await asyncio.sleep(_CHECK_S)


async def _sleep_until(at: float) -> None:
    await asyncio.sleep(max(0.0, at - time.monotonic()))
