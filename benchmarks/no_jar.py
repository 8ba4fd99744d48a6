"""``python -m benchmarks.no_jar [PART ...]``: a throttle by client quotas, on stock brokers.

One broker with a volume of its own file system, and six producers, three of librdkafka and three of
Java, each with a client-id of its own. They fill the volume to its soft limit or to its limit and
go on for four minutes. Then space is freed. Beside it are the quota callback and Strimzi's plugin.

Example: with 18 MB/s and a soft limit a minute of writing (1.08 GB) above the limit, 800 MB in the
first minute are 74 % of before, and another 500 MB are 220 MB past the limit.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.enforcement.scene import BACK_SHARE, BEFORE_S, Run
from benchmarks.harness import program
from benchmarks.harness.page import Pictures
from benchmarks.harness.program import Benchmark, Task, task
from benchmarks.harness.results import Results
from benchmarks.harness.tables import Figures, Value, notes, spread, table, whole
from benchmarks.harness.throttles import (
    OURS,
    PEER,
    SHORTEST,
    ClientQuotas,
    Polls,
    Throttle,
    check_volumes,
    cluster_of,
)
from benchmarks.harness.traffic import Producers, librdkafka, looking, sleep_until, sum_of, wait
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.jars import DEFAULT_VERSION
from kafka_lab.series import Series, crossing
from sidecar.cli.chart import Line, Mark, Panel, Point, svg
from sidecar.errors import ClusterError
from tests.support.java import beans
from tests.support.java_traffic import JavaTraffic

FLOOR: Final = 64 << 10
"""The lowest quota, bytes/s: six clients at it write 2 % of 18 MB/s."""
REQUEST_BYTES: Final = 50_000
"""The bound on throttle times needs requests that are not larger than the floor."""
OLDER: Final = "3.9.1"
WATCHED_S: Final = 240.0
REST_S: Final = 600.0

_OF_A_KIND: Final = 3
_QUEUE_BYTES: Final = 4 << 20
"""What each producer may have waiting: so little that no record expires at the floor."""
_BEFORE_S: Final = 180.0
"""Full speed before the throttle is to begin: client quotas fall up to 150 s before a limit."""
_ROOM_BYTES: Final = 2_000_000_000
"""The limit: room for what is written past it."""
_LEAST_BYTES: Final = 200_000_000
"""Space is freed early when there is no more than this, so that the broker does not end."""
_BACK_TIMEOUT_S: Final = 90.0
_AFTER_S: Final = 20.0
_SAMPLE_S: Final = 0.5
_BACK_WINDOW_S: Final = 10.0
"""A throttled producer comes in bursts between waits of some seconds, so 2 s show no return."""
_MINUTE_S: Final = 60.0
_REST: Final = "rest"
_SETTING: Final = "SIDECAR_STORAGE_PER_VOLUME_"
_TOPIC: Final = "traffic"
_QUOTA_REQUESTS: Final = (
    "kafka.network:type=RequestMetrics,name=RequestsPerSec,request={}ClientQuotas,*"
)
_MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Arm:
    """What throttles, and on which brokers."""

    name: str
    throttle: Throttle
    version: str = DEFAULT_VERSION


_CLIENT_QUOTAS: Final = ClientQuotas(FLOOR)
ARMS: Final = {
    "client-quotas": Arm(f"client quotas, {DEFAULT_VERSION}", _CLIENT_QUOTAS),
    "client-quotas-3.9.1": Arm(f"client quotas, {OLDER}", _CLIENT_QUOTAS, OLDER),
    "client-quotas-log": Arm("client quotas, request log", ClientQuotas(FLOOR, reads_log=True)),
    "client-quotas-metrics": Arm(
        "client quotas, brokers' metrics", ClientQuotas(FLOOR, reads_metrics=True)
    ),
    "callback": Arm("quota callback", OURS),
    "peer": Arm(PEER.name, PEER),
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """How fast the volume fills, and where its limits are.

    Attributes:
        key: short, for names of files.
        title: for a reader.
        bytes_per_s: of all producers together.
        soft_s: how many seconds of writing the soft limit is above the limit; 0: there is none.
    """

    key: str
    title: str
    bytes_per_s: float
    soft_s: float

    @property
    def begin_bytes(self) -> int:
        """The available bytes at which a throttle begins."""
        return _ROOM_BYTES + int(self.soft_s * self.bytes_per_s)

    @property
    def ballast_bytes(self) -> int:
        """What is freed: so much that no limit is reached a second time."""
        return self.begin_bytes + int((_AFTER_S + 40.0) * self.bytes_per_s)

    @property
    def polls(self) -> Polls:
        """As often as each can, and the soft limit."""
        soft = {f"{_SETTING}SOFT_LIMIT_MIN_AVAILABLE_BYTES": str(self.begin_bytes)}
        return Polls(SHORTEST.peer_s, {**SHORTEST.ours, **(soft if self.soft_s else {})})

    def arms(self, asked: Sequence[str]) -> list[str]:
        """The arms to measure: the plugin has no soft limit."""
        return [arm for arm in asked if not (self.soft_s and ARMS[arm].throttle is PEER)]


SCENARIOS: Final = {
    each.key: each
    for each in (
        Scenario("soft", "18 MB/s, a soft limit 60 s of writing above the limit", 18e6, 60.0),
        Scenario("limit", "12 MB/s, the limit alone", 12e6, 0.0),
    )
}


@dataclass(frozen=True, slots=True)
class Rest:
    """The requests about client quotas that a broker got while nothing was throttled."""

    seconds: float
    reads: int
    changes: int


async def happen(scenario: Scenario, arm: Arm, watched_s: float) -> Run:
    """Let the volume fill, and free it later; ``crossed_at`` is when the throttle was to begin.

    Raises:
        ClusterError: it could not be measured.
    """
    ballast, polls = scenario.ballast_bytes, scenario.polls
    size = scenario.begin_bytes + int(_BEFORE_S * scenario.bytes_per_s) + ballast
    run = Run(2 * _OF_A_KIND, _ROOM_BYTES)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            await cluster_of(
                arm.throttle,
                polls,
                _ROOM_BYTES,
                version=arm.version,
                brokers=1,
                volumes=1,
                volume_bytes=size,
            )
        )
        check_volumes(cluster)
        await cluster.occupy(0, 0, ballast)
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic(_TOPIC, assignment=[[0]] * 2 * _OF_A_KIND)
        await arm.throttle.obey(cluster, polls, _ROOM_BYTES)
        producers = await _producing(stack, cluster.bootstrap, scenario.bytes_per_s)

        async def look() -> None:
            total, available = await cluster.usage(0, 0)
            now = time.monotonic()
            run.available.add(now, available)
            if run.freed_at is None:
                run.stored.add(now, total - available)
            run.crossed_at = run.crossed_at or crossing(run.available, scenario.begin_bytes)
            run.acknowledged.add(now, sum(each.acknowledged_bytes for each in producers))
            run.failed_records = sum(each.failed_records for each in producers)
            run.longest_throttle_s = max(each.longest_throttle_s for each in producers)

        async with looking(look, _SAMPLE_S):
            if not await wait(lambda: run.crossed_at is not None, 5 * _BEFORE_S):
                raise ClusterError("the volume was not at its limit in time")
            until = (run.crossed_at or 0.0) + watched_s
            left_s = until - time.monotonic()
            if await wait(lambda: run.available.at(time.monotonic()) < _LEAST_BYTES, left_s):
                run.notes.append("space was freed early, because the volume was full")
            await look()
            run.freed_at = time.monotonic()
            await cluster.occupy(0, 0, 0)
            await wait(lambda: back_after_s(run) is not None, _BACK_TIMEOUT_S)
            await sleep_until(time.monotonic() + _AFTER_S)
        if not cluster.is_running(0):
            run.notes.append("the broker ended by itself")
        run.acknowledged = sum_of(run.acknowledged, producers)
    return run


async def _producing(
    stack: AsyncExitStack, bootstrap: str, bytes_per_s: float
) -> Sequence[Producers]:
    """Three producers of each kind. Java's have client-ids of their own by themselves."""
    producers: list[Producers] = []
    for number in range(_OF_A_KIND):
        config = {
            "client.id": f"librdkafka-{number}",
            "batch.size": REQUEST_BYTES // 2,
            "message.max.bytes": REQUEST_BYTES,
            "queue.buffering.max.kbytes": _QUEUE_BYTES >> 10,
        }
        each = bytes_per_s / 2 / _OF_A_KIND
        producers += await stack.enter_async_context(
            librdkafka(1, bootstrap, _TOPIC, each, partitions=(number,), config=config)
        )
    java = JavaTraffic(
        bootstrap,
        _TOPIC,
        bytes_per_s=bytes_per_s / 2,
        partitions=range(_OF_A_KIND, 2 * _OF_A_KIND),
        connections=_OF_A_KIND,
        config={"buffer.memory": _QUEUE_BYTES},
    )
    return [*producers, await stack.enter_async_context(java)]


