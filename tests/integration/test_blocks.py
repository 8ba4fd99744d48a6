"""The console blocks of README.md and docs/ that need a cluster, run as they stand."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.ports import Ports
from tests.docs.blocks import blocks, pages_with, run
from tests.support.client_quotas import remove_quotas
from tests.support.daemon import Start, settings
from tests.support.kafka_tools import tools_path
from tests.support.secured import SCRAM, SecureKafka


@pytest.fixture
async def cluster(secure_kafka: SecureKafka) -> AsyncIterator[Cluster]:
    """One broker with SCRAM users alice and bob, without quotas and topics before and after."""
    yield secure_kafka.cluster
    await remove_quotas(secure_kafka.cluster)
    async with Admin(secure_kafka.cluster.bootstrap) as client:
        topics = await client.topics()
        await client.delete_topic(*(name for name in topics if not name.startswith("__")))


@pytest.mark.parametrize("page", pages_with("cluster"))
async def test_blocks_on_a_cluster(
    page: str, cluster: Cluster, start: Start, tmp_path: Path
) -> None:
    """They end as the page says, and print what it shows."""
    with Ports() as ports:
        address = f"127.0.0.1:{ports.reserve()}"
    environ = settings(cluster.bootstrap, HTTP_LISTEN=address)
    lines = [each.line for block in blocks(page) for each in block.commands]
    # A page whose blocks start one themselves has no other.
    if "throttle-sidecar run &" not in lines:
        await start(cluster, environ)
    instead = dict.fromkeys(("b1:9092", "localhost:9092"), cluster.bootstrap)
    instead["127.0.0.1:7070"] = address
    await asyncio.to_thread(run, page, "cluster", tmp_path, instead, environ)


@pytest.mark.parametrize("page", pages_with("secured"))
async def test_blocks_on_a_secured_cluster(
    page: str, secure_kafka: SecureKafka, tmp_path: Path
) -> None:
    """An administrator's commands grant a user without any ACL what the sidecar needs."""
    cluster = secure_kafka.cluster
    etc, tools = tmp_path / "etc", tmp_path / "tools"
    etc.mkdir()
    tools.mkdir()
    for name, file in {
        "ca.pem": secure_kafka.ca_file,
        "tls.crt": secure_kafka.client_certificate_file,
        "tls.key": secure_kafka.client_key_file,
    }.items():
        shutil.copy(file, etc / name)
    async with Admin(cluster.bootstrap) as client:
        await client.create_scram_user("admin", "admin-secret", SCRAM)
        await client.allow("admin", "ALL", "BROKER", "kafka-cluster")
    instead = {
        "b1:9094": cluster.bootstrap_of("SCRAM"),
        "b1:9095": cluster.bootstrap_of("MTLS"),
        "/etc/throttle-sidecar": str(etc),
    }
    # Other tests have a user of that name on this cluster, who at first may do nothing.
    for word in ("User:", "entity-name ", "USERNAME="):
        instead[f"{word}throttle-sidecar"] = f"{word}newcomer"
    environ = {"PATH": await tools_path(cluster, tools)}
    await asyncio.to_thread(run, page, "secured", tmp_path, instead, environ)
