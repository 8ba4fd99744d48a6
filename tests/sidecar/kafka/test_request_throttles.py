"""Brokers that throttle the sidecar itself by a request quota, as Kafka does since KIP-219."""

import logging
from typing import Any

import pytest

from sidecar.kafka.request_throttles import RequestThrottles, exemption
from sidecar.kafka.source import KafkaVolumeSource
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.servers import Clock, admin, bootstrap, failed, succeeded
from tests.support.fake_broker import FakeCluster
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]

LOGGER = "sidecar.kafka.request_throttles"


async def test_a_time_out_names_the_quota_and_how_to_exempt_the_sidecar(clock: Clock) -> None:
    """The answer before said how long the broker would not read the next request."""
    async with (
        FakeCluster().add(2) as cluster,
        KafkaVolumeSource(admin(bootstrap(cluster)), clock=clock) as source,
    ):
        await source.observe([1], 1.0)
        cluster.brokers[1].throttle_ms = 4000
        cluster.forget_answers()
        first = succeeded(await source.observe([1], 1.0))
        assert not isinstance(first.answers[1], Failure)
        second = succeeded(await source.observe([0, 1], 1.0))
    answer = second.answers[1]
    assert isinstance(answer, Failure)
    assert FailureKind.TIMEOUT is answer.kind
    address = f"127.0.0.1:{cluster.brokers[1].port}"
    assert (
        "broker 1: no answer in time yet; the broker throttles this sidecar by a request quota, by "
        f"4 s after an answer; exempt it: kafka-configs.sh --bootstrap-server {address} --alter "
        "--entity-type users --entity-name ANONYMOUS --entity-type clients --entity-name "
        "throttle-sidecar --add-config request_percentage=10000"
    ) == answer.message
    assert not isinstance(second.answers[0], Failure)
    assert 4.0 == source.throttled_s


async def test_a_list_that_does_not_come_names_the_quota(clock: Clock) -> None:
    """DescribeCluster's answers are throttled like those about log dirs."""
    async with FakeCluster().add(1) as cluster:
        cluster.brokers[0].throttle_ms = 1500
        async with KafkaVolumeSource(admin(bootstrap(cluster)), clock=clock) as source:
            await source.observe(None, 2.0)
            await source.observe(None, 1.0)
            message = failed(await source.observe(None, 1.0), FailureKind.TIMEOUT)
    assert "no answer in time" in message
    assert "throttles this sidecar by a request quota, by 1.5 s after an answer" in message


async def test_a_new_connection_that_is_throttled_names_the_quota(clock: Clock) -> None:
    """Its first answer names the broker's cluster, and its throttle delays the log dirs."""
    async with FakeCluster().add(2) as cluster:
        cluster.brokers[1].throttle_ms = 4000
        async with KafkaVolumeSource(admin(bootstrap(cluster)), clock=clock) as source:
            answer = succeeded(await source.observe(None, 1.0)).answers[1]
    assert "throttles this sidecar by a request quota" in failed(answer, FailureKind.TIMEOUT)


async def test_without_a_throttle_a_time_out_says_nothing_of_quotas(clock: Clock) -> None:
    """It has other causes."""
    async with FakeCluster().add(2) as cluster:
        cluster.brokers[1].twist = lambda *_: None
        async with KafkaVolumeSource(admin(bootstrap(cluster)), clock=clock) as source:
            answer = succeeded(await source.observe(None, 1.0)).answers[1]
    assert Failure(FailureKind.TIMEOUT, "broker 1: no answer in time yet") == answer
    assert 0.0 == source.throttled_s


ADDRESS = HostPort("broker-1", 9092)


def noted(clock: Clock, *, throttle_ms: int, after_s: float, throttles: RequestThrottles) -> None:
    clock.now += after_s
    throttles.note(ADDRESS, throttle_ms)


async def test_the_log_has_each_change_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A broker throttles some answers and others not; it has stopped after a minute without."""
    caplog.set_level(logging.INFO, LOGGER)
    throttles = RequestThrottles(clock, lambda: "exempt it")
    for ms in (0, 700, 0, 300, 0):
        noted(clock, throttle_ms=ms, after_s=5.0, throttles=throttles)
    (record,) = caplog.records
    assert "WARNING" == record.levelname
    assert (
        "broker-1:9092 throttles this sidecar by a request quota, by 0.7 s after an answer; "
        "exempt it" == record.getMessage()
    )
    assert 1.0 == throttles.total_s
    noted(clock, throttle_ms=0, after_s=60.0, throttles=throttles)
    noted(clock, throttle_ms=0, after_s=60.0, throttles=throttles)
    assert ["WARNING", "INFO"] == [each.levelname for each in caplog.records]
    assert "broker-1:9092 no longer throttles this sidecar" == caplog.records[1].getMessage()
    noted(clock, throttle_ms=20, after_s=60.0, throttles=throttles)
    assert 3 == len(caplog.records)


@pytest.mark.parametrize(
    ("settings", "entities"),
    [
        ({}, "users --entity-name ANONYMOUS --entity-type clients --entity-name own-id"),
        (
            {"security_protocol": "SASL_SSL", "sasl_username": "o'neill"},
            "users --entity-name 'o'\"'\"'neill'",
        ),
        ({"security_protocol": "SASL_SSL"}, "users --entity-name '<name>'"),
        (
            {"security_protocol": "SSL"},
            "users --entity-name ANONYMOUS --entity-type clients --entity-name own-id",
        ),
        (
            {"security_protocol": "SSL", "ssl_keystore_location": "/k.pem"},
            "users --entity-name '<name>'",
        ),
    ],
)
def test_the_command_names_the_login(settings: dict[str, Any], entities: str) -> None:
    """A client without one is ANONYMOUS, which other clients may be too."""
    own = KafkaAdmin(client_id="own-id", **settings)
    command = exemption(own, own.sasl_username or "<name>")
    assert f" --entity-type {entities} --add-config request_percentage=10000" in command
