# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""Configurations of brokers and levels of their loggers in Kafka's messages.

DescribeConfigs (key 32) v4, the first flexible version (KIP-482), and IncrementalAlterConfigs (key
44) v1 (KIP-339). A resource is a type and a name; for a broker and for its loggers the name is the
broker's id, and the broker itself has to be asked (KIP-412 for the loggers).

Example: ``DescribeConfigs(BROKER_LOGGER, "1", ["kafka.request.logger"])`` asks broker 1 for the
level of its request log, and ``SetConfigs(BROKER_LOGGER, "1", {"kafka.request.logger": "DEBUG"})``
sets it.
"""

from collections.abc import Mapping, Sequence

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

DESCRIBE_CONFIGS_KEY = 32
INCREMENTAL_ALTER_CONFIGS_KEY = 44

BROKER = 4
"""The resource type of a broker's configuration."""
BROKER_LOGGER = 8
"""The resource type of a broker's loggers: name -> level. A restart forgets what was set."""

_SET = 0
_STRING = CompactString("utf-8")
_TAGS = ("tags", TaggedFields)


class DescribeConfigsResponseV4(Response):
    """Configurations of each resource."""

    API_KEY = DESCRIBE_CONFIGS_KEY
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "results",
            CompactArray(
                ("error_code", Int16),
                ("error_message", _STRING),
                ("resource_type", Int8),
                ("resource_name", _STRING),
                (
                    "configs",
                    CompactArray(
                        ("name", _STRING),
                        ("value", _STRING),
                        ("read_only", Boolean),
                        ("config_source", Int8),
                        ("is_sensitive", Boolean),
                        (
                            "synonyms",
                            CompactArray(
                                ("name", _STRING), ("value", _STRING), ("source", Int8), _TAGS
                            ),
                        ),
                        ("config_type", Int8),
                        ("documentation", _STRING),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class DescribeConfigsRequestV4(RequestStruct):
    """Asks for configurations by name."""

    API_KEY = DESCRIBE_CONFIGS_KEY
    API_VERSION = 4
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeConfigsResponseV4
    SCHEMA = Schema(
        (
            "resources",
            CompactArray(
                ("resource_type", Int8),
                ("resource_name", _STRING),
                ("configuration_keys", CompactArray(_STRING)),
                _TAGS,
            ),
        ),
        ("include_synonyms", Boolean),
        ("include_documentation", Boolean),
        _TAGS,
    )


class DescribeConfigs(Request[DescribeConfigsRequestV4]):
    """Some configurations of one resource.

    Args:
        resource_type: BROKER or BROKER_LOGGER.
        name: of the resource.
        keys: the configurations wanted; those that the resource does not have are not answered.
    """

    API_KEY = DESCRIBE_CONFIGS_KEY
    NEEDED = "v4 (Kafka 2.8)"

    def __init__(self, resource_type: int, name: str, keys: Sequence[str]) -> None:
        self._resource: tuple[object, ...] = (resource_type, name, list(keys), {})

    def build(
        self, request_struct_class: type[DescribeConfigsRequestV4]
    ) -> DescribeConfigsRequestV4:
        """The request."""
        return request_struct_class([self._resource], False, False, {})


class IncrementalAlterConfigsResponseV1(Response):
    """What became of each resource."""

    API_KEY = INCREMENTAL_ALTER_CONFIGS_KEY
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "responses",
            CompactArray(
                ("error_code", Int16),
                ("error_message", _STRING),
                ("resource_type", Int8),
                ("resource_name", _STRING),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class IncrementalAlterConfigsRequestV1(RequestStruct):
    """Configurations to change; all others stay as they are."""

    API_KEY = INCREMENTAL_ALTER_CONFIGS_KEY
    API_VERSION = 1
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = IncrementalAlterConfigsResponseV1
    SCHEMA = Schema(
        (
            "resources",
            CompactArray(
                ("resource_type", Int8),
                ("resource_name", _STRING),
                (
                    "configs",
                    CompactArray(
                        ("name", _STRING), ("config_operation", Int8), ("value", _STRING), _TAGS
                    ),
                ),
                _TAGS,
            ),
        ),
        ("validate_only", Boolean),
        _TAGS,
    )


class SetConfigs(Request[IncrementalAlterConfigsRequestV1]):
    """IncrementalAlterConfigs that sets some configurations of one resource.

    Args:
        resource_type: BROKER or BROKER_LOGGER.
        name: of the resource.
        values: to set, by name.
    """

    API_KEY = INCREMENTAL_ALTER_CONFIGS_KEY
    NEEDED = "v1 (Kafka 2.8)"

    def __init__(self, resource_type: int, name: str, values: Mapping[str, str]) -> None:
        operations: list[tuple[object, ...]] = [
            (key, _SET, value, {}) for key, value in values.items()
        ]
        self._resource: tuple[object, ...] = (resource_type, name, operations, {})

    def build(
        self, request_struct_class: type[IncrementalAlterConfigsRequestV1]
    ) -> IncrementalAlterConfigsRequestV1:
        """The request."""
        return request_struct_class([self._resource], False, {})
