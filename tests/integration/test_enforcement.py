"""Brokers obey the factor: real producers are held by a full volume, and get their traffic back."""

import asyncio
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from sidecar.cli.callback.jar import callback_jar
from sidecar.demo.admin import Admin
from sidecar.demo.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from sidecar.demo.cluster import Cluster
from sidecar.demo.traffic import Traffic
from sidecar.demo.waiting import deadline, until
from sidecar.errors import ClusterError
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.settings import HostPort, KafkaAdmin
from tests.integration.conftest import PASSWORD, Obeying, Start
from tests.integration.daemon import FULL_BYTES, LIMIT_BYTES, Daemon, settings
from tests.integration.waiting import seen
from tests.support.java import Bean, bean
from tests.support.java_traffic import JavaTraffic

RATE = 2e6
"""Bytes a second of each producer, while nobody holds it."""

SMALL = {"retention.bytes": str(4 << 20), "segment.bytes": str(1 << 20)}
"""So that a topic never fills a volume by itself: the test does that."""

BEAN = "throttlesidecar:type=QuotaCallback"

LARGEST_BATCH = 1_000_000
"""Of librdkafka, bytes: batch.size."""

PAUSE_MAX_S = 4.0

BACK_S = 40.0
"""For traffic to be at its rate again, on a busy machine; ``make bench-enforcement`` says how soon
it is. Less than a minute, after which librdkafka dials anew, whatever the broker has told it."""

_NUMBERS = itertools.count()


async def beside(cluster: Cluster, start: Start, broker_id: int, **more: str) -> Daemon:
    """One beside a broker, where its callback asks."""
    listen = f"127.0.0.1:{cluster.brokers[broker_id].sidecar_port}"
    environ = {**settings(cluster.bootstrap, **more), "SIDECAR_HTTP_LISTEN": listen}
    return await start(cluster, environ)


async def sidecars(cluster: Cluster, start: Start, **more: str) -> list[Daemon]:
    """One beside each broker; all see the cluster."""
    daemons = [await beside(cluster, start, broker_id, **more) for broker_id in cluster.brokers]
    for daemon in daemons:
        await daemon.decides(1.0)
    return daemons


async def figures(cluster: Cluster, broker_id: int) -> Bean:
    """What a broker's callback tells in JMX."""
    return await bean(cluster, broker_id, BEAN)


async def rate(traffic: Traffic | JavaTraffic, over_s: float) -> float:
    """Acknowledged bytes a second, from now on."""
    begin = time.monotonic()
    await asyncio.sleep(over_s)
    return traffic.samples.rate(begin, begin + over_s - 0.2)


async def rates(traffics: Sequence[Traffic | JavaTraffic], over_s: float) -> list[float]:
    return list(await asyncio.gather(*(rate(each, over_s) for each in traffics)))


async def flows(traffics: Sequence[Traffic | JavaTraffic]) -> None:
    """Until every producer is at nearly its own rate."""
    async with deadline(BACK_S, "not every producer was at its rate"):
        while min(await rates(traffics, 1.2)) < 0.85 * RATE:
            pass


async def topics(
    cluster: Cluster, *leaders: int, replicas: Mapping[int, list[int]] | None = None
) -> list[str]:
    """A topic on each of these brokers, with the replicas given besides.

    Never the same name twice: what a muted producer of an earlier test has sent still lands.
    """
    names = [f"on-{leader}-{next(_NUMBERS)}" for leader in leaders]
    async with Admin(cluster.bootstrap) as admin:
        for name, leader in zip(names, leaders, strict=True):
            followers = (replicas or {}).get(leader, [])
            await admin.create_topic(name, assignment=[[leader, *followers]], config=SMALL)
    return names


@asynccontextmanager
async def producers(
    cluster: Cluster, names: Sequence[str], config: dict[str, object] | None = None
) -> AsyncIterator[list[Traffic]]:
    """One for each topic, at its rate."""
    async with AsyncExitStack() as stack:
        traffics = [
            await stack.enter_async_context(
                Traffic(cluster.bootstrap, name, bytes_per_s=RATE, config=config)
            )
            for name in names
        ]
        await flows(traffics)
        yield traffics


