"""Observations read from the brokers themselves: one poll is one look at the cluster.

DescribeCluster says who is there, then DescribeLogDirs is asked of every active broker at once,
naming no topic, so that answers do not grow with partitions. One deadline holds for all of it: a
broker that misses it has that as its answer, and the others' answers are kept.

Example: of three brokers one hangs; the observation comes at the deadline with two readings and one
failure of kind timeout.
"""

import asyncio
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Self

from sidecar.kafka.answers import ClusterList, read_cluster, read_log_dirs
from sidecar.kafka.connection import GuardedConnection, dial
from sidecar.kafka.link import Dial
from sidecar.kafka.messages import DescribeCluster, DescribeLogDirs
from sidecar.kafka.pool import Pool
from sidecar.kafka.security import load_security
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind, Observation, Reading

ORIGIN = "poll"

_DESCRIBE_CLUSTER = DescribeCluster()
_DESCRIBE_LOG_DIRS = DescribeLogDirs()


class KafkaVolumeSource:
    """Looks at a cluster over connections that are kept from poll to poll.

    An async context manager; leaving it closes all connections.

    Args:
        admin: how to reach the brokers.
        clock: steady seconds, for the times in observations and for the ages of what is kept.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def __init__(self, admin: KafkaAdmin, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._principal = _principal(admin)
        self._pool = Pool(admin.bootstrap_servers, _dialler(admin, clock), clock)
        self._listed = False

    def __repr__(self) -> str:
        return f"KafkaVolumeSource({self._pool})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def observe(
        self, brokers: Collection[int] | None, timeout_s: float
    ) -> Observation | Failure:
        """Look at the cluster once; see ``sidecar.volumes.VolumeSource``.

        Cancelling it closes the connections whose answers are still owed; the others stay.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        if brokers is not None:
            if not self._listed:
                return Failure(FailureKind.CONNECT, "the brokers have not been listed yet")
            return await self._ask(brokers, None, deadline)
        cluster = await self._pool.call_any(_DESCRIBE_CLUSTER, deadline, read_cluster)
        if isinstance(cluster, Failure):
            return cluster
        self._pool.set_brokers(cluster.endpoints)
        self._listed = True
        return await self._ask(cluster.membership.active, cluster, deadline)

    def reload(self, admin: KafkaAdmin) -> None:
        """Use new addresses, TLS material and credentials: connections are redialled with them.

        Raises:
            SettingsError: the material can't be read; nothing has changed then.
        """
        self._pool.redial_with(admin.bootstrap_servers, _dialler(admin, self._clock))
        self._principal = _principal(admin)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def _ask(
        self, brokers: Collection[int], cluster: ClusterList | None, deadline: float
    ) -> Observation:
        async with asyncio.TaskGroup() as group:
            tasks = {
                broker_id: group.create_task(
                    self._read(broker_id, deadline), name=f"log dirs of broker {broker_id}"
                )
                for broker_id in brokers
            }
        return Observation(
            observed_at=self._clock(),
            origin=ORIGIN,
            membership=cluster.membership if cluster is not None else None,
            answers={broker_id: task.result() for broker_id, task in tasks.items()},
        )

    async def _read(self, broker_id: int, deadline: float) -> Reading | Failure:
        answer = await self._pool.call(broker_id, _DESCRIBE_LOG_DIRS, deadline)
        if isinstance(answer, Failure):
            return answer
        return read_log_dirs(answer, broker_id, self._clock(), self._principal)


def _dialler(admin: KafkaAdmin, clock: Callable[[], float]) -> Dial:
    security = load_security(admin, clock)

    async def dial_one(endpoint: HostPort) -> GuardedConnection:
        return await dial(endpoint, security, admin.client_id, clock)

    return dial_one


def _principal(admin: KafkaAdmin) -> str:
    return admin.sasl_username or admin.oauth_client_id or "<name>"
