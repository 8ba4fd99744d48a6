"""Lets a throttle happen to several clients at once, each alone on a broker or beside others.

Whatever throttles a client knows its own broker only, so clients on different brokers have nothing
to do with each other but the machine. Each has a topic, a client-id and a listener of its own, by
which Kafka counts its bytes and connections. When a record landed is what its broker says
(LogAppendTime).
"""

import asyncio
import os
import time
import zipfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.clients.arms import Arm, Throttle, cluster_properties
from benchmarks.clients.clients import Client
from benchmarks.clients.course import Course
from benchmarks.clients.figures import RECORD_BYTES
from benchmarks.clients.meters import Counts, count
from benchmarks.clients.parts import Part
from benchmarks.clients.runs import Run, read_log
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from sidecar.errors import ClusterError

_AUTHORIZER_CLASS: Final = "throttlesidecar/SidecarAuthorizer.class"
_TOPIC: Final = {"message.timestamp.type": "LogAppendTime", "segment.bytes": str(128 << 20)}
_HEAP_MB: Final = 512
_SAMPLE_S: Final = 10.0
"""Connections are counted so often in a throttle, or twenty times: each time starts a JVM."""
_SAMPLES: Final = 20
_COUNTING_S: Final = 4.0
"""Counting takes about so long; the last time is to be over before the release."""


@dataclass(frozen=True, slots=True)
class Case:
    """What happens to them.

    Attributes:
        part: for how long, and at which rate.
        arm: what throttles.
        partitions: of each client's topic.
        jar: the quota callback's.
    """

    part: Part
    arm: Arm
    partitions: int
    jar: Path

    @property
    def is_possible(self) -> bool:
        """Whether the jar has what the arm needs."""
        if self.arm.key != "authorizer":
            return True
        with zipfile.ZipFile(self.jar) as opened:
            return _AUTHORIZER_CLASS in opened.namelist()

    def file(self, client: Client, folder: Path, kind: str) -> Path:
        """Where something of a client's run goes."""
        part = self.part
        return folder / f"{client.key}.{self.arm.key}.{part.key}.{part.throttle_s:g}.{kind}"


@dataclass(slots=True)
class _Place:
    """A client, where it is, and what its broker counted.

    Attributes:
        run: its program.
        broker: the broker's id.
        listener: its own.
        dialed: as of ``Course``.
    """

    run: Run
    broker: int
    listener: str
    dialed: list[tuple[float, int]] = field(default_factory=list)


_Counted = Mapping[int, Counts]
"""Broker -> its counts."""


