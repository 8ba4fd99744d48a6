"""A node that is broker and controller has two callbacks and one store; a controller alone none."""

import asyncio
import time

import pytest

from sidecar.callback_jar import callback_jar
from sidecar.demo.admin import Admin
from sidecar.demo.callback import CALLBACK_PROPERTIES
from sidecar.demo.traffic import Traffic
from sidecar.errors import ClusterError
from sidecar.kafka.client_quotas import alter_client_quotas
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
    async with node(
        "broker,controller", CALLBACK_PROPERTIES, [callback_jar()], version
    ) as combined:
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


async def test_a_dedicated_controller_refuses_the_callback() -> None:
    """It ends, and its log says where the line does not belong."""
    with pytest.raises(ClusterError, match="ended with 1") as raised:
        async with node("controller", CALLBACK_PROPERTIES, [callback_jar()]):
            pass
    assert "process.roles=controller" in str(raised.value)
