"""Kafka's own producer as a witness: what it says it sent is what is there."""

import asyncio
from collections import Counter, defaultdict

import pytest
from confluent_kafka import Consumer

from sidecar.demo.admin import Admin
from sidecar.demo.cluster import Cluster
from sidecar.errors import ClusterError
from tests.support.java_traffic import JavaTraffic
from tests.support.waiting import seen


def _values(bootstrap: str, topic: str, isolation: str) -> list[bytes]:
    """All that a consumer of this isolation level finds; it is over when 2 s bring nothing."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-{isolation}",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
        }
    )
    consumer.subscribe([topic])
    found = []
    wait_s = 20.0
    try:
        while (message := consumer.poll(wait_s)) is not None:
            assert message.error() is None
            found.append(message.value() or b"")
            wait_s = 2.0
    finally:
        consumer.close()
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
    found = await asyncio.to_thread(_values, node.bootstrap, "java", "read_uncommitted")
    assert traffic.acknowledged_bytes <= sum(map(len, found))
    sent = Counter(value.split(b"\0")[0].split()[0] for value in found)
    assert {b"0", b"1", b"2"} == set(sent)


async def test_a_transaction_is_there_whole_or_not_at_all(node: Cluster) -> None:
    """Every committed record is found; the one that was open when it ended is not."""
    async with Admin(node.bootstrap) as admin:
        await admin.create_topic("whole", assignment=[[0], [0]])
    config = {"transactional.id": "t", "transaction": 200, "transaction.timeout.ms": 5000}
    # One alone: another's open transaction would hide what is committed behind it.
    async with JavaTraffic(
        node.bootstrap, "whole", bytes_per_s=5e5, partitions=(0, 1), config=config
    ) as traffic:
        await seen("commits", lambda: traffic.committed_records >= 200)
    assert (0, None) == (traffic.failed_records, traffic.last_failure)
    found = await asyncio.to_thread(_values, node.bootstrap, "whole", "read_committed")
    transactions = defaultdict(set)
    for value in found:
        _, transaction, record = map(int, value.split(b"\0")[0].split())
        transactions[transaction].add(record)
    assert all(set(range(len(records))) == records for records in transactions.values())
    assert traffic.committed_records <= len(found)


async def test_a_wrong_configuration_is_reported() -> None:
    """With what Java said of it."""
    traffic = JavaTraffic("127.0.0.1:1", "t", bytes_per_s=1.0, config={"acks": "some"})
    with pytest.raises(ClusterError, match=r"(?s)did not start.*acks"):
        async with traffic:
            pass