async def happen(
    placed: Sequence[Sequence[Client]], case: Case, folder: Path
) -> list[Course | ClusterError]:
    """Start brokers and producers, throttle and release.

    Args:
        placed: the clients of each broker.
        case: what happens to them.
        folder: where the programs' reports and logs go.

    Returns:
        Each client's course, or why it has none, in the order of brokers.

    Raises:
        ClusterError: nothing could be measured.
    """
    part = case.part
    places = _places(placed, case, folder)
    more: dict[str, Any] = dict(cluster_properties(case.arm, case.jar))
    cluster = Cluster(
        environ=os.environ,
        brokers=len(placed),
        volumes=1,
        volume_bytes=part.volume_bytes,
        listeners=[Listener(each.listener, "PLAINTEXT") for each in places],
        heap_mb=_HEAP_MB,
        **more,
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        ids = [each.run.client.key for each in places]
        throttle = Throttle(case.arm, cluster, ids, part.bytes_per_s)
        await throttle.prepare()
        async with Admin(cluster.bootstrap) as admin:
            for each in places:
                leaders = [[each.broker]] * case.partitions
                await admin.create_topic(each.run.client.key, assignment=leaders, config=_TOPIC)
        begin = await _count(cluster, case.arm)
        for each in places:
            stack.push_async_callback(each.run.kill)
        failures = await _started(places, cluster, case)
        await asyncio.sleep(part.before_s)
        throttled_at = time.time()
        await throttle.begin()
        await _watch(places, cluster, case.arm, throttled_at + part.throttle_s)
        released_at = time.time()
        await throttle.end()
        await asyncio.sleep(part.after_s)
        ended_at = time.time()
        times = (throttled_at, released_at, ended_at)
        failures |= await _each(places, failures, lambda place: place.run.end())
        end = await _count(cluster, case.arm)
        courses: list[Course | ClusterError] = []
        for each in places:
            key = each.run.client.key
            if key in failures:
                courses.append(failures[key])
                continue
            course = Course(key, case.arm.key, part.key, part.throttle_s, *times)
            await asyncio.to_thread(_fill, course, each, begin[each.broker], end[each.broker])
            course.landed = await asyncio.to_thread(
                read_log, cluster.bootstrap, key, case.partitions
            )
            courses.append(course)
    return courses


def _places(placed: Sequence[Sequence[Client]], case: Case, folder: Path) -> list[_Place]:
    found: list[_Place] = []
    for broker, clients in enumerate(placed):
        for client in clients:
            files = [case.file(client, folder, kind) for kind in ("reports", "log")]
            listener = f"CLIENT{len(found)}"
            found.append(_Place(Run(client, *files), broker, listener))
    return found


async def _started(
    places: Sequence[_Place], cluster: Cluster, case: Case
) -> dict[str, ClusterError]:
    """Start all programs; why each that had no record acknowledged has not."""

    async def one(place: _Place) -> None:
        run = place.run
        words = {
            "bootstrap": cluster.brokers[place.broker].addresses[place.listener],
            "topic": run.client.key,
            "partitions": case.partitions,
            "rate": case.part.bytes_per_s,
            "size": RECORD_BYTES,
        }
        await run.start(words)
        try:
            async with asyncio.timeout(case.part.start_timeout_s):
                await run.acknowledged_one()
        except TimeoutError:
            await run.kill()
            raise ClusterError(f"{run.client.name} had no record acknowledged") from None

    failures = await _each(places, {}, one)
    if len(failures) == len(places):
        raise next(iter(failures.values()))
    return failures


async def _each(
    places: Sequence[_Place],
    failures: Mapping[str, ClusterError],
    do: Callable[[_Place], Awaitable[None]],
) -> dict[str, ClusterError]:
    """Do something for each client at once that has not failed yet; those that fail now."""
    left = [each for each in places if each.run.client.key not in failures]
    done = await asyncio.gather(*(do(each) for each in left), return_exceptions=True)
    found = {}
    for place, error in zip(left, done, strict=True):
        if isinstance(error, ClusterError):
            found[place.run.client.key] = error
        elif error is not None:
            raise error
    return found


async def _watch(places: Sequence[_Place], cluster: Cluster, arm: Arm, until: float) -> None:
    """Count connections now and then until the throttle is to end."""
    step_s = max(_SAMPLE_S, (until - time.time()) / _SAMPLES)
    last = until - _COUNTING_S
    while True:
        counted = await _count(cluster, arm)
        now = time.time()
        for each in places:
            each.dialed.append((now, counted[each.broker].connections.get(each.listener, 0)))
        if now >= last:
            break
        await asyncio.sleep(min(step_s, last - now))
    await asyncio.sleep(max(0.0, until - time.time()))


async def _count(cluster: Cluster, arm: Arm) -> _Counted:
    counts = await asyncio.gather(
        *(count(cluster, broker, is_ours=arm.is_ours) for broker in cluster.brokers)
    )
    return dict(zip(cluster.brokers, counts, strict=True))


def _fill(course: Course, place: _Place, begin: Counts, end: Counts) -> None:
    """Add what the program reported and what its broker counted."""
    name = place.listener
    course.received = end.received.get(name, 0) - begin.received.get(name, 0)
    course.connections = end.connections.get(name, 0) - begin.connections.get(name, 0)
    course.dialed = place.dialed
    if end.refused is not None:
        course.refused = end.refused.get(place.run.client.key, 0)
    course.add_reports(place.run.reports.read_bytes().splitlines(keepends=True))
