"""How large a FETCH's answer was, rebuilt from its line: what the fetch quota charges.

Kafka charges 4 bytes more than the answer's body, as it would be without throttling. The line has
the answer's parts, ``recordsSizeInBytes`` of each partition among them, so the body can be counted
by Kafka's encoding of each version: from 12 on lengths are variable and every structure ends with
its tags; from 13 on topics have ids of 16 bytes, no names.

Two things make it differ from what was sent, and are left out there too: where to find new leaders
(``nodeEndpoints``, from 16 on), and, before Kafka 4.0, records rewritten for old consumers.

A throttled consumer's answer has no records, and Kafka takes the charge back: what it would have
got is in no line. That is not known, and never nothing.

Example: version 17, one partition with 59,882 bytes of batches. 4; body 4 + 2 + 4 for the throttle
time, error and session, 1 for the number of topics; 16 + 1 for the topic's id and number of
partitions; 4 + 2 + 8 + 8 + 8 + 1 + 4 for the partition, 3 + 59,882 for its records; 3 for the tags
of all three: 59,955 bytes.

Source: Kafka's FetchResponse.json; KIP-482 for the variable lengths; FetchResponse.sizeOf and
KafkaApis (handleFetchRequest) for what is charged.
"""

from typing import Final

import msgspec

from sidecar.requestlog.line import Line
from sidecar.requestlog.wire import Fetched, FetchedPartition, FetchedTopic, Present

FETCH: Final = 1
NEWEST_FETCH: Final = 18
"""The newest version whose encoding is known."""

_FLEXIBLE_SINCE: Final = 12
_IDS_SINCE: Final = 13

_LENGTH: Final = 4
_ID: Final = 16
_ABORTED: Final = 8 + 8
DIVERGING_EPOCH: Final = 2 + 4 + 8 + 1
"""Its tag, its length, an epoch, an end offset and its own tags."""
CURRENT_LEADER: Final = 2 + 4 + 4 + 1
SNAPSHOT_ID: Final = 2 + 8 + 4 + 1

_FETCHED: Final = msgspec.json.Decoder(Fetched)


def fetched(line: Line) -> Fetched | None:
    """A FETCH's answer; None when there is none, or one without records because of throttling."""
    try:
        answer = _FETCHED.decode(line.body.response)
    except msgspec.MsgspecError:
        return None
    return None if line.throttle_ms > 0 and not answer.responses else answer


def fetch_bytes(answer: Fetched, version: int) -> int | None:
    """What the fetch quota was charged with.

    Args:
        answer: as the line has it; not one that is empty because of throttling.
        version: of the request.

    Returns:
        Bytes; None when the version is newer than ``NEWEST_FETCH``.
    """
    if not 0 <= version <= NEWEST_FETCH:
        return None
    throttle_time, error_and_session = 4, 6
    size = _LENGTH
    if version >= 1:
        size += throttle_time
    if version >= 7:
        size += error_and_session
    size += _count(len(answer.responses), version)
    partition = _partition(version)
    for topic in answer.responses:
        size += _topic(topic, version, partition)
    tags = 1
    return size + tags if version >= _FLEXIBLE_SINCE else size


def _partition(version: int) -> int:
    """What every partition takes: index, error, offsets, read replica and the tags' number."""
    size = 4 + 2 + 8
    if version >= 4:
        size += 8
    if version >= 5:
        size += 8
    if version >= 11:
        size += 4
    return size + 1 if version >= _FLEXIBLE_SINCE else size


def _topic(topic: FetchedTopic, version: int, partition: int) -> int:
    size = _ID if version >= _IDS_SINCE else _string(topic.topic, version)
    size += _count(len(topic.partitions), version) + partition * len(topic.partitions)
    if version < _FLEXIBLE_SINCE:
        return size + sum(_old_records(one, version) for one in topic.partitions)
    tags = 1
    for one in topic.partitions:
        records = one.records_size_in_bytes
        size += _varint(records + 1) + records
        size += 1 if one.aborted_transactions is None else _aborted(one.aborted_transactions)
        if one.diverging_epoch is not None:
            size += DIVERGING_EPOCH
        if one.current_leader is not None:
            size += CURRENT_LEADER
        if one.snapshot_id is not None:
            size += SNAPSHOT_ID
    return size + tags


def _old_records(partition: FetchedPartition, version: int) -> int:
    aborted = 0 if version < 4 else _LENGTH + _ABORTED * len(partition.aborted_transactions or ())
    return _LENGTH + partition.records_size_in_bytes + aborted


def _aborted(transactions: tuple[Present, ...]) -> int:
    return _varint(len(transactions) + 1) + (_ABORTED + 1) * len(transactions)


def _string(text: str, version: int) -> int:
    """A string, or none, which takes as many bytes as an empty one."""
    length = len(text.encode("utf-8", "replace"))
    return length + (_varint(length + 1) if version >= _FLEXIBLE_SINCE else 2)


def _count(elements: int, version: int) -> int:
    return _varint(elements + 1) if version >= _FLEXIBLE_SINCE else 4


def _varint(number: int) -> int:
    """An unsigned number takes a byte for each 7 bits, and one at least."""
    return -(-number.bit_length() // 7) or 1
