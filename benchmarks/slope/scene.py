"""Lets a volume fill beside a cleaner: with a soft limit and a limit, or with the limit alone.

One broker with a volume of its own file system, its sidecar, and three producers of 6 MB/s. The
cleaner stands for retention: a file on the volume that loses 4 MB each second, whatever the
producers do. Producers are at full speed until the volume is at the soft limit.

Example: 1.5 minutes at 18 - 4 MB/s are 1.3 GB until the soft limit, 2 GB above the limit; for 15
minutes more the file has 4 GB to lose.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import httpx

from benchmarks.enforcement.contenders import OURS, PollIntervals
from benchmarks.enforcement.scene import start
from benchmarks.slope.course import Course
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.series import crossing
from kafka_lab.traffic import Traffic
from kafka_lab.waiting import deadline
from sidecar.errors import ClusterError

LIMIT_BYTES: Final = 300_000_000
SOFT_BYTES: Final = 2_300_000_000
"""The slope is as wide as 18 MB/s write in two minutes, and hardly wider."""
HORIZON_S: Final = 300.0
"""So that a volume of GBs comes to rest within minutes, as one of TBs does in the default's 30."""
CLEANED_PER_S: Final = 4_000_000
PRODUCERS: Final = 3
BYTES_PER_S: Final = 18e6

_TOPIC: Final = "slope"
_PARTITIONS: Final = range(3)
_BEFORE_S: Final = 90.0
"""At full speed: longer than the minute over which a fill rate is measured."""
_BACKLOG_BYTES: Final = 32 << 20
"""What each producer may have waiting: Java's default."""
_SPARE_BYTES: Final = 200_000_000
_SAMPLE_S: Final = 1.0
_SOFT_LIMIT: Final = "SIDECAR_STORAGE_PER_VOLUME_SOFT_LIMIT_MIN_AVAILABLE_BYTES"


@dataclass(frozen=True, slots=True)
class Arm:
    """What slows or throttles the producers.

    Attributes:
        key: short, for names of files.
        name: for a reader.
        has_slope: whether there is a soft limit.
    """

    key: str
    name: str
    has_slope: bool

    @property
    def polls(self) -> PollIntervals:
        """The sidecar's settings: the defaults, and the soft limit with its horizon."""
        if not self.has_slope:
            return PollIntervals(None, {})
        soft = {_SOFT_LIMIT: str(SOFT_BYTES), "SIDECAR_THROTTLE_HORIZON": f"PT{HORIZON_S:.0f}S"}
        return PollIntervals(None, soft)


ARMS: Final = (
    Arm("slope", "soft limit and limit", has_slope=True),
    Arm("cliff", "limit alone", has_slope=False),
)


async def happen(arm: Arm, watched_s: float, say: Callable[[str], None]) -> Course:
    """Start all, and let it happen.

    Args:
        arm: what slows producers.
        watched_s: how long from the soft limit on.
        say: called now and then with where it is.

    Raises:
        ClusterError: it could not be measured.
    """
    ballast = int(CLEANED_PER_S * (_BEFORE_S * 1.5 + watched_s)) + _SPARE_BYTES
    before = int((BYTES_PER_S - CLEANED_PER_S) * _BEFORE_S)
    cluster = await start(
        OURS,
        arm.polls,
        LIMIT_BYTES,
        brokers=1,
        volumes=1,
        volume_bytes=SOFT_BYTES + before + ballast,
    )
    course = Course(arm.key, BYTES_PER_S, CLEANED_PER_S, HORIZON_S, SOFT_BYTES, LIMIT_BYTES)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        if not cluster.volumes_are_real:
            raise ClusterError(f"this needs a real volume: {cluster.isolation.why_not}")
        await cluster.occupy(0, 0, ballast)
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic(_TOPIC, assignment=[[0]] * len(_PARTITIONS))
        await OURS.obey(cluster, arm.polls, LIMIT_BYTES)
        producers = await stack.enter_async_context(_producing(cluster))
        async with asyncio.TaskGroup() as group:
            cleaning = group.create_task(_clean(cluster, ballast), name="cleaner")
            watching = group.create_task(_watch(cluster, course, producers, say), name="watch")
            async with deadline(3 * _BEFORE_S, "the volume was not at the soft limit"):
                while course.crossed_at is None:  # noqa: ASYNC110 - a sample announces nothing
                    await asyncio.sleep(_SAMPLE_S)
            await asyncio.sleep(max(0.0, course.crossed_at + watched_s - time.monotonic()))
            for task in (cleaning, watching):
                task.cancel()
        if not cluster.is_running(0):
            course.notes.append("the broker ended itself")
    return course


async def _clean(cluster: Cluster, ballast: int) -> None:
    """As much as has to be gone by now, each second, so that a late second makes no difference."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(_SAMPLE_S)
        gone = int(CLEANED_PER_S * (time.monotonic() - began))
        if gone >= ballast:
            raise ClusterError("the cleaner has nothing left to free")
        await cluster.occupy(0, 0, ballast - gone)


async def _watch(
    cluster: Cluster, course: Course, producers: Sequence[Traffic], say: Callable[[str], None]
) -> None:
    """Samples clients, volume and factor each second."""
    url = cluster.brokers[0].sidecar_url
    due = time.monotonic()
    async with httpx.AsyncClient(base_url=url, timeout=5.0, verify=False) as client:
        while True:
            _, available = await cluster.usage(0, 0)
            factor = (await client.get("/v1/throttle-factor")).json()["factor"]
            now = time.monotonic()
            course.available.add(now, available)
            course.factor.add(now, factor)
            course.acknowledged.add(now, sum(each.acknowledged_bytes for each in producers))
            course.failed_records = sum(each.failed_records for each in producers)
            course.longest_throttle_s = max(each.longest_throttle_s for each in producers)
            if course.crossed_at is None:
                course.crossed_at = crossing(course.available, course.soft_bytes)
            if len(course.available) % 30 == 0:
                above = (available - course.limit_bytes) / 1e6
                rate = course.acknowledged.rate(now - 10.0, now) / 1e6
                say(f"factor {factor:g}, {rate:.1f} MB/s, {above:.0f} MB above the limit")
            due += _SAMPLE_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))


@asynccontextmanager
async def _producing(cluster: Cluster) -> AsyncIterator[Sequence[Traffic]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                Traffic(
                    cluster.bootstrap,
                    _TOPIC,
                    bytes_per_s=BYTES_PER_S / PRODUCERS,
                    partitions=_PARTITIONS,
                    config={
                        "client.id": f"producer-{number}",
                        "queue.buffering.max.kbytes": _BACKLOG_BYTES >> 10,
                    },
                )
            )
            for number in range(PRODUCERS)
        ]
