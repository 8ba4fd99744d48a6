"""Topics on real controllers: made, grown and deleted, within a mutation quota and over it."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sidecar.demo.admin import Admin
from sidecar.demo.cluster import Cluster
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.topic_changes import create_partitions, create_topics, delete_topics
from sidecar.kafka.topic_messages import Growth, NewTopic
from sidecar.kafka.topic_results import Outcome, TopicResult
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from tests.integration.daemon import command, settings

BURST = 11
"""Of a quota of 1 a second: a broker's windows are 11 of 1 s."""

HOLDS_NOBODY = "3.3.2"
"""Its KRaft controllers have no mutation quotas; only ZooKeeper's brokers had."""


def admin_of(cluster: Cluster, client_id: str) -> KafkaAdmin:
    """A controller keeps a client-id's bucket, so each test has one of its own."""
    return KafkaAdmin(bootstrap_servers=addresses(cluster.bootstrap), client_id=client_id)


@asynccontextmanager
async def one_a_second(admin: KafkaAdmin) -> AsyncIterator[None]:
    """A controller_mutation_rate of 1 for the client-id while it lasts."""
    etl, key = {"client-id": admin.client_id}, "controller_mutation_rate"
    assert await alter_client_quotas(admin, [(etl, {key: 1.0})]) is None
    try:
        # It takes a moment until the controller's own quota manager has it.
        await asyncio.sleep(1.0)
        yield
    finally:
        assert await alter_client_quotas(admin, [(etl, {key: None})]) is None


def new(count: int) -> list[NewTopic]:
    return [NewTopic(f"t{number}", 1, 1) for number in range(count)]


async def own_topics(admin: Admin) -> frozenset[str]:
    """Without Kafka's: the cluster has had consumers and transactions of other tests."""
    return frozenset(name for name in await admin.topics() if not name.startswith("__"))


def outcomes(results: tuple[TopicResult, ...]) -> Counter[Outcome]:
    return Counter(result.outcome for result in results)


async def test_topics_are_created_grown_and_deleted(any_kafka: Cluster) -> None:
    """On each version; a topic that is there already, one that is not, and too few partitions."""
    admin = admin_of(any_kafka, "plain")
    created = await create_topics(admin, [*new(2), NewTopic("d", configs={"retention.ms": "9"})])
    assert [Outcome.DONE] * 3 == [result.outcome for result in created]

    (again, other) = await create_topics(admin, [NewTopic("t0"), NewTopic("t2")])
    assert (Outcome.FAILED, Outcome.DONE) == (again.outcome, other.outcome)
    assert again.message.startswith("error 36 (TOPIC_ALREADY_EXISTS)")

    grown = await create_partitions(admin, [Growth("t0", 3), Growth("t1", 1), Growth("no", 2)])
    assert (Outcome.DONE, Outcome.FAILED, Outcome.FAILED) == tuple(r.outcome for r in grown)
    assert grown[1].message.startswith("error 37 (INVALID_PARTITIONS)")
    assert grown[2].message.startswith("error 3 (")

    (possible,) = await create_topics(admin, [NewTopic("only-asked")], validate_only=True)
    assert Outcome.DONE is possible.outcome

    deleted = await delete_topics(admin, ["t0", "t1", "no"])
    assert (Outcome.DONE, Outcome.DONE, Outcome.FAILED) == tuple(r.outcome for r in deleted)
    async with Admin(any_kafka.bootstrap) as other_admin:
        assert {"t2", "d"} == await own_topics(other_admin)


async def test_over_the_quota_it_waits_and_goes_on(any_kafka: Cluster) -> None:
    """The module's example: 12 at once, the others one a second; 3.3's controllers hold nobody."""
    loop = asyncio.get_running_loop()
    admin = admin_of(any_kafka, "patient")
    async with one_a_second(admin):
        started = loop.time()
        reported: list[float] = []
        results = await create_topics(
            admin,
            new(16),
            timeout_s=30.0,
            on_result=lambda _: reported.append(loop.time() - started),
        )
    assert {Outcome.DONE: 16} == outcomes(results)
    at_once = [when for when in reported if when < 0.9]
    if any_kafka.version == HOLDS_NOBODY:
        assert 16 == len(at_once)
        return
    assert BURST + 1 <= len(at_once) <= BURST + 2
    # 16 - 12 have to wait for a token each, and nothing more is waited for.
    assert 3.0 <= reported[-1] <= 6.0


async def test_it_can_be_told_not_to_retry(any_kafka: Cluster) -> None:
    """The controller's wait is told for each topic that it rejected; 3.3's rejects none."""
    admin = admin_of(any_kafka, "impatient")
    async with one_a_second(admin):
        results = await create_topics(admin, new(20), retry_on_quota_violation=False)
    if any_kafka.version == HOLDS_NOBODY:
        assert {Outcome.DONE: 20} == outcomes(results)
        return
    assert {Outcome.DONE: 12, Outcome.THROTTLED: 8} == outcomes(results)
    waits = {result.throttle_time_ms for result in results[12:]}
    assert all(900 <= wait_ms <= 1000 for wait_ms in waits), waits


async def test_growing_and_deleting_are_held_too(kafka: Cluster) -> None:
    """Each has its own message, and the partitions added or deleted are what counts."""
    admin = admin_of(kafka, "grower")
    await create_topics(admin, new(3))
    async with one_a_second(admin):
        grown = await create_partitions(
            admin,
            [Growth("t0", 21), Growth("t1", 3), Growth("t2", 3)],
            retry_on_quota_violation=False,
        )
        assert {Outcome.DONE: 1, Outcome.THROTTLED: 2} == outcomes(grown)
        # 20 partitions were added to a bucket of 11: 9 s. The connection that was muted is ours.
        assert all(8000 <= result.throttle_time_ms <= 9000 for result in grown[1:])
        deleted = await delete_topics(admin, ["t0", "t1"], retry_on_quota_violation=False)
        assert {Outcome.THROTTLED: 2} == outcomes(deleted)


async def test_the_command_creates_and_deletes(kafka: Cluster) -> None:
    """120 topics in three requests; the second time all are there already."""
    environ = settings(kafka.bootstrap)
    names = [f"c{number}" for number in range(120)]
    created = await command("topics", "create", *names, "--partitions", "2", environ=environ)
    assert (0, "120 of 120 topics created\n", "") == (created.code, created.out, created.err)

    again = await command("topics", "create", *names[:2], "--json", environ=environ)
    assert 1 == again.code
    assert ["failed", "failed"] == [result["outcome"] for result in json.loads(again.out)]

    deleted = await command("topics", "delete", *names, "--yes", environ=environ)
    assert (0, "120 of 120 topics deleted\n") == (deleted.code, deleted.out)
    async with Admin(kafka.bootstrap) as other_admin:
        assert frozenset() == await own_topics(other_admin)
