"""A volume that fills beside a cleaner: with a soft limit and a limit, or with the limit alone.

One broker with a volume of its own file system, its sidecar, and three producers of 6 MB/s. The
cleaner stands for retention: a file on the volume loses 4 MB each second, whatever producers do.

Example: 1.5 minutes at 18 - 4 MB/s are 1.3 GB until the soft limit, 2 GB above the limit; in the 15
minutes after that the file loses 4 GB. The exit code is 1 unless the slope kept the volume above
its limit for ten minutes.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Final

import httpx

from benchmarks.harness import program
from benchmarks.harness.page import Pictures
from benchmarks.harness.program import Benchmark, Task, task
from benchmarks.harness.results import Results, Sampled
from benchmarks.harness.tables import Figures, Value, by_arm, notes, whole
from benchmarks.harness.throttles import OURS, Polls, check_volumes, cluster_of
from benchmarks.harness.traffic import librdkafka, looking, sleep_until, wait
from kafka_lab.admin import Admin
from kafka_lab.series import Series, crossing
from sidecar.cli.chart import Line, Mark, Panel, Point, svg
from sidecar.errors import ClusterError

ARMS: Final = {"slope": "soft limit and limit", "cliff": "limit alone"}
LIMIT_BYTES: Final = 300_000_000
SOFT_BYTES: Final = 2_300_000_000
"""The slope is as wide as what 18 MB/s write in two minutes."""
HORIZON_S: Final = 300.0
"""A volume of gigabytes comes to rest in minutes, as one of terabytes does in the default's 30."""
CLEANED_PER_S: Final = 4_000_000
BYTES_PER_S: Final = 18e6
REST_S: Final = 600.0
"""The volume is to be at rest in the last ten minutes."""
RATE_S: Final = 300.0
"""Throughput is that of the last five minutes,"""
WINDOW_S: Final = 10.0
"""in windows longer than two of the longest pauses."""

_PRODUCERS: Final = 3
_BEFORE_S: Final = 90.0
"""At full speed: longer than the minute over which a fill rate is measured."""
_SPARE_BYTES: Final = 200_000_000
_STORAGE: Final = "SIDECAR_STORAGE_PER_VOLUME_SOFT_LIMIT_MIN_AVAILABLE_BYTES"
_SLOPE: Final = {_STORAGE: str(SOFT_BYTES), "SIDECAR_THROTTLE_HORIZON": f"PT{HORIZON_S:.0f}S"}
_PART: Final = "volume"
_MB: Final = 1e6


@dataclass(slots=True)
class Run:
    """What one arm came to; times are seconds of one monotonic clock, samples one a second.

    Attributes:
        arm: its key.
        acknowledged: bytes that producers had acknowledged so far.
        available: bytes on the volume.
        factor: what the sidecar published.
        crossed_at: when the volume was first at the soft limit, or where the other arm has it.
        longest_throttle_s: the longest throttle time of a client.
        failed_records: records that clients gave up.
        notes: what else a reader has to know.
    """

    arm: str
    acknowledged: Sampled = field(default_factory=Series)
    available: Sampled = field(default_factory=Series)
    factor: Sampled = field(default_factory=Series)
    crossed_at: float | None = None
    longest_throttle_s: float = 0.0
    failed_records: int = 0
    notes: list[str] = field(default_factory=list)


