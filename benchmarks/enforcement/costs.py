"""What a callback costs: throughput when nothing is throttled, and the brokers' CPU for polls.

Throughput is as fast as producers can, in paired rounds. There is a broker for each arm, all up at
the same time; in each round each gets the same load in turn, in an order that rotates, so that what
else the machine does falls on all of them.

Polls are of three brokers with 4,000 partitions each: CPU time of the broker processes, less that
of brokers without a callback over as long, for each poll of the cluster. Both arms poll each broker
once each time. The plugin's own work is in the brokers' processes and counts; the sidecars' is
counted apart.
"""

import asyncio
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.harness.machine import process_cpu_s
from benchmarks.harness.tables import number
from benchmarks.harness.throttles import (
    DEFAULT,
    EVERY_2_S,
    NOTHING,
    OURS,
    PEER,
    Throttle,
    cluster_of,
)
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from tests.support.java import beans
from tests.support.java_traffic import JavaTraffic

PARTITIONS: Final = 4_000
_LOADED: Final = range(4)
_ROUNDS: Final = 6
_WARM_UP_S: Final = 2.5
_LIMIT_BYTES: Final = 32 << 20
_TOPICS: Final = 40
_QUIET: Final = {
    # Two indexes of this size for each partition, as files and as maps.
    "log.index.size.max.bytes": "4096",
    # Kafka's defaults again: what brokers do by themselves is not to hide what is measured.
    "log.retention.check.interval.ms": "300000",
    "log.flush.offset.checkpoint.interval.ms": "60000",
    "log.flush.start.offset.checkpoint.interval.ms": "60000",
    "replica.high.watermark.checkpoint.interval.ms": "5000",
}
_REQUESTS: Final = "kafka.network:type=RequestMetrics,name=RequestsPerSec,request=DescribeLogDirs,*"


@dataclass(frozen=True, slots=True)
class Load:
    """What is produced: ``unit_bytes`` of a record's values count as one of ``unit``."""

    title: str
    connections: int
    record_bytes: int
    config: Mapping[str, object]
    unit_bytes: float
    unit: str


LOADS: Final = {
    "large": Load(
        "bytes in large requests (6 Java producers, batches of 128 kB, acks=1)",
        6,
        10_000,
        {"batch.size": 131_072, "acks": 1},
        1e6,
        "MB/s",
    ),
    "small": Load(
        "small requests (24 Java producers, one record of 100 bytes in each, acks=1)",
        24,
        100,
        {
            "batch.size": 0,
            "linger.ms": 0,
            "acks": 1,
            "enable.idempotence": "false",
            "max.in.flight.requests.per.connection": 1,
        },
        100.0,
        "requests/s",
    ),
}
Rates = dict[str, dict[str, list[float]]]
"""Load -> arm -> its rate in each round, in the load's unit."""


async def overhead(throttles: Sequence[Throttle], measured_s: float) -> Rates:
    """The throughput of each."""
    async with AsyncExitStack() as stack:
        clusters = {}
        # Old segments go once a second, and new ones come at 700 MB/s.
        size = 6 << 30
        kept = {"segment.bytes": str(16 << 20), "retention.bytes": str(48 << 20)}
        for throttle in throttles:
            cluster = await cluster_of(
                throttle, DEFAULT, _LIMIT_BYTES, brokers=1, volumes=1, volume_bytes=size
            )
            await stack.enter_async_context(cluster)
            await throttle.obey(cluster, DEFAULT, _LIMIT_BYTES)
            async with Admin(cluster.bootstrap) as admin:
                await admin.create_topic("load", partitions=len(_LOADED), config=kept)
            clusters[throttle.key] = cluster
        rates: Rates = {name: {key: [] for key in clusters} for name in LOADS}
        for name, load in LOADS.items():
            # One more round than is counted: in the first the brokers compile.
            for count in range(1 + _ROUNDS):
                keys = list(clusters)
                turn = count % len(keys)
                for key in (*keys[turn:], *keys[:turn]):
                    rate = await _rate(load, clusters[key], measured_s)
                    if count > 0:
                        rates[name][key].append(rate / load.unit_bytes)
        return rates


async def _rate(load: Load, cluster: Cluster, measured_s: float) -> float:
    traffic = JavaTraffic(
        cluster.bootstrap,
        "load",
        bytes_per_s=math.inf,
        record_bytes=load.record_bytes,
        partitions=_LOADED,
        connections=load.connections,
        config=load.config,
        heap_mb=1024,
    )
    async with traffic:
        await asyncio.sleep(_WARM_UP_S + measured_s)
        end = list(traffic.samples)[-1][0]
    return traffic.samples.rate(end - measured_s, end)


