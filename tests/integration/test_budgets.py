"""Two tenants of one broker: one uses up its storage budget, and the other does not notice.

Both write 6 MB/s, to topics that the same broker leads, on the same volume. The budget's owner has
a producer of librdkafka and one of Java. On a stock broker, client quotas slow its users instead.
With three brokers and three sidecars, all of them see the same.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
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
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity
from sidecar.throttle.quota_steps import LONGEST_PAUSE_S
from tests.support.client_quotas import in_force, quotas_of, under
from tests.support.clusters import PASSWORD, java_login, login
from tests.support.daemon import Daemon, Start, settings
from tests.support.documents import Document
from tests.support.java import bean
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


LOGINS = Listener(
    "BASIC", "SASL_PLAINTEXT", "PLAIN", dict.fromkeys(("etl", "load", "web"), PASSWORD)
)
BEAN = "throttlesidecar:type=QuotaCallback"
KEY = "producer_byte_rate"
BEFORE: ClientQuotas = {Entity("etl"): {KEY: 4e6, "consumer_byte_rate": 9e6}}
FLOOR = 64 << 10
REFUSES = {
    **CALLBACK_PROPERTIES,
    **REFUSING_PROPERTIES,
    "allow.everyone.if.no.acl.found": "true",
}
FREED = {"retention.bytes": str(4 << 20), "segment.bytes": str(2 << 20)}
SLOWED_RATE = 1e6
"""Of each user of the slowed owner, bytes/s."""


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
        listeners=[LOGINS],
        properties=REFUSES,
        properties_of=asks_its_sidecar,
    ) as made:
        async with Admin(made.bootstrap) as admin:
            await admin.create_topic("etl.a", assignment=[[0], [0]])
            await admin.create_topic(
                "web.a", assignment=[[0]], config={"retention.bytes": str(32 << 20)}
            )
        yield made


@pytest_asyncio.fixture
async def stock() -> AsyncIterator[Cluster]:
    """One broker without any jar of ours."""
    async with Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=1 << 30,
        start_timeout_s=180.0,
        listeners=[LOGINS],
    ) as made:
        yield made


@pytest_asyncio.fixture
async def three() -> AsyncIterator[Cluster]:
    """Three brokers with the callback and the authorizer."""
    async with Cluster(
        environ=os.environ,
        brokers=3,
        volumes=1,
        volume_bytes=320 << 20,
        broker_jars=[callback_jar()],
        start_timeout_s=180.0,
        properties=REFUSES,
        properties_of=asks_its_sidecar,
        listeners=[LOGINS],
    ) as made:
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


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_without_a_jar_client_quotas_slow_the_owners_users_alone(
    stock: Cluster, start: Start, tmp_path: Path
) -> None:
    """One of them has a quota, the other none. No wait is longer than the bound."""
    path = tmp_path / "budgets.toml"
    path.write_text(
        """
        [owners.etl]
        prefixes = ["etl."]
        soft = "120MB"
        hard = "160MB"
        principals = ["etl", "load"]

        [owners.web]
        prefixes = ["web."]
        hard = "1MB"
        """
    )
    more = {
        "ENFORCEMENT": "client-quotas",
        "CLIENT_QUOTA_FLOOR": str(FLOOR),
        "BUDGETS_FILE": str(path),
        "STATE_FILE": str(tmp_path / "state.json"),
        "STORAGE_CHECK_INTERVAL": "PT1S",
        "STORAGE_CHECK_INTERVAL_MINIMUM": "PT1S",
    }
    async with under(stock, BEFORE), Admin(stock.bootstrap) as admin, AsyncExitStack() as on:
        small = {"retention.bytes": str(16 << 20), "segment.bytes": str(4 << 20)}
        for user in ("etl", "load", "web"):
            topic = "web.a" if user == "web" else f"etl.{user}"
            await admin.create_topic(topic, config=small if user == "web" else {})
        basic = stock.bootstrap_of("BASIC")
        own = {"client.id": "app", "batch.size": 50_000, "message.max.bytes": 60_000}
        etl, load, web = [
            await on.enter_async_context(
                Traffic(basic, topic, bytes_per_s=rate, config=login(user) | own)
            )
            for user, topic, rate in (
                ("etl", "etl.etl", SLOWED_RATE),
                ("load", "etl.load", SLOWED_RATE),
                ("web", "web.a", 2 * SLOWED_RATE),
            )
        ]
        # Without known rates, quotas would begin to fall from 1 GiB/s.
        daemon = await start(stock, settings(stock.bootstrap, **more))
        await daemon.decides(1.0)
        await flows(etl, load, web)
        before = (await rates([web], 20.0))[0]
        begun, landed = monotonic(), web.acknowledged_bytes
        used = await seen(
            "at hard", lambda: usage(daemon), lambda now: now["state"] == "paused", 180
        )
        assert (["etl", "load"], True) == (used["principals"], used["is_enforced"])
        assert not (await usage(daemon, "web"))["is_enforced"]

        def is_low(found: ClientQuotas) -> bool:
            return all(found.get(each, {}).get(KEY, 1e9) < 0.15 * SLOWED_RATE for each in slowed)

        slowed = (Entity("etl"), Entity("load", DEFAULT))
        found = await seen("both near the floor", lambda: quotas_of(stock), is_low, 300.0)
        assert max(await rates([etl, load], 20.0)) < 0.2 * SLOWED_RATE
        assert 4e6 == found[Entity("throttle-sidecar.before:etl")][KEY]
        assert FLOOR <= min(found[each][KEY] for each in slowed)
        assert Entity(client_id=DEFAULT) not in found
        page = (await daemon.ask("/")).text
        assert "Storage budgets slow these users: etl, load." in page
        assert "without principals in the file of budgets: web." in page
        share = (web.acknowledged_bytes - landed) / (monotonic() - begun) / before
        assert share > 0.9
        assert (0.0, 0) == (web.longest_throttle_s, web.failed_records), "it never waited"
        waits = [each.longest_throttle_s for each in (etl, load)]
        assert 0.0 < min(waits) <= max(waits) <= LONGEST_PAUSE_S

        for topic in ("etl.etl", "etl.load"):
            await admin.set_topic_config(topic, small)
        await seen("space is freed", lambda: usage(daemon), lambda now: now["state"] == "free")
        await in_force(stock, BEFORE)


ALL_HARD = 60_000_000


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_three_sidecars_count_a_replicated_topic_once_and_refuse_on_every_broker(
    three: Cluster, start: Start, tmp_path: Path
) -> None:
    """One of them is killed and started again meanwhile, and that releases nobody."""
    path = tmp_path / "budgets.toml"
    path.write_text(f"[owners.etl]\nprefixes = ['etl.']\nhard = {ALL_HARD}")
    async with Admin(three.bootstrap) as admin, AsyncExitStack() as on:
        brokers = list(three.brokers.values())
        ids = [each.id for each in brokers]
        leaders = [[*ids[at:], *ids[:at]] for at in range(3)]
        await admin.create_topic("etl.a", assignment=leaders)
        await admin.create_topic("web.a", assignment=leaders, config=FREED)

        async def sidecar(at: int) -> Daemon:
            more = {
                "HTTP_LISTEN": f"127.0.0.1:{brokers[at].sidecar_port}",
                "BROKER_ID": str(ids[at]),
                "PEERS": ",".join(each.sidecar_url for each in brokers),
                "BUDGETS_FILE": str(path),
                "STATE_FILE": str(tmp_path / f"state-{at}.json"),
                "STORAGE_CHECK_INTERVAL": "PT1S",
                "STORAGE_CHECK_INTERVAL_MINIMUM": "PT1S",
            }
            return await start(three, settings(three.bootstrap, **more))

        daemons = [await sidecar(at) for at in range(3)]
        for each in daemons:
            await each.decides(1.0)
        for broker_id in ids:
            await seen(
                f"broker {broker_id} reads its sidecar",
                partial(bean, three, broker_id, BEAN),
                lambda now: now["Source"] == "SIDECAR",
            )
        traffics = [
            await on.enter_async_context(
                Traffic(
                    three.bootstrap_of("BASIC"),
                    f"{user}.a",
                    bytes_per_s=SLOWED_RATE,
                    partitions=[at],
                    config=login(user) | {"client.id": f"{user}-{at}", "acks": "all"},
                )
            )
            for user in ("etl", "web")
            for at in range(3)
        ]
        etl, web = traffics[:3], traffics[3:]
        await flows(*etl, *web)

        async def agree(on: list[Daemon], state: str) -> list[int]:
            """Wait until all of these see the owner in this state; what it uses."""
            found = await seen(
                f"{state} for {len(on)}",
                lambda: asyncio.gather(*(usage(each) for each in on)),
                lambda now: {state} == {each["state"] for each in now},
                120.0,
            )
            return [each["used_bytes"] for each in found]

        await agree(daemons, "paused")
        assert max(await shares(etl, 20.0)) < 0.05, "on every broker"
        used = await agree(daemons, "paused")
        assert 1 == len(set(used)), "all of them count the same, and not each replica"
        assert ALL_HARD <= used[0] < 1.1 * sum(each.acknowledged_bytes for each in etl)
        assert used[0] - ALL_HARD <= PAST + len(etl) * LARGEST_BATCH

        daemons[2].send(signal.SIGKILL)
        assert max(await shares(etl, 20.0)) < 0.05, "its broker goes by the last answer"
        assert used[:2] == await agree(daemons[:2], "paused")
        daemons[2] = await sidecar(2)
        assert max(await shares(etl, 20.0)) < 0.05, "a start releases nobody"
        assert used == await agree(daemons, "paused")

        assert min(await shares(web, 10.0)) > 0.9
        await admin.set_topic_config("etl.a", FREED)
        await agree(daemons, "free")
        await flows(*etl)
        assert (0.0, 0) == (
            max(each.longest_throttle_s for each in web),
            sum(each.failed_records for each in web),
        )
