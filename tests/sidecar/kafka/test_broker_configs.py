"""Configurations that each broker reports of itself."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from sidecar.kafka.broker_configs import describe_broker_configs
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.servers import admin, bootstrap, failed, free_port, succeeded
from tests.support.fake_broker import FakeCluster
from tests.support.fake_configs import DESCRIBE_CONFIGS, FakeConfigs
from tests.support.virtual_time import VIRTUAL_TIME

THREADS = ["num.io.threads", "num.network.threads"]

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]


async def test_every_broker_reports_its_own() -> None:
    """Brokers are in ascending order; only what was asked for is there, a secret is None."""
    configs = FakeConfigs(
        {
            0: {"num.io.threads": "8", "num.network.threads": "3", "log.dirs": "/a"},
            1: {"num.io.threads": "32", "num.network.threads": None},
        }
    )
    async with configs.of(FakeCluster().add(2)) as cluster:
        result = await describe_broker_configs(admin(bootstrap(cluster)), None, THREADS)
    expected = {
        0: {"num.io.threads": "8", "num.network.threads": "3"},
        1: {"num.io.threads": "32", "num.network.threads": None},
    }
    assert expected == result


async def test_every_connection_is_closed_when_the_answers_are_there() -> None:
    """The brokers need not drop them."""
    configs = FakeConfigs({0: {"log.dirs": "/a"}, 1: {"log.dirs": "/b"}})
    async with configs.of(FakeCluster().add(2)) as cluster:
        await describe_broker_configs(admin(bootstrap(cluster)), None, ["log.dirs"])
        brokers = cluster.brokers.values()
        assert all(broker.connected for broker in brokers)
        # A broker hears of it a turn of the loop later or two.
        for _ in range(100):
            await asyncio.sleep(0)
        assert [set(), set()] == [broker.connections for broker in brokers]


async def test_only_those_that_were_named_are_asked() -> None:
    """A broker that is not there is a failure of its own, and the others' answers are returned."""
    configs = FakeConfigs({0: {"log.dirs": "/a"}, 1: {"log.dirs": "/b"}})
    async with configs.of(FakeCluster().add(2)) as cluster:
        result = await describe_broker_configs(admin(bootstrap(cluster)), [7, 1], ["log.dirs"])
        asked = [
            broker.broker_id
            for broker in cluster.brokers.values()
            if any(request.api_key == DESCRIBE_CONFIGS for request in broker.requests)
        ]
    unknown = Failure(FailureKind.CONNECT, "broker 7 is not a known active broker")
    assert [(1, {"log.dirs": "/b"}), (7, unknown)] == list(succeeded(result).items())
    assert [1] == asked


async def test_a_refusal_says_what_is_needed() -> None:
    """It says the command that grants it; the other broker's answer is returned."""
    configs = FakeConfigs(
        {0: {"log.dirs": "/a"}, 1: {}}, refused={1: ErrorCode.cluster_authorization_failed}
    )
    async with configs.of(FakeCluster().add(2)) as cluster:
        result = await describe_broker_configs(admin(bootstrap(cluster)), None, ["log.dirs"])
    assert {"log.dirs": "/a"} == succeeded(result)[0]
    message = failed(succeeded(result)[1], FailureKind.AUTHORIZATION)
    assert message.startswith("broker 1: DescribeConfigs returned error 31")
    assert "--operation DescribeConfigs --cluster" in message


async def test_a_hung_broker_times_out_at_the_deadline() -> None:
    """The others' answers are returned."""
    configs = FakeConfigs({0: {"log.dirs": "/a"}, 1: {"log.dirs": "/b"}})
    async with configs.of(FakeCluster().add(2)) as cluster:
        cluster.brokers[1].twist = lambda *_: None
        result = await describe_broker_configs(
            admin(bootstrap(cluster)), None, ["log.dirs"], timeout_s=0.5
        )
    assert {"log.dirs": "/a"} == succeeded(result)[0]
    failed(succeeded(result)[1], FailureKind.TIMEOUT)


async def test_no_cluster_at_all() -> None:
    """There is one failure, of the listing."""
    answer = await describe_broker_configs(admin(free_port()), None, ["log.dirs"])
    message = failed(answer, FailureKind.CONNECT)
    assert message.startswith("no broker reported the list of brokers: ")
