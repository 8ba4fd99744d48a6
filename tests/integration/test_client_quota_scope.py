"""Without a jar, with the scope of volumes: only users that write to the full volume are slowed.

Broker 1's volume is full. On it lie the replicas of "full", which broker 0 leads. The sidecar of
broker 1 knows its writers only by the log of broker 0, and from version 13 of PRODUCE on only by
the topic's id.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.traffic import Traffic
from sidecar.kafka.broker_loggers import REQUEST_LOGGER, set_levels
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity
from sidecar.throttle.quota_steps import is_rung
from tests.support.client_quotas import admin_of, in_force, quotas_of, under
from tests.support.clusters import PASSWORD, java_login, login
from tests.support.daemon import FULL_BYTES, Daemon, Start, settings
from tests.support.java_traffic import JavaTraffic
from tests.support.rates import flows, rates
from tests.support.waiting import seen

USERS = {"etl": "full", "load": "full", "web": "free"}
"""User -> the topic that it writes to."""
KEY = "producer_byte_rate"
ETL, LOAD, WEB, REST = (
    Entity("etl"),
    Entity("load", DEFAULT),
    Entity("web"),
    Entity(client_id=DEFAULT),
)
BEFORE: ClientQuotas = {ETL: {KEY: 4e6, "consumer_byte_rate": 9e6}, WEB: {KEY: 5e6}}
RATE = 5e5
FLOOR = 64 << 10
SMALL = {"retention.bytes": str(2 << 20), "segment.bytes": str(1 << 20)}
VOLUME_BYTES = 1 << 30
"""So much that no volume is near its limit until it is filled on purpose."""
RESTORED_S = 120.0
"""After a file was copied to a volume and removed, quotas rise more slowly."""
WHOLE_S = 120.0
"""For a log to be read for a minute."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    """Two stock brokers that write their request logs."""
    async with Cluster(
        environ=os.environ,
        brokers=2,
        volumes=1,
        volume_bytes=VOLUME_BYTES,
        start_timeout_s=180.0,
        listeners=[Listener("BASIC", "SASL_PLAINTEXT", "PLAIN", dict.fromkeys(USERS, PASSWORD))],
        properties={"log.initial.task.delay.ms": "1000"},
    ) as made:
        levels = dict.fromkeys(made.brokers, "DEBUG")
        assert levels == await set_levels(admin_of(made), levels, REQUEST_LOGGER)
        async with Admin(made.bootstrap) as admin:
            await admin.create_topic("full", assignment=[[0, 1]], config=SMALL)
            await admin.create_topic("free", assignment=[[0]], config=SMALL)
        yield made


async def sidecars(cluster: Cluster, start: Start, folder: Path) -> list[Daemon]:
    """A sidecar beside each broker; both act, and both logs have been read for a minute."""
    daemons = []
    for broker in cluster.brokers.values():
        more = {
            "HTTP_LISTEN": f"127.0.0.1:{broker.sidecar_port}",
            "PEERS": ",".join(each.sidecar_url for each in cluster.brokers.values()),
            "BROKER_ID": str(broker.id),
            "REQUEST_LOG_FILE": f"{broker.log}.requests",
            "ENFORCEMENT": "client-quotas",
            "THROTTLE_SCOPE": "volume",
            "CLIENT_QUOTA_FLOOR": str(FLOOR),
            "STATE_FILE": str(folder / f"state-{broker.id}.json"),
        }
        daemons.append(await start(cluster, settings(cluster.bootstrap, **more)))
    for daemon in daemons:
        await daemon.decides(1.0)
        await seen(
            "a log without a gap",
            partial(daemon.get, "/v1/client-quotas/writers"),
            lambda told: told["is_whole"],
            WHOLE_S,
        )
    return daemons


async def producers(
    cluster: Cluster, on: AsyncExitStack, *of_java: str
) -> list[Traffic | JavaTraffic]:
    """A producer of each user, which nobody throttles yet; some by Java, which writes by ids."""
    own = {"client.id": "app", "batch.size": 50_000}
    basic = cluster.bootstrap_of("BASIC")
    found: list[Traffic | JavaTraffic] = []
    for user, topic in USERS.items():
        if user in of_java:
            config = java_login(user) | own
            each: Traffic | JavaTraffic = JavaTraffic(
                basic, topic, bytes_per_s=RATE, config=config, heap_mb=256
            )
        else:
            config = login(user) | own | {"message.max.bytes": 60_000}
            each = Traffic(basic, topic, bytes_per_s=RATE, config=config)
        found.append(await on.enter_async_context(each))
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_only_the_writers_to_the_full_volume_are_slowed(
    cluster: Cluster, start: Start, tmp_path: Path
) -> None:
    """The other user never waits, and its quota stays. All quotas are as they were afterwards."""
    async with under(cluster, BEFORE), AsyncExitStack() as on:
        etl, load, web = await producers(cluster, on, "load", "web")
        daemons = await sidecars(cluster, start, tmp_path)
        await flows(etl, load, web)
        told = (await daemons[0].get("/v1/client-quotas/writers"))["writers"]
        assert [["etl", "full"], ["load", ""], ["web", ""]] == sorted(each[:2] for each in told)
        touched: list[object] = []

        async def now() -> ClientQuotas:
            found = await quotas_of(cluster)
            if found[WEB] != BEFORE[WEB] or REST in found or Entity("web", DEFAULT) in found:
                touched.append(found)
            return found

        await cluster.occupy(1, 0, VOLUME_BYTES - FULL_BYTES)
        for daemon in daemons:
            await seen("its topics", daemon.factor, lambda now: now["topics"] == ["full"])

        def is_low(found: ClientQuotas) -> bool:
            return all(found.get(each, {}).get(KEY, 1e9) < 0.4 * RATE for each in (ETL, LOAD))

        found = await seen("both are slowed", now, is_low, 300.0)
        assert max(await rates([etl, load], 12.0)) < 0.6 * RATE
        said = (
            "By request logs, the throttle is for the users that write to topics on the full "
            "volumes: etl, load."
        )
        for daemon in daemons:
            assert said in (await daemon.ask("/")).text
        assert not touched
        assert {KEY: 4e6} == found[Entity("throttle-sidecar.before:etl")]
        await flows(web)
        await cluster.occupy(1, 0, 0)
        for daemon in daemons:
            await daemon.decides(1.0)
        await in_force(cluster, BEFORE, RESTORED_S)
        assert not touched
        assert (0.0, 0) == (web.longest_throttle_s, web.failed_records), "it never waited"
        assert 0.0 < min(etl.longest_throttle_s, load.longest_throttle_s)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_broker_whose_sidecar_is_dead_puts_all_users_in_scope(
    cluster: Cluster, start: Start, tmp_path: Path
) -> None:
    """Nobody knows who writes there. The page says so, and all quotas come back at the release."""
    async with under(cluster, BEFORE), AsyncExitStack() as on:
        await producers(cluster, on)
        leader, full = await sidecars(cluster, start, tmp_path)
        await leader.end()
        await cluster.occupy(1, 0, VOLUME_BYTES - FULL_BYTES)
        expected = "for all clients, since no sidecar tells who writes to broker 0."

        async def page() -> str:
            return (await full.ask("/")).text

        await seen(expected, page, lambda text: expected in text)
        await seen(
            "the quotas of all",
            lambda: quotas_of(cluster),
            lambda found: all(is_rung(found.get(each, {}).get(KEY)) for each in (ETL, WEB, REST)),
        )
        await cluster.occupy(1, 0, 0)
        await full.decides(1.0)
        await in_force(cluster, BEFORE, RESTORED_S)
