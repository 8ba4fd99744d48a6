"""Listeners with TLS, SASL and an authorizer: what works, and what is said when it does not."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_lab.admin import Admin
from tests.support.command import Done, command
from tests.support.daemon import Daemon, Start, settings
from tests.support.secured import SCRAM, SecureKafka, scram, tls
from tests.support.waiting import seen

PASSWORD = "SIDECAR_KAFKA_ADMIN_SASL_PASSWORD"


def basic(secure: SecureKafka) -> dict[str, str]:
    """Settings for PLAIN without TLS."""
    environ = scram(secure, SECURITY_PROTOCOL="SASL_PLAINTEXT", SASL_MECHANISM="PLAIN")
    return environ | settings(secure.cluster.bootstrap_of("BASIC"))


def mutual(secure: SecureKafka) -> dict[str, str]:
    """Settings with a certificate of the sidecar's own."""
    return tls(
        secure,
        "MTLS",
        SSL_KEYSTORE_LOCATION=str(secure.client_certificate_file),
        SSL_KEYSTORE_KEY_LOCATION=str(secure.client_key_file),
    )


KINDS: dict[str, Callable[[SecureKafka], dict[str, str]]] = {
    "SCRAM over TLS": scram,
    "PLAIN": basic,
    "TLS": lambda secure: tls(secure, "TLS"),
    "mutual TLS": mutual,
}


def assert_no_secret(secure: SecureKafka, said: str) -> None:
    for part in (secure.password, "with a backslash", "PRIVATE KEY"):
        assert part not in said


def refusal(done: Done) -> str:
    """The one line on standard error that ``check`` prints when its answer is unknown."""
    assert 2 == done.code, done.said
    (line,) = done.err.splitlines()
    return line.removeprefix("Unknown: ")


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_listener_can_be_read(secure_kafka: SecureKafka, kind: str) -> None:
    """Certificates and password are right, with quotes and a backslash in the latter."""
    done = await command("check", "--json", environ=KINDS[kind](secure_kafka))
    assert (0, "") == (done.code, done.err)
    (volume,) = done.document()["volumes"]
    assert secure_kafka.cluster.brokers[0].volumes[0].path == volume["log_dir"]
    assert_no_secret(secure_kafka, done.said)


async def test_who_has_no_certificate_is_refused(secure_kafka: SecureKafka) -> None:
    """The listener for mutual TLS does so."""
    done = await command("check", environ=tls(secure_kafka, "MTLS"))
    assert "SIDECAR_KAFKA_ADMIN_SSL_KEYSTORE_LOCATION" in refusal(done)


@pytest.mark.parametrize("kind", ["SCRAM over TLS", "PLAIN"])
async def test_a_wrong_password_is_named_as_such(
    secure_kafka: SecureKafka, start: Start, kind: str
) -> None:
    """``check`` and the daemon quote Kafka's refusal and name user and password's settings.

    ``tests/sidecar/kafka/test_mistakes_at_listeners.py`` has the other mistakes.
    """
    environ = KINDS[kind](secure_kafka) | {PASSWORD: "wrong, with a backslash"}
    done = await command("check", environ=environ)
    line = refusal(done)
    for setting in (PASSWORD, "SIDECAR_KAFKA_ADMIN_SASL_USERNAME"):
        assert setting in line
    assert_no_secret(secure_kafka, done.said)
    daemon = await start(secure_kafka.cluster, environ)
    metrics = await seen("a poll", daemon.metrics, lambda metrics: bool(metrics.failure_kinds()))
    assert {"authentication"} == metrics.failure_kinds()
    assert ["polling: authentication"] == [
        ": ".join(line.split(": ")[:2]).split("WARNING ")[1]
        for line in daemon.output.splitlines()
        if "WARNING" in line
    ]
    assert_no_secret(secure_kafka, daemon.output)


async def polls(daemon: Daemon) -> float:
    return (await daemon.metrics()).value("poll_duration_seconds_count") or 0.0


async def test_a_rotated_password_is_read_on_sighup(
    secure_kafka: SecureKafka, start: Start, tmp_path: Path
) -> None:
    """Connections are made anew with it, or with the former one until the broker has it."""
    user, old, new = "rotated", "0ld secret", "n3w secret"
    file = tmp_path / "password"
    file.write_text(old)
    environ = scram(secure_kafka, SASL_USERNAME=user, SASL_PASSWORD_FILE=str(file))
    del environ["SIDECAR_KAFKA_ADMIN_SASL_PASSWORD"]
    async with Admin(secure_kafka.cluster.bootstrap) as admin:
        await admin.create_scram_user(user, old, SCRAM)
        await admin.allow(user, "DESCRIBE", "BROKER", "kafka-cluster")
        daemon = await start(secure_kafka.cluster, environ)
        await daemon.decides(1.0)
        file.write_text(new)
        daemon.send(signal.SIGHUP)
        await daemon.logs("the broker still accepts the former password")
        assert 1.0 == (await daemon.metrics()).value("former_credentials_used", kind="broker")
        await admin.create_scram_user(user, new, SCRAM)
        # The broker has no former one any more.
        daemon.send(signal.SIGHUP)
        count = await polls(daemon)
        await seen("three polls", lambda: polls(daemon), lambda now: now >= count + 3)
        assert 0 == (await daemon.get("/v1/brokers"))["failed_polls"]
        assert 0.0 == (await daemon.metrics()).value("former_credentials_used", kind="broker")
    await daemon.decides(1.0)
    assert old not in daemon.output
    assert new not in daemon.output


async def test_a_missing_acl_is_named_and_can_be_granted_later(
    secure_kafka: SecureKafka, start: Start
) -> None:
    """Its command is named too; the running daemon sees the cluster as soon as it is granted."""
    user = "stranger"
    environ = scram(secure_kafka, SASL_USERNAME=user)
    async with Admin(secure_kafka.cluster.bootstrap) as admin:
        await admin.create_scram_user(user, secure_kafka.password, SCRAM)
        done = await command("check", environ=environ)
        line = refusal(done)
        assert f"--allow-principal User:{user} --operation Describe --cluster" in line
        daemon = await start(secure_kafka.cluster, environ)
        broker = await daemon.shows_broker(0, "refuses", lambda broker: broker["last_failure"])
        assert "authorization" == broker["last_failure"]["kind"]
        assert "fallback" == (await daemon.factor())["source"]
        await admin.allow(user, "DESCRIBE", "BROKER", "kafka-cluster")
        await daemon.decides(1.0)


async def test_credentials_in_a_command_config_and_a_refusal(
    secure_kafka: SecureKafka, tmp_path: Path
) -> None:
    """A file as Kafka's tools take it logs in; the command for what alice lacks is reported."""
    file = tmp_path / "client.properties"
    password = secure_kafka.password.replace("\\", "\\\\").replace('"', '\\"')
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="alice" password="{password}";'
    # A properties file takes each backslash for an escape.
    escaped = jaas.replace("\\", "\\\\")
    file.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism={SCRAM}\n"
        f"sasl.jaas.config={escaped}\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={secure_kafka.ca_file}\n"
    )
    bootstrap = secure_kafka.cluster.bootstrap_of("SCRAM")
    words = ("--bootstrap-server", bootstrap, "--command-config", str(file))
    done = await command("request-log", "on", "--for", "PT1S", *words, environ={})
    assert 1 == done.code
    assert "DescribeConfigs returned error 31" in done.err
    assert "--operation DescribeConfigs --cluster" in done.err
    assert secure_kafka.password not in done.said
