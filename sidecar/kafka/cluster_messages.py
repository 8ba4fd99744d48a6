"""The messages that polls need and aiokafka lacks: DescribeCluster and DescribeLogDirs.

- DescribeCluster (key 60): v0 (KIP-700); v1 can list controllers (KIP-919); v2 can list fenced
  brokers (KIP-1073, Kafka 4.0).
- DescribeLogDirs (key 35): v4 contains sizes (KIP-827, Kafka 3.3); v5 contains the cordoned flag
  (Kafka 4.3). Brokers with older versions only are not supported.

Brokers 3.3 to 3.7.0 answer DescribeLogDirs with the names of all topics, each without partitions. A
poll skips these names. 2,000 topics in 12 log dirs take about 7 ms to skip, and 130 ms to decode.

Example: DescribeLogDirs v4 with an empty array of topics requests volumes only. It is the two bytes
01 00: the length 0, encoded as 1, and no tags. A null array, 00, would request every partition.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final

from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    Int8,
    Int16,
    Int32,
    Int64,
    UnsignedVarInt32,
)

from sidecar.kafka.client.messages import (
    BROKER,
    ERROR,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    Fields,
    array,
    message,
)

DESCRIBE_CLUSTER_KEY = 60
DESCRIBE_LOG_DIRS_KEY = 35

ENDPOINT_TYPE_BROKERS = 1
ENDPOINT_TYPE_CONTROLLERS = 2

_REQUEST: Fields = (
    ("include_cluster_authorized_operations", Boolean),
    ("endpoint_type", Int8),
    ("include_fenced_brokers", Boolean),
)


def _described(*broker: tuple[str, Any], endpoint_type: Fields = _REQUEST[1:2]) -> Fields:
    return (
        THROTTLE_TIME,
        *ERROR,
        *endpoint_type,
        ("cluster_id", STRING),
        ("controller_id", Int32),
        array("brokers", *broker),
        ("cluster_authorized_operations", Int32),
    )


DescribeClusterRequestV0, DescribeClusterResponseV0 = message(
    "DescribeCluster",
    DESCRIBE_CLUSTER_KEY,
    0,
    request=_REQUEST[:1],
    response=_described(*BROKER, endpoint_type=()),
)
DescribeClusterRequestV1, DescribeClusterResponseV1 = message(
    "DescribeCluster", DESCRIBE_CLUSTER_KEY, 1, request=_REQUEST[:2], response=_described(*BROKER)
)
DescribeClusterRequestV2, DescribeClusterResponseV2 = message(
    "DescribeCluster",
    DESCRIBE_CLUSTER_KEY,
    2,
    request=_REQUEST,
    response=_described(*BROKER, ("is_fenced", Boolean)),
)


class DescribeCluster(
    AdminRequest,
    versions=(DescribeClusterRequestV0, DescribeClusterRequestV1, DescribeClusterRequestV2),
):
    """Lists the brokers, including the fenced ones if the broker supports it (v2)."""

    NEEDED = "v0 (Kafka 2.8)"
    values = (False, ENDPOINT_TYPE_BROKERS, True)


DescribeClusterIdRequestV0, _ = message(
    "DescribeCluster",
    DESCRIBE_CLUSTER_KEY,
    0,
    request=_REQUEST[:1],
    response=(THROTTLE_TIME, *ERROR, ("cluster_id", STRING)),
    tagged=False,
)


class DescribeClusterId(AdminRequest, versions=(DescribeClusterIdRequestV0,)):
    """Asks for the cluster's id; the rest of the answer to DescribeCluster is not decoded.

    The list of 1,000 brokers takes 6 ms to decode, and each of them sends it.
    """

    NEEDED = "v0 (Kafka 2.8)"
    values = (False,)


class DescribeControllers(AdminRequest, versions=(DescribeClusterRequestV1,)):
    """Lists the controllers; only a controller's own listener answers it (KIP-919)."""

    NEEDED = "v1 (Kafka 3.7)"
    values = (False, ENDPOINT_TYPE_CONTROLLERS)


