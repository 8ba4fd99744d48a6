"""Lets one scenario happen to one arm: fill, cross the limit, throttle, free space, come back.

Three brokers with two volumes each, three partitions with two replicas. Broker 2 has a replica of
each: of 18 MB/s its volume takes 12, two thirds of that by replication. Broker 2's volumes begin
with a file that takes part of their space and is removed to free it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from benchmarks.harness.results import Sampled
from benchmarks.harness.throttles import (
    DEFAULT,
    PAUSE_MAX_S,
    SHORTEST,
    Polls,
    Throttle,
    check_volumes,
    cluster_of,
)
from benchmarks.harness.traffic import Producers, librdkafka, looking, sleep_until, sum_of, wait
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.series import Series, crossing
from sidecar.errors import ClusterError
from tests.support.java import beans
from tests.support.java_traffic import JavaTraffic

THROTTLED_S: Final = 22.0
"""From the crossing to the freeing, if producers were throttled soon, unless it is to be longer."""
BEFORE_S: Final = 8.0
"""The earlier rate is that of so many seconds before the crossing."""
THROTTLED_SHARE: Final = 0.2
"""Producers are throttled when a second brings at most this share of the earlier rate."""
BACK_SHARE: Final = 0.9
"""They are back when two seconds bring at least this share of it."""

_TOPIC: Final = "traffic"
_ASSIGNMENT: Final = ((0, 2), (1, 2), (2, 0))
_FULLEST: Final = 2
_FULLEST_SHARE: Final = 2 / 3
_THROTTLED_FOR_S: Final = 15.0
"""They are throttled for so long at least before space is freed."""
_LEAK: Final = 0.05
"""In a long throttle the limit has room for this share of the rate."""
_SPARE_BYTES: Final = 32 << 20
_STEP_S: Final = 0.02
_METERS: Final = "kafka.server:type=BrokerTopicMetrics,name="


@dataclass(frozen=True, slots=True)
class Scenario:
    """Which producers there are, and how often the volumes are polled.

    Attributes:
        key: short, for names of files.
        client: "librdkafka" or "java".
        connections: how many producers.
        title: for a reader, after the client's name.
        polls: how often.
        throttled_timeout_s: how long after the crossing producers may take to be throttled: the
            volumes have room for it.
        back_timeout_s: how long after the freeing their return is waited for.
        before_s: how long producers are at full speed before the crossing: longer than a quota
            window, which is of 11 s, and than the time between two polls.
        throttled_s: from the crossing to the freeing, if producers were throttled soon.
        after_s: watched once producers are back.
        backlog_bytes: what all producers together may have waiting; three times Java's default.
        refuses: whether our brokers also have the authorizer.
        rounds: how often it is measured at most.
    """

    key: str
    client: str
    connections: int
    title: str
    polls: Polls = SHORTEST
    throttled_timeout_s: float = 6.0
    back_timeout_s: float = 90.0
    before_s: float = 14.0
    throttled_s: float = THROTTLED_S
    after_s: float = 13.0
    backlog_bytes: int = 96 << 20
    refuses: bool = False
    rounds: int | None = None
    bytes_per_s: float = 18e6

    @property
    def is_long(self) -> bool:
        """Whether producers are throttled for longer than it takes to see that they are."""
        return self.refuses

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
        return self.limit_bytes + int(self.fill * self.before_s) + self.ballast_bytes


def _scenarios() -> list[Scenario]:
    three, hundred = "3 producers of 6 MB/s", "100 producers of 0.18 MB/s"
    # A minute passes until the plugin polls, and a minute more until it sees the space.
    slow = (DEFAULT, 66.0, 150.0, 75.0)
    # What a large buffer takes in until the first acknowledgement is sent faster than the rate, so
    # producers are at full speed for longer before the crossing.
    long = (SHORTEST, 6.0, 150.0, 40.0, 600.0, 60.0)
    end = ", a long throttle"
    return [
        Scenario("librdkafka-3", "librdkafka", 3, f"{three}, librdkafka"),
        Scenario("java-3", "java", 3, f"{three}, Java"),
        Scenario("librdkafka-100", "librdkafka", 100, f"{hundred}, librdkafka"),
        Scenario("java-100", "java", 100, f"{hundred}, Java"),
        Scenario(
            "librdkafka-3-default",
            "librdkafka",
            3,
            f"{three}, librdkafka, default intervals",
            *slow,
        ),
        Scenario("java-3-default", "java", 3, f"{three}, Java, default intervals", *slow),
        # librdkafka keeps what it can't send, and dials anew when its oldest records are as old as
        # its message.timeout.ms (5 minutes). Pauses do not stop that: ours has the authorizer here.
        Scenario(
            "librdkafka-3-long",
            "librdkafka",
            3,
            f"{three}, librdkafka, a backlog of up to 1 GB{end}",
            *long,
            backlog_bytes=1 << 30,
            refuses=True,
            rounds=1,
        ),
        Scenario(
            "java-3-long",
            "java",
            3,
            f"{three}, Java, a backlog of up to 96 MB{end}",
            *long,
            refuses=True,
            rounds=1,
        ),
    ]


SCENARIOS: Final = {each.key: each for each in _scenarios()}


@dataclass(frozen=True, slots=True)
class Leak:
    """What one broker let through in a part of the throttled time.

    Attributes:
        seconds: how long that part was.
        bytes: of produce requests appended in it.
        requests: how many requests those were.
    """

    seconds: float
    bytes: float
    requests: float


@dataclass(slots=True)
class Run:
    """What happened; times are seconds of one monotonic clock.

    Attributes:
        connections: how many producers there were; each has a connection to each broker.
        limit_bytes: available bytes at which a volume violates.
        acknowledged: bytes that producers had acknowledged so far.
        stored: bytes on all volumes together, until space was freed.
        available: bytes on the fullest volume.
        crossed_at: when the fullest volume reached the limit; None: never.
        freed_at: when its space was freed; None: never.
        longest_throttle_s: the longest throttle time of a client.
        failed_records: records that clients gave up.
        leaks: one for each broker.
        notes: what else a reader has to know.
    """

    connections: int
    limit_bytes: int
    acknowledged: Sampled = field(default_factory=Series)
    stored: Sampled = field(default_factory=Series)
    available: Sampled = field(default_factory=Series)
    crossed_at: float | None = None
    freed_at: float | None = None
    longest_throttle_s: float = 0.0
    failed_records: int = 0
    leaks: list[Leak] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ended_at(self) -> float:
        """The time of the last sample."""
        return max(at for at, _ in self.acknowledged)

    @property
    def throttled_at(self) -> float | None:
        """The first moment whose next second has a fifth of the earlier rate or less; None: none.

        The next fifth of a second has that too, or a second could begin at full speed. It is
        measured in bytes stored, where it counts, and not in acknowledgements.
        """
        if self.crossed_at is None:
            return None
        stored, begin = self.stored, self.crossed_at
        most = THROTTLED_SHARE * stored.rate(begin - BEFORE_S, begin)
        while (at := _first(stored, begin, 1.0, -1, most)) is not None:
            if stored.rate(at, at + 0.2) <= most:
                break
            begin = at + _STEP_S
        return at

    @property
    def back_at(self) -> float | None:
        """The first moment after the freeing whose next 2 s have 90 % of the earlier rate."""
        if self.crossed_at is None or self.freed_at is None:
            return None
        least = BACK_SHARE * self.acknowledged.rate(self.crossed_at - BEFORE_S, self.crossed_at)
        return _first(self.acknowledged, self.freed_at, 2.0, 1, least)


def _first(series: Series, begin: float, window_s: float, sign: int, bound: float) -> float | None:
    """The first moment from which the rate of a whole window is at or beyond a bound."""
    last = max(at for at, _ in series)
    for step in range(int((last - begin - window_s) / _STEP_S + 1e-9) + 1):
        at = begin + step * _STEP_S
        if sign * series.rate(at, at + window_s) >= sign * bound:
            return at
    return None


async def happen(scenario: Scenario, throttle: Throttle, phase: float, back_s: float) -> Run:
    """Start brokers and producers, and let it happen.

    Args:
        scenario: what.
        throttle: what throttles.
        phase: how much later the limit is crossed, as a share of the time between two polls: a
            poll may come at once or an interval later.
        back_s: how long the return of producers is waited for at most.

    Raises:
        ClusterError: it could not be measured.
    """
    limit = scenario.limit_bytes
    cluster = await cluster_of(
        throttle,
        scenario.polls,
        limit,
        brokers=3,
        volumes=2,
        volume_bytes=scenario.volume_bytes,
        properties=throttle.refusing if scenario.refuses else None,
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        check_volumes(cluster)
        await _occupy(cluster, scenario.ballast_bytes)
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic(_TOPIC, assignment=_ASSIGNMENT)
        await throttle.obey(cluster, scenario.polls, limit)
        await asyncio.sleep(phase * scenario.polls.period_s)
        run = Run(scenario.connections, limit)
        producers = await stack.enter_async_context(_producing(scenario, cluster))
        watch = _Watch(cluster, run, producers)
        async with looking(watch.look, _STEP_S):
            await _act(scenario, watch, back_s)
        run.acknowledged = sum_of(run.acknowledged, producers)
    return run


async def _act(scenario: Scenario, watch: "_Watch", back_s: float) -> None:
    run, cluster = watch.run, watch.cluster
    if not await wait(lambda: run.crossed_at is not None, 3 * scenario.before_s):
        raise ClusterError("the limit was not reached")
    await wait(lambda: run.throttled_at is not None, scenario.throttled_timeout_s)
    crossed, since = run.crossed_at, run.throttled_at
    if crossed is None or since is None:
        run.notes.append(f"not throttled within {scenario.throttled_timeout_s:.0f} s")
        return
    free_at = max(crossed + scenario.throttled_s, since + _THROTTLED_FOR_S)
    await sleep_until(since + PAUSE_MAX_S + 1.0)
    before = await _meters(cluster)
    await sleep_until(free_at - 1.0)
    run.leaks = [
        Leak(last.seconds - first.seconds, last.bytes - first.bytes, last.requests - first.requests)
        for first, last in zip(before, await _meters(cluster), strict=True)
    ]
    # A sample at this very moment, so that what was free before is known.
    await watch.look()
    run.freed_at = time.monotonic()
    await _occupy(cluster, 0)
    await wait(lambda: run.back_at is not None, back_s)
    if (back := run.back_at) is not None:
        await sleep_until(back + scenario.after_s)
    stopped = [key for key in cluster.brokers if not cluster.is_running(key)]
    run.notes += [f"broker {key} ended by itself" for key in stopped]


async def _occupy(cluster: Cluster, count: int) -> None:
    for index in range(2):
        await cluster.occupy(_FULLEST, index, count)


@dataclass(frozen=True, slots=True)
class _Watch:
    """Samples clients and volumes."""

    cluster: Cluster
    run: Run
    producers: Sequence[Producers]

    async def look(self) -> None:
        run = self.run
        usages = [
            await self.cluster.usage(broker, index) for broker in range(3) for index in range(2)
        ]
        # Two looks may be under way at once; they are added in the order of their times.
        now = time.monotonic()
        available = [free for _, free in usages]
        run.available.add(now, min(available[2 * _FULLEST :]))
        if run.freed_at is None:
            run.stored.add(now, sum(total - free for total, free in usages))
        run.crossed_at = run.crossed_at or crossing(run.available, run.limit_bytes)
        run.acknowledged.add(now, sum(each.acknowledged_bytes for each in self.producers))
        run.failed_records = sum(each.failed_records for each in self.producers)
        run.longest_throttle_s = max(each.longest_throttle_s for each in self.producers)


def _producing(
    scenario: Scenario, cluster: Cluster
) -> AbstractAsyncContextManager[Sequence[Producers]]:
    partitions = range(len(_ASSIGNMENT))
    waiting = scenario.backlog_bytes // scenario.connections
    if scenario.client == "java":
        return _java(scenario, cluster, waiting)
    return librdkafka(
        scenario.connections,
        cluster.bootstrap,
        _TOPIC,
        scenario.bytes_per_s,
        partitions=partitions,
        config={"queue.buffering.max.kbytes": waiting >> 10},
    )


@asynccontextmanager
async def _java(
    scenario: Scenario, cluster: Cluster, waiting: int
) -> AsyncIterator[Sequence[Producers]]:
    async with JavaTraffic(
        cluster.bootstrap,
        _TOPIC,
        bytes_per_s=scenario.bytes_per_s,
        partitions=range(len(_ASSIGNMENT)),
        connections=scenario.connections,
        config={"buffer.memory": waiting},
    ) as java:
        yield [java]


async def _meters(cluster: Cluster) -> list[Leak]:
    """Since their start: how long, appended bytes and requests of each broker's producers."""

    async def one(broker_id: int) -> Leak:
        found = await beans(cluster, broker_id, f"{_METERS}*")
        names = (f"{_METERS}BytesInPerSec", f"{_METERS}TotalProduceRequestsPerSec")
        return Leak(time.monotonic(), *(float(found[name]["Count"] or 0) for name in names))

    return list(await asyncio.gather(*map(one, cluster.brokers)))
