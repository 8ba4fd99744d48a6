"""What real brokers' and controllers' request logs say, followed while they are written."""

from collections.abc import Sequence

from sidecar.demo.cluster import Cluster
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.topic_changes import create_partitions, create_topics, delete_topics
from sidecar.kafka.topic_messages import Growth, NewTopic
from sidecar.kafka.topic_results import Outcome, TopicResult
from sidecar.quotas.entities import Entity
from sidecar.requestlog.request_detail import QuotaChange, QuotaChanges, detail
from tests.support.client_quotas import admin_of
from tests.support.request_logs import controllers_of, logged

SOMEONE = {"user": "someone", "client-id": None}
VALUES = (1e6, None)


async def test_mutations_and_quotas_are_in_the_controllers_log(kafka: Cluster) -> None:
    """Created, grown and deleted partitions are counted once, and a quota's change is told."""
    admin = admin_of(kafka)
    async with logged(kafka, await controllers_of(kafka)) as logs:
        topics = [NewTopic("three", 3, 1), NewTopic("default", -1, 1)]
        _all_well(await create_topics(admin, topics))
        _all_well(await create_partitions(admin, [Growth("three", 5)]))
        _all_well(await delete_topics(admin, ["three", "default"]))
        for value in VALUES:
            quota = (SOMEONE, {"producer_byte_rate": value})
            assert await alter_client_quotas(admin, [quota]) is None
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
    entity = Entity.of(SOMEONE)
    assert [QuotaChange(entity, "producer_byte_rate", value, 0) for value in VALUES] == changes


def _all_well(results: Sequence[TopicResult]) -> None:
    assert {Outcome.DONE} == {result.outcome for result in results}, results
