"""A pool's connections while the list of brokers, or how to reach them, changes under a call."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sidecar.kafka.client.pool import Pool, _summary
from sidecar.kafka.cluster_answers import read_cluster
from sidecar.kafka.cluster_messages import DescribeCluster, DescribeLogDirs
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.servers import Clock, admin, bootstrap, failed
from tests.support.fake_broker import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_LOG_DIRS,
    FakeCluster,
)
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]


async def leave(pool: Pool, _cluster: FakeCluster) -> None:
    pool.set_brokers({})


async def close(pool: Pool, _cluster: FakeCluster) -> None:
    await pool.close()


async def reload(pool: Pool, cluster: FakeCluster) -> None:
    pool.reload(admin(bootstrap(cluster)))()


@pytest.mark.parametrize("change", [leave, close])
@pytest.mark.parametrize("slow", [API_VERSIONS, DESCRIBE_LOG_DIRS])
async def test_a_broker_that_left_is_not_connected_again(
    clock: Clock, slow: int, change: Callable[[Pool, FakeCluster], Awaitable[None]]
) -> None:
    """Neither by a dial that ends later, nor by the repetition of a call that was cut off."""
    async with FakeCluster().add(1) as cluster:
        cluster.brokers[0].takes_s = {slow: 1.0}
        pool = Pool.of(admin(bootstrap(cluster)), clock)
        pool.set_brokers({0: bootstrap(cluster)})
        deadline = asyncio.get_running_loop().time() + 5.0
        calling = asyncio.ensure_future(pool.call(0, DescribeLogDirs(), deadline))
        await asyncio.sleep(0.5)
        await change(pool, cluster)
        failed(await calling, FailureKind.CONNECT)
        await asyncio.sleep(0.05)
        assert not cluster.brokers[0].connections
        assert 1 == cluster.brokers[0].connected


@pytest.mark.parametrize("change", [close, reload])
@pytest.mark.parametrize("slow", [API_VERSIONS, DESCRIBE_CLUSTER])
async def test_a_configured_address_is_not_connected_behind_a_change(
    clock: Clock, slow: int, change: Callable[[Pool, FakeCluster], Awaitable[None]]
) -> None:
    """What was begun with the old credentials, or before the end, leaves no connection."""
    async with FakeCluster().add(2) as cluster:
        cluster.brokers[0].takes_s = {slow: 1.0}
        pool = Pool.of(
            admin(bootstrap(cluster), bootstrap(FakeCluster(brokers={1: cluster.brokers[1]}))),
            clock,
        )
        deadline = asyncio.get_running_loop().time() + 5.0
        calling = asyncio.ensure_future(pool.call_any(DescribeCluster(), deadline, read_cluster))
        await asyncio.sleep(0.1)
        await change(pool, cluster)
        await calling
        if change is reload:
            await pool.close()
        await asyncio.sleep(0.05)
        assert not cluster.brokers[0].connections
        assert not cluster.brokers[1].connections
        assert 1 == cluster.brokers[0].connected


@pytest.mark.parametrize("kind", FailureKind)
def test_each_kind_of_failure_may_be_that_of_all(kind: FailureKind) -> None:
    """Also one of a broker that shares its address, when it is the only one to be asked."""
    failure = Failure(kind, "b1:9092: no")
    assert Failure(kind, "no broker reported the list: b1:9092: no") == _summary(
        [failure], "the list"
    )
