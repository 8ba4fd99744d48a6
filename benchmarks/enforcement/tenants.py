"""One tenant fills a volume, and another one of the same broker produces beside it.

Broker 0 leads all topics, so that it charges both tenants. The replicas of etl's topics lie on
broker 2, those of web's on broker 1. Each tenant has a login, a librdkafka producer and a Java
producer of 2 MB/s each with acks=all, to a topic of its own. When all are at their rates, a file
takes the room of broker 2's volume but for 12 s; it is removed to free it.

With a budget, both tenants write 6 MB/s, and etl may have 200 MB. The plugin has no budgets, so the
file leaves broker 2's volume room for these until the limit. Here the limit is lower.

Example: web has 3.0 MB/s until etl fills a volume at 100.0 s, and 2.9 MB/s until space is freed at
162.0 s: it has 97 % of its earlier rate while etl is throttled.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
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
FLOOR: Final = 64 << 10
"""The lowest client quota, bytes/s."""
LEAST: Final = 0.95
"""The share of its earlier rate that the other tenant is to have."""
THROTTLED_S: Final = 62.0
"""From the crossing to the freeing: a minute, and until the plugin throttles."""
QUOTAS_S: Final = 150.0
"""The same with client quotas, which fall in steps."""
AFTER_S: Final = 30.0

BUDGET_BYTES: Final = 200_000_000
"""More if producers needed longer to be at their rates."""

_BYTES_PER_S: Final = 2e6
_BUDGET_BYTES_PER_S: Final = 3e6
_BEFORE_S: Final = 12.0
_FULLEST: Final = 2
_LIMIT_BYTES: Final = 640 << 20
"""Client quotas need minutes, and let so much pass the limit."""
_LIMIT_WITH_BUDGET: Final = 24 << 20
_POLLS: Final = replace(SHORTEST, ours={**SHORTEST.ours, "SIDECAR_THROTTLE_SCOPE": "volume"})
_FREED: Final = {"retention.bytes": str(8 << 20), "segment.bytes": str(4 << 20)}
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


async def measure(throttle: Throttle, throttled_s: float, budget_bytes: int = 0) -> Tenants:
    """Start brokers and both tenants, and let it happen.

    Args:
        throttle: what throttles.
        throttled_s: from the crossing to the freeing.
        budget_bytes: the storage budget of the tenant that fills; 0 for none.

    Raises:
        ClusterError: it could not be measured.
    """
    properties = dict(throttle.refusing)
    if properties:
        properties["allow.everyone.if.no.acl.found"] = "true"
    polls, limit_bytes, rate = _POLLS, _LIMIT_BYTES, _BYTES_PER_S
    folder = Path(tempfile.mkdtemp())
    if budget_bytes:
        own = {"SIDECAR_BUDGETS_FILE": str(_write_budget(folder, 1 << 40))}
        polls = replace(SHORTEST, ours={**SHORTEST.ours, **own})
        limit_bytes, rate = _LIMIT_WITH_BUDGET, _BUDGET_BYTES_PER_S
    cluster = await cluster_of(
        throttle,
        polls,
        _LIMIT_BYTES,
        brokers=3,
        volumes=1,
        volume_bytes=2 << 30,
        properties=properties,
        listeners=[_LOGINS],
    )
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        await stack.enter_async_context(cluster)
        check_volumes(cluster)
        async with Admin(cluster.bootstrap) as admin:
            for tenant, replicas in _REPLICAS.items():
                for client in CLIENTS:
                    await admin.create_topic(f"{tenant}-{client}", assignment=[replicas])
        await throttle.obey(cluster, polls, limit_bytes)
        producers: dict[str, Producers] = {}
        for tenant in _REPLICAS:
            for client in CLIENTS:
                made = _producer(cluster.bootstrap_of(_LOGINS.name), tenant, client, rate)
                producers[f"{tenant}, {client}"] = await stack.enter_async_context(made)
        async with deadline(90.0, "the producers were not at their rates"):
            await until(
                lambda: all(_has_settled(each.samples, rate) for each in producers.values())
            )
        total, free = await cluster.usage(_FULLEST, 0)
        left = int(len(CLIENTS) * rate * _BEFORE_S)
        if budget_bytes:
            left = max(left, budget_bytes - (total - free))
            _write_budget(folder, total - free + left)
        await cluster.occupy(_FULLEST, 0, free - _LIMIT_BYTES - left)
        async with deadline(60.0, "the limit was not reached"):
            # The sizes of files are not exactly those that a budget counts.
            crossed_at = await _crossed(cluster, _LIMIT_BYTES + (int(rate) if budget_bytes else 0))
        await sleep_until(crossed_at + throttled_s)
        freed_at = time.monotonic()
        await cluster.occupy(_FULLEST, 0, 0)
        if budget_bytes:
            async with Admin(cluster.bootstrap) as admin:
                for client in CLIENTS:
                    await admin.set_topic_config(f"{FILLS}-{client}", _FREED)
        # A little more, for the last sample.
        await asyncio.sleep(AFTER_S + 0.5)
        acknowledged = {who: Series(list(each.samples)) for who, each in producers.items()}
    return Tenants(crossed_at, freed_at, acknowledged)


def _write_budget(folder: Path, nbytes: int) -> Path:
    path = folder / "budgets.toml"
    text = f"""
        [owners.{FILLS}]
        prefixes = ["{FILLS}-"]
        principals = ["{FILLS}"]
        hard = {nbytes}
    """
    path.with_suffix(".new").write_text(text)
    return path.with_suffix(".new").replace(path)


def _producer(bootstrap: str, user: str, client: str, bytes_per_s: float) -> Traffic | JavaTraffic:
    topic = f"{user}-{client}"
    if client == "Java":
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        jaas = f'{module} required username="{user}" password="{_PASSWORD}";'
        config: dict[str, Any] = {**_SASL, "sasl.jaas.config": jaas}
        return JavaTraffic(bootstrap, topic, bytes_per_s=bytes_per_s, config=config, heap_mb=256)
    config = {**_SASL, "sasl.username": user, "sasl.password": _PASSWORD}
    return Traffic(bootstrap, topic, bytes_per_s=bytes_per_s, config=config)


def _has_settled(samples: Series, bytes_per_s: float) -> bool:
    """Whether the last 8 s are within 5 % of the rate: there is nothing to catch up with."""
    found = list(samples)
    if not found or found[-1][0] - found[0][0] < BEFORE_S:
        return False
    rate = samples.rate(found[-1][0] - BEFORE_S, found[-1][0])
    return abs(rate / bytes_per_s - 1) <= 0.05


async def _crossed(cluster: Cluster, limit_bytes: int) -> float:
    available = Series()
    while True:
        _, free = await cluster.usage(_FULLEST, 0)
        available.add(time.monotonic(), free)
        if (at := crossing(available, limit_bytes)) is not None:
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
