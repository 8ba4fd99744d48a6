# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""What lies in each log dir, in Kafka's messages: DescribeLogDirs with all topics.

The answer names every partition of every topic of its broker. It is kept as it came, so that
whoever waits for it can have it taken apart on another thread: ``log_dirs_in``. Of a topic's
partitions the row of entries is kept, 22 bytes each, which ``PartitionSizes`` takes apart.

Example: 4,000 partitions of 1,000 topics are 88 kB besides the topics' names.
"""

import struct
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from sidecar.kafka.client.packed_array import PackedArray
from sidecar.kafka.cluster_messages import (
    DESCRIBE_LOG_DIRS_KEY,
    DescribeLogDirsRequestV4,
)

_STRING = CompactString("utf-8")
_TAGS = ("tags", TaggedFields)

_ENTRY = struct.Struct(">iqq?x")
"""A partition without tags, whose number, 0, is the last byte."""
_WANTED = struct.Struct(">iq10x")
"""Its index and size."""
ENTRY_BYTES: Final = _ENTRY.size


class PartitionSizes:
    """The partitions of a topic in one log dir, taken apart as they are gone through.

    Args:
        packed: as an answer has them.
    """

    __slots__ = ("_packed",)

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed) // ENTRY_BYTES

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Index and bytes."""
        return _WANTED.iter_unpack(self._packed)

    @property
    def total_bytes(self) -> int:
        """The sum of their sizes."""
        return sum(size for _, size in self)


class _PartitionSizes:
    """An array of partitions."""

    _ARRAY = PackedArray(
        _ENTRY,
        ("partition_index", Int32),
        ("partition_size", Int64),
        ("offset_lag", Int64),
        ("is_future_key", Boolean),
    )

    def decode(self, data: BytesIO) -> PartitionSizes:
        return PartitionSizes(self._ARRAY.decode(data))


class _Rest:
    """All that is left of an answer."""

    def decode(self, data: BytesIO) -> bytes:
        """As it came."""
        return data.read()


_LOG_DIR = (
    ("error_code", Int16),
    ("log_dir", _STRING),
    ("topics", CompactArray(("name", _STRING), ("partitions", _PartitionSizes()), _TAGS)),
    ("total_bytes", Int64),
    ("usable_bytes", Int64),
)
_LOG_DIRS = {
    4: CompactArray(*_LOG_DIR, _TAGS),
    5: CompactArray(*_LOG_DIR, ("is_cordoned", Boolean), _TAGS),
}


def log_dirs_in(response: Response) -> list[tuple[Any, ...]]:
    """The log dirs of an answer to ``DescribeTopicsOfLogDirs``.

    Each is error code, path, topics, total and available bytes; a topic is its name and its
    ``PartitionSizes``.

    Raises:
        ValueError: it makes no sense.
    """
    found: list[tuple[Any, ...]] | None = _LOG_DIRS[response.API_VERSION].decode(
        BytesIO(response.packed)
    )
    return found or []


class DescribeTopicsOfLogDirsResponseV4(Response):
    """Log dirs with their topics, not yet taken apart."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    API_VERSION = 4
    SCHEMA = Schema(("throttle_time_ms", Int32), ("error_code", Int16), ("packed", _Rest()))


class DescribeTopicsOfLogDirsResponseV5(Response):
    """The same with the cordoned flag."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    API_VERSION = 5
    SCHEMA = DescribeTopicsOfLogDirsResponseV4.SCHEMA


class DescribeTopicsOfLogDirsRequestV4(RequestStruct):
    """Asks for all topics, by null."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    API_VERSION = 4
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeTopicsOfLogDirsResponseV4
    SCHEMA = DescribeLogDirsRequestV4.SCHEMA


class DescribeTopicsOfLogDirsRequestV5(RequestStruct):
    """The same as v4."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    API_VERSION = 5
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeTopicsOfLogDirsResponseV5
    SCHEMA = DescribeLogDirsRequestV4.SCHEMA


_Struct = DescribeTopicsOfLogDirsRequestV4 | DescribeTopicsOfLogDirsRequestV5


class DescribeTopicsOfLogDirs(Request[_Struct]):
    """Everything that lies in a broker's log dirs: an answer that grows with partitions."""

    API_KEY = DESCRIBE_LOG_DIRS_KEY
    NEEDED = "v4 (Kafka 3.3)"

    def build(self, request_struct_class: type[_Struct]) -> _Struct:
        """The request in the newest version that both sides know."""
        return request_struct_class(None, {})
