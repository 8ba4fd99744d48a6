"""The demo's producers: one for each broker's own topic, and one for each of two tenants.

The topic of the last broker belongs to the tenant etl and fills a volume if it retains everything.
The topics of the other brokers retain little. Another tenant, web, writes to the other volume of
the last broker. A third tenant sends more to the first broker than its producer_byte_rate allows.
Tenants are identified by their client-ids, and those that fill volumes also log in.

Example: ``async with loads(cluster) as running: running[0].rate()`` is about 4e6.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.traffic import Traffic
from sidecar.errors import ClusterError
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.settings import HostPort, KafkaAdmin

BYTES_PER_S: Final = 4e6
FILL_BYTES_PER_S: Final = 9e6
FILLER: Final = "etl"
OTHER: Final = "web"
OTHER_BYTES_PER_S: Final = 2e6
LOGS: Final = "logs"
TENANT: Final = "tenant"
TENANT_QUOTA: Final = 1e6
TENANT_BYTES_PER_S: Final = 2e6

QUOTA_WINDOW_S: Final = 11.0
"""Kafka's default: the quota of this time may be used at once."""

LITTLE_BYTES: Final = 4 << 20
"""The bytes that topics retain if they do not fill a volume."""

MUCH_BYTES: Final = 64 << 20
"""Bytes with which a volume is soon full again: 9 MB arrive each second until retention runs."""

LOGINS: Final = Listener(
    "LOGINS", "SASL_PLAINTEXT", "PLAIN", dict.fromkeys((FILLER, OTHER, LOGS), "demo")
)
"""Where tenants log in, so that the request log says who writes."""

_QUEUE_KBYTES: Final = 1024
"""Small, so that queued records are sent within seconds after a release, even during a ramp."""


@dataclass(frozen=True, slots=True)
class Load:
    """A running producer.

    Attributes:
        name: a name for people.
        target: the rate without a throttle, in bytes per second.
        quota: the producer_byte_rate of the tenant, in bytes per second; None without a quota.
        traffic: the producer.
    """

    name: str
    target: float
    quota: float | None
    traffic: Traffic

    def rate(self, over_s: float = 1.0) -> float:
        """Return the rate of acknowledged bytes over the last seconds; 0.0 before any."""
        last = list(self.traffic.samples)[-1:]
        return self.traffic.samples.rate(last[0][0] - over_s, last[0][0]) if last else 0.0


@dataclass(frozen=True, slots=True)
class _Producer:
    """A producer to start, for a topic of its own with one partition."""

    name: str
    topic: str
    broker_id: int
    bytes_per_s: float
    client_id: str = "demo"
    quota: float | None = None


def fill_topic(cluster: Cluster) -> str:
    """Return the topic that fills a volume of the last broker."""
    return f"demo-{max(cluster.brokers)}"


async def retain(cluster: Cluster, most_bytes: int | None) -> None:
    """Set how many bytes the topic that fills a volume retains; None for everything."""
    config = {"retention.bytes": str(-1 if most_bytes is None else most_bytes)}
    async with Admin(cluster.bootstrap) as admin:
        await admin.set_topic_config(fill_topic(cluster), config)


@asynccontextmanager
async def loads(cluster: Cluster) -> AsyncIterator[tuple[Load, ...]]:
    """Create topics and the tenant's quota, and run the producers until the end of the block.

    Raises:
        ClusterError: a topic, the quota or a producer can't be created.
    """
    first, last = min(cluster.brokers), max(cluster.brokers)
    producers = [
        _Producer(f"broker {broker_id}", f"demo-{broker_id}", broker_id, BYTES_PER_S)
        for broker_id in cluster.brokers
        if broker_id != last
    ]
    producers += [
        _Producer(f"broker {last} ({FILLER})", fill_topic(cluster), last, FILL_BYTES_PER_S, FILLER),
        # Kafka uses the log dir with the fewest partitions, on the volume that is not filled.
        _Producer(f"broker {last} ({OTHER})", OTHER, last, OTHER_BYTES_PER_S, OTHER),
        _Producer(TENANT, f"{TENANT}-{first}", first, TENANT_BYTES_PER_S, TENANT, TENANT_QUOTA),
    ]
    async with Admin(cluster.bootstrap) as admin:
        for each in producers:
            retained = MUCH_BYTES if each.topic == fill_topic(cluster) else LITTLE_BYTES
            config = {"retention.bytes": str(retained)}
            await admin.create_topic(each.topic, assignment=[[each.broker_id]], config=config)
    await _set_quota(cluster)
    async with AsyncExitStack() as stack:
        running = []
        for each in producers:
            traffic = produce(cluster, each.topic, each.client_id, each.bytes_per_s)
            await stack.enter_async_context(traffic)
            running.append(Load(each.name, each.bytes_per_s, each.quota, traffic))
        yield tuple(running)


def produce(
    cluster: Cluster, topic: str, client_id: str, bytes_per_s: float, partition: int = 0
) -> Traffic:
    """Return a producer to a partition, which logs in if it can; it is not started."""
    config = {"client.id": client_id, "queue.buffering.max.kbytes": _QUEUE_KBYTES}
    bootstrap = cluster.bootstrap
    if client_id in LOGINS.users:
        bootstrap = cluster.bootstrap_of(LOGINS.name)
        config |= {
            "security.protocol": LOGINS.protocol,
            "sasl.mechanism": LOGINS.mechanism or "",
            "sasl.username": client_id,
            "sasl.password": LOGINS.users[client_id],
        }
    return Traffic(bootstrap, topic, bytes_per_s=bytes_per_s, partitions=[partition], config=config)


async def _set_quota(cluster: Cluster) -> None:
    host, _, port = cluster.bootstrap.partition(",")[0].rpartition(":")
    admin = KafkaAdmin(bootstrap_servers=(HostPort(host, int(port)),))
    quota = {"producer_byte_rate": TENANT_QUOTA}
    failure = await alter_client_quotas(admin, [({"client-id": TENANT}, quota)])
    if failure is not None:
        raise ClusterError(f"the tenant's quota can't be set: {failure.message}")
