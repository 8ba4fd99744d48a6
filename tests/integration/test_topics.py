"""Topics on real controllers: made, grown and deleted, within a mutation quota and over it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kafka_lab.cluster import Cluster
from sidecar.kafka.topic_changes import create_partitions, create_topics, delete_topics
from sidecar.kafka.topic_messages import Growth, NewTopic
from sidecar.kafka.topic_results import Outcome, TopicResult
from sidecar.quotas.entities import Entity
from sidecar.settings import KafkaAdmin
from tests.support.client_quotas import admin_of, under

BURST = 11
"""Of a quota of 1 a second: a broker's windows are 11 of 1 s."""


@asynccontextmanager
async def one_a_second(cluster: Cluster, client_id: str) -> AsyncIterator[KafkaAdmin]:
    """A controller_mutation_rate of 1 for the client-id while it lasts.

    A controller keeps a client-id's bucket, so each test has one of its own.
    """
    async with under(cluster, {Entity(client_id=client_id): {"controller_mutation_rate": 1.0}}):
        yield admin_of(cluster, client_id)


def new(count: int) -> list[NewTopic]:
    return [NewTopic(f"t{number}", 1, 1) for number in range(count)]


def outcomes(results: tuple[TopicResult, ...]) -> Counter[Outcome]:
    return Counter(result.outcome for result in results)


async def test_over_the_quota_it_waits_and_goes_on(node: Cluster) -> None:
    """It is the module's example: 12 come at once, the others one a second; all are created."""
    loop = asyncio.get_running_loop()
    async with one_a_second(node, "patient") as admin:
        began = loop.time()
        results = await create_topics(admin, new(16), timeout_s=60.0)
        took_s = loop.time() - began
    assert {Outcome.DONE: 16} == outcomes(results)
    # 16 - 12 have to wait for a token each.
    assert took_s >= 16 - (BURST + 1) - 1.0


async def test_growing_and_deleting_are_throttled_too(node: Cluster) -> None:
    """Each has its own message, and the partitions added or deleted are what counts."""
    await create_topics(admin_of(node, "grower"), new(3))
    async with one_a_second(node, "grower") as admin:
        grown = await create_partitions(
            admin,
            [Growth("t0", 21), Growth("t1", 3), Growth("t2", 3)],
            retry_on_quota_violation=False,
        )
        assert {Outcome.DONE: 1, Outcome.THROTTLED: 2} == outcomes(grown)
        # 20 partitions were added to a bucket of 11: 9 s. The connection that was muted is ours.
        assert all(0 < result.throttle_time_ms <= 9000 for result in grown[1:])
        deleted = await delete_topics(admin, ["t0", "t1"], retry_on_quota_violation=False)
        assert {Outcome.THROTTLED: 2} == outcomes(deleted)
