# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""Topics in Kafka's messages, in the versions in which a controller may say "throttled" (KIP-599).

CreateTopics (key 19) v7, CreatePartitions (key 37) v3 and DeleteTopics (key 20) v6. From v6, v3 and
v5 on a mutation quota is strict: what is over it gets error 89, THROTTLING_QUOTA_EXCEEDED. Older
versions, which would be accepted and held afterwards, are not spoken.

Example: ``DeleteTopics(["t"], 1000)`` is an array of one, the name "t", an id of 16 zeros, for "by
name", no tags, and 1,000 ms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

CREATE_TOPICS_KEY = 19
DELETE_TOPICS_KEY = 20
CREATE_PARTITIONS_KEY = 37

BROKERS_CHOICE = -1
"""For partitions or replicas: as many as the broker's own default says."""

_NO_ID = bytes(16)
_STRING = CompactString("utf-8")
_TAGS = ("tags", TaggedFields)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created.

    Attributes:
        name: the topic.
        partitions: how many; -1 takes the brokers' num.partitions.
        replication: replicas of each; -1 takes the brokers' default.replication.factor.
        configs: the topic's own configuration.
    """

    name: str
    partitions: int = BROKERS_CHOICE
    replication: int = BROKERS_CHOICE
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Growth:
    """A topic to be given more partitions.

    Attributes:
        name: the topic.
        partitions: how many it is to have in all.
    """

    name: str
    partitions: int


class Uuid(AbstractType):
    """A topic's id, 16 bytes as they are."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        """The bytes."""
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        """The next 16 bytes.

        Raises:
            ValueError: there are fewer.
        """
        value = data.read(len(_NO_ID))
        if len(value) != len(_NO_ID):
            raise ValueError("Buffer underrun decoding a UUID")
        return value


class CreateTopicsResponseV7(Response):
    """What became of each topic; the configuration is told to those who may describe it."""

    API_KEY = CREATE_TOPICS_KEY
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("name", _STRING),
                ("topic_id", Uuid),
                ("error_code", Int16),
                ("error_message", _STRING),
                ("num_partitions", Int32),
                ("replication_factor", Int16),
                (
                    "configs",
                    CompactArray(
                        ("name", _STRING),
                        ("value", _STRING),
                        ("read_only", Boolean),
                        ("config_source", Int8),
                        ("is_sensitive", Boolean),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class CreateTopicsRequestV7(RequestStruct):
    """Topics to create."""

    API_KEY = CREATE_TOPICS_KEY
    API_VERSION = 7
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = CreateTopicsResponseV7
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("name", _STRING),
                ("num_partitions", Int32),
                ("replication_factor", Int16),
                (
                    "assignments",
                    CompactArray(
                        ("partition_index", Int32), ("broker_ids", CompactArray(Int32)), _TAGS
                    ),
                ),
                ("configs", CompactArray(("name", _STRING), ("value", _STRING), _TAGS)),
                _TAGS,
            ),
        ),
        ("timeout_ms", Int32),
        ("validate_only", Boolean),
        _TAGS,
    )


class CreateTopics(Request[CreateTopicsRequestV7]):
    """Creates topics, each by itself.

    Args:
        topics: each name once.
        timeout_ms: how long the controller may take.
        validate_only: nothing is created, but refused alike, and charged alike on KRaft.
    """

    API_KEY = CREATE_TOPICS_KEY
    NEEDED = "v7 (Kafka 2.8)"

    def __init__(
        self, topics: Sequence[NewTopic], timeout_ms: int, *, validate_only: bool = False
    ) -> None:
        self._topics = topics
        self._timeout_ms = timeout_ms
        self._validate_only = validate_only

    def build(self, request_struct_class: type[CreateTopicsRequestV7]) -> CreateTopicsRequestV7:
        """The request."""
        topics: list[tuple[object, ...]] = [
            (
                topic.name,
                topic.partitions,
                topic.replication,
                [],
                [(name, value, {}) for name, value in topic.configs.items()],
                {},
            )
            for topic in self._topics
        ]
        return request_struct_class(topics, self._timeout_ms, self._validate_only, {})


class CreatePartitionsResponseV3(Response):
    """What became of each topic."""

    API_KEY = CREATE_PARTITIONS_KEY
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "results",
            CompactArray(
                ("name", _STRING), ("error_code", Int16), ("error_message", _STRING), _TAGS
            ),
        ),
        _TAGS,
    )


class CreatePartitionsRequestV3(RequestStruct):
    """Topics that are to have more partitions."""

    API_KEY = CREATE_PARTITIONS_KEY
    API_VERSION = 3
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = CreatePartitionsResponseV3
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("name", _STRING),
                ("count", Int32),
                ("assignments", CompactArray(("broker_ids", CompactArray(Int32)), _TAGS)),
                _TAGS,
            ),
        ),
        ("timeout_ms", Int32),
        ("validate_only", Boolean),
        _TAGS,
    )


class CreatePartitions(Request[CreatePartitionsRequestV3]):
    """Adds partitions to topics, to each by itself; the brokers choose where.

    Args:
        growths: each topic once.
        timeout_ms: how long the controller may take.
        validate_only: nothing is changed, but refused alike, and charged alike on KRaft.
    """

    API_KEY = CREATE_PARTITIONS_KEY
    NEEDED = "v3 (Kafka 2.7)"

    def __init__(
        self, growths: Sequence[Growth], timeout_ms: int, *, validate_only: bool = False
    ) -> None:
        self._growths = growths
        self._timeout_ms = timeout_ms
        self._validate_only = validate_only

    def build(
        self, request_struct_class: type[CreatePartitionsRequestV3]
    ) -> CreatePartitionsRequestV3:
        """The request; null assignments leave them to the brokers."""
        topics: list[tuple[object, ...]] = [
            (growth.name, growth.partitions, None, {}) for growth in self._growths
        ]
        return request_struct_class(topics, self._timeout_ms, self._validate_only, {})


class DeleteTopicsResponseV6(Response):
    """What became of each topic."""

    API_KEY = DELETE_TOPICS_KEY
    API_VERSION = 6
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "responses",
            CompactArray(
                ("name", _STRING),
                ("topic_id", Uuid),
                ("error_code", Int16),
                ("error_message", _STRING),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class DeleteTopicsRequestV6(RequestStruct):
    """Topics to delete."""

    API_KEY = DELETE_TOPICS_KEY
    API_VERSION = 6
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DeleteTopicsResponseV6
    SCHEMA = Schema(
        ("topics", CompactArray(("name", _STRING), ("topic_id", Uuid), _TAGS)),
        ("timeout_ms", Int32),
        _TAGS,
    )


class DeleteTopics(Request[DeleteTopicsRequestV6]):
    """Deletes topics by name, each by itself.

    Args:
        names: each once.
        timeout_ms: how long the controller may take.
    """

    API_KEY = DELETE_TOPICS_KEY
    NEEDED = "v6 (Kafka 2.8)"

    def __init__(self, names: Sequence[str], timeout_ms: int) -> None:
        self._names = names
        self._timeout_ms = timeout_ms

    def build(self, request_struct_class: type[DeleteTopicsRequestV6]) -> DeleteTopicsRequestV6:
        """The request."""
        topics: list[tuple[object, ...]] = [(name, _NO_ID, {}) for name in self._names]
        return request_struct_class(topics, self._timeout_ms, {})
