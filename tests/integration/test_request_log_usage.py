"""What real brokers' and controllers' request logs say, followed while they are written."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Producer

from sidecar.demo.cluster import Cluster
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.topic_changes import create_partitions, create_topics, delete_topics
from sidecar.kafka.topic_messages import Growth, NewTopic
from sidecar.kafka.topic_results import Outcome, TopicResult
from sidecar.quotas.entities import Entity
from sidecar.requestlog.allocated_ids import producer_ids
from sidecar.requestlog.request_detail import QuotaChange, QuotaChanges, detail
from sidecar.requestlog.wire import Produce
from tests.integration.request_logs import admin_of, controllers_of, logged

RECORD = b"x" * 10_000


async def test_producer_ids_bytes_and_throttle_times(any_kafka: Cluster) -> None:
    """Every version's lines are read; each producer's id is told, and what it sent and waited."""
    throttled: list[float] = []
    producers: dict[str, dict[str, Any]] = {
        "first": {"enable.idempotence": True},
        "second": {"enable.idempotence": True},
        "hasty": {"acks": 0},
        "slow": {"acks": 1, "throttle_cb": lambda event: throttled.append(event.throttle_time)},
    }
    quota = {"client-id": "slow"}
    # Over a window of 10 s at least, three records are over it and two are not.
    await _alter(any_kafka, quota, 2_500.0)
    _all_well(await create_topics(admin_of(any_kafka), [NewTopic("read-me", 1, 1)]))
    try:
        async with logged(any_kafka) as logs:
            for name, settings in producers.items():
                await asyncio.to_thread(_produce, any_kafka.bootstrap, name, settings)
    finally:
        await _alter(any_kafka, quota, None)
        _all_well(await delete_topics(admin_of(any_kafka), ["read-me"]))
    made = {event.client_id: event.producer_id for event in producer_ids(logs.all_lines)}
    assert {"first", "second"} == set(made)
    assert 2 == len(set(made.values()))

    for name in producers:
        sent = sum(
            said.records_bytes
            for line in logs.all_lines
            if line.client_id == name and isinstance(said := detail(line), Produce)
        )
        assert 3 * len(RECORD) < sent < 3 * len(RECORD) + 1000, name
    clients = logs.usage.clients()
    assert clients["ANONYMOUS", "first"].exempt_ms == 0 < clients["ANONYMOUS", "first"].request_ms
    assert clients["ANONYMOUS", "hasty"].exempt_ms > 0
    slow = clients["ANONYMOUS", "slow"]
    assert slow.longest_throttle_ms > 0
    assert round(1000 * max(throttled)) == slow.longest_throttle_ms


async def test_mutations_and_quotas_are_in_the_controllers_log(kafka: Cluster) -> None:
    """Created, grown and deleted partitions are counted once, and a quota's change is told."""
    admin = admin_of(kafka)
    async with logged(kafka, await controllers_of(kafka)) as logs:
        topics = [NewTopic("three", 3, 1), NewTopic("default", -1, 1)]
        _all_well(await create_topics(admin, topics))
        _all_well(await create_partitions(admin, [Growth("three", 5)]))
        _all_well(await delete_topics(admin, ["three", "default"]))
        await _alter(kafka, {"user": "someone", "client-id": None}, 1e6)
        await _alter(kafka, {"user": "someone", "client-id": None}, None)
    sums = logs.usage.clients()["ANONYMOUS", "throttle-sidecar"]
    created, grown = 3 + 1, 2
    assert 2 * (created + grown) == sums.mutations
    assert (0, 0) == (sums.mutations_refused, sums.mutations_unknown)
    changes = [
        change
        for line in logs.all_lines
        if line.is_forwarded and isinstance(said := detail(line), QuotaChanges)
        for change in said.changes
    ]
    entity = Entity.of({"user": "someone", "client-id": None})
    expected = [QuotaChange(entity, "producer_byte_rate", value, 0) for value in (1e6, None)]
    assert expected == changes


def _produce(bootstrap: str, name: str, settings: Mapping[str, Any]) -> None:
    """Three records, each a batch of its own."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": name, "linger.ms": 0, **settings}
    )
    for _ in range(3):
        producer.produce("read-me", RECORD)
        assert 0 == producer.flush(30)
    # What a throttled producer was told is still to come.
    producer.poll(0.5)


async def _alter(
    cluster: Cluster, entity: Mapping[str, str | None], bytes_per_s: float | None
) -> None:
    quotas = {"producer_byte_rate": bytes_per_s}
    assert await alter_client_quotas(admin_of(cluster), [(entity, quotas)]) is None


def _all_well(results: Sequence[TopicResult]) -> None:
    assert {Outcome.DONE} == {result.outcome for result in results}, results
