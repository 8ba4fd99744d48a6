"""Which brokers a broker feeds: those with a replica of a partition that it leads.

The broker reports the topics in its log dirs (DescribeLogDirs with all topics), and the leaders and
replicas of these topics (Metadata, key 3, v12). The first request needs DESCRIBE on the cluster,
like polls. The second needs DESCRIBE on each topic; if it is missing for one topic, the result is a
failure. Both answers grow with the broker's topics, so they use a connection of their own.

Example: broker 1 leads "orders" 0, with replicas on brokers 1, 2 and 3, and has a replica of
"clicks" 0. It feeds brokers 1, 2 and 3.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Final

from aiokafka.protocol.api import Response
from aiokafka.protocol.types import CompactArray, Int16, Int32, TaggedFields, UnsignedVarInt32

from sidecar.kafka.client.each_broker import Query, query_each
from sidecar.kafka.client.failures import error_name
from sidecar.kafka.client.messages import NO_ID, AdminRequest, message
from sidecar.kafka.largest_topics import topics_by_log_dir
from sidecar.kafka.producer_messages import METADATA_KEY, METADATA_REQUEST, metadata_fields
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

_DELETED: Final = 3
"""UNKNOWN_TOPIC_OR_PARTITION: the topic was deleted after its log dir was read."""


class _Partitions:
    """An array of partitions; only their indexes, leaders, replicas and leader epochs are kept."""

    def decode(self, data: BytesIO) -> list[tuple[int, int, Sequence[int], int]]:
        """Decodes index, leader, replicas and leader epoch of each.

        Raises:
            ValueError: the bytes end too early.
        """
        partitions: list[tuple[int, int, Sequence[int], int]] = []
        for _ in range(UnsignedVarInt32.decode(data) - 1):
            Int16.decode(data)
            index, leader, epoch = (Int32.decode(data) for _ in range(3))
            replicas, _in_sync, _offline = (CompactArray(Int32).decode(data) for _ in range(3))
            partitions.append((index, leader, tuple(replicas or ()), epoch))
            TaggedFields.decode(data)
        return partitions


_Request, _Response = message(
    "Metadata",
    METADATA_KEY,
    12,
    request=METADATA_REQUEST,
    response=metadata_fields(("partitions", _Partitions())),
)


class MetadataOfTopics(AdminRequest, versions=(_Request,)):
    """Requests the metadata of topics by their names, with the user's rights on each if asked."""

    NEEDED = "v12 (Kafka 3.1)"

    def __init__(self, topics: Sequence[str], *, rights: bool = False) -> None:
        # False: a topic that was deleted meanwhile is not created again.
        self.values = ([(NO_ID, topic, {}) for topic in topics], False, rights)


async def fed_brokers(
    admin: KafkaAdmin, broker_id: int, timeout_s: float
) -> frozenset[int] | Failure:
    """Finds the brokers that a broker feeds with records from clients.

    Internal topics do not count, because offset commits are never throttled.

    Args:
        admin: how to reach the brokers.
        broker_id: the broker to read.
        timeout_s: the time for each of the two requests, seconds.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    by_log_dir = await topics_by_log_dir(admin, broker_id, timeout_s)
    if isinstance(by_log_dir, Failure):
        return by_log_dir
    topics = sorted({topic for topics in by_log_dir.values() for topic in topics})
    if not topics:
        return frozenset()
    query = Query(MetadataOfTopics(topics), "Describe")
    answers = await query_each(admin, [broker_id], lambda _: query, _fed, timeout_s)
    return answers if isinstance(answers, Failure) else answers[broker_id]


def _fed(_: Query, response: Response, broker_id: int) -> frozenset[int] | Failure:
    fed: set[int] = set()
    for error_code, name, _id, is_internal, partitions, *_more in response.topics or ():
        if error_code not in {0, _DELETED}:
            text = f"broker {broker_id}: Metadata of {name} returned {error_name(error_code)}"
            return Failure(FailureKind.AUTHORIZATION, text)
        if not is_internal:
            fed.update(*(replicas for _, leader, replicas, _ in partitions if leader == broker_id))
    return frozenset(fed)
