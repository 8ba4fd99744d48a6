"""The same on each Kafka version, and what the versions differ in."""

import os
import time

import pytest

from sidecar.demo.cluster import Cluster
from sidecar.kafka.client.connection import dial
from sidecar.kafka.client.security import load_security
from sidecar.kafka.cluster_messages import DescribeCluster, DescribeLogDirs
from sidecar.settings import HostPort, KafkaAdmin
from tests.integration.conftest import Start
from tests.integration.daemon import FULL_BYTES, command, settings

VERSIONS_OF = {
    # DescribeLogDirs, DescribeCluster
    "3.3.2": (4, 0),
    "3.9.1": (4, 1),
    "4.3.1": (5, 2),
}


async def test_every_version_is_observed_throttled_and_released(
    any_kafka: Cluster, start: Start
) -> None:
    """Every volume is seen with its size; one is filled, 0.0 names it; it is freed, 1.0."""
    daemon = await start(any_kafka, settings(any_kafka.bootstrap))
    await daemon.decides(1.0)
    volumes = {
        (broker.id, volume.path): volume.size_bytes
        for broker in any_kafka.brokers.values()
        for volume in broker.volumes
    }
    assert volumes == {key: each["total_bytes"] for key, each in (await daemon.volumes()).items()}
    last = max(any_kafka.brokers)
    await any_kafka.occupy(last, 0, FULL_BYTES)
    document = await daemon.decides(0.0)
    (violation,) = document["violations"]
    total, available = await any_kafka.usage(last, 0)
    assert {
        "broker_id": last,
        "log_dir": any_kafka.brokers[last].volumes[0].path,
        "total_bytes": total,
        "available_bytes": available,
    }.items() <= violation.items()
    await any_kafka.occupy(last, 0, 0)
    await daemon.decides(1.0)
    assert 0.0 == sum(
        count
        for (name, _), count in (await daemon.metrics()).samples.items()
        if name == "kafka_throttle_poll_failures_total"
    )


async def test_the_newest_versions_that_both_know_are_spoken(any_kafka: Cluster) -> None:
    """Log dirs v4 before Kafka 4.3 and v5 since; fenced brokers (v2) only since 4.0."""
    broker = any_kafka.brokers[0]
    host, _, port = broker.address.rpartition(":")
    endpoint = HostPort(host, int(port))
    security = load_security(KafkaAdmin(bootstrap_servers=(endpoint,)), time.monotonic)
    connection = await dial(endpoint, security, "tests", time.monotonic)
    try:
        answers = [await connection.call(each) for each in (DescribeLogDirs(), DescribeCluster())]
    finally:
        await connection.close()
    assert VERSIONS_OF[any_kafka.version] == tuple(each.API_VERSION for each in answers)


@pytest.mark.parametrize("version", ["4.4.0"])
async def test_the_next_version_answers_check(version: str) -> None:
    """Its volume is seen, and within the limit."""
    async with Cluster(
        environ=os.environ, version=version, brokers=1, volumes=1, volume_bytes=64 << 20
    ) as cluster:
        done = await command("check", "--json", environ=settings(cluster.bootstrap))
        assert (0, "") == (done.code, done.err)
        (volume,) = done.document()["volumes"]
        assert (64 << 20, False) == (volume["total_bytes"], volume["limit_violated"])