async def rest(arm: Arm, seconds: float) -> Rest:
    """Count requests on a cluster whose volume has space."""
    limit = 10 << 20
    polls = SHORTEST
    async with await cluster_of(
        arm.throttle, polls, limit, version=arm.version, brokers=1, volumes=1
    ) as cluster:
        await arm.throttle.obey(cluster, polls, limit)
        began, before = time.monotonic(), await _quota_requests(cluster)
        await sleep_until(began + seconds)
        after = await _quota_requests(cluster)
        return Rest(seconds, *(end - begin for begin, end in zip(before, after, strict=True)))


async def _quota_requests(cluster: Cluster) -> list[int]:
    """Reads and changes since the broker's start; a kind that never came has no bean."""
    return [
        sum(int(each["Count"] or 0) for each in (await beans(cluster, 0, name)).values())
        for name in (_QUOTA_REQUESTS.format(kind) for kind in ("Describe", "Alter"))
    ]


_WANTED: Final = {
    "longest throttle time of a client": "≤ 6 s",
    "landed in the 2nd minute, of before": "≤ 5 %",
    "from space freed to 90 % of before": "≤ 30 s",
}
_PAST: Final = "past the limit"
_WANTED_PAST: Final = {"soft": "0 MB", "limit": "≤ 150 MB"}


