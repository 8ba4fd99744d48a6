"""The messages for the leaders of partitions, and for the producers that are active on them.

They are Metadata (key 3) v12 and DescribeProducers (key 61) v0 (KIP-664, Kafka 2.8), both flexible
(KIP-482). Their answers can have 16 MB, and as Python objects they would take ten times as much.
Unneeded fields are therefore skipped, and needed ones are kept compactly:

- the index and the leader of each partition in Metadata, 8 bytes;
- the bytes of a partition's producers, 37 for each, which ``ProducerStates`` decodes.

Example: the producers of a partition with two producers take 74 bytes.
"""

import struct
from array import array
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final

from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
    UnsignedVarInt32,
)

from sidecar.kafka.client.messages import (
    BROKER,
    ERROR,
    STRING,
    TAGS,
    THROTTLE_TIME,
    AdminRequest,
    Fields,
    Uuid,
    message,
)
from sidecar.kafka.client.messages import (
    array as array_of,
)
from sidecar.kafka.client.packed_array import PackedArray

METADATA_KEY: Final = 3
DESCRIBE_PRODUCERS_KEY: Final = 61

State = tuple[int, int, int]
"""A producer's id, epoch, and last sequence number; a change shows that it wrote."""


class ProducerStates(PackedArray[State]):
    """The producers of a partition, decoded one by one from the answer's bytes."""

    __slots__ = ()

    ENTRY = struct.Struct(">qiiqiqx")
    KEPT = struct.Struct(">qii21x")
    SCHEMA = Schema(
        ("producer_id", Int64),
        ("producer_epoch", Int32),
        ("last_sequence", Int32),
        ("last_timestamp", Int64),
        ("coordinator_epoch", Int32),
        ("current_txn_start_offset", Int64),
        TAGS,
    )


DescribeProducersRequestV0, DescribeProducersResponseV0 = message(
    "DescribeProducers",
    DESCRIBE_PRODUCERS_KEY,
    0,
    request=(array_of("topics", ("name", STRING), ("partition_indexes", CompactArray(Int32))),),
    response=(
        THROTTLE_TIME,
        array_of(
            "topics",
            ("name", STRING),
            array_of(
                "partitions",
                ("partition_index", Int32),
                *ERROR,
                ("active_producers", ProducerStates),
            ),
        ),
    ),
)


class DescribeProducers(AdminRequest, versions=(DescribeProducersRequestV0,)):
    """Requests the producers of partitions; only the leaders of the partitions know them.

    Args:
        partitions: topic -> the indexes of its partitions.
    """

    NEEDED = "v0 (Kafka 2.8)"

    def __init__(self, partitions: Mapping[str, Sequence[int]]) -> None:
        self.values = ([(topic, list(indexes), {}) for topic, indexes in partitions.items()],)


class _Leaders:
    """An array of partitions; only the indexes and leaders are kept."""

    def decode(self, data: BytesIO) -> "array[int]":
        """Decodes to index, leader, index, leader, and so on.

        Raises:
            ValueError: the bytes end too early.
        """
        leaders = array("i")
        for _ in range(UnsignedVarInt32.decode(data) - 1):
            Int16.decode(data)
            leaders.append(Int32.decode(data))
            leaders.append(Int32.decode(data))
            Int32.decode(data)
            # The replicas, the in-sync replicas, and the offline replicas.
            for _ in range(3):
                data.seek(4 * max(0, UnsignedVarInt32.decode(data) - 1), 1)
            TaggedFields.decode(data)
        return leaders


METADATA_REQUEST: Fields = (
    array_of("topics", ("topic_id", Uuid), ("name", STRING)),
    ("allow_auto_topic_creation", Boolean),
    ("include_topic_authorized_operations", Boolean),
)


def metadata_fields(partitions: tuple[str, Any]) -> Fields:
    """The fields of an answer to Metadata v12; ``partitions`` is that of a topic's partitions."""
    return (
        THROTTLE_TIME,
        array_of("brokers", *BROKER),
        ("cluster_id", STRING),
        ("controller_id", Int32),
        array_of(
            "topics",
            ("error_code", Int16),
            ("name", STRING),
            ("topic_id", Uuid),
            ("is_internal", Boolean),
            partitions,
            ("topic_authorized_operations", Int32),
        ),
    )


MetadataRequestV12, MetadataResponseV12 = message(
    "Metadata",
    METADATA_KEY,
    12,
    request=METADATA_REQUEST,
    response=metadata_fields(("leaders", _Leaders())),
)


class AllTopics(AdminRequest, versions=(MetadataRequestV12,)):
    """Requests the metadata of all topics that the sidecar may describe: null in place of names."""

    NEEDED = "v12 (Kafka 3.1)"
    values = (None, False, False)