LOG_DIRS_TOPICS: Fields = (array("topics", ("topic", STRING), ("partitions", CompactArray(Int32))),)
"""An empty array requests the volumes only; null requests every partition."""


def log_dir_topics(partitions: Any) -> Any:  # noqa: ANN401 - types of aiokafka's
    """The type of a log dir's topics; ``partitions`` is the type of their partitions."""
    return array("topics", ("name", STRING), ("partitions", partitions))[1]


def log_dir_fields(topics: Any) -> Fields:  # noqa: ANN401 - a type of aiokafka's
    """The fields of a log dir in DescribeLogDirs v4; ``topics`` is the type of that field."""
    return (
        ("error_code", Int16),
        ("log_dir", STRING),
        ("topics", topics),
        ("total_bytes", Int64),
        ("usable_bytes", Int64),
    )


PARTITION: Fields = (
    ("partition_index", Int32),
    ("partition_size", Int64),
    ("offset_lag", Int64),
    ("is_future_key", Boolean),
)
CORDONED = ("is_cordoned", Boolean)
"""The field that v5 adds to a log dir."""

_WITHOUT_PARTITIONS: Final = b"\x01\x00"
"""The end of a topic: no partitions, no tags."""


class _SkippedTopics:
    """The wire type of a log dir's topics, of which a poll needs none."""

    _TOPICS = log_dir_topics(array("partitions", *PARTITION)[1])

    def encode(self, topics: Sequence[object]) -> bytes:
        encoded: bytes = self._TOPICS.encode(topics)
        return encoded

    def decode(self, data: BytesIO) -> list[object]:
        """Skips the topics, and returns an empty list.

        Raises:
            ValueError: the bytes are not valid.
        """
        begin = data.tell()
        count = UnsignedVarInt32.decode(data) - 1
        end = _end_of_names(data.getvalue(), data.tell(), count)
        if end is None:
            # A topic with partitions or tags, or damaged bytes: decode them, or find the error.
            data.seek(begin)
            self._TOPICS.decode(data)
        else:
            data.seek(end)
        return []


def _end_of_names(data: bytes, at: int, count: int) -> int | None:
    """The end of this number of topics without partitions; None unless all are plain and valid."""
    for _ in range(count):
        length, at = data[at] if at < len(data) else 0, at + 1
        if length > 127 and at < len(data):
            # The length has a second byte.
            length, at = length - 128 + (data[at] << 7), at + 1
        end = at + length - 1
        # Kafka's names are ASCII and have at most 249 characters.
        is_name = length < 256 and data[at:end].isascii()
        if not is_name or data[end : end + 2] != _WITHOUT_PARTITIONS:
            return None
        at = end + 2
    return at


_LOG_DIR = log_dir_fields(_SkippedTopics())

DescribeLogDirsRequestV4, DescribeLogDirsResponseV4 = message(
    "DescribeLogDirs",
    DESCRIBE_LOG_DIRS_KEY,
    4,
    request=LOG_DIRS_TOPICS,
    response=(THROTTLE_TIME, ("error_code", Int16), array("results", *_LOG_DIR)),
)
DescribeLogDirsRequestV5, DescribeLogDirsResponseV5 = message(
    "DescribeLogDirs",
    DESCRIBE_LOG_DIRS_KEY,
    5,
    request=LOG_DIRS_TOPICS,
    response=(THROTTLE_TIME, ("error_code", Int16), array("results", *_LOG_DIR, CORDONED)),
)


class DescribeLogDirs(AdminRequest, versions=(DescribeLogDirsRequestV4, DescribeLogDirsRequestV5)):
    """Requests the volumes, without topics, so the answer does not grow with partitions."""

    NEEDED = "v4 (Kafka 3.3), the first with the sizes of volumes,"
    values = ((),)
