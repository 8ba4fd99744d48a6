# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""The messages that aiokafka lacks and polls need: DescribeCluster and DescribeLogDirs.

They are declared with aiokafka's own types, field by field as in Kafka's message definitions. All
versions here are flexible (KIP-482), so tags are listed at every level; we send none, and skip
those that we are sent. A version that is not listed is never used: DescribeLogDirs before v4 has
no sizes (KIP-827), so the broker is unsupported.

- DescribeCluster (key 60): v0 (KIP-700), v1 asks brokers or controllers (KIP-919), v2 includes
  fenced brokers (KIP-1073, Kafka 4.0).
- DescribeLogDirs (key 35): v4 has sizes (KIP-827, Kafka 3.3), v5 the cordoned flag (Kafka 4.3).

Example: DescribeLogDirs v4 with no topics, which asks for volumes only, is the two bytes 01 00: an
array of length 0, stored as one more, and no tags. A null array, 00, would ask for every partition.
"""

from typing import Protocol

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

DESCRIBE_CLUSTER_KEY = 60
DESCRIBE_LOG_DIRS_KEY = 35

ENDPOINT_TYPE_BROKERS = 1
ENDPOINT_TYPE_CONTROLLERS = 2

_STRING = CompactString("utf-8")
_TAGS = ("tags", TaggedFields)
_BROKER = (("broker_id", Int32), ("host", _STRING), ("port", Int32), ("rack", _STRING))
_LOG_DIR = (
    ("error_code", Int16),
    ("log_dir", _STRING),
    (
        "topics",
        CompactArray(
            ("name", _STRING),
            (
                "partitions",
                CompactArray(
                    ("partition_index", Int32),
                    ("partition_size", Int64),
                    ("offset_lag", Int64),
                    ("is_future_key", Boolean),
                    _TAGS,
                ),
            ),
            _TAGS,
        ),
    ),
    ("total_bytes", Int64),
    ("usable_bytes", Int64),
)


class DescribeClusterResponseV0(Response):
    """Brokers and cluster id."""

    API_KEY = DESCRIBE_CLUSTER_KEY
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("error_message", _STRING),
        ("cluster_id", _STRING),
        ("controller_id", Int32),
        ("brokers", CompactArray(*_BROKER, _TAGS)),
        ("cluster_authorized_operations", Int32),
        _TAGS,
    )


class DescribeClusterResponseV1(Response):
    """Adds which kind of endpoint was described."""

    API_KEY = DESCRIBE_CLUSTER_KEY
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("error_message", _STRING),
        ("endpoint_type", Int8),
        ("cluster_id", _STRING),
        ("controller_id", Int32),
        ("brokers", CompactArray(*_BROKER, _TAGS)),
        ("cluster_authorized_operations", Int32),
        _TAGS,
    )


class DescribeClusterResponseV2(Response):
    """Adds whether a broker is fenced."""

    API_KEY = DESCRIBE_CLUSTER_KEY
    API_VERSION = 2
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("error_message", _STRING),
        ("endpoint_type", Int8),
        ("cluster_id", _STRING),
        ("controller_id", Int32),
        ("brokers", CompactArray(*_BROKER, ("is_fenced", Boolean), _TAGS)),
        ("cluster_authorized_operations", Int32),
        _TAGS,
    )


class DescribeClusterRequestV0(RequestStruct):
    """Asks for the brokers."""

    API_KEY = DESCRIBE_CLUSTER_KEY
    API_VERSION = 0
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeClusterResponseV0
    SCHEMA = Schema(("include_cluster_authorized_operations", Boolean), _TAGS)


class DescribeClusterRequestV1(RequestStruct):
    """Asks for endpoints of one kind."""

    API_KEY = DESCRIBE_CLUSTER_KEY
    API_VERSION = 1
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeClusterResponseV1
    SCHEMA = Schema(
        ("include_cluster_authorized_operations", Boolean), ("endpoint_type", Int8), _TAGS
    )


class DescribeClusterRequestV2(RequestStruct):
    """Asks for fenced brokers too."""

    API_KEY = DESCRIBE_CLUSTER_KEY
    API_VERSION = 2
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeClusterResponseV2
    SCHEMA = Schema(
        ("include_cluster_authorized_operations", Boolean),
        ("endpoint_type", Int8),
        ("include_fenced_brokers", Boolean),
        _TAGS,
    )


# aiokafka takes the versions from this union, which has to be in ascending order.
_DescribeClusterStruct = (
    DescribeClusterRequestV0 | DescribeClusterRequestV1 | DescribeClusterRequestV2
)


class DescribeCluster(Request[_DescribeClusterStruct]):
    """Which brokers there are, the fenced ones included where the broker can (v2)."""

    API_KEY = DESCRIBE_CLUSTER_KEY
    NEEDED = "v0 (Kafka 2.8)"

    def build(self, request_struct_class: type[_DescribeClusterStruct]) -> _DescribeClusterStruct:
        """The request in the newest version that both sides know."""
        fields = (False, ENDPOINT_TYPE_BROKERS, True)[: request_struct_class.API_VERSION + 1]
        return request_struct_class(*fields, {})


class DescribeControllers(Request[DescribeClusterRequestV1]):
    """Which controllers there are, asked of a controller's own listener (KIP-919)."""

    API_KEY = DESCRIBE_CLUSTER_KEY
    NEEDED = "v1 (Kafka 3.7)"

    def build(
        self, request_struct_class: type[DescribeClusterRequestV1]
    ) -> DescribeClusterRequestV1:
        """The request."""
        return request_struct_class(False, ENDPOINT_TYPE_CONTROLLERS, {})


class DescribeLogDirsResponseV4(Response):
    """Log dirs with the sizes of their volumes."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("results", CompactArray(*_LOG_DIR, _TAGS)),
        _TAGS,
    )


class DescribeLogDirsResponseV5(Response):
    """Adds whether a log dir is cordoned."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    API_VERSION = 5
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("results", CompactArray(*_LOG_DIR, ("is_cordoned", Boolean), _TAGS)),
        _TAGS,
    )


class DescribeLogDirsRequestV4(RequestStruct):
    """Asks for log dirs, and for the partitions of the topics named."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    API_VERSION = 4
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeLogDirsResponseV4
    SCHEMA = Schema(
        ("topics", CompactArray(("topic", _STRING), ("partitions", CompactArray(Int32)), _TAGS)),
        _TAGS,
    )


class DescribeLogDirsRequestV5(RequestStruct):
    """The same as v4."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    API_VERSION = 5
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeLogDirsResponseV5
    SCHEMA = DescribeLogDirsRequestV4.SCHEMA


_DescribeLogDirsStruct = DescribeLogDirsRequestV4 | DescribeLogDirsRequestV5


class DescribeLogDirs(Request[_DescribeLogDirsStruct]):
    """Volumes only: no topic is named, so the answer does not grow with partitions."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    NEEDED = "v4 (Kafka 3.3), the first with the sizes of volumes,"

    def build(self, request_struct_class: type[_DescribeLogDirsStruct]) -> _DescribeLogDirsStruct:
        """The request in the newest version that both sides know."""
        return request_struct_class([], {})


class AdminRequest(Protocol):
    """What a connection may be asked: a request of aiokafka's form that says what it needs.

    Attributes:
        API_KEY: Kafka's number of it.
        NEEDED: the oldest version that will do, and since when Kafka has it, for a person.
    """

    API_KEY: int
    NEEDED: str