async def happen(arm: str, watched_s: float) -> Run:
    """Start everything and let the volume fill.

    Args:
        arm: what slows the producers.
        watched_s: for how long, from the soft limit on.

    Raises:
        ClusterError: it could not be measured.
    """
    ballast = int(CLEANED_PER_S * (_BEFORE_S * 1.5 + watched_s)) + _SPARE_BYTES
    before = int((BYTES_PER_S - CLEANED_PER_S) * _BEFORE_S)
    polls = Polls(ours=_SLOPE if arm == "slope" else {})
    size = SOFT_BYTES + before + ballast
    run = Run(arm)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            await cluster_of(OURS, polls, LIMIT_BYTES, brokers=1, volumes=1, volume_bytes=size)
        )
        check_volumes(cluster)
        await cluster.occupy(0, 0, ballast)
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic("slope", assignment=[[0]] * _PRODUCERS)
        await OURS.obey(cluster, polls, LIMIT_BYTES)
        more = {"partitions": range(_PRODUCERS), "config": {"queue.buffering.max.kbytes": 32 << 10}}
        producers = await stack.enter_async_context(
            librdkafka(_PRODUCERS, cluster.bootstrap, "slope", BYTES_PER_S, **more)
        )
        url = cluster.brokers[0].sidecar_url
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=url, timeout=5.0, verify=False)
        )
        began = time.monotonic()

        async def look() -> None:
            _, available = await cluster.usage(0, 0)
            factor = (await client.get("/v1/throttle-factor")).json()["factor"]
            now = time.monotonic()
            run.available.add(now, available)
            run.factor.add(now, factor)
            run.acknowledged.add(now, sum(each.acknowledged_bytes for each in producers))
            run.failed_records = sum(each.failed_records for each in producers)
            run.longest_throttle_s = max(each.longest_throttle_s for each in producers)
            run.crossed_at = run.crossed_at or crossing(run.available, SOFT_BYTES)

        async def clean() -> None:
            # As much as has to be gone by now, so that a late second makes no difference.
            gone = int(CLEANED_PER_S * (time.monotonic() - began))
            if gone >= ballast:
                raise ClusterError("the cleaner has nothing left to free")
            await cluster.occupy(0, 0, ballast - gone)

        async with looking(look, 1.0), looking(clean, 1.0):
            if not await wait(lambda: run.crossed_at is not None, 3 * _BEFORE_S):
                raise ClusterError("the volume was not at the soft limit in time")
            await sleep_until((run.crossed_at or 0.0) + watched_s)
        if not cluster.is_running(0):
            run.notes.append("the broker ended by itself")
    return run


def figures(run: Run) -> Figures:
    """The figures of a run that came to the soft limit; a shorter one has less than ten minutes.

    Raises:
        ValueError: it never did.
    """
    crossed, ended = _crossed(run), _ended(run)
    rated, last = max(crossed, ended - RATE_S), f"in the last {_rest_s(run) / 60:.0f} min"
    mean = run.acknowledged.rate(rated, ended)
    windows = run.acknowledged.window(rated, ended).rates(1.0, WINDOW_S)
    rates = [rate for _, rate in windows] or [mean]
    factors = [value for _, value in run.factor.window(ended - _rest_s(run), ended)]
    return {
        "throughput before": _rate(run.acknowledged.rate(crossed - 30.0, crossed)),
        f"least above the limit {last}": Value(least_above(run), text=_mb),
        "the volume came to its limit": Value(violations(run), "times", whole),
        "throughput in the last 5 min, mean": _rate(mean),
        f"lowest {WINDOW_S:.0f} s of it": _rate(min(rates)),
        f"highest {WINDOW_S:.0f} s of it": _rate(max(rates)),
        f"lowest factor {last}": Value(min(factors), text="{:g}".format),
        f"highest factor {last}": Value(max(factors), text="{:g}".format),
        "the factor changed its direction": Value(turns(factors), "times", whole),
        "longest throttle time of a client": Value(run.longest_throttle_s, "s", "{:.1f}".format),
        "records given up": Value(run.failed_records, text=whole),
    }


def _crossed(run: Run) -> float:
    if run.crossed_at is None:
        raise ValueError(f"{run.arm}: the volume never was at the soft limit")
    return run.crossed_at


def _ended(run: Run) -> float:
    return max(at for at, _ in run.acknowledged)


def _rest_s(run: Run) -> float:
    return min(REST_S, _ended(run) - _crossed(run))


def _mb(count: float) -> str:
    return f"{count / _MB:.0f} MB" if abs(count) >= 100 * _MB else f"{count / _MB:.1f} MB"


def _rate(count: float) -> Value:
    return Value(count, text=lambda value: f"{_mb(value)}/s")