def overhead_rows(rates: Rates) -> Iterator[list[str]]:
    """Throughput over that without a callback, round by round."""
    for name, load in LOADS.items():
        of = rates[name]
        bare = of[NOTHING.key]
        noise = (max(bare) - min(bare)) / median(bare)
        cells = [_shares(of[key.key], bare) if key.key in of else "" for key in (PEER, OURS)]
        own = [mine / base for mine, base in zip(of.get(OURS.key, ()), bare, strict=False)]
        yield [
            f"factor 1.0: {load.title}; {number(median(bare))} {load.unit} without a callback",
            *cells,
            f"within noise (without a callback: ±{50 * noise:.1f} %)",
            "" if not own else "yes" if abs(median(own) - 1) <= noise / 2 else "NO",
        ]


def _shares(rates: Sequence[float], bare: Sequence[float]) -> str:
    shares = [100 * rate / base for rate, base in zip(rates, bare, strict=True)]
    return f"{median(shares):.1f} % ({min(shares):.1f} to {max(shares):.1f})"


@dataclass(frozen=True, slots=True)
class Cost:
    """What polls cost one arm.

    Attributes:
        seconds: how long was measured.
        broker_cpu_s: CPU time of all brokers.
        sidecar_cpu_s: CPU time of all sidecars.
        requests: DescribeLogDirs requests that the brokers answered.
    """

    seconds: float
    broker_cpu_s: float
    sidecar_cpu_s: float
    requests: float


async def polls(throttle: Throttle, measured_s: float) -> Cost:
    """The cost of an arm's polls."""
    cluster = await cluster_of(
        throttle,
        EVERY_2_S,
        _LIMIT_BYTES,
        brokers=3,
        volumes=2,
        volume_bytes=512 << 20,
        properties=_QUIET,
        heap_mb=768,
    )
    async with cluster, Admin(cluster.bootstrap, timeout_s=60.0) as admin:
        for topic in range(_TOPICS):
            partitions = 3 * PARTITIONS // _TOPICS
            await admin.create_topic(f"topic-{topic}", partitions=partitions, replication=1)
        await throttle.obey(cluster, EVERY_2_S, _LIMIT_BYTES)
        await asyncio.sleep(30.0)
        # Asking for the count costs a broker more than a poll does, so it is not in between; polls
        # while it is asked for are few.
        asked, requests = time.monotonic(), await _requests(cluster)
        began, before = time.monotonic(), _cpu(cluster)
        await asyncio.sleep(measured_s)
        after, ended = _cpu(cluster), time.monotonic()
        rate = (await _requests(cluster) - requests) / (time.monotonic() - asked)
    cpu = [last - first for first, last in zip(before, after, strict=True)]
    return Cost(ended - began, cpu[0], cpu[1], rate * (ended - began))


def _cpu(cluster: Cluster) -> tuple[float, float]:
    """CPU seconds so far, of the brokers and of the sidecars."""
    brokers = sum(process_cpu_s(broker.pid) for broker in cluster.brokers.values())
    return brokers, sum(map(process_cpu_s, _sidecars(cluster)))


def _sidecars(cluster: Cluster) -> Iterator[int]:
    """The processes that have a state file in this cluster's folder."""
    mark = os.fsencode(f"SIDECAR_STATE_FILE={cluster.folder}/")
    for entry in Path("/proc").iterdir():
        # Others' processes, or gone meanwhile: an OSError.
        with suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                yield int(entry.name)


async def _requests(cluster: Cluster) -> float:
    """How many DescribeLogDirs requests all brokers have answered."""
    found = [await beans(cluster, broker_id, _REQUESTS) for broker_id in cluster.brokers]
    return sum(float(each["Count"] or 0) for beans_of in found for each in beans_of.values())


def poll_rows(costs: Mapping[str, Cost]) -> Iterator[list[str]]:
    """Milliseconds of CPU of all brokers for a poll of all of them, and of the sidecar's own."""
    bare = costs[NOTHING.key]
    peer, ours = (poll_ms(costs[of.key], bare) if of.key in costs else None for of in (PEER, OURS))
    yield [
        f"broker CPU for a poll of three brokers with {PARTITIONS:,} partitions each",
        "" if peer is None else f"{number(peer)} ms",
        "" if ours is None else f"{number(ours)} ms",
        "" if peer is None else f"≤ {number(peer / 5)} ms",
        "" if peer is None or ours is None else "yes" if ours <= peer / 5 else "NO",
    ]
    if (cost := costs.get(OURS.key)) is not None:
        own = 1000 * cost.sidecar_cpu_s / (cost.requests / 3)
        yield ["a sidecar's own CPU for it", "", f"{number(own)} ms", "", ""]


def poll_ms(cost: Cost, bare: Cost) -> float:
    """CPU of all three brokers for one poll of the cluster, ms.

    Example: 9 s in a minute, 3 s of them without any polls, and 270 requests, which are 90 polls of
    three brokers: 67 ms.
    """
    extra = cost.broker_cpu_s - bare.broker_cpu_s * cost.seconds / bare.seconds
    return 1000 * extra / (cost.requests / 3)
