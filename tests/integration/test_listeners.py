"""The secure listeners are real: they let in whom they should, and nobody else."""

import time
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from tests.support.secured import SecureKafka

_TIMEOUT_S = 40.0
_DROPPED = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}
"""What librdkafka says when the only broker ends the connection."""


def _sees(config: dict[str, Any]) -> set[int]:
    """The brokers that a client with this configuration sees; librdkafka, not our own client."""
    with AdminClient({"log_level": 0, **config}) as client:
        return set(client.list_topics(timeout=_TIMEOUT_S).brokers)


def _refusal(config: dict[str, Any]) -> int | None:
    """Why a client with this configuration does not get in: librdkafka's first error."""
    told: list[KafkaError] = []
    ends_at = time.monotonic() + _TIMEOUT_S
    settings: dict[str, Any] = {"log_level": 0, "error_cb": told.append, **config}
    with AdminClient(settings) as client:
        while not told and time.monotonic() < ends_at:
            client.poll(0.1)
    return told[0].code() if told else None


def _configuration(kafka: SecureKafka, listener: str) -> dict[str, Any]:
    sasl = {"sasl.username": "alice", "sasl.password": kafka.password}
    tls = {"ssl.ca.location": str(kafka.ca_file)}
    return {
        "bootstrap.servers": kafka.cluster.bootstrap_of(listener),
        **{
            "SCRAM": {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                **sasl,
                **tls,
            },
            "BASIC": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **sasl},
            "TLS": {"security.protocol": "SSL", **tls},
            "MTLS": {
                "security.protocol": "SSL",
                "ssl.certificate.location": str(kafka.client_certificate_file),
                "ssl.key.location": str(kafka.client_key_file),
                **tls,
            },
        }[listener],
    }


@pytest.mark.parametrize("listener", ["SCRAM", "BASIC", "TLS", "MTLS"])
def test_a_listener_lets_in_whom_it_should(secure_kafka: SecureKafka, listener: str) -> None:
    """With the right certificate and password, quotes and a backslash in it."""
    assert {0} == _sees(_configuration(secure_kafka, listener))


@pytest.mark.parametrize(
    ("listener", "wrong", "errors"),
    [
        ("SCRAM", {"sasl.password": "wrong"}, {KafkaError._AUTHENTICATION}),
        ("BASIC", {"sasl.password": "wrong"}, {KafkaError._AUTHENTICATION}),
        ("SCRAM", {"ssl.ca.location": None}, {KafkaError._SSL}),
        ("TLS", {"security.protocol": "PLAINTEXT"}, _DROPPED),
        # With TLS 1.3 the refusal comes after the handshake: as an alert, or with the end.
        (
            "MTLS",
            {"ssl.certificate.location": None, "ssl.key.location": None},
            {KafkaError._SSL, *_DROPPED},
        ),
    ],
)
def test_a_listener_lets_in_nobody_else(
    secure_kafka: SecureKafka, listener: str, wrong: dict[str, str | None], errors: set[int]
) -> None:
    """Not with a wrong password, an unknown authority, no TLS, or no client certificate."""
    changed = _configuration(secure_kafka, listener) | wrong
    config = {key: value for key, value in changed.items() if value is not None}
    assert _refusal(config) in errors
