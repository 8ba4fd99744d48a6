"""The console blocks of README.md and docs/ that need a cluster, run as they stand."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidecar.demo.admin import Admin
from sidecar.demo.cluster import Cluster
from sidecar.demo.ports import Ports
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.quotas.plan import by_entity, removals
from tests.docs.blocks import blocks, run
from tests.docs.test_blocks import pages_with
from tests.integration.conftest import SecureKafka, Start
from tests.integration.daemon import settings
from tests.integration.test_quotas import admin, quotas_of


@pytest.fixture
async def cluster(secure_kafka: SecureKafka) -> AsyncIterator[Cluster]:
    """One broker with SCRAM users alice and bob, without quotas and topics before and after."""
    yield secure_kafka.cluster
    left = removals(await quotas_of(secure_kafka.cluster), {})
    assert await alter_client_quotas(admin(secure_kafka.cluster), by_entity(left)) is None
    async with Admin(secure_kafka.cluster.bootstrap) as client:
        topics = await client.topics()
        await client.delete_topic(*(name for name in topics if not name.startswith("__")))


@pytest.mark.parametrize("page", pages_with("cluster"))
async def test_blocks_on_a_cluster(
    page: str, cluster: Cluster, start: Start, tmp_path: Path
) -> None:
    """They end as the page says, and print what it shows."""
    environ = settings(cluster.bootstrap)
    with Ports() as ports:
        address = f"127.0.0.1:{ports.reserve()}"
    environ["SIDECAR_HTTP_LISTEN"] = address
    lines = [each.line for block in blocks(page) for each in block.commands]
    # A page whose blocks start one themselves has no other.
    if "throttle-sidecar run &" not in lines:
        await start(cluster, environ)
    instead = dict.fromkeys(("b1:9092", "localhost:9092"), cluster.bootstrap)
    instead["127.0.0.1:7070"] = address
    await asyncio.to_thread(run, page, "cluster", tmp_path, instead, environ)
