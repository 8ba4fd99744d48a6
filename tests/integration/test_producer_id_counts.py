"""What the benchmark of producer ids reads of real brokers is what they remember."""

import asyncio
from functools import partial
from operator import eq

from confluent_kafka import Producer

from benchmarks.producer_ids.scene import id_counts
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from tests.support.waiting import seen


def produce(bootstrap: str, topic: str, records: int) -> None:
    """Produce by one idempotent producer."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for _ in range(records):
        producer.produce(topic, b"x")
        assert 0 == producer.flush(10.0)


async def test_each_producer_that_writes_is_one_id_more(node: Cluster) -> None:
    """It is so however many records it writes."""
    async with Admin(node.bootstrap) as admin:
        await admin.create_topic("counted", assignment=[[0]])
    async with id_counts(node) as counts:

        def since() -> float:
            samples = list(counts)
            return samples[-1][1] - samples[0][1]

        for number in (1, 2):
            await asyncio.to_thread(produce, node.bootstrap, "counted", 3)
            await seen(f"{number} ids more", since, partial(eq, number))
