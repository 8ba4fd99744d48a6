"""The demo's producers: one at each broker's own topic, and two that are tenants of a broker.

The topic of the last broker, etl's, fills a volume when it is to retain everything; those of the
others retain little. Another tenant, web, writes to the same broker's other volume. A third one
sends more than its producer_byte_rate allows, to the first broker. Tenants are known by their
client-ids.

Example: ``async with loads(cluster) as running: running[0].rate()`` is about 4e6.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic
from sidecar.errors import ClusterError
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.settings import HostPort, KafkaAdmin

BYTES_PER_S: Final = 4e6
FILL_BYTES_PER_S: Final = 9e6
FILLER: Final = "etl"
OTHER: Final = "web"
OTHER_BYTES_PER_S: Final = 2e6
TENANT: Final = "tenant"
TENANT_QUOTA: Final = 1e6
TENANT_BYTES_PER_S: Final = 2e6

QUOTA_WINDOW_S: Final = 11.0
"""Kafka's default: so many seconds' worth of a quota may come at once."""

LITTLE_BYTES: Final = 4 << 20
"""What topics retain that fill nothing."""

MUCH_BYTES: Final = 64 << 20
"""A volume with so much is soon full again; until retention runs 9 MB more come in a second."""

_QUEUE_KBYTES: Final = 1024
"""So small that what waited for a release is sent within seconds, however slow the ramp is."""


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


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A producer that is to run, to one partition of a topic of its own."""

    name: str
    topic: str
    broker_id: int
    bytes_per_s: float
    client_id: str = "demo"
    quota: float | None = None


def fill_topic(cluster: Cluster) -> str:
    """The topic that fills a volume of the last broker."""
    return f"demo-{max(cluster.brokers)}"


async def retain(cluster: Cluster, most_bytes: int | None) -> None:
    """Let the topic that fills a volume retain so much from now on; None: everything."""
    config = {"retention.bytes": str(-1 if most_bytes is None else most_bytes)}
    async with Admin(cluster.bootstrap) as admin:
        await admin.set_topic_config(fill_topic(cluster), config)


@asynccontextmanager
async def loads(cluster: Cluster) -> AsyncIterator[tuple[Load, ...]]:
    """Topics, the tenant's quota, and the producers, which run until the end of the block.

    Raises:
        ClusterError: something of it can't be made.
    """
    first, last = min(cluster.brokers), max(cluster.brokers)
    wanted = [
        _Wanted(f"broker {broker_id}", f"demo-{broker_id}", broker_id, BYTES_PER_S)
        for broker_id in cluster.brokers
        if broker_id != last
    ]
    wanted += [
        _Wanted(f"broker {last} ({FILLER})", fill_topic(cluster), last, FILL_BYTES_PER_S, FILLER),
        # Kafka puts it where the fewest partitions lie: on the volume that is not filled.
        _Wanted(f"broker {last} ({OTHER})", OTHER, last, OTHER_BYTES_PER_S, OTHER),
        _Wanted(TENANT, f"{TENANT}-{first}", first, TENANT_BYTES_PER_S, TENANT, TENANT_QUOTA),
    ]
    async with Admin(cluster.bootstrap) as admin:
        for each in wanted:
            retained = MUCH_BYTES if each.topic == fill_topic(cluster) else LITTLE_BYTES
            config = {"retention.bytes": str(retained)}
            await admin.create_topic(each.topic, assignment=[[each.broker_id]], config=config)
    await _set_quota(cluster)
    async with AsyncExitStack() as stack:
        running = []
        for each in wanted:
            traffic = Traffic(
                cluster.bootstrap,
                each.topic,
                bytes_per_s=each.bytes_per_s,
                config={"client.id": each.client_id, "queue.buffering.max.kbytes": _QUEUE_KBYTES},
            )
            await stack.enter_async_context(traffic)
            running.append(Load(each.name, each.bytes_per_s, each.quota, traffic))
        yield tuple(running)


async def _set_quota(cluster: Cluster) -> None:
    host, _, port = cluster.bootstrap.partition(",")[0].rpartition(":")
    admin = KafkaAdmin(bootstrap_servers=(HostPort(host, int(port)),))
    quota = {"producer_byte_rate": TENANT_QUOTA}
    failure = await alter_client_quotas(admin, [({"client-id": TENANT}, quota)])
    if failure is not None:
        raise ClusterError(f"the tenant's quota can't be set: {failure.message}")
