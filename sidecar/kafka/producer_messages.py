"""Which partitions a broker leads, and which producers are active on them, in Kafka's messages.

Metadata (key 3) v12 and DescribeProducers (key 61) v0 (KIP-664, Kafka 2.8), both flexible
(KIP-482). Both can be long: what is not needed is skipped while it is read, and what is needed is
retained in its smallest form, so that an answer of 16 MB does not become ten times as much.

- Of a partition in Metadata its index and its leader are retained: 8 bytes.
- Of the producers of a partition the bytes are retained: a row of entries of 37 bytes, which
  ``ProducerStates`` decodes.

Example: a partition that two producers wrote to is 74 bytes.
"""

import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Final

from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    Int8,
    Int16,
    Int32,
    Int64,
    TaggedFields,
    UnsignedVarInt32,
)

from sidecar.kafka.client.messages import (
    BROKER,
    ERROR,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    Uuid,
    message,
)
from sidecar.kafka.client.messages import (
    array as array_of,
)
from sidecar.kafka.client.packed_array import PackedArray

METADATA_KEY: Final = 3
DESCRIBE_PRODUCERS_KEY: Final = 61

_STATE = struct.Struct(">qiiqiqx")
"""An entry without tags, whose number, 0, is the last byte."""
_PART = struct.Struct(">qii21x")
"""Its beginning."""
STATE_BYTES: Final = _STATE.size


State = tuple[int, int, int]
"""What shows whether a producer wrote: its id, its epoch, and its last batch's sequence."""


class ProducerStates:
    """The producers of a partition, decoded one by one; ``packed`` as in an answer."""

    __slots__ = ("_packed",)

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed) // STATE_BYTES

    def __iter__(self) -> Iterator[State]:
        return _PART.iter_unpack(self._packed)


_PRODUCER_STATES = PackedArray(
    _STATE,
    ("producer_id", Int64),
    ("producer_epoch", Int32),
    ("last_sequence", Int32),
    ("last_timestamp", Int64),
    ("coordinator_epoch", Int32),
    ("current_txn_start_offset", Int64),
)


# The partitions' ``active_producers`` are for ``ProducerStates``.
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
                ("active_producers", _PRODUCER_STATES),
            ),
        ),
    ),
)


class DescribeProducers(AdminRequest, versions=(DescribeProducersRequestV0,)):
    """The producers of partitions; the leaders of these have to be asked.

    Args:
        partitions: topic -> indexes.
    """

    NEEDED = "v0 (Kafka 2.8)"

    def __init__(self, partitions: Mapping[str, Sequence[int]]) -> None:
        self.values = ([(topic, list(indexes), {}) for topic, indexes in partitions.items()],)


class _Leaders:
    """An array of partitions, of which index and leader are retained, one after the other."""

    def decode(self, data: BytesIO) -> "array[int]":
        """Index, leader, index, leader ...

        Raises:
            ValueError: it ends too early.
        """
        found = array("i")
        for _ in range(UnsignedVarInt32.decode(data) - 1):
            Int16.decode(data)
            found.append(Int32.decode(data))
            found.append(Int32.decode(data))
            Int32.decode(data)
            # Replicas, those in sync, and those offline.
            for _ in range(3):
                data.seek(4 * max(0, UnsignedVarInt32.decode(data) - 1), 1)
            TaggedFields.decode(data)
        return found


MetadataRequestV12, MetadataResponseV12 = message(
    "Metadata",
    METADATA_KEY,
    12,
    request=(
        ("topics", CompactArray(Int8)),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
    ),
    response=(
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
            ("leaders", _Leaders()),
            ("topic_authorized_operations", Int32),
        ),
    ),
)


class AllTopics(AdminRequest, versions=(MetadataRequestV12,)):
    """Metadata of all topics that may be described, which null requests."""

    NEEDED = "v12 (Kafka 3.1)"
    values = (None, False, False)
