"""Lets a user's clients open ids on a real cluster, throttled by one variant after the other.

The brokers have the quota callback and write their request logs; a sidecar beside each reads its
own and asks the others. A neighbour produces all the time. The clients are those of
``tests.support.rogue``: one connects, gets an id, sends one record and goes away, for ever.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.producer_ids.counts import Counts
from benchmarks.producer_ids.course import Course
from benchmarks.producer_ids.logged import RequestLogs, logged_user
from benchmarks.producer_ids.variants import (
    IP_RATE,
    WINDOW_S,
    WINDOWS,
    Variant,
    excluded,
    quota_file,
)
from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.nodes import Broker
from kafka_lab.sidecar_processes import Sidecar, start_sidecars
from kafka_lab.traffic import Traffic
from kafka_lab.waiting import deadline
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError
from sidecar.kafka.broker_loggers import REQUEST_LOGGER, set_levels
from sidecar.kafka.client_quotas import alter_client_quotas, describe_client_quotas
from sidecar.quotas.entities import Entity, QuotaKey
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure
from tests.support.rogue import Rogue

CLIENTS: Final = 16
BATCH_BYTES: Final = 10_000
NEIGHBOUR_BYTES_PER_S: Final = 5e6
SETTLE_S: Final = 10.0
"""From the clients' beginning; a throttle that has not settled by then is measured unsettled."""
MEASURE_S: Final = 18.0

