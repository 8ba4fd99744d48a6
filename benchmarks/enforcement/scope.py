"""Lets one tenant fill a volume, and measures another one of the same broker beside it.

Broker 0 leads all topics, so that it is who charges both tenants. The replicas of etl's topics lie
on broker 2, those of web's on broker 1. Each tenant has a login, a librdkafka producer and a Java
producer of 2 MB/s each with acks=all, to a topic of its own. When all are at their rates, and have
nothing to catch up with, a file takes the room of broker 2's volume but for 12 s; it is removed to
free it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from benchmarks.enforcement.contenders import SHORTEST, Contender
from benchmarks.enforcement.figures import BEFORE_S
from benchmarks.enforcement.scene import start
from benchmarks.enforcement.tenants import AFTER_S, CLIENTS, FILLS, OTHER, Tenants
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.series import Series, crossing
from kafka_lab.traffic import Traffic
from kafka_lab.waiting import deadline, until
from sidecar.errors import ClusterError
from tests.support.java_traffic import JavaTraffic

THROTTLED_S: Final = 62.0
"""From the crossing to the freeing: a minute, and until the plugin throttles."""

_BYTES_PER_S: Final = 2e6
_SETTLED: Final = 0.05
"""A producer has nothing to catch up with when 8 s are so near to its rate."""

_SETTLED_TIMEOUT_S: Final = 90.0
_BEFORE_S: Final = 12.0
_FULLEST: Final = 2
_LIMIT_BYTES: Final = 96 << 20
_VOLUME_BYTES: Final = 2 << 30
_SAMPLE_S: Final = 0.02
_POLLS: Final = replace(SHORTEST, ours={**SHORTEST.ours, "SIDECAR_THROTTLE_SCOPE": "volume"})
_PASSWORD: Final = "secret"
_LOGINS: Final = Listener(
    "TENANTS", "SASL_PLAINTEXT", "PLAIN", {FILLS: _PASSWORD, OTHER: _PASSWORD}
)
_REPLICAS: Final = {FILLS: [0, _FULLEST], OTHER: [0, 1]}


async def measure(contender: Contender) -> Tenants:
    """Start brokers and both tenants, and let it happen.

    Raises:
        ClusterError: it could not be measured.
    """
    properties = dict(contender.refusing)
    if properties:
        properties["allow.everyone.if.no.acl.found"] = "true"
    cluster = await start(
        contender,
        _POLLS,
        _LIMIT_BYTES,
        brokers=3,
        volumes=1,
        volume_bytes=_VOLUME_BYTES,
        properties=properties,
        listeners=[_LOGINS],
    )
    async with cluster:
        if not cluster.volumes_are_real:
            raise ClusterError(f"this needs real volumes: {cluster.isolation.why_not}")
        async with Admin(cluster.bootstrap) as admin:
            for tenant, replicas in _REPLICAS.items():
                for client in CLIENTS:
                    await admin.create_topic(_topic(tenant, client), assignment=[replicas])
        await contender.obey(cluster, _POLLS, _LIMIT_BYTES)
        async with _producing(cluster) as producers:
            async with deadline(_SETTLED_TIMEOUT_S, "the producers were not at their rates"):
                await until(lambda: all(_has_settled(each.samples) for each in producers.values()))
            _, free = await cluster.usage(_FULLEST, 0)
            left = int(len(CLIENTS) * _BYTES_PER_S * _BEFORE_S)
            await cluster.occupy(_FULLEST, 0, free - _LIMIT_BYTES - left)
            async with deadline(3 * _BEFORE_S, "the limit was not reached"):
                crossed_at = await _crossed(cluster)
            await asyncio.sleep(max(0.0, crossed_at + THROTTLED_S - time.monotonic()))
            freed_at = time.monotonic()
            await cluster.occupy(_FULLEST, 0, 0)
            # A little more, for the last sample.
            await asyncio.sleep(AFTER_S + 0.5)
            acknowledged = {
                who: Series(list(producer.samples)) for who, producer in producers.items()
            }
    return Tenants(crossed_at, freed_at, acknowledged)


def _has_settled(samples: Series) -> bool:
    found = list(samples)
    if not found or found[-1][0] - found[0][0] < BEFORE_S:
        return False
    rate = samples.rate(found[-1][0] - BEFORE_S, found[-1][0])
    return abs(rate / _BYTES_PER_S - 1) <= _SETTLED


async def _crossed(cluster: Cluster) -> float:
    available = Series()
    while True:
        _, free = await cluster.usage(_FULLEST, 0)
        available.add(time.monotonic(), free)
        if (at := crossing(available, _LIMIT_BYTES)) is not None:
            return at
        await asyncio.sleep(_SAMPLE_S)


def _topic(tenant: str, client: str) -> str:
    return f"{tenant}-{client}"


@asynccontextmanager
async def _producing(
    cluster: Cluster,
) -> AsyncIterator[Mapping[tuple[str, str], Traffic | JavaTraffic]]:
    bootstrap = cluster.bootstrap_of(_LOGINS.name)
    running: dict[tuple[str, str], Traffic | JavaTraffic] = {}
    async with AsyncExitStack() as stack:
        for tenant in _REPLICAS:
            java = JavaTraffic(
                bootstrap,
                _topic(tenant, "Java"),
                bytes_per_s=_BYTES_PER_S,
                config=_java(tenant),
                heap_mb=256,
            )
            librdkafka = Traffic(
                bootstrap,
                _topic(tenant, "librdkafka"),
                bytes_per_s=_BYTES_PER_S,
                config=_librdkafka(tenant),
            )
            running[tenant, "Java"] = await stack.enter_async_context(java)
            running[tenant, "librdkafka"] = await stack.enter_async_context(librdkafka)
        yield running


_SASL: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "acks": "all",
    "client.id": "app",
}


def _librdkafka(user: str) -> dict[str, Any]:
    return {**_SASL, "sasl.username": user, "sasl.password": _PASSWORD}


def _java(user: str) -> dict[str, object]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = f'{module} required username="{user}" password="{_PASSWORD}";'
    return {**_SASL, "sasl.jaas.config": login}
