"""Sends a request to each of several brokers concurrently, over new connections.

Some requests only the broker itself can answer, such as those for its configuration and loggers.
The brokers are listed first. One deadline covers everything. A broker that fails has its failure as
its result, and the others have their answers.

Example: of brokers 0, 1 and 2 the last one hangs. After the time-out the result is {0: answer, 1:
answer, 2: Failure(TIMEOUT)}.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from aiokafka.protocol.api import Response

from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.client.one_call import refused
from sidecar.kafka.client.pool import Pool
from sidecar.kafka.cluster_answers import read_cluster
from sidecar.kafka.cluster_messages import DescribeCluster, DescribeControllers
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure

T = TypeVar("T")

Nodes = Literal["brokers", "controllers"]

_LISTINGS: Mapping[Nodes, AdminRequest] = {
    "brokers": DescribeCluster(),
    "controllers": DescribeControllers(),
}


@dataclass(frozen=True, slots=True)
class Query:
    """A request to one broker, and what it needs, for the message of a failure.

    Attributes:
        request: a request that may be repeated.
        needs: the operation on the cluster that it needs, such as "DescribeConfigs".
    """

    request: AdminRequest
    needs: str

    def refused(self, broker_id: int, code: int, message: str | None) -> Failure:
        """Turns a broker's error into a failure; see ``one_call.refused``."""
        return refused(f"broker {broker_id}", self.request.NAME, code, message, self.needs)


async def query_each(
    admin: KafkaAdmin,
    broker_ids: Collection[int] | None,
    query_of: Callable[[int], Query],
    read: Callable[[Query, Response, int], T | Failure],
    timeout_s: float,
    *,
    nodes: Nodes = "brokers",
) -> dict[int, T | Failure] | Failure:
    """Sends a query to each broker, and returns their results.

    Args:
        admin: how to reach the brokers.
        broker_ids: the brokers to ask; None asks every active broker.
        query_of: makes the query for a broker id.
        read: turns a broker's answer into a result or a failure.
        timeout_s: the time for all requests, seconds.
        nodes: "controllers" asks the controllers; the addresses in ``admin`` are then theirs.

    Returns:
        Broker id -> result, in ascending order; a failure if the brokers can't be listed.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    deadline = asyncio.get_running_loop().time() + timeout_s
    opened = await Pool.opened(admin, timeout_s)
    if isinstance(opened, Failure):
        return opened
    pool = opened

    async def ask(broker_id: int) -> T | Failure:
        query = query_of(broker_id)
        answer = await pool.call(broker_id, query.request, deadline)
        return answer if isinstance(answer, Failure) else read(query, answer, broker_id)

    try:
        listing = _LISTINGS[nodes]
        cluster = await pool.call_any(listing, deadline, read_cluster, f"the list of {nodes}")
        if isinstance(cluster, Failure):
            return cluster
        pool.set_brokers(cluster.endpoints)
        ids = sorted(cluster.endpoints if broker_ids is None else set(broker_ids))
        return dict(zip(ids, await asyncio.gather(*map(ask, ids)), strict=True))
    finally:
        await pool.close()
