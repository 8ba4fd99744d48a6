"""The messages for changing topics, in versions in which the mutation quota is strict (KIP-599).

They are CreateTopics (key 19) v7, CreatePartitions (key 37) v3 and DeleteTopics (key 20) v6. From
v6, v3 and v5 on, the controller rejects what exceeds the quota with error 89,
THROTTLING_QUOTA_EXCEEDED. In older versions it would accept the request and throttle the client
afterwards, so they are not used.

Example: ``DeleteTopics(["t"], 1000)`` is an array with one topic (the name "t", an id of 16 zero
bytes, no tags), and 1,000 ms.
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
"""The broker's default for the number of partitions or replicas."""

_TIMEOUT = ("timeout_ms", Int32)
_TIMEOUT_AND_DRY_RUN = (_TIMEOUT, ("validate_only", Boolean))
_SIZE = (("num_partitions", Int32), ("replication_factor", Int16))
_BROKER_IDS = ("broker_ids", CompactArray(Int32))


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create.

    Attributes:
        name: the topic's name.
        partitions: the number of partitions; -1 for the brokers' num.partitions.
        replication: the replicas of each partition; -1 for default.replication.factor.
        configs: the topic's own configuration.
    """

    name: str
    partitions: int = BROKERS_CHOICE
    replication: int = BROKERS_CHOICE
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Growth:
    """A topic to grow to a total number of partitions."""

    name: str
    partitions: int


# The answer contains the configuration if the client may describe it.
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
    """Creates topics; each succeeds or fails on its own.

    Args:
        topics: the topics, each name once.
        timeout_ms: how long the controller may take.
        validate_only: whether the controller only validates; on KRaft it charges this anyway.
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
    """Adds partitions to topics; each topic succeeds or fails on its own.

    Args:
        growths: the topics, each once.
        timeout_ms: how long the controller may take.
        validate_only: whether the controller only validates; on KRaft it charges this anyway.
    """

    NEEDED = "v3 (Kafka 2.7)"

    def __init__(
        self, growths: Sequence[Growth], timeout_ms: int, *, validate_only: bool = False
    ) -> None:
        # With null assignments, the controller chooses the brokers of the new partitions.
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
    """Deletes topics by name; each succeeds or fails on its own.

    Args:
        names: the topics' names, each once.
        timeout_ms: how long the controller may take.
    """

    NEEDED = "v6 (Kafka 2.8)"

    def __init__(self, names: Sequence[str], timeout_ms: int) -> None:
        self.values = ([(name, NO_ID, {}) for name in names], timeout_ms)
