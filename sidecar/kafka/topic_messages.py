"""Topics in Kafka's messages, in the versions in which a controller may say "throttled" (KIP-599).

CreateTopics (key 19) v7, CreatePartitions (key 37) v3 and DeleteTopics (key 20) v6. From v6, v3 and
v5 on a mutation quota is strict: what is over it gets error 89, THROTTLING_QUOTA_EXCEEDED. Older
versions, which would be accepted and throttled afterwards, are not used.

Example: ``DeleteTopics(["t"], 1000)`` is an array of one, the name "t", an id of 16 zeros, for "by
name", no tags, and 1,000 ms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiokafka.protocol.types import Boolean, CompactArray, Int16, Int32

from sidecar.kafka.client.messages import (
    CONFIG,
    ERROR,
    NO_ID,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    Uuid,
    array,
    message,
)

CREATE_TOPICS_KEY = 19
DELETE_TOPICS_KEY = 20
CREATE_PARTITIONS_KEY = 37

BROKERS_CHOICE = -1
"""For partitions or replicas: as many as the broker's own default says."""

_TIMEOUT = ("timeout_ms", Int32)
_TIMEOUT_AND_DRY_RUN = (_TIMEOUT, ("validate_only", Boolean))
_SIZE = (("num_partitions", Int32), ("replication_factor", Int16))
_BROKER_IDS = ("broker_ids", CompactArray(Int32))


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
    """A topic to be grown to so many partitions in all."""

    name: str
    partitions: int


# The answer has the configuration for those who may describe it.
CreateTopicsRequestV7, CreateTopicsResponseV7 = message(
    "CreateTopics",
    CREATE_TOPICS_KEY,
    7,
    request=(
        array(
            "topics",
            ("name", STRING),
            *_SIZE,
            array("assignments", ("partition_index", Int32), _BROKER_IDS),
            array("configs", ("name", STRING), ("value", STRING)),
        ),
        *_TIMEOUT_AND_DRY_RUN,
    ),
    response=(
        THROTTLE_TIME,
        array(
            "topics",
            ("name", STRING),
            ("topic_id", Uuid),
            *ERROR,
            *_SIZE,
            array("configs", *CONFIG),
        ),
    ),
)


class CreateTopics(AdminRequest, versions=(CreateTopicsRequestV7,)):
    """Creates topics, each by itself.

    Args:
        topics: each name once.
        timeout_ms: how long the controller may take.
        validate_only: nothing is created, but refused alike, and charged alike on KRaft.
    """

    NEEDED = "v7 (Kafka 2.8)"

    def __init__(
        self, topics: Sequence[NewTopic], timeout_ms: int, *, validate_only: bool = False
    ) -> None:
        created: list[tuple[object, ...]] = [
            (
                topic.name,
                topic.partitions,
                topic.replication,
                [],
                [(name, value, {}) for name, value in topic.configs.items()],
                {},
            )
            for topic in topics
        ]
        self.values = (created, timeout_ms, validate_only)


CreatePartitionsRequestV3, CreatePartitionsResponseV3 = message(
    "CreatePartitions",
    CREATE_PARTITIONS_KEY,
    3,
    request=(
        array("topics", ("name", STRING), ("count", Int32), array("assignments", _BROKER_IDS)),
        *_TIMEOUT_AND_DRY_RUN,
    ),
    response=(THROTTLE_TIME, array("results", ("name", STRING), *ERROR)),
)


class CreatePartitions(AdminRequest, versions=(CreatePartitionsRequestV3,)):
    """Adds partitions to topics, to each by itself; the brokers choose where.

    Args:
        growths: each topic once.
        timeout_ms: how long the controller may take.
        validate_only: nothing is changed, but refused alike, and charged alike on KRaft.
    """

    NEEDED = "v3 (Kafka 2.7)"

    def __init__(
        self, growths: Sequence[Growth], timeout_ms: int, *, validate_only: bool = False
    ) -> None:
        # Null assignments leave them to the brokers.
        topics: list[tuple[object, ...]] = [
            (growth.name, growth.partitions, None, {}) for growth in growths
        ]
        self.values = (topics, timeout_ms, validate_only)


DeleteTopicsRequestV6, DeleteTopicsResponseV6 = message(
    "DeleteTopics",
    DELETE_TOPICS_KEY,
    6,
    request=(array("topics", ("name", STRING), ("topic_id", Uuid)), _TIMEOUT),
    response=(
        THROTTLE_TIME,
        array("responses", ("name", STRING), ("topic_id", Uuid), *ERROR),
    ),
)


class DeleteTopics(AdminRequest, versions=(DeleteTopicsRequestV6,)):
    """Deletes topics by name, each by itself.

    Args:
        names: each once.
        timeout_ms: how long the controller may take.
    """

    NEEDED = "v6 (Kafka 2.8)"

    def __init__(self, names: Sequence[str], timeout_ms: int) -> None:
        self.values = ([(name, NO_ID, {}) for name in names], timeout_ms)
