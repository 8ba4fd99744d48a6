"""With the scope of volumes only those are throttled that write to what lies on the full one.

Broker 1's volume is full. On it lie the replicas of one tenant's topics; another tenant's lie on
broker 0 alone, which leads all of them, so that both are charged by the same broker.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer

from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.jars import DEFAULT_VERSION
from kafka_lab.listeners import Listener
from kafka_lab.traffic import Traffic
from sidecar.cli.callback.jar import callback_jar
from sidecar.kafka.largest_topics import topics_by_log_dir
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from sidecar.volumes import Failure
from tests.support.clusters import PASSWORD, java_login, login
from tests.support.daemon import FULL_BYTES, Daemon, Start, settings
from tests.support.java import bean
from tests.support.java_traffic import JavaTraffic
from tests.support.rates import flows, trickle
from tests.support.waiting import seen

BEAN = "throttlesidecar:type=QuotaCallback"
RATE = 1e6
"""Bytes a second of each producer while it is not throttled."""

SMALL = {"retention.bytes": str(2 << 20), "segment.bytes": str(1 << 20)}
VERSIONS = ["3.3.2", "3.9.1", DEFAULT_VERSION, "4.4.0"]
APP = {"client.id": "app", "acks": "all"}
TENANTS = {"etl": PASSWORD, "web": PASSWORD}


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="session",
    params=[
        version if version == DEFAULT_VERSION else pytest.param(version, marks=pytest.mark.versions)
        for version in VERSIONS
    ],
)
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """Two brokers with the callback and the authorizer."""
    async with Cluster(
        environ=os.environ,
        version=str(request.param),
        brokers=2,
        volumes=2,
        volume_bytes=64 << 20,
        broker_jars=[callback_jar()],
        controller_too=True,
        listeners=[Listener("BASIC", "SASL_PLAINTEXT", "PLAIN", TENANTS)],
        properties={
            **CALLBACK_PROPERTIES,
            **REFUSING_PROPERTIES,
            "allow.everyone.if.no.acl.found": "true",
            # So that clients alone don't fill a volume before anything is deleted.
            "log.initial.task.delay.ms": "1000",
        },
        properties_of=asks_its_sidecar,
    ) as made:
        if request.param == "3.3.2":
            # Nothing is deleted in its first half minute, whatever is set.
            await asyncio.sleep(30.0)
        async with Admin(made.bootstrap) as admin:
            for name, brokers in (("full", [0, 1]), ("full-too", [0, 1]), ("free", [0])):
                await admin.create_topic(name, assignment=[brokers], config=SMALL)
        yield made


@pytest_asyncio.fixture
async def daemons(cluster: Cluster, start: Start) -> AsyncIterator[list[Daemon]]:
    """A sidecar beside each broker; nobody is throttled, before the test and after it."""
    found = []
    for broker in cluster.brokers.values():
        address = f"127.0.0.1:{broker.sidecar_port}"
        more = {"HTTP_LISTEN": address, "THROTTLE_SCOPE": "volume"}
        found.append(await start(cluster, settings(cluster.bootstrap, **more)))
    for daemon in found:
        await daemon.decides(1.0)
    yield found
    for volume in (0, 1):
        await cluster.occupy(1, volume, 0)


async def both(
    stack: AsyncExitStack, bootstrap: str, user: str, of_librdkafka: str, of_java: str
) -> list[Traffic | JavaTraffic]:
    """A user's producers by librdkafka and by Java, each to a topic."""
    return [
        await stack.enter_async_context(each)
        for each in (
            Traffic(bootstrap, of_librdkafka, bytes_per_s=RATE, config=login(user) | APP),
            JavaTraffic(bootstrap, of_java, bytes_per_s=RATE, config=java_login(user) | APP),
        )
    ]


@pytest.mark.slow
async def test_a_sudden_fill_throttles_nobody_else(cluster: Cluster, daemons: list[Daemon]) -> None:
    """What lies on the full volume has not been read before, since it did not fill."""
    basic = cluster.bootstrap_of("BASIC")
    async with AsyncExitStack() as stack:
        free = await both(stack, basic, "web", "free", "free")
        await flows(*free)
        for volume in (0, 1):
            await cluster.occupy(1, volume, FULL_BYTES)
        await asyncio.sleep(3.0)
        await throttle_full_topics(daemons)
        await flows(*free)
        assert 0.0 == max(each.longest_throttle_s for each in free), "nobody waited"


async def throttle_full_topics(daemons: list[Daemon]) -> None:
    """Wait until each sidecar throttles those that write to what lies on the full volumes."""
    for daemon in daemons:
        await seen(
            "its topics",
            daemon.factor,
            lambda now: {"full", "full-too"} <= set(now["topics"] or ()),
        )