async def held(traffics: Sequence[Traffic | JavaTraffic], over_s: float = 5.0) -> None:
    """Until every producer is at a trickle; none was told to wait for longer than the most.

    One request of each may land between two pauses, and a batch has up to 1 MB.
    """
    trickle = 0.15 * RATE + LARGEST_BATCH / over_s
    async with deadline(20.0, "not every producer was at a trickle"):
        while max(await rates(traffics, over_s)) >= trickle:
            pass
    assert max(each.longest_throttle_s for each in traffics) <= PAUSE_MAX_S + 1.0


async def test_a_volume_full_on_one_broker_holds_producers_whose_leaders_are_on_others(
    any_obeying: Obeying, start: Start
) -> None:
    """The proposal's own example; and traffic is back once the space is free."""
    cluster = any_obeying.cluster
    others = [broker_id for broker_id in cluster.brokers if broker_id != 1]
    names = await topics(cluster, *others)
    daemons = await sidecars(cluster, start)
    async with producers(cluster, names) as traffics:
        await cluster.occupy(1, 0, FULL_BYTES)
        for daemon in daemons:
            await daemon.decides(0.0)
        await held(traffics)
        assert all(each.longest_throttle_s > 0.0 for each in traffics), "the brokers told nobody"
        await cluster.occupy(1, 0, 0)
        for daemon in daemons:
            await daemon.decides(1.0)
        await flows(traffics)
        assert 0 == sum(each.failed_records for each in traffics)


async def test_followers_that_fill_up_by_replication_are_protected(
    obeying: Obeying, start: Start
) -> None:
    """The leader's volumes are free; what the follower's copies take is what counts."""
    cluster = obeying.cluster
    (name,) = await topics(cluster, 0, replicas={0: [1]})
    async with Admin(cluster.bootstrap) as admin:
        await admin.set_topic_config(name, {"retention.bytes": "-1"})
    daemons = await sidecars(cluster, start)
    # Both, since nobody says on which of them the broker puts the copy.
    for index in (0, 1):
        await cluster.occupy(1, index, 18 << 20)
    async with Traffic(cluster.bootstrap, name, bytes_per_s=RATE) as traffic:
        document = await daemons[0].decides(0.0)
        assert {1} == {each["broker_id"] for each in document["violations"]}
        await held([traffic])
        free = [await cluster.usage(1, index) for index in (0, 1)]
        assert min(available for _, available in free) > 35 << 20


async def test_a_volume_that_fills_again_after_a_release_is_held_in_time(
    obeying: Obeying, start: Start
) -> None:
    """With an interval of a minute: while it was held it stood still, which says nothing of now."""
    cluster = obeying.cluster
    (name,) = await topics(cluster, 0)
    async with Admin(cluster.bootstrap) as admin:
        await admin.set_topic_config(name, {"retention.bytes": "-1"})
    slow = {"STORAGE_CHECK_INTERVAL": "PT1M", "STORAGE_CHECK_INTERVAL_MINIMUM": "PT0.5S"}
    # Until it says otherwise the callback goes by the last word of the test before.
    quick = await beside(cluster, start, 0)
    await quick.decides(1.0)
    # Both, since nobody says on which of them the broker puts the topic.
    for index in (0, 1):
        await cluster.occupy(0, index, 8 << 20)
    async with Traffic(cluster.bootstrap, name, bytes_per_s=RATE) as traffic:
        # Before the slow one looks: it would not look again for a minute at what stands still.
        await flows([traffic])
        await quick.end()
        daemon = await beside(cluster, start, 0, **slow)
        await daemon.decides(0.0)
        await held([traffic])
        for index in (0, 1):
            await cluster.occupy(0, index, 0)
        await daemon.decides(1.0)
        await daemon.decides(0.0)
        free = [await cluster.usage(0, index) for index in (0, 1)]
        # What two seconds let in; the volumes were full before the next minute else.
        assert min(available for _, available in free) > LIMIT_BYTES - 2 * RATE


