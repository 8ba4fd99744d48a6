"""What a callback costs when nothing is throttled: as fast as producers can, in paired runs.

A broker for each contender, all up at the same time; in each round each of them gets the same load
in turn, in an order that rotates, so that what else the machine does falls on all of them. The
figure is a contender's rate over that of the broker without a callback in the same round.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks.enforcement.contenders import DEFAULT, NOTHING, OURS, PEER, Contender
from benchmarks.enforcement.scene import start
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from tests.support.java_traffic import JavaTraffic

_TOPIC: Final = "load"
_PARTITIONS: Final = 4
_ROUNDS: Final = 6
_WARM_UP_S: Final = 2.5
_MEASURED_S: Final = 5.0
_VOLUME_BYTES: Final = 6 << 30
"""For seconds of 700 MB/s: old segments go once a second."""
_LIMIT_BYTES: Final = 32 << 20
_KEPT: Final = {
    # Old segments go faster than new ones come.
    "segment.bytes": str(16 << 20),
    "retention.bytes": str(48 << 20),
}


@dataclass(frozen=True, slots=True)
class Load:
    """What is produced.

    Attributes:
        key: short.
        title: for a reader.
        connections: producers.
        record_bytes: of a value.
        config: the producers'.
        unit_bytes: how many bytes one of the unit has.
        unit: what is counted.
    """

    key: str
    title: str
    connections: int
    record_bytes: int
    config: Mapping[str, object]
    unit_bytes: float
    unit: str


LOADS: Final = (
    Load(
        "large",
        "bytes in large requests (6 Java producers, batches of 128 kB, acks=1)",
        6,
        10_000,
        {"batch.size": 131_072, "acks": 1},
        1e6,
        "MB/s",
    ),
    Load(
        "small",
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
)


async def measure(contenders: Sequence[Contender] = (NOTHING, PEER, OURS)) -> dict[str, object]:
    """Load -> contender -> its rate in each round, in the load's unit."""
    async with AsyncExitStack() as stack:
        clusters = {}
        for contender in contenders:
            cluster = await stack.enter_async_context(
                await start(
                    contender,
                    DEFAULT,
                    _LIMIT_BYTES,
                    brokers=1,
                    volumes=1,
                    volume_bytes=_VOLUME_BYTES,
                )
            )
            await contender.obey(cluster, DEFAULT, _LIMIT_BYTES)
            async with Admin(cluster.bootstrap) as admin:
                await admin.create_topic(_TOPIC, partitions=_PARTITIONS, config=_KEPT)
            clusters[contender.key] = cluster
        return {load.key: await _paired(load, clusters) for load in LOADS}


async def _paired(load: Load, clusters: Mapping[str, Cluster]) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {key: [] for key in clusters}
    # One more than are counted: at the first the brokers compile.
    for count in range(1 + _ROUNDS):
        keys = list(clusters)
        turn = count % len(keys)
        for key in (*keys[turn:], *keys[:turn]):
            rate = await _rate(load, clusters[key])
            if count > 0:
                rates[key].append(rate / load.unit_bytes)
    return rates


async def _rate(load: Load, cluster: Cluster) -> float:
    traffic = JavaTraffic(
        cluster.bootstrap,
        _TOPIC,
        bytes_per_s=math.inf,
        record_bytes=load.record_bytes,
        partitions=range(_PARTITIONS),
        connections=load.connections,
        config=load.config,
        heap_mb=1024,
    )
    async with traffic:
        await asyncio.sleep(_WARM_UP_S + _MEASURED_S)
        end = list(traffic.samples)[-1][0]
    return traffic.samples.rate(end - _MEASURED_S, end)