def back_after_s(run: Run) -> float | None:
    """From the freeing until the first 10 s that have 90 % of the earlier rate; None: not yet."""
    begin, freed, acknowledged = run.crossed_at, run.freed_at, run.acknowledged
    if begin is None or freed is None:
        return None
    least = BACK_SHARE * full_speed(acknowledged, begin)
    times = (at for at, _ in acknowledged if freed <= at <= run.ended_at - _BACK_WINDOW_S)
    found = (at for at in times if acknowledged.rate(at, at + _BACK_WINDOW_S) >= least)
    return next((at - freed for at in found), None)


def full_speed(series: Series, until: float) -> float:
    """The highest rate of a few seconds: client quotas fall before the throttle is to begin."""
    return max(rate for at, rate in series.rates(1.0, 2 * BEFORE_S) if at <= until)


def figures(run: Run) -> Figures:
    """The figures of a run; minutes count from the moment at which the throttle was to begin.

    Raises:
        ValueError: it never came to its limit.
    """
    begin, freed = run.crossed_at, run.freed_at
    if begin is None or freed is None:
        raise ValueError("the volume never was at its limit")
    before = full_speed(run.stored, begin)
    shares = {}
    for number, word in enumerate(("1st", "2nd", "3rd", "4th")):
        start, end = begin + number * _MINUTE_S, begin + (number + 1) * _MINUTE_S
        share = 100 * run.stored.rate(start, end) / before if end <= freed + 1.0 else None
        shares[f"landed in the {word} minute, of before"] = Value(share, "%")
    least = min(value for at, value in run.available if at <= freed)
    back_s = back_after_s(run)
    back = Value(run.ended_at - freed if back_s is None else back_s, "s", is_least=back_s is None)
    return {
        "landed before": Value(before / _MB, "MB/s"),
        "longest throttle time of a client": Value(run.longest_throttle_s, "s"),
        **shares,
        _PAST: Value(max(0.0, run.limit_bytes - least) / _MB, "MB", whole),
        "from space freed to 90 % of before": back,
        "records that clients gave up": Value(run.failed_records, text=whole),
    }


