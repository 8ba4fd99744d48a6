"""The messages for making room: offsets, sizes, groups, and DeleteRecords.

All are flexible versions (KIP-482): DeleteRecords (key 21) v2, ListOffsets (key 2) v7, ListGroups
(key 16) v4, and v5 with the groups' types (KIP-848), OffsetFetch (key 9) v8, which takes several
groups (KIP-709, Kafka 3.0), and DescribeShareGroupOffsets (key 90) v0 (KIP-932, Kafka 4.1).

Example: ``DeleteRecords({("logs", 0): 120}, 1000)`` deletes the records of logs 0 below offset 120.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from aiokafka.protocol.types import Boolean, CompactArray, Int8, Int16, Int32, Int64

from sidecar.kafka.client.failures import error_name
from sidecar.kafka.client.messages import (
    ERROR,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    Uuid,
    array,
    message,
)
from sidecar.throttle.growth import Partition
from sidecar.volumes import Failure, FailureKind

DELETE_RECORDS_KEY: Final = 21
LIST_OFFSETS_KEY: Final = 2
LIST_GROUPS_KEY: Final = 16
OFFSET_FETCH_KEY: Final = 9
DESCRIBE_SHARE_GROUP_OFFSETS_KEY: Final = 90

LATEST: Final = -1
EARLIEST: Final = -2
HIGHEST: Final = -3

_INDEX: Final = ("partition_index", Int32)
_INDEXES: Final = CompactArray(Int32)
_T = TypeVar("_T")


def _partitions(*fields: tuple[str, Any]) -> tuple[str, Any]:
    return array("topics", ("name", STRING), array("partitions", _INDEX, *fields))


def _by_topic(values: Mapping[Partition, _T]) -> dict[str, list[tuple[int, _T]]]:
    """Topic -> index and value of each of its partitions."""
    topics: dict[str, list[tuple[int, _T]]] = {}
    for (topic, index), value in values.items():
        topics.setdefault(topic, []).append((index, value))
    return topics


def refused(name: str, code: int, needs: str, topic: str | None) -> Failure:
    """Turn a broker's error about a topic, or the cluster, into a failure."""
    text = f"{name} returned {error_name(code)}"
    if "AUTHORIZATION" in error_name(code):
        where = "the cluster" if topic is None else f"topic {topic}"
        return Failure(FailureKind.AUTHORIZATION, f"{text}: it needs {needs} on {where}")
    return Failure(FailureKind.BROKER, text)


_DeleteV2, _ = message(
    "DeleteRecords",
    DELETE_RECORDS_KEY,
    2,
    request=(_partitions(("offset", Int64)), ("timeout_ms", Int32)),
    response=(THROTTLE_TIME, _partitions(("low_watermark", Int64), ("error_code", Int16))),
)


class DeleteRecords(AdminRequest, versions=(_DeleteV2,)):
    """Deletes records below offsets; only the leaders of the partitions accept it."""

    NEEDED = "v2 (Kafka 2.4)"

    def __init__(self, offsets: Mapping[Partition, int], timeout_ms: int) -> None:
        topics: list[tuple[object, ...]] = [
            (topic, [(index, offset, {}) for index, offset in each], {})
            for topic, each in _by_topic(offsets).items()
        ]
        self.values = (topics, timeout_ms)


_OffsetsV7, _ = message(
    "ListOffsets",
    LIST_OFFSETS_KEY,
    7,
    request=(
        ("replica_id", Int32),
        ("isolation_level", Int8),
        _partitions(("current_leader_epoch", Int32), ("timestamp", Int64)),
    ),
    response=(
        THROTTLE_TIME,
        _partitions(
            ("error_code", Int16), ("timestamp", Int64), ("offset", Int64), ("leader_epoch", Int32)
        ),
    ),
)


class ListOffsets(AdminRequest, versions=(_OffsetsV7,)):
    """Requests an offset of each partition from its leader.

    Args:
        times: partition -> its leader epoch, and milliseconds of the epoch, ``LATEST`` (the high
            watermark), ``EARLIEST``, or ``HIGHEST`` (the highest timestamp, KIP-734).
    """

    NEEDED = "v7 (Kafka 3.0)"

    def __init__(self, times: Mapping[Partition, tuple[int, int]]) -> None:
        topics: list[tuple[object, ...]] = [
            (topic, [(index, epoch, at, {}) for index, (epoch, at) in each], {})
            for topic, each in _by_topic(times).items()
        ]
        self.values = (-1, 0, topics)


_GROUP: Final = (("group_id", STRING), ("protocol_type", STRING), ("group_state", STRING))
_FILTERS: Final = (("states", CompactArray(STRING)), ("types", CompactArray(STRING)))
_GroupsV4, _ = message(
    "ListGroups",
    LIST_GROUPS_KEY,
    4,
    request=_FILTERS[:1],
    response=(THROTTLE_TIME, ("error_code", Int16), array("groups", *_GROUP)),
)
_GroupsV5, _ = message(
    "ListGroups",
    LIST_GROUPS_KEY,
    5,
    request=_FILTERS,
    response=(
        THROTTLE_TIME,
        ("error_code", Int16),
        array("groups", *_GROUP, ("group_type", STRING)),
    ),
)


class ListGroups(AdminRequest, versions=(_GroupsV4, _GroupsV5)):
    """Lists the groups that a broker coordinates."""

    NEEDED = "v4 (Kafka 2.6)"
    values = ((), ())


_FetchV8, _ = message(
    "OffsetFetch",
    OFFSET_FETCH_KEY,
    8,
    request=(
        array("groups", ("group_id", STRING), array("topics", ("name", STRING), ("i", _INDEXES))),
        ("require_stable", Boolean),
    ),
    response=(
        THROTTLE_TIME,
        array(
            "groups",
            ("group_id", STRING),
            _partitions(
                ("committed_offset", Int64),
                ("committed_leader_epoch", Int32),
                ("metadata", STRING),
                ("error_code", Int16),
            ),
            ("error_code", Int16),
        ),
    ),
)


class FetchOffsets(AdminRequest, versions=(_FetchV8,)):
    """Requests all committed offsets of groups from their coordinator."""

    NEEDED = "v8 (Kafka 3.0)"

    def __init__(self, groups: Sequence[str]) -> None:
        self.values = ([(group, None, {}) for group in groups], False)


_ShareV0, _ = message(
    "DescribeShareGroupOffsets",
    DESCRIBE_SHARE_GROUP_OFFSETS_KEY,
    0,
    request=(
        array("groups", ("group_id", STRING), array("topics", ("name", STRING), ("i", _INDEXES))),
    ),
    response=(
        THROTTLE_TIME,
        array(
            "groups",
            ("group_id", STRING),
            array(
                "topics",
                ("name", STRING),
                ("topic_id", Uuid),
                array(
                    "partitions",
                    _INDEX,
                    ("start_offset", Int64),
                    ("leader_epoch", Int32),
                    *ERROR,
                ),
            ),
            *ERROR,
        ),
    ),
)


class DescribeShareOffsets(AdminRequest, versions=(_ShareV0,)):
    """Requests the topics of share groups from their coordinator."""

    NEEDED = "v0 (Kafka 4.1)"

    def __init__(self, groups: Sequence[str]) -> None:
        self.values = ([(group, None, {}) for group in groups],)