def least_above(run: Run) -> float:
    """The fewest bytes above the limit in the last ten minutes; 0 and less is at the limit."""
    end = _ended(run)
    return min(each for _, each in run.available.window(end - _rest_s(run), end)) - LIMIT_BYTES


def violations(run: Run) -> int:
    """How often the volume came to its limit, by its own bytes or by the sidecar's factor.

    A dip between two samples is in the factor, which is 0.0 at the limit and nowhere else.
    """
    factors = dict(run.factor)
    full = [each <= LIMIT_BYTES or factors[at] == 0.0 for at, each in run.available]
    return sum(later and not earlier for earlier, later in pairwise([False, *full]))


def turns(factors: Sequence[float]) -> int:
    """How often the factor changed its direction; a factor that stays has none."""
    rises = [later > earlier for earlier, later in pairwise(factors) if later != earlier]
    return sum(later != earlier for earlier, later in pairwise(rises))


def holds(run: Run) -> bool:
    """Whether the volume came to rest above its limit: never at it, and for ten minutes."""
    return violations(run) == 0 and least_above(run) > 0.0 and _rest_s(run) >= REST_S - 1.0


def section(part: str, results: Results, pictures: Pictures) -> str:
    """The table and the picture."""
    runs = {ARMS[arm]: each for arm, each in results.by_arm(Run, part, ARMS).items()}
    if not runs:
        return ""
    title = "18 MB/s beside a cleaner of 4 MB/s"
    image = pictures.add("", title, picture(title, {name: of[0] for name, of in runs.items()}))
    found = {name: list(map(figures, of)) for name, of in runs.items()}
    return f"{by_arm('figure', found)}{notes(runs)}\n{image}"


def picture(title: str, runs: Mapping[str, Run]) -> str:
    """An SVG document; time is counted from the soft limit on."""
    rates, spaces, factors = [], [], []
    for style, (name, run) in enumerate(runs.items()):
        begin = run.crossed_at or 0.0
        rate = [(at, each / _MB) for at, each in run.acknowledged.rates(2.0, WINDOW_S)]
        space = [(at, each / _MB) for at, each in run.available]
        rates.append(Line(name, _since(begin, rate), style))
        spaces.append(Line(name, _since(begin, space), style))
        factors.append(Line(name, _since(begin, _stepped(list(run.factor))), style))
    limits = [Mark("soft limit", SOFT_BYTES / _MB), Mark("limit", LIMIT_BYTES / _MB)]
    cleaned = [Mark("what is deleted", CLEANED_PER_S / _MB)]
    begun = [Mark("the volume is at the soft limit", 0.0)]
    return svg(
        title,
        "seconds from the soft limit on",
        [
            Panel(f"throughput over {WINDOW_S:.0f} s, MB/s", rates, begun, heights=cleaned),
            Panel("available on the volume, MB", spaces, heights=limits),
            # The slope on top: the other line moves too often to see anything below it.
            Panel("throttle factor", factors[::-1]),
        ],
    )


def _since(origin: float, points: Sequence[Point]) -> list[Point]:
    return [(at - origin, value) for at, value in points if at >= origin - 60.0]


def _stepped(points: Sequence[Point]) -> list[Point]:
    """A factor changes at once, not on a line from one sample to the next."""
    found: list[Point] = []
    for at, value in points:
        if found and found[-1][1] != value:
            found.append((at, found[-1][1]))
        found.append((at, value))
    return found


def _tasks(asked: argparse.Namespace) -> Iterator[Task]:
    watched_s = asked.seconds or 900.0
    for count in range(asked.rounds):
        for arm in asked.arms:
            yield task(_PART, arm, count, partial(happen, arm, watched_s))


BENCHMARK: Final = Benchmark(
    "slope",
    "A volume that fills beside a cleaner.",
    parts=(_PART,),
    arms=tuple(ARMS),
    tasks=_tasks,
    section=section,
    holds=lambda results: all(holds(run) for run in results.load(Run, f"{_PART}.slope.*")),
)

if __name__ == "__main__":
    sys.exit(program.main(BENCHMARK))
