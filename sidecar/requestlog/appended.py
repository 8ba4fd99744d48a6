"""Which partitions of a PRODUCE were written: those that the answer does not refuse.

With acks=0 there is no answer, so all partitions count as written. Two errors come only after the
leader has appended the records: REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS_AFTER_APPEND.

Example: a user without an ACL for "orders" sends 1 MB for it every 100 ms. The answers have
TOPIC_AUTHORIZATION_FAILED (29), so the user writes nothing.

Source: Kafka's ProduceResponse.json, Errors, ReplicaManager (appendRecords).
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from sidecar.requestlog.produce_size import ProduceTopic
from sidecar.requestlog.wire import Int32, Wire

_APPENDED: Final = frozenset({0, 7, 20})
"""NONE, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND."""


class _Partition(Wire, frozen=True):
    index: Int32
    error_code: Int32 = 0


class _Topic(Wire, frozen=True):
    partition_responses: tuple[_Partition, ...] = ()
    name: str = ""
    topic_id: str = ""


class _Answer(Wire, frozen=True):
    responses: tuple[_Topic, ...] = ()


_DECODER: Final = msgspec.json.Decoder(_Answer)


def appended(topics: Sequence[ProduceTopic], response: msgspec.Raw) -> Sequence[ProduceTopic]:
    """Return the topics that a PRODUCE wrote to, each without its refused partitions.

    Args:
        topics: the topics of the request.
        response: the answer as logged. One that can't be read refuses nothing.
    """
    try:
        answer = _DECODER.decode(response)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return topics
    refused = {
        (topic.name or topic.topic_id, partition.index)
        for topic in answer.responses
        for partition in topic.partition_responses
        if partition.error_code not in _APPENDED
    }
    if not refused:
        return topics
    written = []
    for topic in topics:
        key = topic.name or topic.topic_id
        partitions = tuple(
            each for each in topic.partition_data if (key, each.index) not in refused
        )
        if partitions:
            written.append(msgspec.structs.replace(topic, partition_data=partitions))
    return written
