"""Brokers obey the factor: a full volume throttles real producers, until it is free again."""

import asyncio
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_lab.admin import Admin
from kafka_lab.broker_properties import SESSION_TIMEOUT_MS
from kafka_lab.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError
from sidecar.throttle.slope import TURN_S
from tests.support.daemon import (
    FULL_BYTES,
    LIMIT_BYTES,
    Daemon,
    Start,
    all_decide,
    seconds,
    settings,
)
from tests.support.java import Bean, bean
from tests.support.java_traffic import JavaTraffic
from tests.support.rates import flows, shares, trickle
from tests.support.waiting import seen

FENCED_MS = 4000

RATE = 2e6
"""Bytes a second of each producer while it is not throttled."""

SMALL = {"retention.bytes": str(4 << 20), "segment.bytes": str(1 << 20)}
"""A topic never fills a volume by itself with these: the test does that."""

ENDLESS = SMALL | {"retention.bytes": "-1"}

BEAN = "throttlesidecar:type=QuotaCallback"

PAUSE_MAX_S = 4.0

_NUMBERS = itertools.count()


async def beside(cluster: Cluster, start: Start, broker_id: int, **more: str) -> Daemon:
    """A sidecar beside a broker, where its callback asks."""
    listen = f"127.0.0.1:{cluster.brokers[broker_id].sidecar_port}"
    return await start(cluster, settings(cluster.bootstrap, HTTP_LISTEN=listen, **more))


async def sidecars(cluster: Cluster, start: Start, **more: str) -> list[Daemon]:
    """A sidecar beside each broker; all see the cluster."""
    daemons = [await beside(cluster, start, broker_id, **more) for broker_id in cluster.brokers]
    await all_decide(daemons, 1.0)
    return daemons


async def figures(cluster: Cluster, broker_id: int) -> Bean:
    """What a broker's callback reports in JMX."""
    return await bean(cluster, broker_id, BEAN)


async def topics(
    cluster: Cluster, *leaders: int, followers: Sequence[int] = (), config: dict[str, str] = SMALL
) -> list[str]:
    """A topic on each of these brokers, with copies on the followers.

    Never the same name twice: what a muted producer of an earlier test has sent still lands.
    """
    names = [f"on-{leader}-{next(_NUMBERS)}" for leader in leaders]
    async with Admin(cluster.bootstrap) as admin:
        for name, leader in zip(names, leaders, strict=True):
            await admin.create_topic(name, assignment=[[leader, *followers]], config=config)
    return names


@asynccontextmanager
async def producers(
    cluster: Cluster, names: Sequence[str], config: dict[str, object] | None = None
) -> AsyncIterator[list[Traffic]]:
    """A producer for each topic, at its rate."""
    async with AsyncExitStack() as stack:
        traffics = [
            await stack.enter_async_context(
                Traffic(cluster.bootstrap, name, bytes_per_s=RATE, config=config)
            )
            for name in names
        ]
        await flows(*traffics)
        yield traffics


async def are_throttled(
    traffics: Sequence[Traffic | JavaTraffic], over_s: float = 5.0
) -> list[float]:
    """Wait until every producer is at a trickle; no throttle time is above the most."""
    found = await trickle(*traffics, over_s=over_s, like=RATE)
    assert max(each.longest_throttle_s for each in traffics) <= PAUSE_MAX_S + 1.0
    return found


async def test_a_broker_does_not_start_half_configured() -> None:
    """It ends, and its log says what to do."""
    wrong = {"client.quota.callback.sidecar.pause.max.ms": "4s"}
    cluster = Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        broker_jars=[callback_jar()],
        properties={**CALLBACK_PROPERTIES, **wrong},
        properties_of=asks_its_sidecar,
    )
    with pytest.raises(ClusterError, match="broker 0 ended with status 1") as raised:
        async with cluster:
            pass
    (setting,) = wrong
    assert setting in str(raised.value)


