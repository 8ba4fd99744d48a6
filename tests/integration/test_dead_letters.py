"""Dead letters of share groups (KIP-1191) land while the broker refuses its clients.

Brokers write dead letters by ordinary produce requests, and drop them if they are refused. The
authorizer recognises the brokers' own connections. No list of excluded names is set here.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka import Producer

from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.jars import jars, java
from kafka_lab.listeners import Listener
from sidecar.cli.callback.jar import callback_jar
from sidecar.formats.cache_folder import cache_folder
from tests.support.clusters import PASSWORD
from tests.support.factor_server import FactorServer
from tests.support.java import bean, compiled
from tests.support.waiting import seen

VERSION = "4.4.0"
BEAN = "throttlesidecar:type=QuotaCallback"
PREFIX = "client.quota.callback.sidecar."
BETWEEN = "BETWEEN"
LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    f' user_kafka="{PASSWORD}" username="kafka" password="{PASSWORD}";'
)
ONE_BROKER = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

pytestmark = pytest.mark.versions


@pytest_asyncio.fixture
async def node() -> AsyncIterator[Cluster]:
    """One combined node whose brokers log in to each other as User:kafka."""
    async with Cluster(
        environ=os.environ,
        version=VERSION,
        brokers=1,
        combined=True,
        volumes=1,
        broker_jars=[callback_jar()],
        listeners=[Listener(BETWEEN, "SASL_PLAINTEXT", "PLAIN", {})],
        properties={
            **CALLBACK_PROPERTIES,
            **REFUSING_PROPERTIES,
            **ONE_BROKER,
            "super.users": "User:ANONYMOUS;User:kafka",
            "inter.broker.listener.name": BETWEEN,
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"listener.name.{BETWEEN.lower()}.plain.sasl.jaas.config": LOGIN,
            # The second request of any new connection is refused at the latest.
            f"{PREFIX}leak.bytes.per.second": "1",
        },
        properties_of=asks_its_sidecar,
    ) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def reject(node: Cluster) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """Reject a record of the share group; returns how many dead letters there are then."""
    libraries = await jars(VERSION, cache_folder(os.environ))
    classes = await compiled("DeadLetters", libraries)
    process = await asyncio.create_subprocess_exec(
        java(os.environ),
        *("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF"),
        *("-cp", f"{classes}:{libraries}/*", "DeadLetters", node.bootstrap),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    async def answer() -> str:
        stdin.write(b"reject\n")
        return (await stdout.readline()).decode().strip()

    try:
        assert "ready" == (await stdout.readline()).decode().strip()
        yield answer
    finally:
        process.kill()
        await process.wait()


async def test_dead_letters_land_in_a_throttle_and_at_the_stop_line(
    node: Cluster, reject: Callable[[], Awaitable[str]]
) -> None:
    """Rejected records are in the topic of dead letters, whatever the broker refuses to clients."""

    async def figures() -> Any:
        return await bean(node, 0, BEAN)

    async def refuses_clients() -> Any:
        producer = Producer(
            {"bootstrap.servers": node.bootstrap, "message.timeout.ms": 2000, "linger.ms": 0}
        )
        producer.produce("other", b"x" * 100_000)
        await asyncio.to_thread(producer.flush, 5)
        return (await figures())["RefusedNewConnections"]

    async def below_the_stop_line() -> Any:
        await refuses_clients()
        return (await figures())["RefusedBelowStopLine"]

    async with FactorServer(node.brokers[0].sidecar_port) as sidecar:
        await seen("it is released", figures, lambda now: now["Source"] == "SIDECAR")
        sidecar.decide(0.0)
        await seen("it throttles", figures, lambda now: now["FactorApplied"] == 0.0)
        await seen("new clients are refused", refuses_clients, lambda refused: refused > 0)
        assert ["1", "2"] == [await reject() for _ in range(2)]
        sidecar.decide(0.0, stops=True)
        await seen("all are refused", below_the_stop_line, lambda refused: refused > 0)
        assert ["3", "4"] == [await reject() for _ in range(2)]
        assert (await figures())["RefusalLogFiltered"] is True
