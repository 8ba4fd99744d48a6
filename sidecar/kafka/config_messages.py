"""The messages for configurations of topics and brokers, and for levels of brokers' loggers.

They are DescribeConfigs (key 32) v4, its first flexible version (KIP-482), and
IncrementalAlterConfigs (key 44) v1 (KIP-339). A resource has a type and a name. For a broker and
its loggers, the name is the broker's id, and only that broker answers (KIP-412 for loggers).

Example: ``DescribeConfigs(BROKER_LOGGER, ["1"], ["kafka.request.logger"])`` asks broker 1 for the
level of its request log, and ``SetConfigs(BROKER_LOGGER, "1", {"kafka.request.logger": "DEBUG"})``
sets it.
"""

from collections.abc import Iterable, Mapping, Sequence

from aiokafka.protocol.types import Boolean, CompactArray, Int8

from sidecar.kafka.client.messages import (
    CONFIG,
    ERROR,
    RESOURCE,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    array,
    message,
)

DESCRIBE_CONFIGS_KEY = 32
INCREMENTAL_ALTER_CONFIGS_KEY = 44

TOPIC = 2
"""The resource type of a topic's configuration."""
BROKER = 4
"""The resource type of a broker's configuration."""
BROKER_LOGGER = 8
"""The resource type of a broker's loggers: name -> level. A restart discards set levels."""

_SET = 0


DescribeConfigsRequestV4, DescribeConfigsResponseV4 = message(
    "DescribeConfigs",
    DESCRIBE_CONFIGS_KEY,
    4,
    request=(
        array("resources", *RESOURCE, ("configuration_keys", CompactArray(STRING))),
        ("include_synonyms", Boolean),
        ("include_documentation", Boolean),
    ),
    response=(
        THROTTLE_TIME,
        array(
            "results",
            *ERROR,
            *RESOURCE,
            array(
                "configs",
                *CONFIG,
                array("synonyms", ("name", STRING), ("value", STRING), ("source", Int8)),
                ("config_type", Int8),
                ("documentation", STRING),
            ),
        ),
    ),
)


class DescribeConfigs(AdminRequest, versions=(DescribeConfigsRequestV4,)):
    """Reads some configurations of resources.

    Args:
        resource_type: TOPIC, BROKER or BROKER_LOGGER.
        names: the resources' names.
        keys: the configurations to read. The answer omits those that a resource lacks.
    """

    NEEDED = "v4 (Kafka 2.8)"

    def __init__(self, resource_type: int, names: Iterable[str], keys: Sequence[str]) -> None:
        self.values = ([(resource_type, name, list(keys), {}) for name in names], False, False)


IncrementalAlterConfigsRequestV1, IncrementalAlterConfigsResponseV1 = message(
    "IncrementalAlterConfigs",
    INCREMENTAL_ALTER_CONFIGS_KEY,
    1,
    request=(
        array(
            "resources",
            *RESOURCE,
            array("configs", ("name", STRING), ("config_operation", Int8), ("value", STRING)),
        ),
        ("validate_only", Boolean),
    ),
    response=(THROTTLE_TIME, array("responses", *ERROR, *RESOURCE)),
)


class SetConfigs(AdminRequest, versions=(IncrementalAlterConfigsRequestV1,)):
    """Sets some configurations of one resource; its other configurations do not change.

    Args:
        resource_type: BROKER or BROKER_LOGGER.
        name: the resource's name.
        values: the name and new value of each configuration.
    """

    NEEDED = "v1 (Kafka 2.8)"

    def __init__(self, resource_type: int, name: str, values: Mapping[str, str]) -> None:
        operations: list[tuple[object, ...]] = [
            (key, _SET, value, {}) for key, value in values.items()
        ]
        self.values = ([(resource_type, name, operations, {})], False)