async def test_a_tenant_keeps_its_quota_and_gets_it_back(obeying: Obeying, start: Start) -> None:
    """Its producer_byte_rate holds at factor 1.0, before and after a throttle; others are free."""
    cluster = obeying.cluster
    names = await topics(cluster, 0, 2)
    daemons = await sidecars(cluster, start)
    quota = RATE / 4
    admin = KafkaAdmin(bootstrap_servers=(HostPort("127.0.0.1", _port(cluster)),))
    tenant = {"client-id": "tenant"}
    assert await alter_client_quotas(admin, [(tenant, {"producer_byte_rate": quota})]) is None
    try:
        async with (
            producers(cluster, names[:1]) as others,
            Traffic(
                cluster.bootstrap,
                names[1],
                bytes_per_s=RATE,
                # Always behind, so its batches are full: one of a megabyte may land in each pause.
                config={"client.id": "tenant", "batch.size": 100_000},
            ) as traffic,
        ):
            # Kafka lets ten seconds' worth through at once and makes up for it afterwards, again
            # and again: a mean over some of that is not exact.
            await asyncio.sleep(12.0)
            assert pytest.approx(quota, rel=0.5) == await rate(traffic, 12.0)
            assert min(await rates(others, 2.0)) > 0.85 * RATE
            await cluster.occupy(1, 0, FULL_BYTES)
            for daemon in daemons:
                await daemon.decides(0.0)
            await held([*others], 3.0)
            assert await rate(traffic, 5.0) < 0.15 * quota
            await cluster.occupy(1, 0, 0)
            for daemon in daemons:
                await daemon.decides(1.0)
            await flows(others)
            await asyncio.sleep(12.0)
            assert pytest.approx(quota, rel=0.5) == await rate(traffic, 12.0)
    finally:
        assert await alter_client_quotas(admin, [(tenant, {"producer_byte_rate": None})]) is None


def _port(cluster: Cluster) -> int:
    return int(cluster.brokers[0].address.rpartition(":")[2])


async def test_a_factor_between_holds_producers_to_that_share(
    obeying: Obeying, start: Start, tmp_path: Path
) -> None:
    """An operator's 0.5: half of the rate before, at no longer waits than for 0.0; and back."""
    cluster = obeying.cluster
    token = tmp_path / "token"
    token.write_text("t0k3n")
    (name,) = await topics(cluster, 0)
    daemons = await sidecars(cluster, start, TOKEN_FILE=str(token))
    half = {"factor": 0.5, "reason": "half is enough", "duration": "PT10M"}
    async with producers(cluster, [name]) as traffics:
        # Kafka's window is full: a client without a quota is scaled by the rate that it has.
        await asyncio.sleep(11.0)
        for daemon in daemons:
            assert 200 == (await daemon.put("/v1/override", half, "t0k3n")).status_code
        await asyncio.sleep(PAUSE_MAX_S + 1.0)
        assert pytest.approx(0.5 * RATE, rel=0.3) == await rate(traffics[0], 10.0)
        assert 0.0 < traffics[0].longest_throttle_s <= PAUSE_MAX_S + 1.0
        for daemon in daemons:
            assert 200 == (await daemon.ask("/v1/override", "DELETE", "t0k3n")).status_code
        await flows(traffics)


async def test_consumers_are_not_slowed(obeying: Obeying, start: Start) -> None:
    """What was produced before is read at full speed while producers are held."""
    cluster = obeying.cluster
    (name,) = await topics(cluster, 0)
    async with Admin(cluster.bootstrap) as admin:
        await admin.set_topic_config(name, {"retention.bytes": "-1"})
    daemons = await sidecars(cluster, start)
    async with producers(cluster, [name]) as traffics:
        async with deadline(60.0, "there was not enough to read"):
            await until(lambda: traffics[0].acknowledged_bytes > 8_000_000)
        await cluster.occupy(1, 0, FULL_BYTES)
        await daemons[0].decides(0.0)
        await asyncio.sleep(1.0)
        read, took_s = await asyncio.to_thread(_read_all, cluster.bootstrap, name)
        await held(traffics)
    assert read > 8_000_000
    assert read / took_s > 5 * RATE, f"{read} bytes took {took_s} s"


