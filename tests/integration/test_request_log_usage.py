"""What real brokers' and controllers' request logs say, followed while they are written."""

from collections.abc import Mapping, Sequence

from sidecar.demo.cluster import Cluster
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.topic_changes import create_partitions, create_topics, delete_topics
from sidecar.kafka.topic_messages import Growth, NewTopic
from sidecar.kafka.topic_results import Outcome, TopicResult
from sidecar.quotas.entities import Entity
from sidecar.requestlog.request_detail import QuotaChange, QuotaChanges, detail
from tests.support.request_logs import admin_of, controllers_of, logged

RECORD = b"x" * 10_000


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


async def _alter(
    cluster: Cluster, entity: Mapping[str, str | None], bytes_per_s: float | None
) -> None:
    quotas = {"producer_byte_rate": bytes_per_s}
    assert await alter_client_quotas(admin_of(cluster), [(entity, quotas)]) is None


def _all_well(results: Sequence[TopicResult]) -> None:
    assert {Outcome.DONE} == {result.outcome for result in results}, results