async def test_a_volume_full_on_one_broker_throttles_producers_whose_leaders_are_on_others(
    obeying: Cluster, start: Start
) -> None:
    """This is the proposal's example, with both clients; traffic is back once space is free."""
    names = await topics(obeying, 0, 0)
    daemons = await sidecars(obeying, start)
    async with (
        producers(obeying, names[:1]) as (librdkafka,),
        JavaTraffic(obeying.bootstrap, names[1], bytes_per_s=RATE, config={"acks": 1}) as java,
    ):
        both: list[Traffic | JavaTraffic] = [librdkafka, java]
        await flows(*both)
        await obeying.occupy(1, 0, FULL_BYTES)
        await all_decide(daemons, 0.0)
        await are_throttled(both)
        assert all(each.longest_throttle_s > 0.0 for each in both), "no throttle time was reported"
        await obeying.occupy(1, 0, 0)
        await all_decide(daemons, 1.0)
        await flows(*both)
        assert 0 == sum(each.failed_records for each in both)


async def test_followers_that_fill_up_by_replication_are_protected(
    obeying: Cluster, start: Start
) -> None:
    """The leader's volumes are free; what the follower's copies take is what counts."""
    (name,) = await topics(obeying, 0, followers=[1], config=ENDLESS)
    daemons = await sidecars(obeying, start)
    # Both are filled, since the broker may put the copy on either.
    for index in (0, 1):
        await obeying.occupy(1, index, 18 << 20)
    async with Traffic(obeying.bootstrap, name, bytes_per_s=RATE) as traffic:
        document = await daemons[0].decides(0.0)
        assert {1} == {each["broker_id"] for each in document["violations"]}
        await are_throttled([traffic])
        free = [await obeying.usage(1, index) for index in (0, 1)]
        assert min(available for _, available in free) > 35 << 20


async def sees_it_fill(daemon: Daemon) -> bool:
    """Whether a sidecar that has just started sees a volume at its limit, or expects it there."""
    await seen("an observation", daemon.factor, lambda now: now["source"] == "observation")
    await asyncio.sleep(1.0)
    found = await daemon.factor()
    return found["factor"] == 0.0 or found["seconds_to_limit"] is not None


@pytest.mark.slow
async def test_a_volume_that_fills_again_after_a_release_is_throttled_in_time(
    obeying: Cluster, start: Start
) -> None:
    """It is, at an interval of a minute: it did not fill while throttled, but may fill now."""
    (name,) = await topics(obeying, 0, config=ENDLESS)
    slow = {"STORAGE_CHECK_INTERVAL": "PT1M", "STORAGE_CHECK_INTERVAL_MINIMUM": "PT0.5S"}
    # Until it says otherwise the callback goes by the last word of the test before.
    quick = await beside(obeying, start, 0)
    await quick.decides(1.0)
    # Both are filled, since the broker may put the topic on either.
    for index in (0, 1):
        await obeying.occupy(0, index, 8 << 20)
    async with Traffic(obeying.bootstrap, name, bytes_per_s=RATE) as traffic:
        # Before the slow one polls: it would not poll again for a minute what does not fill.
        await flows(traffic)
        await quick.end()
        daemon = await beside(obeying, start, 0, **slow)
        while not await sees_it_fill(daemon):
            # On a busy machine nothing may come between its first two polls, half a second apart.
            await daemon.end()
            daemon = await beside(obeying, start, 0, **slow)
        await daemon.decides(0.0)
        await are_throttled([traffic])
        for index in (0, 1):
            await obeying.occupy(0, index, 0)
        await daemon.decides(1.0)
        await daemon.decides(0.0)
        free = [await obeying.usage(0, index) for index in (0, 1)]
        # Else the volumes would be full before the next minute.
        assert min(available for _, available in free) > LIMIT_BYTES / 2


async def test_consumers_are_not_slowed(obeying: Cluster, start: Start) -> None:
    """What was produced before is read many times faster than throttled producers write."""
    (name,) = await topics(obeying, 0, config=ENDLESS)
    daemons = await sidecars(obeying, start)
    async with producers(obeying, [name]) as traffics:
        await seen("enough to read", lambda: traffics[0].acknowledged_bytes > 8_000_000)
        await obeying.occupy(1, 0, FULL_BYTES)
        await daemons[0].decides(0.0)
        await asyncio.sleep(1.0)
        read, took_s = await asyncio.to_thread(_read_all, obeying.bootstrap, name)
        (throttled,) = await are_throttled(traffics)
    assert read > 8_000_000
    assert read / took_s > 4 * throttled, f"{read} bytes took {took_s} s"


