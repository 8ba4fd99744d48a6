"""Which brokers a broker feeds: by what lies on it, who leads that, and where its replicas are."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType

from sidecar.kafka.fed_brokers import _Response, fed_brokers
from sidecar.kafka.producer_messages import METADATA_KEY
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.servers import PATIENCE_S, admin, bootstrap, failed
from tests.support.examples import DEAR
from tests.support.fake_broker import FakeBroker, FakeCluster, FakeLogDir, FakeRequest, encode
from tests.support.fake_topics import OK, FakePartition, metadata_answer, metadata_topic
from tests.support.virtual_time import VIRTUAL_TIME

METADATA: Any = load_payload_module(METADATA_KEY, 12, EntityType.response)

Partitions = Sequence[tuple[int, Sequence[int]]]
"""Of each the leader and the replicas."""

TOPICS: Mapping[str, Partitions] = {
    "orders": [(1, [1, 2]), (2, [2, 3])],
    "clicks": [(0, [0, 1])],
    "__consumer_offsets": [(1, [1, 0])],
}

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]


def leading(
    topics: Mapping[str, Partitions], errors: Mapping[str, ErrorCode] | None = None
) -> tuple[FakeCluster, list[list[str]]]:
    """Four brokers, on the second of which all these topics lie; which were asked for."""
    asked: list[list[str]] = []

    def answer(_: FakeBroker, request: FakeRequest) -> bytes:
        names = [each.name for each in request.decoded.topics]
        assert not request.decoded.allow_auto_topic_creation
        asked.append(names)
        described = (
            metadata_topic(
                name,
                [FakePartition(leader, 3, tuple(replicas)) for leader, replicas in topics[name]],
                error=(errors or {}).get(name, OK),
            )
            for name in names
        )
        return metadata_answer(*described)

    cluster = FakeCluster().add(4, volumes=1).answer(METADATA_KEY, 12, answer)
    cluster.brokers[1].has(FakeLogDir("/a", topics=tuple(topics)))
    return cluster, asked


async def test_replicas_of_what_it_leads() -> None:
    """Not of what others lead, nor of internal topics, which no throttle slows."""
    cluster, asked = leading(TOPICS)
    async with cluster:
        assert frozenset({1, 2}) == await fed_brokers(admin(bootstrap(cluster)), 1, PATIENCE_S)
    assert [sorted(TOPICS)] == asked


async def test_an_empty_broker_feeds_nobody() -> None:
    """Nothing more is asked."""
    cluster, asked = leading(TOPICS)
    async with cluster:
        assert frozenset() == await fed_brokers(admin(bootstrap(cluster)), 2, PATIENCE_S)
    assert [] == asked


async def test_a_topic_deleted_meanwhile() -> None:
    """It is led by nobody."""
    gone = {"orders": ErrorCode.unknown_topic_or_partition}
    cluster, _ = leading({**TOPICS, "orders": []}, gone)
    async with cluster:
        assert frozenset() == await fed_brokers(admin(bootstrap(cluster)), 1, PATIENCE_S)


async def test_a_topic_that_may_not_be_described() -> None:
    """Then it is not known whom the broker feeds, whatever is known of its other topics."""
    hidden = {"clicks": ErrorCode.topic_authorization_failed}
    cluster, _ = leading({**TOPICS, "clicks": []}, hidden)
    async with cluster:
        found = await fed_brokers(admin(bootstrap(cluster)), 1, PATIENCE_S)
    message = failed(found, FailureKind.AUTHORIZATION)
    assert message.startswith("broker 1: Metadata of clicks returned error 29")


async def test_what_lies_there_can_not_be_read() -> None:
    """It is a failure, and nothing more is asked."""
    cluster, asked = leading(TOPICS)
    cluster.brokers[1].log_dirs_error = ErrorCode.cluster_authorization_failed
    async with cluster:
        found = await fed_brokers(admin(bootstrap(cluster)), 1, PATIENCE_S)
        gone = await fed_brokers(admin(bootstrap(cluster)), 7, PATIENCE_S)
    message = failed(found, FailureKind.AUTHORIZATION)
    assert message.startswith("broker 1: DescribeLogDirs returned error 31")
    assert "it needs Describe on the Kafka cluster resource" in message
    assert Failure(FailureKind.CONNECT, "broker 7 is not a known active broker") == gone
    assert [] == asked


@pytest.mark.slow
@DEAR
@given(entity=st.from_type(METADATA.MetadataResponse))
def test_whatever_a_broker_may_say_is_read(entity: Any) -> None:
    """Indexes, leaders, replicas and leader epochs, with anything else beside."""
    decoded = _Response.decode(encode(entity))
    for topic, ours in zip(entity.topics, decoded.topics, strict=True):
        assert (topic.error_code, topic.name, topic.is_internal) == (ours[0], ours[1], ours[3])
        assert ours[4] == [
            (part.partition_index, part.leader_id, tuple(part.replica_nodes), part.leader_epoch)
            for part in topic.partitions
        ]
