"""Setting client quotas (KIP-546), as kafka-configs does; it needs ALTER_CONFIGS on the cluster.

Example: ``await alter_client_quotas(admin, [({"client-id": "etl"}, {"producer_byte_rate": 1e6})])``
holds every client with that client-id to 1 MB/s on each broker.
"""

import asyncio
import time
from collections.abc import Sequence

from sidecar.kafka.connection import dial
from sidecar.kafka.failures import EXPECTED_ERRORS, error_name, to_failure
from sidecar.kafka.quota_messages import Alteration, AlterClientQuotas
from sidecar.kafka.security import load_security
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind


async def alter_client_quotas(
    admin: KafkaAdmin, alterations: Sequence[Alteration], timeout_s: float = 10.0
) -> Failure | None:
    """Sets and removes quotas.

    Args:
        admin: how to reach the brokers; the first address is asked.
        alterations: each is done wholly or not at all.
        timeout_s: for all of it, seconds.

    Returns:
        Why it was not done, the first refusal of a broker; None: it was.
    """
    endpoint = admin.bootstrap_servers[0]
    try:
        async with asyncio.timeout(timeout_s):
            security = load_security(admin, time.monotonic)
            connection = await dial(endpoint, security, admin.client_id, time.monotonic)
            try:
                answer = await connection.call(AlterClientQuotas(alterations))
            finally:
                await connection.close()
    except EXPECTED_ERRORS as error:
        return to_failure(error, str(endpoint), "setting quotas")
    for error_code, error_message, *_ in answer.entries:
        if error_code:
            told = f": {error_message}" if error_message else ""
            text = f"{endpoint}: AlterClientQuotas gave {error_name(error_code)}{told}"
            return Failure(FailureKind.BROKER, text)
    return None
