"""Who leads partitions and what a reassignment adds, by the answers of a fake broker."""

import uuid
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from sidecar.kafka.placements import LIST_PARTITION_REASSIGNMENTS_KEY, placement, receiving
from sidecar.kafka.producer_messages import METADATA_KEY
from sidecar.throttle.growth import Placement
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.kio_codec import kio_answer
from tests.sidecar.kafka.servers import PATIENCE_S, admin, bootstrap
from tests.support.fake_broker import FakeCluster, FakeLogDir
from tests.support.fake_topics import FakePartition, metadata_answer, metadata_topic
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]

TOPIC_ID = uuid.UUID(bytes=bytes(range(250, 256)) + bytes(10))


def answering(
    error: ErrorCode = ErrorCode.none, hidden: ErrorCode = ErrorCode.none
) -> tuple[FakeCluster, list[Any]]:
    """Three brokers, and the requests that they got.

    Partition 0 of "orders" is led by broker 2, and its reassignment replaces broker 0 by broker 1.
    """
    asked: list[Any] = []

    def metadata(_: object, request: Any) -> bytes:
        asked.append([topic.name for topic in request.decoded.topics])
        assert not request.decoded.allow_auto_topic_creation
        partitions = [FakePartition(2, 3, (2, 0, 1))]
        return metadata_answer(
            metadata_topic("orders", partitions, error=hidden, topic_id=TOPIC_ID)
        )

    def reassignments(_: object, request: Any) -> bytes:
        asked.append(request.decoded.topics)
        moved = {
            "partition_index": 0,
            "replicas": (2, 1, 0),
            "adding_replicas": (1,),
            "removing_replicas": (0,),
        }
        fields = {
            "error_code": error,
            "error_message": None,
            "topics": [{"name": "orders", "partitions": [moved]}],
        }
        return kio_answer(LIST_PARTITION_REASSIGNMENTS_KEY, 0, **fields)

    cluster = FakeCluster().add(3, volumes=1).answer(METADATA_KEY, 12, metadata)
    return cluster.answer(LIST_PARTITION_REASSIGNMENTS_KEY, 0, reassignments), asked


ID = "-vv8_f7_AAAAAAAAAAAAAA"
"""As Kafka's Uuid writes it."""
READ = Placement({("orders", 0): 2}, None, {"orders": ID}, replicas={"orders": (1, 3)})
"""What Metadata says."""


async def test_leaders_and_what_arrives() -> None:
    """Named topics are asked for, and all reassignments; replicas arrive at the added broker only.

    A partition that arrives has the brokers that stay when the reassignment is complete.
    """
    cluster, asked = answering()
    async with cluster:
        at_1 = await placement(admin(bootstrap(cluster)), 1, PATIENCE_S, ["orders"])
        at_2 = await placement(admin(bootstrap(cluster)), 2, PATIENCE_S, ["orders"])
    assert replace(READ, arriving={("orders", 0): (2, 1)}) == at_1
    assert replace(READ, arriving={}) == at_2
    assert None in asked
    assert ["orders"] in asked


async def test_the_sizes_of_what_arrives() -> None:
    """Leaders alone are asked, and only where something arrives."""
    cluster, asked = answering()
    for broker_id, size in enumerate((50, 60, 700)):
        cluster.brokers[broker_id].has(FakeLogDir("/d", sizes=(("orders", size),)))
    async with cluster:
        at_1, at_2 = [
            await placement(admin(bootstrap(cluster)), at, PATIENCE_S, []) for at in (1, 2)
        ]
    assert ({("orders", 0): 700}, {}) == (at_1.sizes, at_2.sizes)
    assert [None, ["orders"], None] == asked


async def test_where_replicas_arrive() -> None:
    """Any broker tells it of all, to those who may ask."""
    denied = ErrorCode.cluster_authorization_failed
    for error, expected in ((ErrorCode.none, frozenset({1})), (denied, FailureKind.AUTHORIZATION)):
        cluster, _ = answering(error)
        async with cluster:
            found = await receiving(admin(bootstrap(cluster)), 2, PATIENCE_S)
        assert expected == (found.kind if isinstance(found, Failure) else found)


async def test_what_may_not_be_read_is_not_known() -> None:
    """Each request can fail without the other."""
    denied = ErrorCode.cluster_authorization_failed
    for errors, expected in (
        ((denied, ErrorCode.none), READ),
        (
            (ErrorCode.none, ErrorCode.topic_authorization_failed),
            Placement({}, {("orders", 0): (2, 1)}),
        ),
    ):
        cluster, _ = answering(*errors)
        async with cluster:
            found = await placement(admin(bootstrap(cluster)), 1, PATIENCE_S, ["orders"])
        assert expected == found
