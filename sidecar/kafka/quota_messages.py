"""The messages for client quotas, which aiokafka lacks (KIP-546; flexible from Kafka 2.8 on).

They are DescribeClientQuotas (key 48) and AlterClientQuotas (key 49), both v1.

Example: ``AlterClientQuotas([({"client-id": "etl"}, {"producer_byte_rate": 1e6})])`` sets a quota.
``DescribeClientQuotas()`` requests all quotas: an empty array of components, strict false, and no
tags are the three bytes 01 00 00.
"""

from collections.abc import Mapping, Sequence

from aiokafka.protocol.types import Boolean, Float64, Int8

from sidecar.kafka.client.messages import (
    ERROR,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    array,
    message,
)

DESCRIBE_CLIENT_QUOTAS_KEY = 48
ALTER_CLIENT_QUOTAS_KEY = 49

_ENTITY = array("entity", ("entity_type", STRING), ("entity_name", STRING))
_VALUE = (("key", STRING), ("value", Float64))

Alteration = tuple[Mapping[str, str | None], Mapping[str, float | None]]
"""An entity, as type ("user", "client-id") -> name, where None is the default, and its quotas to
set, as name -> value, where None removes the quota."""


DescribeClientQuotasRequestV1, DescribeClientQuotasResponseV1 = message(
    "DescribeClientQuotas",
    DESCRIBE_CLIENT_QUOTAS_KEY,
    1,
    request=(
        array("components", ("entity_type", STRING), ("match_type", Int8), ("match", STRING)),
        ("strict", Boolean),
    ),
    response=(THROTTLE_TIME, *ERROR, array("entries", _ENTITY, array("values", *_VALUE))),
)


class DescribeClientQuotas(AdminRequest, versions=(DescribeClientQuotasRequestV1,)):
    """Requests the quotas of all entities: every entity matches an empty list of components."""

    NEEDED = "v1 (Kafka 2.8)"
    values = ((), False)


AlterClientQuotasRequestV1, AlterClientQuotasResponseV1 = message(
    "AlterClientQuotas",
    ALTER_CLIENT_QUOTAS_KEY,
    1,
    request=(
        array("entries", _ENTITY, array("ops", *_VALUE, ("remove", Boolean))),
        ("validate_only", Boolean),
    ),
    response=(THROTTLE_TIME, array("entries", *ERROR, _ENTITY)),
)


class AlterClientQuotas(AdminRequest, versions=(AlterClientQuotasRequestV1,)):
    """Sets and removes quotas. For each entity the broker applies all changes or none."""

    NEEDED = "v1 (Kafka 2.8)"

    def __init__(self, alterations: Sequence[Alteration], *, validate_only: bool = False) -> None:
        entries: list[tuple[object, ...]] = [
            (
                [(kind, name, {}) for kind, name in entity.items()],
                [(key, value or 0.0, value is None, {}) for key, value in values.items()],
                {},
            )
            for entity, values in alterations
        ]
        self.values = (entries, validate_only)
