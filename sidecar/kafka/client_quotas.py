"""Reading and setting client quotas (KIP-546), as kafka-configs does.

Reading needs DESCRIBE_CONFIGS on the cluster, setting ALTER_CONFIGS.

Example: ``await alter_client_quotas(admin, [({"client-id": "etl"}, {"producer_byte_rate": 1e6})])``
holds every client with that client-id to 1 MB/s on each broker, and ``describe_client_quotas``
then has ``Entity(client_id="etl"): {"producer_byte_rate": 1e6}``.
"""

import asyncio
import time
from collections.abc import Sequence

from aiokafka.protocol.api import Response

from sidecar.kafka.asking import ask_any, refused
from sidecar.kafka.connection import dial
from sidecar.kafka.failures import EXPECTED_ERRORS, to_failure
from sidecar.kafka.quota_messages import Alteration, AlterClientQuotas, DescribeClientQuotas
from sidecar.kafka.security import load_security
from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind

_DESCRIBE_CLIENT_QUOTAS = DescribeClientQuotas()


async def describe_client_quotas(
    admin: KafkaAdmin, timeout_s: float = 10.0
) -> ClientQuotas | Failure:
    """All quotas of the cluster, in the order in which the broker tells them.

    Args:
        admin: how to reach the brokers; the next address is asked when one does not answer.
        timeout_s: for all of it, seconds.

    Returns:
        Entities of kinds that are not in ``Entity``, of a Kafka to come, are left out: no client
        that is known here is under them.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    return await ask_any(
        admin, _DESCRIBE_CLIENT_QUOTAS, read_client_quotas, timeout_s, "the client quotas"
    )


def read_client_quotas(response: Response, endpoint: HostPort) -> ClientQuotas | Failure:
    """The quotas in a DescribeClientQuotas answer.

    Args:
        response: v1.
        endpoint: who answered.
    """
    if response.error_code:
        return refused(
            endpoint,
            "DescribeClientQuotas",
            response.error_code,
            response.error_message,
            "DescribeConfigs",
        )
    quotas: dict[Entity, dict[str, float]] = {}
    for parts, values, *_ in response.entries or ():
        try:
            entity = Entity.of({kind: name for kind, name, *_ in parts})
        except ValueError:
            continue
        quotas[entity] = {key: value for key, value, *_ in values}
    return quotas


async def alter_client_quotas(
    admin: KafkaAdmin,
    alterations: Sequence[Alteration],
    timeout_s: float = 10.0,
    *,
    validate_only: bool = False,
) -> Failure | None:
    """Sets and removes quotas.

    Args:
        admin: how to reach the brokers; the first address is asked.
        alterations: each is done wholly or not at all.
        timeout_s: for all of it, seconds.
        validate_only: nothing is changed, but refused alike.

    Returns:
        Why it was not done, the first refusal of a broker; None: it was.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    endpoint = admin.bootstrap_servers[0]
    security = load_security(admin, time.monotonic)
    try:
        async with asyncio.timeout(timeout_s):
            connection = await dial(endpoint, security, admin.client_id, time.monotonic)
            try:
                request = AlterClientQuotas(alterations, validate_only=validate_only)
                answer = await connection.call(request)
            finally:
                await connection.close()
    except EXPECTED_ERRORS as error:
        return to_failure(error, str(endpoint), "setting quotas")
    for error_code, error_message, parts, *_ in answer.entries or ():
        if error_code:
            failure = refused(
                endpoint, "AlterClientQuotas", error_code, error_message, "AlterConfigs"
            )
            if failure.kind is FailureKind.AUTHORIZATION:
                return failure
            told = ", ".join(f"{kind} {name or 'the default'}" for kind, name, *_ in parts)
            return Failure(failure.kind, f"{failure.message} (for {told})")
    return None