async def test_the_other_tenant_is_not_throttled(cluster: Cluster, daemons: list[Daemon]) -> None:
    """Of librdkafka and Java, with acks=all on the same broker; nor while sidecars are dead."""
    basic = cluster.bootstrap_of("BASIC")
    async with AsyncExitStack() as stack:
        full = await both(stack, basic, "etl", "full", "full-too")
        free = await both(stack, basic, "web", "free", "free")
        await flows(*full, *free)
        for volume in (0, 1):
            await cluster.occupy(1, volume, FULL_BYTES)
        await throttle_full_topics(daemons)
        source = partial(bean, cluster, 0, BEAN)
        await seen("it obeys", source, lambda now: now["FactorApplied"] == 0.0)
        await trickle(*full)
        assert "; for clients that write to " in (await daemons[0].factor())["reason"]
        for daemon in daemons:
            await daemon.end()
        await flows(*free)
        await trickle(*full)
        assert 0.0 == max(each.longest_throttle_s for each in free), "it never waited"
        assert 0 == sum(each.failed_records for each in free)


async def apart(cluster: Cluster) -> tuple[tuple[int, str], tuple[int, str]]:
    """Two topics of broker 1 on different volumes of it: each with the volume's number."""
    admin = KafkaAdmin(bootstrap_servers=addresses(cluster.bootstrap))
    paths = [volume.path for volume in cluster.brokers[1].volumes]
    for number in range(10):
        name = f"apart-{number}"
        async with Admin(cluster.bootstrap) as client:
            await client.create_topic(name, assignment=[[1]], config=SMALL)
        found = await topics_by_log_dir(admin, 1, 10.0)
        assert not isinstance(found, Failure)
        ours = [
            sorted(topic for topic in found[str(path)] if topic.startswith("apart-"))
            for path in paths
        ]
        if all(ours):
            return (0, ours[0][0]), (1, ours[1][0])
    raise AssertionError("Kafka puts all topics on one volume")


async def test_own_eyes_have_the_same_scope(cluster: Cluster, daemons: list[Daemon]) -> None:
    """A broker with a full volume, and whose sidecar is dead, knows what lies on it."""
    (volume, full_name), (_, free_name) = await apart(cluster)
    config = login("etl") | APP | {"client.id": "eyes"}
    basic = cluster.bootstrap_of("BASIC")
    async with (
        Traffic(basic, full_name, bytes_per_s=RATE, config=config) as full,
        Traffic(basic, free_name, bytes_per_s=RATE, config=config) as free,
    ):
        await flows(full, free)
        for daemon in daemons:
            await daemon.end()
        await cluster.occupy(1, volume, FULL_BYTES)
        source = partial(bean, cluster, 1, BEAN)
        await seen("its own volumes", source, lambda now: now["Source"] == "LOCAL")
        await trickle(full)
        await flows(free)


async def test_without_logins_a_client_is_its_client_id(
    cluster: Cluster, daemons: list[Daemon]
) -> None:
    """On a listener where all are ANONYMOUS: as what it wrote to last."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        full, free = [
            await enter(
                Traffic(cluster.bootstrap, name, bytes_per_s=RATE, config={"client.id": name})
            )
            for name in ("full", "free")
        ]
        await flows(full, free)
        for volume in (0, 1):
            await cluster.occupy(1, volume, FULL_BYTES)
        for daemon in daemons:
            await seen("its topics", daemon.factor, lambda now: now["topics"])
        await trickle(full)
        await flows(free)


@pytest.mark.slow
async def test_a_client_waits_with_all_topics_of_a_request(
    cluster: Cluster, daemons: list[Daemon]
) -> None:
    """One that writes to a full volume and to a free one lands less to both; another does not."""
    landed: Counter[str] = Counter()

    async def sends(producer: AIOKafkaProducer, *names: str) -> None:
        """50 records of 10 kB a second to each, as long as there is room for them."""
        while True:
            for name in names:
                sent = await producer.send(name, bytes(10_000))
                key = f"{len(names)} {name}"
                sent.add_done_callback(
                    lambda done, key=key: landed.update({key: not done.exception()})
                )
            await asyncio.sleep(0.02)

    async def grow(over_s: float) -> dict[str, float]:
        before = landed.copy()
        await asyncio.sleep(over_s)
        return {key: (landed[key] - before[key]) / over_s for key in landed}

    async with AsyncExitStack() as stack:
        for client, names in (("both", ("full", "free")), ("one", ("free",))):
            producer = AIOKafkaProducer(
                bootstrap_servers=cluster.bootstrap_of("BASIC"),
                client_id=client,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="PLAIN",
                sasl_plain_username="etl",
                sasl_plain_password=PASSWORD,
                max_batch_size=64_000,
            )
            await stack.enter_async_context(producer)
            task = asyncio.create_task(sends(producer, *names))
            stack.callback(task.cancel)
        await grow(3.0)
        free = await grow(5.0)
        for volume in (0, 1):
            await cluster.occupy(1, volume, FULL_BYTES)
        for daemon in daemons:
            await seen("its topics", daemon.factor, lambda now: now["topics"])
        await grow(5.0)
        throttled = await grow(15.0)
        share = {key: throttled[key] / free[key] for key in free}
        assert max(share["2 full"], share["2 free"]) < share["1 free"] / 4, f"{free}, {throttled}"
