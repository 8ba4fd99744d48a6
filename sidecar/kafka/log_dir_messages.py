"""What lies in each log dir, in Kafka's messages: DescribeLogDirs with all topics.

The answer names every partition of every topic of its broker. Its bytes are retained, so that
another thread can decode them: ``log_dirs_in``. Of a topic's partitions the row of entries is
retained, 22 bytes each, which ``PartitionSizes`` decodes.

Example: 4,000 partitions of 1,000 topics are 88 kB besides the topics' names.
"""

import struct
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final

from aiokafka.protocol.api import Response
from aiokafka.protocol.types import Int16

from sidecar.kafka.client.messages import THROTTLE_TIME, AdminRequest, array, message
from sidecar.kafka.client.packed_array import PackedArray
from sidecar.kafka.cluster_messages import (
    CORDONED,
    DESCRIBE_LOG_DIRS_KEY,
    LOG_DIRS_TOPICS,
    PARTITION,
    log_dir_fields,
)

_ENTRY = struct.Struct(">iqq?x")
"""A partition without tags, whose number, 0, is the last byte."""
_PART = struct.Struct(">iq10x")
"""Its index and size."""
ENTRY_BYTES: Final = _ENTRY.size


class PartitionSizes:
    """The partitions of a topic in one log dir, decoded one by one; ``packed`` as in an answer."""

    __slots__ = ("_packed",)

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed) // ENTRY_BYTES

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Index and bytes."""
        return _PART.iter_unpack(self._packed)

    @property
    def total_bytes(self) -> int:
        """The sum of their sizes."""
        return sum(size for _, size in self)


class _PartitionSizes:
    """An array of partitions."""

    _ARRAY = PackedArray(_ENTRY, *PARTITION)

    def decode(self, data: BytesIO) -> PartitionSizes:
        return PartitionSizes(self._ARRAY.decode(data))


class _Rest:
    """All that is left of an answer."""

    def decode(self, data: BytesIO) -> bytes:
        """As it came."""
        return data.read()


_LOG_DIR = log_dir_fields(_PartitionSizes())
_LOG_DIRS = {4: array("results", *_LOG_DIR)[1], 5: array("results", *_LOG_DIR, CORDONED)[1]}


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


_RequestV4, _RequestV5 = (
    message(
        "DescribeTopicsOfLogDirs",
        DESCRIBE_LOG_DIRS_KEY,
        version,
        request=LOG_DIRS_TOPICS,
        response=(THROTTLE_TIME, ("error_code", Int16), ("packed", _Rest())),
        tagged=False,
    )[0]
    for version in (4, 5)
)


class DescribeTopicsOfLogDirs(AdminRequest, versions=(_RequestV4, _RequestV5)):
    """Everything that lies in a broker's log dirs: an answer that grows with partitions."""

    NEEDED = "v4 (Kafka 3.3)"
    values = (None,)
