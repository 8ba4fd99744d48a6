"""Quotas on a real cluster: set for a while, read, and taken away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kafka_lab.cluster import Cluster
from sidecar.kafka.client_quotas import alter_client_quotas, describe_client_quotas
from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.request_time.quota_plan import by_entity, removals
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from tests.support.waiting import seen


def admin_of(cluster: Cluster, client_id: str = "throttle-sidecar") -> KafkaAdmin:
    """How to reach a cluster's plain listener."""
    return KafkaAdmin(bootstrap_servers=addresses(cluster.bootstrap), client_id=client_id)


@asynccontextmanager
async def under(cluster: Cluster, quotas: ClientQuotas) -> AsyncIterator[None]:
    """The quotas are set meanwhile."""
    admin = admin_of(cluster)
    limits = [(entity.parts(), dict(own)) for entity, own in quotas.items()]
    assert await alter_client_quotas(admin, limits) is None
    try:
        # It takes a moment until every node's own quota managers have them.
        await asyncio.sleep(1.0)
        yield
    finally:
        assert await alter_client_quotas(admin, by_entity(removals(quotas, {}))) is None


async def quotas_of(cluster: Cluster) -> ClientQuotas:
    """The quotas that are set."""
    result = await describe_client_quotas(admin_of(cluster))
    assert isinstance(result, dict), result
    return result


async def remove_quotas(cluster: Cluster) -> None:
    """Remove all that are set."""
    left = removals(await quotas_of(cluster), {})
    assert await alter_client_quotas(admin_of(cluster), by_entity(left)) is None


async def in_force(cluster: Cluster, expected: ClientQuotas, timeout_s: float = 60.0) -> None:
    """Wait until the broker shows these quotas: it has them a moment after the controller."""
    await seen(
        "these quotas", lambda: quotas_of(cluster), lambda result: result == expected, timeout_s
    )
