# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""Client quotas in Kafka's messages, which aiokafka lacks (KIP-546; flexible from Kafka 2.8 on).

DescribeClientQuotas (key 48) and AlterClientQuotas (key 49), both v1.

Example: ``AlterClientQuotas([({"client-id": "etl"}, {"producer_byte_rate": 1e6})])`` sets one;
``DescribeClientQuotas()`` asks for all: an empty list of components, not strict, is the three bytes
01 00 00 with the tags.
"""

from collections.abc import Mapping, Sequence

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Float64,
    Int8,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

DESCRIBE_CLIENT_QUOTAS_KEY = 48
ALTER_CLIENT_QUOTAS_KEY = 49

_STRING = CompactString("utf-8")
_TAGS = ("tags", TaggedFields)
_ENTITY = CompactArray(("entity_type", _STRING), ("entity_name", _STRING), _TAGS)

Alteration = tuple[Mapping[str, str | None], Mapping[str, float | None]]
"""An entity ("user", "client-id" -> name, None for the default) and the quotas to set (None:
remove), such as producer_byte_rate."""


class DescribeClientQuotasResponseV1(Response):
    """Entities and the quotas that each has."""

    API_KEY = DESCRIBE_CLIENT_QUOTAS_KEY
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("error_message", _STRING),
        (
            "entries",
            CompactArray(
                ("entity", _ENTITY),
                ("values", CompactArray(("key", _STRING), ("value", Float64), _TAGS)),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class DescribeClientQuotasRequestV1(RequestStruct):
    """Asks for the entities that match every component."""

    API_KEY = DESCRIBE_CLIENT_QUOTAS_KEY
    API_VERSION = 1
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeClientQuotasResponseV1
    SCHEMA = Schema(
        (
            "components",
            CompactArray(("entity_type", _STRING), ("match_type", Int8), ("match", _STRING), _TAGS),
        ),
        ("strict", Boolean),
        _TAGS,
    )


class DescribeClientQuotas(Request[DescribeClientQuotasRequestV1]):
    """All quotas of all entities: no component, which every entity matches."""

    API_KEY = DESCRIBE_CLIENT_QUOTAS_KEY
    NEEDED = "v1 (Kafka 2.8)"

    def build(
        self, request_struct_class: type[DescribeClientQuotasRequestV1]
    ) -> DescribeClientQuotasRequestV1:
        """The request."""
        return request_struct_class([], False, {})


class AlterClientQuotasResponseV1(Response):
    """What became of each entity."""

    API_KEY = ALTER_CLIENT_QUOTAS_KEY
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "entries",
            CompactArray(
                ("error_code", Int16), ("error_message", _STRING), ("entity", _ENTITY), _TAGS
            ),
        ),
        _TAGS,
    )


class AlterClientQuotasRequestV1(RequestStruct):
    """Quotas to set or to remove."""

    API_KEY = ALTER_CLIENT_QUOTAS_KEY
    API_VERSION = 1
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = AlterClientQuotasResponseV1
    SCHEMA = Schema(
        (
            "entries",
            CompactArray(
                ("entity", _ENTITY),
                (
                    "ops",
                    CompactArray(("key", _STRING), ("value", Float64), ("remove", Boolean), _TAGS),
                ),
                _TAGS,
            ),
        ),
        ("validate_only", Boolean),
        _TAGS,
    )


class AlterClientQuotas(Request[AlterClientQuotasRequestV1]):
    """Sets and removes quotas, each entity's all together or none."""

    API_KEY = ALTER_CLIENT_QUOTAS_KEY
    NEEDED = "v1 (Kafka 2.8)"

    def __init__(self, alterations: Sequence[Alteration], *, validate_only: bool = False) -> None:
        self._alterations = alterations
        self._validate_only = validate_only

    def build(
        self, request_struct_class: type[AlterClientQuotasRequestV1]
    ) -> AlterClientQuotasRequestV1:
        """The request."""
        entries: list[tuple[object, ...]] = [
            (
                [(kind, name, {}) for kind, name in entity.items()],
                [(key, value or 0.0, value is None, {}) for key, value in values.items()],
                {},
            )
            for entity, values in self._alterations
        ]
        return request_struct_class(entries, self._validate_only, {})
