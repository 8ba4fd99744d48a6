"""DescribeLogDirs with all topics: the partitions in each log dir.

The answer contains every partition of every topic on the broker. Its bytes are kept, so that a
thread can decode them with ``log_dirs_in``. The entries of a topic's partitions stay bytes, 22 for
each partition, until ``PartitionSizes`` decodes them.

Example: 4,000 partitions of 1,000 topics take 88 kB, plus the topics' names.
"""

import struct
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final

from aiokafka.protocol.api import Response
from aiokafka.protocol.types import Int16, Schema

from sidecar.kafka.client.messages import TAGS, THROTTLE_TIME, AdminRequest, array, message
from sidecar.kafka.client.packed_array import PackedArray
from sidecar.kafka.cluster_messages import (
    CORDONED,
    DESCRIBE_LOG_DIRS_KEY,
    LOG_DIRS_TOPICS,
    PARTITION,
    log_dir_fields,
    log_dir_topics,
)


class PartitionSizes(PackedArray[tuple[int, int, bool]]):
    """The partitions of a topic in one log dir, decoded one by one from the answer's bytes.

    Each has its index and size, and whether a log-dir move copies it there.
    """

    __slots__ = ()

    ENTRY = struct.Struct(">iqq?x")
    KEPT = struct.Struct(">iq8x?x")
    SCHEMA = Schema(*PARTITION, TAGS)

    @property
    def total_bytes(self) -> int:
        """The size of all partitions."""
        return sum(size for _, size, _ in self)


class _Rest:
    """The wire type of the rest of an answer."""

    def decode(self, data: BytesIO) -> bytes:
        """The bytes, not decoded."""
        return data.read()


_LOG_DIR = log_dir_fields(log_dir_topics(PartitionSizes))
_LOG_DIRS = {4: array("results", *_LOG_DIR)[1], 5: array("results", *_LOG_DIR, CORDONED)[1]}


def log_dirs_in(response: Response) -> list[tuple[Any, ...]]:
    """Decodes the log dirs of an answer to ``DescribeTopicsOfLogDirs``.

    Each log dir is a tuple of error code, path, topics, total bytes and available bytes. A topic is
    a tuple of its name and its ``PartitionSizes``.

    Raises:
        ValueError: the bytes are not valid.
    """
    log_dirs: list[tuple[Any, ...]] | None = _LOG_DIRS[response.API_VERSION].decode(
        BytesIO(response.packed)
    )
    return log_dirs or []


VERSIONS: Final = tuple(
    message(
        "DescribeLogDirs",
        DESCRIBE_LOG_DIRS_KEY,
        version,
        request=LOG_DIRS_TOPICS,
        response=(THROTTLE_TIME, ("error_code", Int16), ("packed", _Rest())),
        tagged=False,
    )[0]
    for version in (4, 5)
)


class DescribeTopicsOfLogDirs(AdminRequest, versions=VERSIONS):
    """Requests all partitions in a broker's log dirs; the answer grows with their number."""

    NEEDED = "v4 (Kafka 3.3)"
    values: tuple[object] = (None,)


class DescribeSomeTopics(DescribeTopicsOfLogDirs, versions=VERSIONS):
    """Requests some partitions in a broker's log dirs."""

    def __init__(self, topics: Mapping[str, Sequence[int]]) -> None:
        """Request these partitions: topic -> indexes. Without indexes Kafka reports nothing."""
        super().__init__()
        self.values = ([(topic, list(indexes), {}) for topic, indexes in topics.items()],)
