"""Brokers refuse before the append what pauses can't stop, on every version of Kafka."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pytest
import pytest_asyncio
from aiokafka.protocol.types import CompactArray, Int64
from pydantic import SecretStr

from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.jars import DEFAULT_VERSION
from kafka_lab.listeners import Listener
from kafka_lab.traffic import Traffic
from sidecar.cli.callback.jar import callback_jar
from sidecar.kafka.broker_loggers import set_levels
from sidecar.kafka.client.connection import dial
from sidecar.kafka.client.messages import AdminRequest, message
from sidecar.kafka.client.security import load_security
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from tests.support.client_quotas import admin_of
from tests.support.clusters import PASSWORD
from tests.support.diallers import Diallers, landed
from tests.support.factor_server import FactorServer
from tests.support.java import bean
from tests.support.waiting import seen

BEAN = "throttlesidecar:type=QuotaCallback"
PREFIX = "client.quota.callback.sidecar."
BUDGET = 20_000.0
"""What the broker may leak, bytes a second."""

REQUEST = 100_000
"""Of a client that dials anew, bytes: some of them pass in a minute."""

THROTTLED_S = 75.0
VERSIONS = ["3.3.2", "3.9.1", DEFAULT_VERSION, "4.4.0"]
SMALL = {"retention.bytes": str(16 << 20), "segment.bytes": str(1 << 20)}


@dataclass
class Refusing:
    """A node that refuses, and what says the factor."""

    node: Cluster
    sidecar: FactorServer

    async def figures(self) -> Mapping[str, Any]:
        """What it reports in JMX."""
        return await bean(self.node, 0, BEAN)

    async def applies(self, factor: float) -> None:
        """Decide, and wait until the broker obeys."""
        self.sidecar.decide(factor)
        await seen("it obeys", self.figures, lambda now: now["FactorApplied"] == factor)


@pytest.fixture(
    scope="module",
    params=[
        version if version == DEFAULT_VERSION else pytest.param(version, marks=pytest.mark.versions)
        for version in VERSIONS
    ],
)
def version(request: pytest.FixtureRequest) -> str:
    """Each version in turn."""
    return str(request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def node(version: str) -> AsyncIterator[Cluster]:
    """One combined node with the callback and the authorizer."""
    async with Cluster(
        environ=os.environ,
        version=version,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=512 << 20,
        broker_jars=[callback_jar()],
        listeners=[Listener("BASIC", "SASL_PLAINTEXT", "PLAIN", {"etl": PASSWORD})],
        properties={
            **CALLBACK_PROPERTIES,
            **REFUSING_PROPERTIES,
            f"{PREFIX}leak.bytes.per.second": str(BUDGET),
        },
        properties_of=asks_its_sidecar,
    ) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def refusing(node: Cluster) -> AsyncIterator[Refusing]:
    """The node, whose callback hears what a test decides; at first nobody is throttled."""
    async with FactorServer(node.brokers[0].sidecar_port) as sidecar:
        refusing = Refusing(node, sidecar)
        await refusing.applies(1.0)
        yield refusing


async def topic(node: Cluster, name: str) -> str:
    """A topic with one partition, which fills no volume."""
    async with Admin(node.bootstrap) as admin:
        await admin.create_topic(name, assignment=[[0]], config=SMALL)
    return name


async def lands(node: Cluster, name: str, over_s: float) -> float:
    """Bytes a second that are appended to a topic, from now on."""
    before, began = await landed(node.bootstrap, name, REQUEST), time.monotonic()
    await asyncio.sleep(over_s)
    return (await landed(node.bootstrap, name, REQUEST) - before) / (time.monotonic() - began)


@dataclass(frozen=True)
class Landed:
    """What a topic had at some moment between two."""

    not_before_s: float
    not_after_s: float
    nbytes: int


async def looks(node: Cluster, name: str, over_s: float) -> list[Landed]:
    """What a topic has, about once a second from now on."""
    found: list[Landed] = []
    ends = time.monotonic() + over_s
    while time.monotonic() < ends:
        began = time.monotonic()
        nbytes = await landed(node.bootstrap, name, REQUEST)
        found.append(Landed(began, time.monotonic(), nbytes))
        await asyncio.sleep(1.0)
    return found


def past_the_budget(found: Sequence[Landed]) -> float:
    """By how much more landed than may, in whichever time between two looks, bytes."""
    return max(
        later.nbytes
        - earlier.nbytes
        - BUDGET * (later.not_after_s - earlier.not_before_s)
        - REQUEST
        for earlier, later in combinations(found, 2)
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_clients_that_dial_anew_land_the_leak_budget(refusing: Refusing) -> None:
    """Four of them do, of what pauses alone let through; after the release they land all.

    In any minute of the throttle, and in any other time, they land no more than the leak budget of
    that time and one request: 1,200 kB and 100 kB. Nothing is owed at first, so that a request
    passes at once; each later one passes when those before it are repaid. They share a client-id,
    and that has half of the budget: who had no rate before has as much. So seven are expected in
    a minute, and 13 may be.
    """
    node = refusing.node
    name = await topic(node, "anew")
    async with Diallers(node.bootstrap, name, record_bytes=REQUEST, config={"client.id": "d"}):
        free = await lands(node, name, 3.0)
        # What was authorized before has landed when the broker says that it obeys.
        await refusing.applies(0.0)
        found = await looks(node, name, THROTTLED_S)
        assert found[-1].not_before_s - found[0].not_after_s > 60.0
        assert past_the_budget(found) <= 0.0
        assert found[-1].nbytes - found[0].nbytes >= 2 * REQUEST, "and no less"
        figures = await refusing.figures()
        assert figures["RefusedNewConnections"] > 4
        async with Admin(node.bootstrap) as admin:
            await admin.set_broker_config(0, {f"{PREFIX}refuse.enabled": "false"})
            await seen("it is off", refusing.figures, lambda now: not now["Refusing"])
            by_pauses = await lands(node, name, 5.0)
            await admin.set_broker_config(0, {f"{PREFIX}refuse.enabled": "true"})
        await refusing.applies(1.0)
        await seen("all", lambda: lands(node, name, 3.0), lambda released: released > 0.5 * free)
    took_s = found[-1].not_before_s - found[0].not_after_s
    refused = (found[-1].nbytes - found[0].nbytes) / took_s
    assert free > 5 * refused
    assert by_pauses > 3 * refused, "by pauses alone they are not stopped"


async def test_a_client_that_stays_is_never_refused(refusing: Refusing) -> None:
    """It pauses, and is back after the release; nothing of it fails."""
    node = refusing.node
    name = await topic(node, "stays")
    async with Traffic(node.bootstrap, name, bytes_per_s=1e6) as traffic:
        await seen("it flows", lambda: traffic.acknowledged_bytes > 2_000_000)
        await refusing.applies(0.0)
        refused = (await refusing.figures())["RefusedTotal"]
        before = traffic.acknowledged_bytes
        # For however long: the rate before may be that of an earlier test's clients.
        await seen("it is paused", lambda: traffic.longest_throttle_s > 0.0)
        await seen("it lands", lambda: traffic.acknowledged_bytes > before)
        assert refused == (await refusing.figures())["RefusedTotal"]
        await refusing.applies(1.0)
        before = traffic.acknowledged_bytes
        await seen("it flows", lambda: traffic.acknowledged_bytes > before + 2_000_000)
        assert 0 == traffic.failed_records


async def test_a_new_client_comes_back_after_the_release(refusing: Refusing) -> None:
    """Librdkafka started in a throttle loses nothing that its own time-out lets it have."""
    node = refusing.node
    name = await topic(node, "new")
    await refusing.applies(0.0)
    async with (
        # What uses up the share of those that are new.
        Diallers(node.bootstrap, name, clients=1, config={"client.id": "first"}),
        Traffic(node.bootstrap, name, bytes_per_s=1e6) as traffic,
    ):
        await seen("it is refused", refusing.figures, lambda now: now["RefusedNewConnections"] > 10)
        before = traffic.acknowledged_bytes
        await refusing.applies(1.0)
        await seen("it flows", lambda: traffic.acknowledged_bytes > before + 2_000_000)
        assert 0 == traffic.failed_records


_REQUEST, _ = message(
    "WriteTxnMarkers",
    27,
    1,
    request=(("markers", CompactArray(Int64)),),
    response=(("markers", CompactArray(Int64)),),
)


class WriteMarkers(AdminRequest, versions=(_REQUEST,)):
    """No transaction's markers, which only brokers may write."""

    NEEDED = "v1 (Kafka 2.8)"
    values = ((),)