def _read_all(bootstrap: str, topic: str) -> tuple[int, float]:
    """How many bytes there are in a topic, and how long reading them took, seconds."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        consumer.assign([TopicPartition(topic, 0, low)])
        read, began = 0, 0.0
        while True:
            message = consumer.poll(10.0)
            assert message is not None
            assert message.error() is None
            began = began or time.monotonic()
            read += len(message.value() or b"")
            if (message.offset() or 0) >= high - 1:
                return read, time.monotonic() - began
    finally:
        consumer.close()


async def test_an_excluded_principal_is_not_slowed(obeying: Obeying, start: Start) -> None:
    """Another one with the same client-id is, at the same time."""
    cluster = obeying.cluster
    names = await topics(cluster, 0, 2)
    daemons = await sidecars(cluster, start)
    async with AsyncExitStack() as stack:
        ops, etl = [
            await stack.enter_async_context(
                Traffic(
                    cluster.bootstrap_of("BASIC"),
                    name,
                    bytes_per_s=RATE,
                    config={
                        "security.protocol": "SASL_PLAINTEXT",
                        "sasl.mechanism": "PLAIN",
                        "sasl.username": user,
                        "sasl.password": PASSWORD,
                        "client.id": "same",
                    },
                )
            )
            for user, name in zip(("ops", "etl"), names, strict=True)
        ]
        await flows([ops, etl])
        await cluster.occupy(1, 0, FULL_BYTES)
        for daemon in daemons:
            await daemon.decides(0.0)
        await asyncio.sleep(1.0)
        fast, slow = await rates([ops, etl], 5.0)
        assert fast > 0.85 * RATE
        assert slow < 0.15 * RATE
        assert 0.0 == ops.longest_throttle_s


async def test_the_full_brokers_restart_releases_nobody(obeying: Obeying, start: Start) -> None:
    """Nor does the time without it: the others go on holding, and it does once it is back."""
    cluster = obeying.cluster
    names = await topics(cluster, 0, 2)
    daemons = await sidecars(cluster, start)
    async with producers(cluster, names) as traffics:
        await cluster.occupy(1, 0, FULL_BYTES)
        for daemon in daemons:
            await daemon.decides(0.0)
        await asyncio.sleep(1.0)
        before = [each.acknowledged_bytes for each in traffics]
        began = time.monotonic()
        await cluster.kill_broker(1)
        await daemons[0].shows_state(1, "fenced")
        await cluster.start_broker(1)
        await daemons[0].shows_state(1, "active")
        took_s = time.monotonic() - began
        grown = [now.acknowledged_bytes - then for now, then in zip(traffics, before, strict=True)]
        assert max(grown) / took_s < 0.15 * RATE
        for daemon in daemons:
            assert 0.0 == (await daemon.factor())["factor"]

        async def applied() -> Bean:
            return await figures(cluster, 1)

        await seen("the restarted broker obeys", applied, lambda now: now["FactorApplied"] == 0.0)


async def test_a_sidecar_that_is_killed_hangs_or_comes_back(obeying: Obeying, start: Start) -> None:
    """Nothing flaps: the throttle holds for the validity, and then the fallback is in force."""
    cluster = obeying.cluster
    (name,) = await topics(cluster, 0)
    validity_s = 5.0
    daemons = await sidecars(cluster, start, THROTTLE_FACTOR_VALIDITY_DURATION="PT5S")

    async def source() -> Bean:
        return await figures(cluster, 0)

    async with producers(cluster, [name]) as traffics:
        await cluster.occupy(1, 0, FULL_BYTES)
        await daemons[0].decides(0.0)
        await seen("the broker obeys", source, lambda now: now["FactorApplied"] == 0.0)
        for stop, again in ((signal.SIGSTOP, signal.SIGCONT), (signal.SIGKILL, None)):
            daemons[0].send(stop)
            gone = time.monotonic()
            now = await source()
            assert (0.0, "SIDECAR") == (now["FactorApplied"], now["Source"])
            now = await seen("the fallback", source, lambda now: now["Source"] == "FALLBACK")
            assert 1.0 == now["FactorApplied"]
            assert time.monotonic() - gone < validity_s + 10.0
            await flows(traffics)
            if again is not None:
                daemons[0].send(again)
            else:
                await daemons[0].start()
            await seen("the sidecar again", source, lambda now: now["FactorApplied"] == 0.0)
            await held(traffics, 3.0)


async def test_producers_that_come_during_the_throttle_are_throttled(
    obeying: Obeying, start: Start
) -> None:
    """One that connects, and 100 connections of one client."""
    cluster = obeying.cluster
    names = await topics(cluster, 0, 2)
    daemons = await sidecars(cluster, start)
    async with producers(cluster, names[:1]) as traffics:
        await cluster.occupy(1, 0, FULL_BYTES)
        for daemon in daemons:
            await daemon.decides(0.0)
        async with (
            Traffic(cluster.bootstrap, names[1], bytes_per_s=RATE) as late,
            JavaTraffic(
                cluster.bootstrap,
                names[1],
                bytes_per_s=RATE,
                record_bytes=1000,
                connections=100,
                # One record a request: each connection lands one in each pause.
                config={"client.id": "many", "acks": 1, "batch.size": 1},
            ) as many,
        ):
            # Each connection has landed its first request by then.
            await asyncio.sleep(8.0)
            await held([*traffics, late, many], 10.0)


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_producers_are_throttled_whatever_they_wait_for(
    obeying: Obeying, start: Start, acks: object
) -> None:
    """With acks=0 nobody is told, and the connection is muted all the same."""
    cluster = obeying.cluster
    (name,) = await topics(cluster, 0)
    daemons = await sidecars(cluster, start)
    async with producers(cluster, [name], {"acks": acks}):
        await cluster.occupy(1, 0, FULL_BYTES)
        await daemons[0].decides(0.0)
        await asyncio.sleep(2.0)
        # With acks=0 what is sent counts as acknowledged: what lands is what the log grows by.
        before = await asyncio.to_thread(_end_offset, cluster.bootstrap, name)
        await asyncio.sleep(5.0)
        landed = (await asyncio.to_thread(_end_offset, cluster.bootstrap, name) - before) * 10_000
        assert landed / 5.0 < 0.15 * RATE


def _end_offset(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
    finally:
        consumer.close()


async def test_a_transactional_producer_survives_with_its_transactions_whole(
    obeying: Obeying, start: Start
) -> None:
    """Java's: held in the middle of transactions, it commits them all, and none twice."""
    cluster = obeying.cluster
    (name,) = await topics(cluster, 0)
    async with Admin(cluster.bootstrap) as admin:
        await admin.set_topic_config(name, {"retention.bytes": "-1"})
    daemons = await sidecars(cluster, start)
    async with JavaTraffic(
        cluster.bootstrap,
        name,
        bytes_per_s=RATE / 4,
        # A transaction in one request or two: each may be paused for up to 4 s, and Streams gives
        # transactions 10 s.
        config={
            "transactional.id": "tx",
            "acks": "all",
            "transaction.timeout.ms": 10_000,
            "batch.size": 1 << 20,
            "linger.ms": 300,
        },
    ) as traffic:
        async with deadline(60.0, "nothing was committed"):
            await until(lambda: traffic.committed_records > 0)
        await cluster.occupy(1, 0, FULL_BYTES)
        await daemons[0].decides(0.0)
        await asyncio.sleep(15.0)
        await cluster.occupy(1, 0, 0)
        await daemons[0].decides(1.0)
        committed = traffic.committed_records
        async with deadline(BACK_S, "nothing was committed after the throttle"):
            await until(lambda: traffic.committed_records > committed + 50)
        assert (0, None) == (traffic.failed_records, traffic.last_failure)
        committed = traffic.committed_records
    values = await asyncio.to_thread(_committed_values, cluster.bootstrap, name)
    assert len(set(values)) == len(values)
    assert len(values) >= committed


