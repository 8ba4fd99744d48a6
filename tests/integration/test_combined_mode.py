"""Broker and controller in one node have two callbacks and one store; a controller alone none."""

import asyncio
import itertools
import os
import time

import pytest

from sidecar.cli.callback.jar import callback_jar
from sidecar.demo.admin import Admin
from sidecar.demo.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from sidecar.demo.cluster import Cluster
from sidecar.demo.traffic import Traffic
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.topic_changes import create_topics
from sidecar.kafka.topic_messages import NewTopic
from sidecar.kafka.topic_results import Outcome, TopicResult
from sidecar.settings import HostPort, KafkaAdmin
from tests.integration.conftest import Start
from tests.integration.daemon import settings
from tests.integration.waiting import seen
from tests.support.java import beans_of
from tests.support.node import node

RATE = 2e6
"""Bytes a second of the producer, while nobody holds it."""

MORE_THAN_ANY_DISK_HAS = str(1 << 60)


@pytest.mark.parametrize("version", ["3.3.2", "4.3.1"])
async def test_in_combined_mode_one_store_holds_producers_and_lets_mutations_pass(
    version: str, start: Start
) -> None:
    """The sidecar has one reader; a quota that changes releases nobody; topics can be created."""
    async with node(CALLBACK_PROPERTIES, [callback_jar()], version) as combined:
        daemon = await start(
            combined,
            {
                **settings(
                    combined.bootstrap,
                    STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES=MORE_THAN_ANY_DISK_HAS,
                ),
                "SIDECAR_HTTP_LISTEN": f"127.0.0.1:{combined.sidecar_port}",
            },
        )
        await daemon.decides(0.0)
        readers = await seen(
            "a reader", lambda: daemon.get("/v1/readers"), lambda found: bool(found["readers"])
        )
        assert 1 == len(readers["readers"])
        async with Admin(combined.bootstrap) as admin:
            await admin.create_topic("held", assignment=[[100]])
            async with Traffic(combined.bootstrap, "held", bytes_per_s=RATE) as traffic:
                await asyncio.sleep(3.0)
                # Both callbacks are told of it, and Kafka walks over all rates.
                kafka = KafkaAdmin(bootstrap_servers=(_address(combined.bootstrap),))
                quota = [({"client-id": "other"}, {"producer_byte_rate": 1e6})]
                assert await alter_client_quotas(kafka, quota) is None
                begin = time.monotonic()
                await asyncio.sleep(6.0)
                assert traffic.samples.rate(begin, begin + 5.8) < 0.15 * RATE
                assert traffic.longest_throttle_s > 0.0
                await admin.create_topic("mutation", assignment=[[100]])
        stores = await beans_of(combined.pid, version, "throttlesidecar:*")
        assert ["throttlesidecar:type=QuotaCallback"] == list(stores)
        readers = await daemon.get("/v1/readers")
        assert 1 == len(readers["readers"])


def _address(bootstrap: str) -> HostPort:
    host, _, port = bootstrap.rpartition(":")
    return HostPort(host, int(port))


@pytest.mark.parametrize("version", ["3.9.1", "4.3.1"])
async def test_on_a_dedicated_controller_it_is_off(version: str) -> None:
    """Given to all nodes: the controller says so once and charges mutations by Kafka's quotas.

    Kafka 3.3.2's charges none on a dedicated controller, with the callback or without.
    """
    cluster = Cluster(
        environ=os.environ,
        version=version,
        brokers=1,
        volumes=1,
        volume_bytes=64 << 20,
        properties=CALLBACK_PROPERTIES,
        properties_of=asks_its_sidecar,
        broker_jars=[callback_jar()],
        controller_too=True,
    )
    async with cluster:
        assert cluster.folder is not None
        said = (cluster.folder / "controller.log").read_text()
        assert 1 == said.count("The quota callback is off")
        assert 0 == said.count("sidecar at")
        admin = KafkaAdmin(bootstrap_servers=(_address(cluster.bootstrap),), client_id="portal")
        quota = [({"client-id": "portal"}, {"controller_mutation_rate": 3.0})]
        assert await alter_client_quotas(admin, quota) is None
        numbers = itertools.count()

        async def create() -> TopicResult:
            topic = NewTopic(f"t{next(numbers)}", 50, 1)
            (result,) = await create_topics(admin, [topic], retry_on_quota_violation=False)
            return result

        # Once the quota is known there: from a bucket of 33 one topic of 50, and then none for 6 s.
        refused = await seen("a refusal", create, lambda each: each.outcome is not Outcome.DONE)
        assert 0 < refused.throttle_time_ms <= 50_000 / 3.0