async def test_fifty_refused_clients_leave_a_line_a_minute_in_the_log(refusing: Refusing) -> None:
    """No line of Kafka's for any refusal, whatever level its logger has; a real error shows."""
    node = refusing.node
    name = await topic(node, "fifty")
    await refusing.applies(0.0)
    log = node.brokers[0].log
    read = log.stat().st_size
    before = (await refusing.figures())["RefusedTotal"]
    async with Diallers(node.bootstrap, name, clients=50, record_bytes=10_000):
        await seen(
            "many are refused",
            refusing.figures,
            lambda now: now["RefusedTotal"] > before + 200,
        )
        # An operator changes the logger's level, and with that its configuration.
        await set_levels(admin_of(node), {0: "DEBUG"}, "kafka.server.KafkaApis")
        await seen(
            "many more are refused",
            refusing.figures,
            lambda now: now["RefusedTotal"] > before + 400,
        )
        await set_levels(admin_of(node), {0: "INFO"}, "kafka.server.KafkaApis")
    now = await refusing.figures()
    assert now["RefusalLogFiltered"] is True
    said = log.read_bytes()[read:].decode(errors="replace")
    assert "RefusedException" not in said
    assert "Unexpected error handling request" not in said
    assert len(re.findall(r"Refused \d+ produce requests", said)) <= 2
    await writes_markers(node)
    await seen("the real error", log.read_bytes, lambda now: b"ClusterAuthorization" in now[read:])
    assert b"Unexpected error handling request" in log.read_bytes()[read:]
    assert "clients=" in refusing.sidecar.refusals[-1]


async def writes_markers(node: Cluster) -> None:
    """Send what only a broker may, as the user etl, which Kafka takes for an error of its own."""
    (endpoint,) = addresses(node.bootstrap_of("BASIC"))
    admin = KafkaAdmin(
        bootstrap_servers=(endpoint,),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="etl",
        sasl_password=SecretStr(PASSWORD),
    )
    connection = await dial(endpoint, load_security(admin, time.monotonic), "t", time.monotonic)
    try:
        await connection.call(WriteMarkers())
    finally:
        await connection.close()
