"""Levels of brokers' loggers: read and set on each broker itself."""

import pytest
from kio.schema.errors import ErrorCode

from sidecar.kafka.broker_loggers import REQUEST_LOGGER, read_levels, set_levels
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.servers import admin, bootstrap, failed, succeeded
from tests.support.fake_broker import FakeCluster
from tests.support.fake_configs import FakeConfigs
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]


def levels(*of_brokers: str) -> FakeConfigs:
    """Brokers 0, 1, ... whose request log has these levels."""
    loggers = {
        broker_id: {REQUEST_LOGGER: level, "kafka": "INFO"}
        for broker_id, level in enumerate(of_brokers)
    }
    return FakeConfigs(loggers=loggers)


async def test_levels_are_read() -> None:
    """They are the logger's own, not another's."""
    async with levels("WARN", "DEBUG").of(FakeCluster().add(2)) as cluster:
        assert {0: "WARN", 1: "DEBUG"} == await read_levels(
            admin(bootstrap(cluster)), None, REQUEST_LOGGER
        )


async def test_levels_are_set_on_each_broker_to_its_own() -> None:
    """Those of brokers that are not named do not change."""
    configs = levels("WARN", "WARN", "WARN")
    async with configs.of(FakeCluster().add(3)) as cluster:
        kafka = admin(bootstrap(cluster))
        assert {0: "DEBUG", 2: "INFO"} == await set_levels(
            kafka, {2: "INFO", 0: "DEBUG"}, REQUEST_LOGGER
        )
        assert {0: "DEBUG", 1: "WARN", 2: "INFO"} == await read_levels(kafka, None, REQUEST_LOGGER)
    assert {"INFO"} == {loggers["kafka"] for loggers in configs.loggers.values()}


async def test_a_broker_that_has_no_such_logger() -> None:
    """One that logs by another library than log4j lists none."""
    configs = levels("WARN", "WARN")
    configs.loggers[1] = {}
    async with configs.of(FakeCluster().add(2)) as cluster:
        result = await read_levels(admin(bootstrap(cluster)), None, REQUEST_LOGGER)
    text = "broker 1: it has no logger kafka.request.logger that can be set"
    assert {0: "WARN", 1: Failure(FailureKind.UNSUPPORTED, text)} == result


@pytest.mark.parametrize(
    ("error", "kind", "ends"),
    [
        (ErrorCode.cluster_authorization_failed, "AUTHORIZATION", "AlterConfigs --cluster"),
        (ErrorCode.invalid_config, "BROKER", ": no"),
    ],
)
async def test_a_refusal_to_set(error: ErrorCode, kind: str, ends: str) -> None:
    """The failure has the command that grants the right, or the broker's own words."""
    configs = levels("WARN")
    configs.refused[0] = error
    async with configs.of(FakeCluster().add(1)) as cluster:
        result = await set_levels(admin(bootstrap(cluster)), {0: "LOUD"}, REQUEST_LOGGER)
    message = failed(succeeded(result)[0], FailureKind[kind])
    assert message.startswith(f"broker 0: IncrementalAlterConfigs returned error {error.value}")
    assert ends in message