def _committed_values(bootstrap: str, topic: str) -> list[str]:
    """What identifies each record that a consumer of committed ones finds."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "isolation.level": "read_committed"}
    )
    found = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        wait_s = 20.0
        while (message := consumer.poll(wait_s)) is not None:
            assert message.error() is None
            found.append((message.value() or b"").rstrip(b"\0").decode())
            wait_s = 3.0
    finally:
        consumer.close()
    return found


async def test_java_and_librdkafka_are_held_and_released_alike(
    obeying: Obeying, start: Start
) -> None:
    """Side by side on one broker: both at a trickle, both back afterwards."""
    cluster = obeying.cluster
    names = await topics(cluster, 0, 2)
    daemons = await sidecars(cluster, start)
    async with (
        producers(cluster, names[:1]) as (librdkafka,),
        JavaTraffic(cluster.bootstrap, names[1], bytes_per_s=RATE, config={"acks": 1}) as java,
    ):
        await flows([librdkafka, java])
        # The rate before is the mean of all that was seen, and a JVM's first seconds are slow.
        await asyncio.sleep(6.0)
        await cluster.occupy(1, 0, FULL_BYTES)
        for daemon in daemons:
            await daemon.decides(0.0)
        await held([librdkafka, java])
        assert java.longest_throttle_s > 0.0
        await cluster.occupy(1, 0, 0)
        for daemon in daemons:
            await daemon.decides(1.0)
        await flows([librdkafka, java])
        assert 0 == librdkafka.failed_records + java.failed_records


async def test_the_disk_wins_over_the_client(obeying: Obeying, start: Start) -> None:
    """A volume that would be full soon in spite of the throttle: longer pauses, and it is told."""
    cluster = obeying.cluster
    (name,) = await topics(cluster, 0)
    daemons = await sidecars(cluster, start)
    horizon = "client.quota.callback.sidecar.emergency.horizon.ms"
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(Admin(cluster.bootstrap))
        await admin.set_topic_config(name, {"retention.bytes": "-1"})
        await admin.set_broker_config(0, {horizon: "3600000"})
        stack.push_async_callback(admin.set_broker_config, 0, {horizon: "1"})
        await stack.enter_async_context(
            JavaTraffic(
                cluster.bootstrap,
                name,
                bytes_per_s=RATE,
                record_bytes=1000,
                connections=50,
                config={"acks": 1},
            )
        )
        await asyncio.sleep(3.0)
        await cluster.occupy(1, 0, FULL_BYTES)
        await daemons[0].decides(0.0)

        async def reported() -> Bean:
            return await figures(cluster, 0)

        now = await seen("an emergency", reported, lambda now: now["Emergency"] is True, 40.0)
        assert 0.0 == now["FactorApplied"]

        async def longest() -> float:
            return float((await figures(cluster, 0))["LongestPauseMs"] or 0)

        await seen("a longer pause", longest, lambda pause: pause > 1000 * PAUSE_MAX_S, 40.0)
        (reader,) = [
            each for each in (await daemons[0].get("/v1/readers"))["readers"] if each["emergency"]
        ]
        assert 0 == reader["broker_id"]


async def test_it_is_switched_off_at_three_in_the_morning(obeying: Obeying, start: Start) -> None:
    """By kafka-configs.sh, without a restart, at once; and on again."""
    cluster = obeying.cluster
    (name,) = await topics(cluster, 0)
    daemons = await sidecars(cluster, start)
    enabled = "client.quota.callback.sidecar.enabled"
    async with producers(cluster, [name]) as traffics, Admin(cluster.bootstrap) as admin:
        await cluster.occupy(1, 0, FULL_BYTES)
        await daemons[0].decides(0.0)
        await held(traffics, 3.0)
        await admin.set_broker_config(0, {enabled: "false"})
        await flows(traffics)
        await admin.set_broker_config(0, {enabled: "true"})
        await asyncio.sleep(2.0)
        await held(traffics, 3.0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"client.quota.callback.sidecar.pause.max.ms": "4s"},
            "must be a whole number of milliseconds",
        ),
        ({"metric.reporters": "org.apache.kafka.common.metrics.JmxReporter"}, "must name"),
    ],
    ids=["a wrong value", "no reporter"],
)
async def test_a_broker_does_not_start_half_configured(wrong: dict[str, str], says: str) -> None:
    """It ends, and its log says what to do."""
    cluster = Cluster(
        environ=os.environ,
        brokers=1,
        volumes=1,
        broker_jars=[callback_jar()],
        properties={**CALLBACK_PROPERTIES, **wrong},
        properties_of=asks_its_sidecar,
    )
    with pytest.raises(ClusterError, match="broker 0 ended with 1") as raised:
        async with cluster:
            pass
    assert says in str(raised.value)
