"""What the sidecar's user may do on the cluster, by each broker (KIP-430).

DescribeCluster returns the operations that the user's ACLs allow on the cluster, as bits by the
operations' codes. Without DESCRIBE on the cluster it returns none, so the others are unknown then.
Without an authorizer it returns all. A broker that can't tell returns the smallest integer. The
version of the answer shows how old the broker is.

Example: the bits 1 << 8 and 1 << 10 are DESCRIBE and DESCRIBE_CONFIGS.
"""

from dataclasses import dataclass
from typing import Final

from aiokafka.protocol.api import Response

from sidecar.kafka.client.each_broker import Query, query_each
from sidecar.kafka.client.failures import error_name
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.cluster_messages import (
    ENDPOINT_TYPE_BROKERS,
    DescribeClusterRequestV0,
    DescribeClusterRequestV1,
    DescribeClusterRequestV2,
)
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

_CODES: Final = {8: "Describe", 10: "DescribeConfigs", 11: "AlterConfigs"}
_NOT_TOLD: Final = -(2**31)
_KAFKA: Final = {0: "3.3 to 3.6", 1: "3.7 to 3.9", 2: "4.0 or newer"}


class _DescribeRights(
    AdminRequest,
    versions=(DescribeClusterRequestV0, DescribeClusterRequestV1, DescribeClusterRequestV2),
):
    """Lists the brokers, with the operations that the user may do on the cluster."""

    NEEDED = "v0 (Kafka 2.8)"
    values = (True, ENDPOINT_TYPE_BROKERS, False)


_QUERY: Final = Query(_DescribeRights(), "Describe")


@dataclass(frozen=True, slots=True)
class ClusterRights:
    """A broker's answer.

    Attributes:
        operations: "Describe", "DescribeConfigs", "AlterConfigs", as far as they are allowed; None
            if the broker does not tell.
        kafka: the versions of Kafka that the broker may have: "4.0 or newer".
    """

    operations: frozenset[str] | None
    kafka: str


async def cluster_rights(
    admin: KafkaAdmin, timeout_s: float
) -> dict[int, ClusterRights | Failure] | Failure:
    """Asks every active broker; arguments and errors as in ``query_each``."""
    return await query_each(admin, None, lambda _: _QUERY, _rights, timeout_s)


def _rights(_query: Query, response: Response, broker_id: int) -> ClusterRights | Failure:
    if response.error_code:
        text = f"broker {broker_id}: DescribeCluster returned {error_name(response.error_code)}"
        return Failure(FailureKind.BROKER, text)
    bits = response.cluster_authorized_operations
    allowed = frozenset(name for code, name in _CODES.items() if bits >> code & 1)
    return ClusterRights(None if bits == _NOT_TOLD else allowed, _KAFKA[response.API_VERSION])
