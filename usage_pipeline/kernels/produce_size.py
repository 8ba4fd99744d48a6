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

from sidecar.requestlog.wire import Wire

_FLEXIBLE_SINCE: Final = 9
_IDS_SINCE: Final = 13
_TRANSACTIONAL_SINCE: Final = 3
NEWEST_PRODUCE: Final = 13
"""The newest version whose encoding is known."""

_ID: Final = 16
_TAGS: Final = 1
"""The bytes of an empty list of tags: its length, 0."""


class ProducePartition(Wire, frozen=True):
    """The records for one partition.

    Attributes:
        index: the partition.
        records_size_in_bytes: the size of the batches; the quota is charged for the whole request.
    """

    index: int
    records_size_in_bytes: int = 0


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

    acks: int
    topics: tuple[ProduceTopic, ...] = msgspec.field(name="topicData")
    transactional_id: str | None = None

    @property
    def records_bytes(self) -> int:
        """The size of all batches."""
        return sum(
            partition.records_size_in_bytes
            for topic in self.topics
            for partition in topic.partition_data
        )


def produce_bytes(produce: Produce, version: int, client_id: str) -> int | None:
    """The size of a PRODUCE, header and body.

    Args:
        produce: the request in the line.
        version: the version of the request.
        client_id: the client's id. No client-id takes as many bytes as "".

    Returns:
        Bytes; None if the version is newer than ``NEWEST_PRODUCE``.
    """
    if not 0 <= version <= NEWEST_PRODUCE:
        return None
    return _header(version, client_id) + _body(produce, version)


def _header(version: int, client_id: str) -> int:
    api_key, api_version, correlation_id, length = 2, 2, 4, 2
    tags = _TAGS if version >= _FLEXIBLE_SINCE else 0
    return api_key + api_version + correlation_id + length + _utf8(client_id) + tags


def _body(produce: Produce, version: int) -> int:
    acks, timeout = 2, 4
    topics = sum(_topic(topic, version) for topic in produce.topics)
    size = acks + timeout + _count(len(produce.topics), version) + topics
    if version >= _TRANSACTIONAL_SINCE:
        size += _string(produce.transactional_id or "", version)
    return size + (_TAGS if version >= _FLEXIBLE_SINCE else 0)


def _topic(topic: ProduceTopic, version: int) -> int:
    size = _ID if version >= _IDS_SINCE else _string(topic.name, version)
    records = [partition.records_size_in_bytes for partition in topic.partition_data]
    size += _count(len(records), version) + sum(records)
    index = 4
    if version >= _FLEXIBLE_SINCE:
        lengths = sum([_varint(size + 1) for size in records])
        return size + (index + _TAGS) * len(records) + lengths + _TAGS
    return size + (index + 4) * len(records)


def _string(text: str, version: int) -> int:
    """The bytes of a string; a null string takes as many as an empty one."""
    length = _utf8(text)
    return length + (_varint(length + 1) if version >= _FLEXIBLE_SINCE else 2)


def _count(elements: int, version: int) -> int:
    return _varint(elements + 1) if version >= _FLEXIBLE_SINCE else 4


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _varint(number: int) -> int:
    """The bytes of an unsigned number: one for each 7 bits, and at least one."""
    return -(-number.bit_length() // 7) or 1
