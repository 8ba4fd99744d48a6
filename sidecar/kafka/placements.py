"""Who leads partitions, and which of them a reassignment adds to a broker.

The sidecar sends that broker two requests: Metadata (key 3) v12 for a few topics by name, and
ListPartitionReassignments (key 46) v0 for all reassignments (KIP-455, Kafka 2.4). The first needs
DESCRIBE on each topic, the second DESCRIBE on the cluster, like polls. If one of them fails, the
result has what the other returned.

Example: broker 2 is asked for "orders", which has one partition, led by broker 1, and a
reassignment adds broker 2 to it: the leaders are {("orders", 0): 1}, and ("orders", 0) arrives.
"""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import replace

from aiokafka.protocol.api import Response
from aiokafka.protocol.types import CompactArray, Int32

from sidecar.kafka.client.each_broker import Query, query_each
from sidecar.kafka.client.messages import (
    ERROR,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    array,
    message,
)
from sidecar.kafka.fed_brokers import MetadataOfTopics
from sidecar.settings import KafkaAdmin
from sidecar.throttle.growth import Partition, Placement
from sidecar.volumes import Failure

LIST_PARTITION_REASSIGNMENTS_KEY = 46

_TIMEOUT_MS = 5000

_ReassignmentsRequest, _ = message(
    "ListPartitionReassignments",
    LIST_PARTITION_REASSIGNMENTS_KEY,
    0,
    request=(
        ("timeout_ms", Int32),
        array("topics", ("name", STRING), ("partition_indexes", CompactArray(Int32))),
    ),
    response=(
        THROTTLE_TIME,
        *ERROR,
        array(
            "topics",
            ("name", STRING),
            array(
                "partitions",
                ("partition_index", Int32),
                ("replicas", CompactArray(Int32)),
                ("adding_replicas", CompactArray(Int32)),
                ("removing_replicas", CompactArray(Int32)),
            ),
        ),
    ),
)


class AllReassignments(AdminRequest, versions=(_ReassignmentsRequest,)):
    """Requests all reassignments that are in progress: null in place of topics."""

    NEEDED = "v0 (Kafka 2.4)"
    values = (_TIMEOUT_MS, None)


async def placement(
    admin: KafkaAdmin, broker_id: int, timeout_s: float, topics: Sequence[str]
) -> Placement:
    """Reads where partitions are.

    Args:
        admin: how to reach the brokers.
        broker_id: the broker to ask, and the one at which replicas arrive.
        timeout_s: the time for both requests, seconds.
        topics: the topics whose leaders are read.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    asked = [broker_id]
    all_moves = Query(AllReassignments(), "ListPartitionReassignments", "Describe")
    metadata = Query(MetadataOfTopics(topics), "Metadata", "Describe")
    moved, led = await asyncio.gather(
        query_each(admin, asked, lambda _: all_moves, _arriving, timeout_s),
        query_each(admin, asked, lambda _: metadata, _leaders, timeout_s),
    )
    arriving = moved if isinstance(moved, Failure) else moved[broker_id]
    known = None if isinstance(arriving, Failure) else arriving
    leaders = led if isinstance(led, Failure) else led[broker_id]
    return replace(Placement() if isinstance(leaders, Failure) else leaders, arriving=known)


def _leaders(_query: Query, response: Response, _broker_id: int) -> Placement | Failure:
    leaders: dict[Partition, int] = {}
    topic_ids: dict[str, str] = {}
    for error_code, name, topic_id, _internal, partitions, *_ in response.topics or ():
        if not error_code and name is not None:
            leaders |= {(name, index): leader for index, leader, *_ in partitions}
            # As Kafka's Uuid writes it.
            topic_ids[name] = base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
    return Placement(leaders, None, topic_ids)


def _arriving(
    query: Query, response: Response, broker_id: int
) -> dict[Partition, tuple[int, ...]] | Failure:
    if response.error_code:
        return query.refused(broker_id, response.error_code, response.error_message)
    return {
        (name, index): tuple(each for each in replicas or () if each not in (removing or ()))
        for name, partitions, _ in response.topics or ()
        for index, replicas, adding, removing, _ in partitions or ()
        if broker_id in (adding or ())
    }