def section(part: str, results: Results, pictures: Pictures) -> str:
    """A part's table, and its picture if it has one."""
    if part == _REST:
        return _rest_section(results.by_arm(Rest, part, ARMS))
    runs = {ARMS[arm].name: of for arm, of in results.by_arm(Run, part, ARMS).items()}
    if not runs:
        return ""
    title = SCENARIOS[part].title
    found = {name: list(map(figures, of)) for name, of in runs.items()}
    wanted = {**_WANTED, _PAST: _WANTED_PAST[part]}
    rows = [
        [
            name,
            wanted.get(name, ""),
            *(spread([each[name] for each in of]) for of in found.values()),
        ]
        for name in next(iter(found.values()))[0]
    ]
    image = pictures.add(part, title, picture(title, {name: of[0] for name, of in runs.items()}))
    return f"## {title}\n\n{table(['figure', 'wanted', *found], rows)}{notes(runs)}\n{image}"


def _rest_section(runs: Mapping[str, Sequence[Rest]]) -> str:
    if not runs:
        return ""
    of = {ARMS[arm].name: rests[-1] for arm, rests in runs.items()}
    reads = [f"{each.reads * _MINUTE_S / each.seconds:.1f}" for each in of.values()]
    rows = [
        ["quotas read, a minute", "≤ 4", *reads],
        ["quotas changed", "0", *(str(each.changes) for each in of.values())],
        ["watched", "", *(f"{each.seconds:.0f} s" for each in of.values())],
    ]
    return f"## At rest\n\n{table(['figure', 'wanted', *of], rows)}"


def picture(title: str, runs: Mapping[str, Run]) -> str:
    """What landed and what is free, as SVG; seconds from the beginning of the throttle."""
    landed, spaces = [], []
    begun = [Mark("the throttle begins", 0.0)]
    for style, (name, run) in enumerate(runs.items()):
        begin = run.crossed_at or 0.0
        landed.append(Line(name, _since(begin, run.acknowledged.rates(1.0, 4.0)), style))
        spaces.append(Line(name, _since(begin, list(run.available)[::2]), style))
    freed = [
        Mark("freed", max((run.freed_at or 0.0) - (run.crossed_at or 0.0) for run in runs.values()))
    ]
    limit = [Mark("limit", _ROOM_BYTES / _MB)]
    return svg(
        title,
        "seconds from the beginning of the throttle",
        [
            Panel("landed (acknowledged, over 4 s), MB/s", landed, [*begun, *freed]),
            Panel("free on the volume, MB", spaces, heights=limit),
        ],
    )


def _since(origin: float, points: Sequence[Point]) -> list[Point]:
    return [(at - origin, value / _MB) for at, value in points if at >= origin - 20.0]


def _tasks(asked: argparse.Namespace) -> Iterator[Task]:
    for part in asked.parts:
        for count in range(asked.rounds):
            if part == _REST:
                for arm in (each for each in asked.arms if ARMS[each].throttle is _CLIENT_QUOTAS):
                    yield task(part, arm, count, partial(rest, ARMS[arm], asked.seconds or REST_S))
                continue
            for arm in SCENARIOS[part].arms(asked.arms):
                watched_s = asked.seconds or WATCHED_S
                yield task(part, arm, count, partial(happen, SCENARIOS[part], ARMS[arm], watched_s))


BENCHMARK: Final = Benchmark(
    "no_jar",
    "A throttle by client quotas, on brokers without a jar.",
    parts=(*SCENARIOS, _REST),
    arms=tuple(ARMS),
    tasks=_tasks,
    section=section,
)

if __name__ == "__main__":
    sys.exit(program.main(BENCHMARK))