def _read_all(bootstrap: str, topic: str) -> tuple[int, float]:
    """How many bytes there are in a topic, and how long reading them took, seconds."""
    with Consumer({"bootstrap.servers": bootstrap, "group.id": topic}) as consumer:
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


async def test_the_full_brokers_restart_releases_nobody(obeying: Cluster, start: Start) -> None:
    """While it is down the others throttle on, and so does it once it is back."""
    names = await topics(obeying, 0, 0)
    daemons = await sidecars(obeying, start)
    async with producers(obeying, names) as traffics:
        await obeying.occupy(1, 0, FULL_BYTES)
        await all_decide(daemons, 0.0)
        await asyncio.sleep(1.0)
        meanwhile = asyncio.Event()
        landing = asyncio.create_task(shares(traffics, meanwhile.wait()))
        await obeying.kill_broker(1)
        await daemons[0].shows_state(1, "fenced")
        await obeying.start_broker(1)
        await daemons[0].shows_state(1, "active")
        meanwhile.set()
        assert max(await landing) < 0.5
        for daemon in daemons:
            assert 0.0 == (await daemon.factor())["factor"]
        await seen(
            "the restarted broker obeys",
            lambda: figures(obeying, 1),
            lambda now: now["FactorApplied"] == 0.0,
        )


async def test_a_fenced_full_broker_throttles_until_it_is_back(
    obeying: Cluster, start: Start
) -> None:
    """It does so beyond the validity, by polls that succeed; back with free space it does not."""
    # Longer than it takes until the broker is fenced, or the fallback follows.
    validity_s = 2 * SESSION_TIMEOUT_MS / 1000
    environ = settings(obeying.bootstrap, THROTTLE_FACTOR_VALIDITY_DURATION=f"PT{validity_s}S")
    daemon = await start(obeying, environ)
    await daemon.decides(1.0)
    await obeying.occupy(1, 0, FULL_BYTES)
    full = await daemon.decides(0.0)
    await obeying.kill_broker(1)
    fenced = await daemon.shows_state(1, "fenced")
    # The space is free again, but the broker that could say so is down.
    await obeying.occupy(1, 0, 0)
    last = await seen(
        "a poll later than the validity",
        daemon.factor,
        lambda now: seconds(fenced["last_seen"], now["computed_at"]) > validity_s,
    )
    assert (0.0, "observation", full["generation"]) == (
        last["factor"],
        last["source"],
        last["generation"],
    )
    await obeying.start_broker(1)
    await daemon.decides(1.0)
    assert "active" == (await daemon.brokers())[1]["state"]


async def test_a_sidecar_that_is_killed_hangs_or_comes_back(obeying: Cluster, start: Start) -> None:
    """Nothing flaps: the throttle lasts for the validity, and then the fallback is in force."""
    (name,) = await topics(obeying, 0)
    daemons = await sidecars(obeying, start, THROTTLE_FACTOR_VALIDITY_DURATION="PT5S")

    source = partial(figures, obeying, 0)
    async with producers(obeying, [name]) as traffics:
        await obeying.occupy(1, 0, FULL_BYTES)
        await daemons[0].decides(0.0)
        await seen("the broker obeys", source, lambda now: now["FactorApplied"] == 0.0)
        for stop, again in ((signal.SIGSTOP, signal.SIGCONT), (signal.SIGKILL, None)):
            daemons[0].send(stop)
            now = await source()
            assert (0.0, "SIDECAR") == (now["FactorApplied"], now["Source"])
            now = await seen("the fallback", source, lambda now: now["Source"] == "FALLBACK")
            assert 1.0 == now["FactorApplied"]
            await flows(*traffics)
            if again is not None:
                daemons[0].send(again)
            else:
                await daemons[0].start()
            await seen("the sidecar again", source, lambda now: now["FactorApplied"] == 0.0)
            await are_throttled(traffics, 3.0)


