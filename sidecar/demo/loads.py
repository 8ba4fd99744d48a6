"""The demo's producers: one at each broker's own topic, and a tenant with a quota of its own.

The topic of the last broker has a partition on each of its volumes and retains everything, so that
it fills them; those of the others retain little. The tenant sends more than its producer_byte_rate
allows, to the first broker, and is known by its client-id.

Example: ``async with loads(cluster) as running: running[0].rate()`` is about 6e6.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from sidecar.demo.admin import Admin
from sidecar.demo.cluster import Cluster
from sidecar.demo.traffic import Traffic
from sidecar.errors import ClusterError
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.settings import HostPort, KafkaAdmin

BYTES_PER_S: Final = 6e6
FILL_BYTES_PER_S: Final = 12e6
TENANT: Final = "tenant"
TENANT_QUOTA: Final = 1e6
TENANT_BYTES_PER_S: Final = 2e6

QUOTA_WINDOW_S: Final = 11.0
"""Kafka's default: so many seconds' worth of a quota may come at once."""

_KEPT: Final = 4 << 20
_SMALL: Final = {"retention.bytes": str(_KEPT)}


@dataclass(frozen=True, slots=True)
class Load:
    """A producer that runs.

    Attributes:
        name: whom it is, for people.
        target: what it sends when nothing throttles it, bytes a second.
        quota: its own producer_byte_rate, bytes a second; None for none.
        traffic: the producer.
    """

    name: str
    target: float
    quota: float | None
    traffic: Traffic

    def rate(self, over_s: float = 1.0) -> float:
        """Acknowledged bytes a second until now, over the last seconds; 0.0 at first."""
        last = list(self.traffic.samples)[-1:]
        return self.traffic.samples.rate(last[0][0] - over_s, last[0][0]) if last else 0.0


def fill_topic(cluster: Cluster) -> str:
    """The topic that fills the last broker's volumes."""
    return f"demo-{max(cluster.brokers)}"


async def free_space(cluster: Cluster) -> None:
    """Let the topic that fills the volumes retain as little as the others, from now on."""
    async with Admin(cluster.bootstrap) as admin:
        await admin.set_topic_config(fill_topic(cluster), _SMALL)


@asynccontextmanager
async def loads(cluster: Cluster) -> AsyncIterator[tuple[Load, ...]]:
    """Topics, the tenant's quota, and the producers, which run until the end of the block.

    Raises:
        ClusterError: something of it can't be made.
    """
    first, last = min(cluster.brokers), max(cluster.brokers)
    tenant_topic = f"{TENANT}-{first}"
    async with Admin(cluster.bootstrap) as admin:
        for broker_id, broker in cluster.brokers.items():
            fills = broker_id == last
            await admin.create_topic(
                f"demo-{broker_id}",
                assignment=[[broker_id]] * (len(broker.volumes) if fills else 1),
                config={} if fills else _SMALL,
            )
        await admin.create_topic(tenant_topic, assignment=[[first]], config=_SMALL)
    await _set_quota(cluster)
    async with AsyncExitStack() as stack:
        running = []
        for broker_id, broker in cluster.brokers.items():
            fills = broker_id == last
            target = FILL_BYTES_PER_S if fills else BYTES_PER_S
            partitions = range(len(broker.volumes) if fills else 1)
            traffic = Traffic(
                cluster.bootstrap, f"demo-{broker_id}", bytes_per_s=target, partitions=partitions
            )
            await stack.enter_async_context(traffic)
            running.append(Load(f"broker {broker_id}", target, None, traffic))
        traffic = Traffic(
            cluster.bootstrap,
            tenant_topic,
            bytes_per_s=TENANT_BYTES_PER_S,
            config={"client.id": TENANT},
        )
        await stack.enter_async_context(traffic)
        running.append(Load(TENANT, TENANT_BYTES_PER_S, TENANT_QUOTA, traffic))
        yield tuple(running)


async def _set_quota(cluster: Cluster) -> None:
    host, _, port = cluster.bootstrap.partition(",")[0].rpartition(":")
    admin = KafkaAdmin(bootstrap_servers=(HostPort(host, int(port)),))
    quota = {"producer_byte_rate": TENANT_QUOTA}
    failure = await alter_client_quotas(admin, [({"client-id": TENANT}, quota)])
    if failure is not None:
        raise ClusterError(f"the tenant's quota can't be set: {failure.message}")
