"""One tenant fills a volume, and another one of the same broker produces beside it.

Broker 0 leads all topics, so that it charges both tenants. The replicas of etl's topics lie on
broker 2, those of web's on broker 1. Each tenant has a login, a librdkafka producer and a Java
producer of 2 MB/s each with acks=all, to a topic of its own. When all are at their rates, a file
takes the room of broker 2's volume but for 12 s; it is removed to free it.

Example: web has 3.0 MB/s until etl fills a volume at 100.0 s, and 2.9 MB/s until space is freed at
162.0 s: it has 97 % of its earlier rate while etl is throttled.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Final

from benchmarks.enforcement.figures import Target
from benchmarks.enforcement.scene import BEFORE_S
from benchmarks.harness.results import Sampled
from benchmarks.harness.tables import Figures, Value
from benchmarks.harness.throttles import SHORTEST, Throttle, check_volumes, cluster_of
from benchmarks.harness.traffic import Producers, sleep_until
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.series import Series, crossing
from kafka_lab.traffic import Traffic
from kafka_lab.waiting import deadline, until
from sidecar.cli.chart import Line, Mark, Panel, svg
from tests.support.java_traffic import JavaTraffic

FILLS: Final = "etl"
"""The tenant whose topics have a replica on the volume that fills."""
OTHER: Final = "web"
"""The tenant whose topics have none there."""
CLIENTS: Final = ("librdkafka", "Java")
LEAST: Final = 0.95
"""The share of its earlier rate that the other tenant is to have."""
THROTTLED_S: Final = 62.0
"""From the crossing to the freeing: a minute, and until the plugin throttles."""
AFTER_S: Final = 30.0

_BYTES_PER_S: Final = 2e6
_BEFORE_S: Final = 12.0
_FULLEST: Final = 2
_LIMIT_BYTES: Final = 96 << 20
_POLLS: Final = replace(SHORTEST, ours={**SHORTEST.ours, "SIDECAR_THROTTLE_SCOPE": "volume"})
_PASSWORD: Final = "secret"
_LOGINS: Final = Listener(
    "TENANTS", "SASL_PLAINTEXT", "PLAIN", {FILLS: _PASSWORD, OTHER: _PASSWORD}
)
_REPLICAS: Final = {FILLS: [0, _FULLEST], OTHER: [0, 1]}
_SASL: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "acks": "all",
    "client.id": "app",
}


@dataclass(slots=True)
class Tenants:
    """What happened; times are seconds of one monotonic clock.

    Attributes:
        crossed_at: when the volume that fills reached the limit.
        freed_at: when its space was freed.
        acknowledged: "tenant, client" -> bytes that its producer had acknowledged so far.
    """

    crossed_at: float
    freed_at: float
    acknowledged: dict[str, Sampled] = field(default_factory=dict)


async def measure(throttle: Throttle, throttled_s: float) -> Tenants:
    """Start brokers and both tenants, and let it happen.

    Raises:
        ClusterError: it could not be measured.
    """
    properties = dict(throttle.refusing)
    if properties:
        properties["allow.everyone.if.no.acl.found"] = "true"
    cluster = await cluster_of(
        throttle,
        _POLLS,
        _LIMIT_BYTES,
        brokers=3,
        volumes=1,
        volume_bytes=2 << 30,
        properties=properties,
        listeners=[_LOGINS],
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        check_volumes(cluster)
        async with Admin(cluster.bootstrap) as admin:
            for tenant, replicas in _REPLICAS.items():
                for client in CLIENTS:
                    await admin.create_topic(f"{tenant}-{client}", assignment=[replicas])
        await throttle.obey(cluster, _POLLS, _LIMIT_BYTES)
        producers: dict[str, Producers] = {}
        for tenant in _REPLICAS:
            for client in CLIENTS:
                made = _producer(cluster.bootstrap_of(_LOGINS.name), tenant, client)
                producers[f"{tenant}, {client}"] = await stack.enter_async_context(made)
        async with deadline(90.0, "the producers were not at their rates"):
            await until(lambda: all(_has_settled(each.samples) for each in producers.values()))
        _, free = await cluster.usage(_FULLEST, 0)
        left = int(len(CLIENTS) * _BYTES_PER_S * _BEFORE_S)
        await cluster.occupy(_FULLEST, 0, free - _LIMIT_BYTES - left)
        async with deadline(3 * _BEFORE_S, "the limit was not reached"):
            crossed_at = await _crossed(cluster)
        await sleep_until(crossed_at + throttled_s)
        freed_at = time.monotonic()
        await cluster.occupy(_FULLEST, 0, 0)
        # A little more, for the last sample.
        await asyncio.sleep(AFTER_S + 0.5)
        acknowledged = {who: Series(list(each.samples)) for who, each in producers.items()}
    return Tenants(crossed_at, freed_at, acknowledged)


def _producer(bootstrap: str, user: str, client: str) -> Traffic | JavaTraffic:
    topic = f"{user}-{client}"
    if client == "Java":
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        jaas = f'{module} required username="{user}" password="{_PASSWORD}";'
        config: dict[str, Any] = {**_SASL, "sasl.jaas.config": jaas}
        return JavaTraffic(bootstrap, topic, bytes_per_s=_BYTES_PER_S, config=config, heap_mb=256)
    config = {**_SASL, "sasl.username": user, "sasl.password": _PASSWORD}
    return Traffic(bootstrap, topic, bytes_per_s=_BYTES_PER_S, config=config)


def _has_settled(samples: Series) -> bool:
    """Whether the last 8 s are within 5 % of the rate: there is nothing to catch up with."""
    found = list(samples)
    if not found or found[-1][0] - found[0][0] < BEFORE_S:
        return False
    rate = samples.rate(found[-1][0] - BEFORE_S, found[-1][0])
    return abs(rate / _BYTES_PER_S - 1) <= 0.05


async def _crossed(cluster: Cluster) -> float:
    available = Series()
    while True:
        _, free = await cluster.usage(_FULLEST, 0)
        available.add(time.monotonic(), free)
        if (at := crossing(available, _LIMIT_BYTES)) is not None:
            return at
        await asyncio.sleep(0.02)


def figures(run: Tenants) -> Figures:
    """The other tenant's figures first: a throttle has a scope for its sake.

    Raises:
        ValueError: a producer had nothing acknowledged before the crossing.
    """
    found: dict[str, Value] = {}
    for tenant in (OTHER, FILLS):
        for client in CLIENTS:
            who = f"{tenant}, {client}"
            acknowledged = run.acknowledged[who]
            before = acknowledged.rate(run.crossed_at - BEFORE_S, run.crossed_at)
            if before <= 0:
                raise ValueError(f"{who}: nothing was acknowledged before the crossing")
            steps = int((run.freed_at - run.crossed_at - 5.0) / 0.1 + 1e-9)
            begins = [run.crossed_at + step * 0.1 for step in range(steps + 1)]
            least = min(acknowledged.rate(at, at + 5.0) for at in begins)
            during = acknowledged.rate(run.crossed_at, run.freed_at)
            after = acknowledged.rate(run.freed_at, run.freed_at + AFTER_S)
            found |= {
                f"{who}: before": Value(before / 1e6, "MB/s"),
                f"{who}: while {FILLS} is throttled": _share(during / before),
                f"{who}: the least in 5 s of that": _share(least / before),
                f"{who}: in the {AFTER_S:.0f} s after space was freed": _share(after / before),
            }
    return found


def _share(share: float) -> Value:
    return Value(share, text="{:.1%}".format)


def targets(ours: list[Figures]) -> dict[str, Target]:
    """The other tenant is to have its rate."""
    names = [f"{OTHER}, {client}: while {FILLS} is throttled" for client in CLIENTS]
    return {
        name: (
            f"≥ {LEAST:.0%}",
            all((each[name].value or 0.0) >= LEAST for each in ours) if ours else None,
        )
        for name in names
    }


def picture(title: str, found: Mapping[str, Tenants]) -> str:
    """Throughput over time as SVG: a panel for each tenant, a line for each arm and client.

    Args:
        title: above it.
        found: arm's name -> what happened; not empty.
    """
    panels = []
    for tenant in (OTHER, FILLS):
        lines: list[Line] = []
        top = 0.0
        for name, run in found.items():
            for client in CLIENTS:
                acknowledged = run.acknowledged[f"{tenant}, {client}"]
                begin = run.crossed_at - BEFORE_S
                top = max(top, 2.5 * acknowledged.rate(begin, run.crossed_at) / 1e6)
                points = [
                    (at - run.crossed_at, rate / 1e6)
                    for at, rate in acknowledged.rates(0.25, 1.0)
                    if at >= run.crossed_at - 10.0
                ]
                lines.append(Line(f"{name}, {client}", points, len(lines)))
        freed = max(run.freed_at - run.crossed_at for run in found.values())
        moments = [Mark("limit crossed", 0.0), Mark("space freed", freed)]
        panels.append(Panel(f"{tenant}, MB/s", lines, moments, top=top))
    return svg(title, "seconds from the crossing of the limit", panels)