_NEIGHBOUR: Final = "neighbour"
_PASSWORD: Final = "secret"  # of this machine's own listener, for the time of a measurement
_LISTENER: Final = "BASIC"
_CHECK_S: Final = 0.1
_THROTTLED_TIMEOUT_S: Final = 8.0
_READY_TIMEOUT_S: Final = 30.0
_NEIGHBOUR_BEFORE_S: Final = 3.0
_VOLUME_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is there while variants change."""

    cluster: Cluster
    admin: KafkaAdmin
    sidecars: Sequence[Sidecar]
    neighbour: Traffic
    counts: Counts


async def happen(
    brokers: int, variants: Sequence[Variant], measure_s: float = MEASURE_S
) -> AsyncIterator[Course]:
    """Start a cluster, and measure each variant on it: one course after the other.

    Args:
        brokers: how many.
        variants: in this order; one with a limit on connections must be the last.
        measure_s: how long each is measured once it has settled, seconds.

    Raises:
        ClusterError: it could not be measured.
    """
    async with _scene(brokers, variants) as scene:
        for variant in variants:
            yield await _act(scene, variant, measure_s)


@asynccontextmanager
async def _scene(brokers: int, variants: Sequence[Variant]) -> AsyncIterator[_Scene]:
    users = dict.fromkeys([_NEIGHBOUR, *(each.key for each in variants)], _PASSWORD)
    cluster = Cluster(
        environ=os.environ,
        brokers=brokers,
        volumes=1,
        volume_bytes=_VOLUME_BYTES,
        listeners=[Listener(_LISTENER, "SASL_PLAINTEXT", "PLAIN", users)],
        broker_jars=[callback_jar()],
        properties={
            **CALLBACK_PROPERTIES,
            "client.quota.callback.sidecar.excluded.principals": excluded(variants),
        },
        properties_of=asks_its_sidecar,
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        admin = _admin(cluster)
        levels = await set_levels(admin, dict.fromkeys(cluster.brokers, "DEBUG"), REQUEST_LOGGER)
        if levels != dict.fromkeys(cluster.brokers, "DEBUG"):
            raise ClusterError(f"the request log can't be turned on: {levels}")
        await _create_topics(cluster)
        sidecars = await start_sidecars(
            cluster, _settings(cluster, variants), lambda broker: _settings_of(cluster, broker)
        )
        await _wait_ready(sidecars)
        traffic = Traffic(
            cluster.bootstrap_of(_LISTENER),
            _NEIGHBOUR,
            bytes_per_s=NEIGHBOUR_BYTES_PER_S,
            partitions=range(brokers),
            config=_login(_NEIGHBOUR),
        )
        neighbour = await stack.enter_async_context(traffic)
        counts = await stack.enter_async_context(Counts(cluster))
        await asyncio.sleep(_NEIGHBOUR_BEFORE_S)
        yield _Scene(cluster, admin, sidecars, neighbour, counts)


async def _act(scene: _Scene, variant: Variant, measure_s: float) -> Course:
    cluster, user = scene.cluster, variant.key
    logs = RequestLogs(Path(f"{broker.log}.requests") for broker in cluster.brokers.values())
    began = time.monotonic()
    settled = began + SETTLE_S
    course = Course(user, len(cluster.brokers), CLIENTS, began, settled, settled + measure_s)
    bootstrap = cluster.bootstrap_of(_LISTENER)
    async with Rogue(bootstrap, "ids", _login(user), CLIENTS, BATCH_BYTES):
        if variant.is_throttled:
            course.throttled_at = await _throttle(scene, variant)
        # A sample of everything after the end: nothing is measured past the last one.
        await asyncio.sleep(max(0.0, course.ended_at + 1.0 - time.monotonic()))
    scene.counts.check()
    lines = await asyncio.to_thread(logs.lines)
    ahead_s = time.monotonic() - time.time()
    found = logged_user(lines, user, began, ahead_s)
    course.allocated, course.throttle_ms = found.allocated, dict(found.throttle_ms)
    of_neighbour = logged_user(lines, _NEIGHBOUR, began, ahead_s)
    course.neighbour_throttled_ms = max(of_neighbour.throttle_ms.values(), default=0)
    course.counted = scene.counts.samples.window(began - 1.0, course.ended_at + 1.0)
    course.neighbour = scene.neighbour.samples.window(began - 1.0, course.ended_at + 1.0)
    return course


async def _throttle(scene: _Scene, variant: Variant) -> float | None:
    """Wait until all that throttles the user is in force; when every sidecar said so."""
    try:
        async with asyncio.timeout(_THROTTLED_TIMEOUT_S):
            await _until(lambda: _is_throttled(scene.sidecars, variant.key))
            throttled_at = time.monotonic()
            if variant.has_percentage:
                await _until(lambda: _has_percentage(scene.admin, variant.key))
    except TimeoutError:
        return None
    if variant.has_ip_rate:
        # Not before: sidecars and this process ask from the same address.
        rate: Mapping[str, float | None] = {"connection_creation_rate": IP_RATE}
        failure = await alter_client_quotas(scene.admin, [({"ip": "127.0.0.1"}, rate)])
        if failure is not None:
            raise ClusterError(f"connections can't be limited: {failure.message}")
    return throttled_at


async def _is_throttled(sidecars: Sequence[Sidecar], user: str) -> bool:
    for sidecar in sidecars:
        answer = await sidecar.get("/v1/quota-factors")
        if answer.document()["users"].get(user) != 0.0:
            return False
    return True


async def _has_percentage(admin: KafkaAdmin, user: str) -> bool:
    found = await describe_client_quotas(admin)
    return not isinstance(found, Failure) and QuotaKey.REQUEST in found.get(Entity(user=user), {})


async def _wait_ready(sidecars: Sequence[Sidecar]) -> None:
    async with deadline(_READY_TIMEOUT_S, "the sidecars did not see the volumes"):
        for sidecar in sidecars:
            await _until(partial(_observes, sidecar))


async def _observes(sidecar: Sidecar) -> bool:
    found = (await sidecar.get("/v1/throttle-factor")).document()
    return bool(found["source"] == "observation")


async def _until(is_met: Callable[[], Awaitable[bool]]) -> None:
    """Poll every 100 ms; the caller has the deadline."""
    while not await is_met():  # noqa: ASYNC110 - brokers and sidecars are asked
        await asyncio.sleep(_CHECK_S)


async def _create_topics(cluster: Cluster) -> None:
    """One partition on each broker, so that most ids are used where they were not allocated."""
    leaders = [[broker] for broker in cluster.brokers]
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic("ids", assignment=leaders)
        await admin.create_topic(
            _NEIGHBOUR, assignment=leaders, config={"retention.bytes": str(16 << 20)}
        )


def _settings(cluster: Cluster, variants: Sequence[Variant]) -> dict[str, str]:
    if cluster.folder is None:
        raise ClusterError("the cluster is not up")
    quotas = cluster.folder / "producer-ids.toml"
    quotas.write_text(quota_file(variants), encoding="utf-8")
    return {
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(1 << 20),
        "SIDECAR_PRODUCER_ID_QUOTA_FILE": str(quotas),
        # Without the polls' interval, what is measured is the throttle.
        "SIDECAR_PRODUCER_ID_QUOTA_COUNTS": "allocated",
        "SIDECAR_PRODUCER_ID_QUOTA_WINDOW_NUM": str(WINDOWS),
        "SIDECAR_PRODUCER_ID_QUOTA_WINDOW_SIZE_SECONDS": str(WINDOW_S),
    }


def _settings_of(cluster: Cluster, broker: Broker) -> dict[str, str]:
    others = [each.sidecar_url for each in cluster.brokers.values() if each.id != broker.id]
    settings = {"SIDECAR_REQUEST_LOG_FILE": f"{broker.log}.requests"}
    return {**settings, "SIDECAR_PEERS": ",".join(others)} if others else settings


def _login(user: str) -> dict[str, object]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": _PASSWORD,
    }


def _admin(cluster: Cluster) -> KafkaAdmin:
    hosts = [broker.address.rpartition(":") for broker in cluster.brokers.values()]
    return KafkaAdmin(bootstrap_servers=tuple(HostPort(host, int(port)) for host, _, port in hosts))
