"""Kafka's own producer as a witness: what it says it sent is what is there."""

import asyncio

from confluent_kafka import Consumer

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from tests.support.java_traffic import JavaTraffic
from tests.support.waiting import seen


def _values(bootstrap: str, topic: str) -> list[bytes]:
    """All that a consumer finds; it is over when 2 s bring nothing."""
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_uncommitted",
    }
    found = []
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        wait_s = 20.0
        while (message := consumer.poll(wait_s)) is not None:
            assert message.error() is None
            found.append(message.value() or b"")
            wait_s = 2.0
    return found


async def test_it_sends_on_all_connections_to_all_partitions(node: Cluster) -> None:
    """What it says was acknowledged is there, of each connection."""
    async with Admin(node.bootstrap) as admin:
        await admin.create_topic("java", assignment=[[0], [0]])
    async with JavaTraffic(
        node.bootstrap,
        "java",
        bytes_per_s=1e6,
        partitions=(0, 1),
        connections=3,
        config={"acks": 1},
    ) as traffic:
        await seen("an acknowledgement", lambda: traffic.acknowledged_bytes)
        count = len(traffic.samples)
        await seen("a sample", lambda: len(traffic.samples) > count)
    assert (0, None, 0.0) == (
        traffic.failed_records,
        traffic.last_failure,
        traffic.longest_throttle_s,
    )
    found = await asyncio.to_thread(_values, node.bootstrap, "java")
    assert traffic.acknowledged_bytes <= sum(map(len, found))
    assert {b"0", b"1", b"2"} == {value.split(b"\0")[0].split()[0] for value in found}
