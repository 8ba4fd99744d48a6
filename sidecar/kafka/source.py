"""Reads observations from the brokers: one poll reads the cluster once.

A poll lists the brokers with DescribeCluster, and then sends DescribeLogDirs to every active broker
concurrently. One deadline covers the whole poll. A broker that misses it has a failure of kind
timeout, and the others have their readings. The request to the slow broker stays open for later
polls.

Example: one of three brokers takes 2.5 s to answer. Polls come every second, with a deadline of
1 s. The first poll ends after 1 s with two readings and a time-out. The next two end at once with
the same. The fourth ends after 1 s with three readings; that of the slow broker is 3 s old.
"""

import asyncio
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Self

from sidecar.kafka.client.pool import Pool
from sidecar.kafka.cluster_answers import ClusterList, read_cluster, read_log_dirs
from sidecar.kafka.cluster_messages import DescribeCluster, DescribeLogDirs
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind, Observation, Reading

ORIGIN = "poll"

ANSWER_TIMEOUT_S = 3.0
"""How long a request stays open if the poll's deadline is shorter. Then the connection is closed
and the next poll sends the request again. It is short because the answer may be lost."""

SLOW_ANSWER_TIMEOUT_S = 10.0
"""The same for a broker that has missed ``ANSWER_TIMEOUT_S``, until it answers in time again: a
slow broker is likelier than two lost answers."""

_DESCRIBE_CLUSTER = DescribeCluster()
_DESCRIBE_LOG_DIRS = DescribeLogDirs()


class KafkaVolumeSource:
    """Reads a cluster over connections that stay open from poll to poll.

    An async context manager; leaving it closes all connections.

    Args:
        admin: how to reach the brokers.
        clock: steady seconds, for the times in observations and for the age of connections.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def __init__(self, admin: KafkaAdmin, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pool = Pool.of(admin, clock)
        self._listed = False
        self._requests: dict[int, asyncio.Task[Reading | Failure]] = {}
        self._slow: set[int] = set()

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
        """Reads the cluster once; see ``sidecar.volumes.VolumeSource``."""
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
        for broker_id in self._requests.keys() - cluster.endpoints.keys():
            self._requests.pop(broker_id).cancel()
        self._slow &= cluster.endpoints.keys()
        return await self._ask(cluster.membership.active, cluster, deadline)

    def reload(self, admin: KafkaAdmin) -> Callable[[], None]:
        """Reads new credentials; see ``Pool.reload``."""
        return self._pool.reload(admin)

    async def close(self) -> None:
        """Closes all connections without waiting for pending answers."""
        pending = list(self._requests.values())
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        self._requests = {}
        await self._pool.close()

    async def _ask(
        self, brokers: Collection[int], cluster: ClusterList | None, deadline: float
    ) -> Observation:
        now = asyncio.get_running_loop().time
        done = [key for key in brokers if key in self._requests and self._requests[key].done()]
        late = {broker_id: self._requests.pop(broker_id).result() for broker_id in done}
        # Ask again even if a late answer is there, since it is old; see _answer.
        new = [broker_id for broker_id in brokers if broker_id not in self._requests]
        for broker_id in new:
            patience_s = SLOW_ANSWER_TIMEOUT_S if broker_id in self._slow else ANSWER_TIMEOUT_S
            self._requests[broker_id] = asyncio.create_task(
                self._read(broker_id, max(deadline, now() + patience_s)),
                name=f"log dirs of broker {broker_id}",
            )
        # Wait only for the new requests, so that a broker that hangs delays one poll, not the next.
        if new:
            await asyncio.wait(
                [self._requests[broker_id] for broker_id in new], timeout=max(0.0, deadline - now())
            )
        return Observation(
            observed_at=self._clock(),
            origin=ORIGIN,
            membership=cluster.membership if cluster is not None else None,
            answers={
                broker_id: self._answer(broker_id, late.get(broker_id)) for broker_id in brokers
            },
        )

    def _answer(self, broker_id: int, late: Reading | Failure | None) -> Reading | Failure:
        answer: Reading | Failure
        if self._requests[broker_id].done():
            answer = self._requests.pop(broker_id).result()
        else:
            answer = Failure(FailureKind.TIMEOUT, f"broker {broker_id}: no answer in time yet")
        # A broker that is slower than every deadline is seen by its late answers.
        return late if isinstance(answer, Failure) and isinstance(late, Reading) else answer

    async def _read(self, broker_id: int, deadline: float) -> Reading | Failure:
        now = asyncio.get_running_loop().time
        # A reading counts from when the broker was asked, so a late one is old.
        asked_at, read_at = now(), self._clock()
        answer = await self._pool.call(broker_id, _DESCRIBE_LOG_DIRS, deadline)
        if isinstance(answer, Failure):
            if answer.kind is FailureKind.TIMEOUT:
                self._slow.add(broker_id)
            return answer
        if now() < asked_at + ANSWER_TIMEOUT_S:
            self._slow.discard(broker_id)
        return read_log_dirs(answer, broker_id, read_at, self._pool.principal)