async def test_a_broker_throttles_by_its_own_eyes(obeying: Cluster, start: Start) -> None:
    """No sidecar is left, and a volume of its own fills up; so when the broker starts anew."""
    (name,) = await topics(obeying, 1)
    daemons = await sidecars(obeying, start, THROTTLE_FACTOR_VALIDITY_DURATION="PT5S")
    source = partial(figures, obeying, 1)
    async with producers(obeying, [name]) as traffics:
        await seen("its limits", source, lambda now: now["LimitsAgeMs"] != -1)
        for daemon in daemons:
            await daemon.end(signal.SIGKILL)
        await seen("the fallback", source, lambda now: now["Source"] == "FALLBACK")
        await flows(*traffics)
        await obeying.occupy(1, 0, FULL_BYTES)
        now = await seen("it looks", source, lambda now: now["Source"] == "LOCAL")
        assert 0.0 == now["FactorApplied"]
        await are_throttled(traffics)
        await obeying.kill_broker(1)
        await obeying.start_broker(1)
        now = await seen("it looks again", source, lambda now: now["Source"] == "LOCAL")
        await are_throttled(traffics, 3.0)
        await obeying.occupy(1, 0, 0)
        await seen("the release", source, lambda now: now["FactorApplied"] == 1.0)
        await flows(*traffics)


async def test_a_sidecar_that_only_observes_throttles_nobody(
    obeying: Cluster, start: Start
) -> None:
    """Neither its document nor the broker's own volumes throttle; it reports its decision."""
    (name,) = await topics(obeying, 1)
    daemons = [await beside(obeying, start, each, MODE="observe") for each in obeying.brokers]
    async with producers(obeying, [name]) as traffics:
        for daemon in daemons:
            await seen("it sees", daemon.factor, lambda now: now["computed_at"])
            assert 1.0 == (await daemon.factor())["shadow"]["factor"]
        await obeying.occupy(1, 0, FULL_BYTES)
        for daemon in daemons:
            await seen("it would throttle", daemon.factor, lambda now: not now["shadow"]["factor"])
        await flows(*traffics)
        now = await figures(obeying, 1)
        assert ("SIDECAR", 1.0) == (now["Source"], now["FactorApplied"])
        # The ramp is an earlier test's.
        assert now["Regime"] in {"FREE", "RAMP"}


