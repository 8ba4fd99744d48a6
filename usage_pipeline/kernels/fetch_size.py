"""The size of a FETCH's answer, computed from its line: Kafka charges it to the fetch quota.

Kafka charges the body of the answer plus 4 bytes, as if the client were not throttled. The line
contains the parts of the answer, including ``recordsSizeInBytes`` of each partition. From them this
module computes the size in Kafka's encoding of each version. From version 12 on, lengths are
variable and every structure ends with its tags. From version 13 on, topics have an id of 16 bytes
in place of a name.

The sent answer can be larger or smaller than that: from version 16 on it can contain the addresses
of new leaders (``nodeEndpoints``), and before Kafka 4.0 records are converted for old consumers.
Kafka does not charge either.

If Kafka throttles a consumer, the answer contains no records, and Kafka takes the charge back. No
line contains the records that the consumer would have got. The size is then unknown, not 0.

Example: version 17, one partition with 59,882 bytes of batches. 4; body 4 + 2 + 4 for the throttle
time, error and session, 1 for the number of topics; 16 + 1 for the topic's id and number of
partitions; 4 + 2 + 8 + 8 + 8 + 1 + 4 for the partition, 3 + 59,882 for its records; 3 for the tags
of all three: 59,955 bytes.

Source: Kafka's FetchResponse.json; KIP-482 for the variable lengths; FetchResponse.sizeOf and
KafkaApis (handleFetchRequest) for the charge.
"""

from typing import Final

import msgspec

from sidecar.requestlog.line import Line
from sidecar.requestlog.produce_size import utf8_bytes, varint_bytes
from sidecar.requestlog.wire import Int32, Size, Wire

NEWEST_FETCH: Final = 18
"""The newest version whose encoding is known."""

_FLEXIBLE_SINCE: Final = 12
_IDS_SINCE: Final = 13

_LENGTH: Final = 4
_ID: Final = 16
_ABORTED: Final = 8 + 8
DIVERGING_EPOCH: Final = 2 + 4 + 8 + 1
"""Bytes of the tag, the length, the epoch, the end offset and the structure's own tags."""
CURRENT_LEADER: Final = 2 + 4 + 4 + 1
SNAPSHOT_ID: Final = 2 + 8 + 4 + 1


class Present(Wire, frozen=True):
    """A structure of fixed size on the wire; only its presence matters."""


class FetchedPartition(Wire, frozen=True):
    """A partition in a FETCH's answer.

    Attributes:
        records_size_in_bytes: the size of the batches.
        aborted_transactions: one element of fixed size for each aborted transaction; or None.
        diverging_epoch: a tagged field from version 12 on, like the next two.
        current_leader: the leader to fetch from instead.
        snapshot_id: the snapshot to fetch instead.
    """

    records_size_in_bytes: Size = 0
    aborted_transactions: tuple[Present, ...] | None = None
    diverging_epoch: Present | None = None
    current_leader: Present | None = None
    snapshot_id: Present | None = None


class FetchedTopic(Wire, frozen=True):
    """A topic in a FETCH's answer; its name is "" from version 13 on."""

    topic: str = ""
    partitions: tuple[FetchedPartition, ...] = ()


class Fetched(Wire, frozen=True):
    """A FETCH's answer."""

    responses: tuple[FetchedTopic, ...] = ()
    throttle_time_ms: Int32 = 0

    @property
    def records_bytes(self) -> int:
        """The size of all batches."""
        size = 0
        for topic in self.responses:
            for partition in topic.partitions:
                size += partition.records_size_in_bytes
        return size


_FETCHED: Final = msgspec.json.Decoder(Fetched)


def fetch_answer(line: Line) -> Fetched | None:
    """A FETCH's answer; None if it is missing, or has no records because of throttling."""
    try:
        answer = _FETCHED.decode(line.body.response)
    except ValueError:
        return None
    return None if line.throttle_ms > 0 and not answer.responses else answer


def fetch_bytes(answer: Fetched, version: int) -> int | None:
    """The bytes that Kafka charged to the fetch quota.

    Args:
        answer: the answer in the line; not one that is empty because of throttling.
        version: the version of the request.

    Returns:
        Bytes; None if the version is newer than ``NEWEST_FETCH``.
    """
    if not 0 <= version <= NEWEST_FETCH:
        return None
    throttle_time, error_and_session = 4, 6
    size = _LENGTH
    if version >= 1:
        size += throttle_time
    if version >= 7:
        size += error_and_session
    size += 4 if version < _FLEXIBLE_SINCE else varint_bytes(len(answer.responses) + 1)
    partition = _PARTITION[version]
    for topic in answer.responses:
        size += _topic(topic, version, partition)
    tags = 1
    return size + tags if version >= _FLEXIBLE_SINCE else size


def _partition(version: int) -> int:
    """The bytes of every partition: index, error, offsets, read replica and number of tags."""
    size = 4 + 2 + 8
    if version >= 4:
        size += 8
    if version >= 5:
        size += 8
    if version >= 11:
        size += 4
    return size + 1 if version >= _FLEXIBLE_SINCE else size


_PARTITION: Final = tuple(map(_partition, range(NEWEST_FETCH + 1)))


def _topic(topic: FetchedTopic, version: int, partition: int) -> int:
    name = 0 if version >= _IDS_SINCE else utf8_bytes(topic.topic)
    size = partition * len(topic.partitions)
    if version < _FLEXIBLE_SINCE:
        size += 2 + name + 4
        return size + sum([_old_records(part, version) for part in topic.partitions])
    size += _ID if version >= _IDS_SINCE else varint_bytes(name + 1) + name
    tags = 1
    size += varint_bytes(len(topic.partitions) + 1) + tags
    for part in topic.partitions:
        records = part.records_size_in_bytes
        aborted = part.aborted_transactions
        size += varint_bytes(records + 1) + records
        size += 1 if aborted is None else _aborted(aborted)
        if part.diverging_epoch is not None:
            size += DIVERGING_EPOCH
        if part.current_leader is not None:
            size += CURRENT_LEADER
        if part.snapshot_id is not None:
            size += SNAPSHOT_ID
    return size


def _old_records(partition: FetchedPartition, version: int) -> int:
    aborted = 0 if version < 4 else _LENGTH + _ABORTED * len(partition.aborted_transactions or ())
    return _LENGTH + partition.records_size_in_bytes + aborted


def _aborted(transactions: tuple[Present, ...]) -> int:
    return varint_bytes(len(transactions) + 1) + (_ABORTED + 1) * len(transactions)
