"""The size of a PRODUCE on the wire, computed from its line: Kafka charges it to the quota.

Kafka charges the header and the body, without the 4 bytes of the length. The line contains the
names, the numbers of partitions, and ``recordsSizeInBytes``. From them this module computes the
size in Kafka's encoding of each version. From version 9 on, lengths are variable and every
structure ends with an empty list of tags. From version 13 on, topics have an id of 16 bytes in
place of a name.

Example: version 11 of client-id "etl" with 10,000 bytes of batches for one partition of "t1":
header 11 + 3, body 1 + 2 + 4 + 1 for the transactional id, acks, time-out and number of topics,
3 + 1 for the name and number of partitions, 4 + 2 + 10,000 for the partition, 3 for the tags of
all three: 10,035 bytes.

Source: Kafka's RequestHeader.json, ProduceRequest.json; KIP-482 for the variable lengths; KafkaApis
(handleProduceRequest) for the charge.
"""

from typing import Final

import msgspec

from sidecar.requestlog.wire import Int32, Size, Wire

_FLEXIBLE_SINCE: Final = 9
_IDS_SINCE: Final = 13
_TRANSACTIONAL_SINCE: Final = 3
NEWEST_PRODUCE: Final = 13
"""The newest version whose encoding is known."""

_ID: Final = 16
_INDEX: Final = 4
_TAGS: Final = 1
"""The bytes of an empty list of tags: its length, 0."""


_VARINT_BYTES: Final = tuple(-(-bits // 7) or 1 for bits in range(65))


class ProducePartition(Wire, frozen=True):
    """The records for one partition.

    Attributes:
        index: the partition.
        records_size_in_bytes: the size of the batches; the quota is charged for the whole request.
    """

    index: Int32
    records_size_in_bytes: Size = 0


class ProduceTopic(Wire, frozen=True):
    """The records for one topic.

    Attributes:
        partition_data: the topic's partitions.
        name: the topic's name; "" from version 13 on, which use the id.
        topic_id: the topic's id in base64, as logged; "" before version 13.
    """

    partition_data: tuple[ProducePartition, ...]
    name: str = ""
    topic_id: str = ""


class Produce(Wire, frozen=True):
    """A PRODUCE request.

    Attributes:
        acks: -1, 0 or 1.
        topics: the records for each topic.
        transactional_id: the transactional id; None outside transactions.
    """

    acks: Int32
    topics: tuple[ProduceTopic, ...] = msgspec.field(name="topicData")
    transactional_id: str | None = None

    @property
    def records_bytes(self) -> int:
        """The size of all batches."""
        size = 0
        for topic in self.topics:
            for partition in topic.partition_data:
                size += partition.records_size_in_bytes
        return size


def produce_bytes(produce: Produce, version: int, client_id: str) -> int | None:
    """The size of a PRODUCE, header and body.

    A version newer than ``NEWEST_PRODUCE`` is taken for that one. Versions differ by some bytes for
    each partition, and the records are the same.

    Args:
        produce: the request in the line.
        version: the version of the request.
        client_id: the client's id. No client-id takes as many bytes as "".

    Returns:
        Bytes; None if there is no such version.
    """
    if version < 0:
        return None
    api_key, api_version, correlation_id, acks, timeout = 2, 2, 4, 2, 4
    size = api_key + api_version + correlation_id + 2 + utf8_bytes(client_id) + acks + timeout
    if version < _FLEXIBLE_SINCE:
        return size + _body(produce, version)
    transaction = utf8_bytes(produce.transactional_id or "")
    size += 2 * _TAGS + varint_bytes(transaction + 1) + transaction
    size += varint_bytes(len(produce.topics) + 1)
    for topic in produce.topics:
        partitions = topic.partition_data
        name = utf8_bytes(topic.name)
        size += _ID if version >= _IDS_SINCE else varint_bytes(name + 1) + name
        size += varint_bytes(len(partitions) + 1) + _TAGS + (_INDEX + _TAGS) * len(partitions)
        for partition in partitions:
            records = partition.records_size_in_bytes
            size += varint_bytes(records + 1) + records
    return size


def _body(produce: Produce, version: int) -> int:
    """What follows the time-out, before version 9: lengths of two bytes, counts of four."""
    size = 4
    if version >= _TRANSACTIONAL_SINCE:
        size += 2 + utf8_bytes(produce.transactional_id or "")
    for topic in produce.topics:
        size += 2 + utf8_bytes(topic.name) + 4 + (_INDEX + 4) * len(topic.partition_data)
    return size + produce.records_bytes


def utf8_bytes(text: str) -> int:
    """The bytes of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def varint_bytes(number: int) -> int:
    """The bytes of an unsigned number: one for each 7 bits, and at least one."""
    return _VARINT_BYTES[number.bit_length()]