@pytest.mark.slow
async def test_producers_are_slowed_before_they_are_throttled(
    obeying: Cluster, start: Start
) -> None:
    """Between the soft limit and the limit, step by step and without another generation."""
    (name,) = await topics(obeying, 0)
    limit, soft = 10 << 20, LIMIT_BYTES
    lines = {"LIMIT": limit, "SOFT_LIMIT": soft}
    daemons = await sidecars(
        obeying,
        start,
        **{f"STORAGE_PER_VOLUME_{key}_MIN_AVAILABLE_BYTES": str(at) for key, at in lines.items()},
    )
    source = partial(figures, obeying, 0)
    # A tag set of its own, so that its rate before is no earlier test's.
    async with producers(obeying, [name], {"client.id": name}) as traffics:
        _, free = await obeying.usage(1, 0)
        # A volume that does not fill: in the last tenth the factor goes by the free space alone.
        ballast = free - limit - (soft - limit) // 40
        await obeying.occupy(1, 0, ballast)
        await seen("it is slowed", source, lambda now: now["FactorApplied"] == 0.25)
        slowed = await daemons[0].factor()
        assert slowed["slope"]
        await seen(
            "a quarter of its rate",
            lambda: shares(traffics, 12.0),
            lambda found: 0.1 < found[0] < 0.4,
        )
        await obeying.occupy(1, 0, ballast + (soft - limit) // 80)
        await seen("a step more", source, lambda now: now["FactorApplied"] == 0.15)
        assert slowed["generation"] == (await daemons[0].factor())["generation"]
        assert traffics[0].longest_throttle_s <= PAUSE_MAX_S + 1.0
        await obeying.occupy(1, 0, 0)
        await seen("the release", source, lambda now: now["FactorApplied"] == 1.0, 2 * TURN_S)
        await flows(*traffics)


async def test_producers_that_come_during_the_throttle_are_throttled(
    obeying: Cluster, start: Start
) -> None:
    """One of them connects, another makes 100 connections."""
    names = await topics(obeying, 0, 0)
    daemons = await sidecars(obeying, start)
    async with producers(obeying, names[:1]) as traffics:
        await obeying.occupy(1, 0, FULL_BYTES)
        await all_decide(daemons, 0.0)
        async with (
            Traffic(obeying.bootstrap, names[1], bytes_per_s=RATE) as late,
            JavaTraffic(
                obeying.bootstrap,
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
            await are_throttled([*traffics, late, many], 10.0)


async def test_producers_are_throttled_whatever_they_wait_for(
    obeying: Cluster, start: Start
) -> None:
    """With acks=0 no answer has a throttle time, and the connection is muted all the same."""
    names = await topics(obeying, 0, 1, 0)
    daemons = await sidecars(obeying, start)
    async with AsyncExitStack() as stack:
        for acks, name in zip((0, 1, "all"), names, strict=True):
            await stack.enter_async_context(producers(obeying, [name], {"acks": acks}))

        async def ends() -> list[int]:
            # With acks=0 what is sent counts as acknowledged: what lands is the log's growth.
            reads = (asyncio.to_thread(_end_offset, obeying.bootstrap, name) for name in names)
            return list(await asyncio.gather(*reads))

        async def landed() -> list[int]:
            before = await ends()
            await asyncio.sleep(5.0)
            return [now - then for now, then in zip(await ends(), before, strict=True)]

        free = await landed()
        await obeying.occupy(1, 0, FULL_BYTES)
        await all_decide(daemons, 0.0)
        await seen(
            "little lands",
            landed,
            lambda now: all(few < 0.25 * many for few, many in zip(now, free, strict=True)),
        )


def _end_offset(bootstrap: str, topic: str) -> int:
    with Consumer({"bootstrap.servers": bootstrap, "group.id": topic}) as consumer:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])


async def test_a_transactional_producer_survives_with_its_transactions_whole(
    obeying: Cluster, start: Start
) -> None:
    """Java's is throttled in the middle of transactions; it commits them all, and none twice."""
    (name,) = await topics(obeying, 0, config=ENDLESS)
    daemons = await sidecars(obeying, start)
    async with JavaTraffic(
        obeying.bootstrap,
        name,
        bytes_per_s=RATE / 4,
        # A transaction in one request or two: each may be paused for up to 4 s, and Streams lets
        # transactions take 10 s.
        config={
            "transactional.id": "tx",
            "acks": "all",
            "transaction.timeout.ms": 10_000,
            "batch.size": 1 << 20,
            "linger.ms": 300,
        },
    ) as traffic:
        await seen("a commit", lambda: traffic.committed_records)
        await obeying.occupy(1, 0, FULL_BYTES)
        await daemons[0].decides(0.0)
        await asyncio.sleep(15.0)
        await obeying.occupy(1, 0, 0)
        await daemons[0].decides(1.0)
        committed = traffic.committed_records
        await seen("commits again", lambda: traffic.committed_records > committed + 50)
        assert (0, None) == (traffic.failed_records, traffic.last_failure)
        committed = traffic.committed_records
    values = await asyncio.to_thread(_committed_values, obeying.bootstrap, name)
    assert len(set(values)) == len(values)
    assert len(values) >= committed


def _committed_values(bootstrap: str, topic: str) -> list[str]:
    """What identifies each record that a consumer of committed ones finds."""
    config = {"bootstrap.servers": bootstrap, "group.id": topic}
    found = []
    with Consumer(config | {"isolation.level": "read_committed"}) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        wait_s = 20.0
        while (message := consumer.poll(wait_s)) is not None:
            assert message.error() is None
            found.append((message.value() or b"").rstrip(b"\0").decode())
            wait_s = 3.0
    return found
