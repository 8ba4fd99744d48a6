"""Which brokers' volumes a broker feeds: those that have replicas of what it leads.

The broker itself reports what lies in its log dirs (DescribeLogDirs with all topics), and of these
topics who leads them and where their replicas are (Metadata, key 3, v12). The first needs DESCRIBE
on the cluster, as polls do, the second DESCRIBE on each of the topics: where that is missing for
one of them, nothing is known. Both answers grow with the broker's topics, so they come over a
connection of their own.

Example: broker 1 leads "orders" 0, which brokers 2 and 3 replicate, and follows "clicks" 0: it
feeds brokers 1, 2 and 3.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Final

from aiokafka.protocol.api import Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    Int16,
    Int32,
    TaggedFields,
    UnsignedVarInt32,
)

from sidecar.kafka.client.each_broker import Query, query_each
from sidecar.kafka.client.failures import error_name
from sidecar.kafka.client.messages import (
    BROKER,
    NO_ID,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    Uuid,
    array,
    message,
)
from sidecar.kafka.largest_topics import topics_of
from sidecar.kafka.producer_messages import METADATA_KEY
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

_DELETED: Final = 3
"""UNKNOWN_TOPIC_OR_PARTITION: since its log dir was read."""

Led = frozenset[tuple[int, int]]
"""Of a topic's partitions: leader and a broker that has a replica, each pair once."""


class _Led:
    """An array of partitions, of which leaders and replicas are retained."""

    def decode(self, data: BytesIO) -> Led:
        """Each pair once.

        Raises:
            ValueError: it ends too early.
        """
        found: set[tuple[int, int]] = set()
        for _ in range(UnsignedVarInt32.decode(data) - 1):
            Int16.decode(data)
            Int32.decode(data)
            leader = Int32.decode(data)
            Int32.decode(data)
            replicas, _in_sync, _offline = (CompactArray(Int32).decode(data) for _ in range(3))
            found.update((leader, replica) for replica in replicas or ())
            TaggedFields.decode(data)
        return frozenset(found)


_Request, _Response = message(
    "MetadataOfTopics",
    METADATA_KEY,
    12,
    request=(
        array("topics", ("topic_id", Uuid), ("name", STRING)),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
    ),
    response=(
        THROTTLE_TIME,
        array("brokers", *BROKER),
        ("cluster_id", STRING),
        ("controller_id", Int32),
        array(
            "topics",
            ("error_code", Int16),
            ("name", STRING),
            ("topic_id", Uuid),
            ("is_internal", Boolean),
            ("led", _Led()),
            ("topic_authorized_operations", Int32),
        ),
    ),
)


class MetadataOfTopics(AdminRequest, versions=(_Request,)):
    """Metadata of topics by their names."""

    NEEDED = "v12 (Kafka 3.1)"

    def __init__(self, topics: Sequence[str]) -> None:
        # One that was deleted meanwhile is not created again.
        self.values = ([(NO_ID, topic, {}) for topic in topics], False, False)


async def fed_brokers(
    admin: KafkaAdmin, broker_id: int, timeout_s: float
) -> frozenset[int] | Failure:
    """The brokers that a broker feeds, by what clients produce to it.

    Internal topics do not count: offset commits are never throttled.

    Args:
        admin: how to reach the brokers.
        broker_id: the one that is read.
        timeout_s: for each of the two requests, seconds.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    topics = await topics_of(admin, broker_id, timeout_s)
    if isinstance(topics, Failure):
        return topics
    if not topics:
        return frozenset()
    query = Query(MetadataOfTopics(sorted(topics)), "Metadata", "Describe")
    answers = await query_each(admin, [broker_id], lambda _: query, _fed, timeout_s)
    return answers if isinstance(answers, Failure) else answers[broker_id]


def _fed(_: Query, response: Response, broker_id: int) -> frozenset[int] | Failure:
    fed: set[int] = set()
    for error_code, name, _id, is_internal, led, *_more in response.topics or ():
        if error_code not in {0, _DELETED}:
            text = f"broker {broker_id}: Metadata of {name} returned {error_name(error_code)}"
            return Failure(FailureKind.AUTHORIZATION, text)
        if not is_internal:
            fed.update(replica for leader, replica in led if leader == broker_id)
    return frozenset(fed)
