"""Two tenants of one broker: one uses up its storage budget, and the other does not notice.

Both write 6 MB/s, to topics that the same broker leads, on the same volume. The budget's owner has
a producer of librdkafka and one of Java.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic

import pytest
import pytest_asyncio

from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.traffic import Traffic
from sidecar.cli.callback.jar import callback_jar
from tests.support.clusters import PASSWORD, java_login, login
from tests.support.daemon import Daemon, Start, settings
from tests.support.documents import Document
from tests.support.java_traffic import JavaTraffic
from tests.support.rates import LARGEST_BATCH, flows, rates, shares
from tests.support.waiting import seen

RATE = 6e6
HARD = 200_000_000
BUDGETS = f"""
[owners.etl]
prefixes = ["etl."]
soft = "185MB"
hard = {HARD}

[owners.web]
prefixes = ["web."]
hard = "10GB"
"""
PAST = 1_000_000
"""The most bytes past the budget, besides one request of each connection."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    """One broker with the callback and the authorizer, and a topic of each tenant."""
    async with Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=640 << 20,
        broker_jars=[callback_jar()],
        listeners=[
            Listener("BASIC", "SASL_PLAINTEXT", "PLAIN", {"etl": PASSWORD, "web": PASSWORD})
        ],
        properties={
            **CALLBACK_PROPERTIES,
            **REFUSING_PROPERTIES,
            "allow.everyone.if.no.acl.found": "true",
        },
        properties_of=asks_its_sidecar,
    ) as made:
        async with Admin(made.bootstrap) as admin:
            await admin.create_topic("etl.a", assignment=[[0], [0]])
            await admin.create_topic(
                "web.a", assignment=[[0]], config={"retention.bytes": str(32 << 20)}
            )
        yield made


async def usage(daemon: Daemon, owner: str = "etl") -> Document:
    """What an owner uses; nothing yet before the first reading."""
    document = await daemon.get("/v1/budgets")
    found: dict[str, Document] = {each["owner"]: each for each in document["budgets"]}
    return found.get(owner, {"state": "", "used_bytes": 0})


@pytest.mark.slow
async def test_a_tenant_past_its_budget_is_paused_alone(
    cluster: Cluster, start: Start, tmp_path: Path
) -> None:
    """It is back soon after space was freed, and the volume's limit has no part in it."""
    path = tmp_path / "budgets.toml"
    path.write_text(BUDGETS)
    more = {
        "HTTP_LISTEN": f"127.0.0.1:{cluster.brokers[0].sidecar_port}",
        "BUDGETS_FILE": str(path),
        "STORAGE_CHECK_INTERVAL": "PT1S",
        "STORAGE_CHECK_INTERVAL_MINIMUM": "PT1S",
    }
    daemon = await start(cluster, settings(cluster.bootstrap, **more))
    await daemon.decides(1.0)
    basic = cluster.bootstrap_of("BASIC")
    async with AsyncExitStack() as stack, Admin(cluster.bootstrap) as admin:
        web = Traffic(basic, "web.a", bytes_per_s=RATE, config=login("web") | {"client.id": "w"})
        config = {"client.id": "e", "acks": "all"}
        etl: list[Traffic | JavaTraffic] = [
            Traffic(basic, "etl.a", bytes_per_s=RATE / 2, config=login("etl") | config),
            JavaTraffic(
                basic,
                "etl.a",
                bytes_per_s=RATE / 2,
                config=java_login("etl") | config,
                partitions=[1],
            ),
        ]
        for each in (web, *etl):
            await stack.enter_async_context(each)
        # A JVM that has just started is slow.
        await seen("both write", lambda: min(each.acknowledged_bytes for each in etl) > RATE)
        await flows(web, *etl)
        own = (await rates([web], 8.0))[0]
        begun = monotonic()
        landed = web.acknowledged_bytes

        await seen(
            "etl is paused", lambda: usage(daemon), lambda now: now["state"] == "paused", 240.0
        )
        assert max(await shares(etl, 20.0)) < 0.05
        used = (await usage(daemon))["used_bytes"]
        assert used - HARD <= PAST + len(etl) * LARGEST_BATCH

        await admin.set_topic_config("etl.a", {"retention.bytes": str(32 << 20)})
        await seen("space is freed", lambda: usage(daemon), lambda now: now["state"] == "free")
        await flows(*etl)
        share = (web.acknowledged_bytes - landed) / (monotonic() - begun) / own
        assert share > 0.9
        assert (0.0, 0) == (web.longest_throttle_s, web.failed_records), "it never waited"
    decisions = (await daemon.get("/v1/decisions"))["decisions"]
    assert {1.0} == {each["factor"] for each in decisions}, "no volume throttled anybody"
