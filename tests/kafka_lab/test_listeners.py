"""A listener's properties: certificates from files, and users where their mechanism needs them."""

from pathlib import Path

import pytest

from kafka_lab.listeners import Listener, Tls, is_scram, listener_properties


def test_certificates_come_from_the_files(tmp_path: Path) -> None:
    """PEM goes into the properties as it is in the files; a client CA makes it mTLS."""
    for name in ("chain", "key", "ca"):
        (tmp_path / name).write_text(f"{name}\npem\n")
    tls = Tls(tmp_path / "chain", tmp_path / "key", tmp_path / "ca")
    properties = listener_properties(Listener("MTLS", "SSL", tls=tls))
    prefix = "listener.name.mtls."
    assert {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.certificate.chain": "chain\npem\n",
        f"{prefix}ssl.keystore.key": "key\npem\n",
        f"{prefix}ssl.truststore.type": "PEM",
        f"{prefix}ssl.truststore.certificates": "ca\npem\n",
        f"{prefix}ssl.client.auth": "required",
    } == properties


def test_plain_users_stand_in_the_jaas_configuration() -> None:
    """Quotes and backslashes in passwords stay."""
    listener = Listener("P", "SASL_PLAINTEXT", mechanism="PLAIN", users={"alice": 'a"b\\c'})
    assert {
        "listener.name.p.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.p.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            ' user_alice="a\\"b\\\\c";'
        ),
    } == listener_properties(listener)


def test_scram_users_do_not() -> None:
    """SCRAM users are in the cluster's metadata, so the broker's file has no password."""
    listener = Listener("S", "SASL_SSL", mechanism="SCRAM-SHA-512", users={"alice": "secret"})
    assert {
        "listener.name.s.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.s.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    } == listener_properties(listener)


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [(None, False), ("PLAIN", False), ("SCRAM-SHA-256", True), ("SCRAM-SHA-512", True)],
)
def test_which_mechanisms_are_scram(mechanism: str | None, expected: bool) -> None:
    """Only those need users created in the metadata."""
    assert expected == is_scram(Listener("X", "SASL_SSL", mechanism=mechanism))  # type: ignore[arg-type]  # a literal, by the parameters above


def test_a_repr_shows_no_password() -> None:
    """Listeners may end up in a log."""
    assert "secret" not in repr(Listener("S", "SASL_SSL", users={"alice": "secret"}))
