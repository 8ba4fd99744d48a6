"""TLS material and credentials, from the settings to brokers that ask for them."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from sidecar.errors import SettingsError
from sidecar.kafka import KafkaVolumeSource
from sidecar.kafka.client.connection import dial
from sidecar.kafka.client.failures import Names
from sidecar.kafka.client.security import load_security
from sidecar.settings import HostPort, PemFiles
from sidecar.volumes import Failure, FailureKind, Observation
from tests.sidecar.kafka.servers import (
    Clock,
    admin,
    bootstrap,
    failed,
    lookup_of,
    pem,
    server_context,
    succeeded,
    wanting_client_certificate,
)
from tests.support.fake_broker import FakeCluster

pytestmark = pytest.mark.usefixtures("nothing_left_open")

NOWHERE = HostPort("127.0.0.1", 9092)
PASSWORD = "Tr0ub4dor"
TRUSTED = "SIDECAR_KAFKA_ADMIN_SSL_TRUSTSTORE_LOCATION"


async def poll(cluster: FakeCluster, clock: Clock, **settings: Any) -> Observation | Failure:
    """One poll of a cluster that speaks TLS."""
    made = admin(bootstrap(cluster), security_protocol="SSL", **settings)
    async with KafkaVolumeSource(made, clock=clock) as source:
        return await source.observe(None, 5.0)


def client_pems(ca: trustme.CA) -> dict[str, str]:
    """A client's certificate, its key, and its key encrypted."""
    certificate = ca.issue_cert("sidecar.example")
    key = certificate.private_key_pem.bytes()
    encrypted = load_pem_private_key(key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode())
    )
    return {
        "certificate": "".join(each.bytes().decode() for each in certificate.cert_chain_pems),
        "key": key.decode(),
        "encrypted": encrypted.decode(),
    }


async def test_addresses_that_fail_alike_share_a_message(clock: Clock, ca: trustme.CA) -> None:
    """What is to be done is said once."""
    async with FakeCluster(ssl_context=server_context(ca)).add(2) as cluster:
        addresses = [HostPort("127.0.0.1", broker.port) for broker in cluster.brokers.values()]
        made = admin(*addresses, security_protocol="SSL")
        async with KafkaVolumeSource(made, clock=clock) as source:
            message = failed(await source.observe(None, 5.0), FailureKind.TLS)
    before = "no broker reported the list of brokers: "
    named, _, why = message.removeprefix(before).partition(": ")
    assert set(map(str, addresses)) == set(named.split(", "))
    assert why.startswith("its certificate is not trusted: ")
    assert 1 == why.count(TRUSTED)


async def test_a_folder_of_ca_certificates(tmp_path: Path, clock: Clock, ca: trustme.CA) -> None:
    """Strimzi keeps a CA that it replaced as ca-DATE.crt, and brokers still have its signature."""
    async with FakeCluster(ssl_context=server_context(ca)).add(1) as cluster:
        (tmp_path / "ca.p12").write_bytes(b"not read")
        with pytest.raises(SettingsError, match=r"can't be used: the folder has no file \*\.crt"):
            await poll(cluster, clock, ssl_truststore_location=tmp_path)
        (tmp_path / "ca.crt").write_text(pem(trustme.CA()))
        failed(await poll(cluster, clock, ssl_truststore_location=tmp_path), FailureKind.TLS)
        (tmp_path / "ca-2026-11-30T00-00-00Z.crt").write_text(pem(ca))
        succeeded(await poll(cluster, clock, ssl_truststore_location=tmp_path))


async def test_a_certificate_for_another_name(clock: Clock, ca: trustme.CA) -> None:
    """The sidecar refuses it, unless the settings turn off the verification of names.

    Without that verification, the certificate is still verified.
    """
    context = server_context(ca, "other.example")
    async with FakeCluster(ssl_context=context).add(1) as cluster:
        message = failed(
            await poll(cluster, clock, ssl_truststore_certificates=pem(ca)), FailureKind.TLS
        )
        assert "127.0.0.1" in message
        unverified = {"ssl_endpoint_identification_algorithm": ""}
        succeeded(await poll(cluster, clock, ssl_truststore_certificates=pem(ca), **unverified))
        failed(
            await poll(cluster, clock, ssl_truststore_certificates=pem(trustme.CA()), **unverified),
            FailureKind.TLS,
        )


async def test_a_name_with_a_dot_at_its_end(
    clock: Clock, ca: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked up with the dot, and its certificate has none."""
    monkeypatch.setattr(socket, "getaddrinfo", lookup_of("kafka.example."))
    async with FakeCluster(ssl_context=server_context(ca, "kafka.example")).add(1) as cluster:
        (broker,) = cluster.brokers.values()
        connection = await dial(
            HostPort("kafka.example.", broker.port),
            load_security(
                admin(security_protocol="SSL", ssl_truststore_certificates=pem(ca)), clock
            ),
            "test",
            clock,
        )
        await connection.close()


async def test_mutual_tls_from_text(clock: Clock, ca: trustme.CA) -> None:
    """Our own certificate is shown, with its key in each of the forms that Kafka's PEM has."""
    pems = client_pems(ca)
    certificate = {"ssl_keystore_certificate_chain": pems["certificate"]}
    async with FakeCluster(ssl_context=wanting_client_certificate(ca)).add(1) as cluster:
        for own in (
            certificate | {"ssl_keystore_key": pems["key"]},
            certificate | {"ssl_keystore_key": pems["encrypted"], "ssl_key_password": PASSWORD},
            {"ssl_keystore_certificate_chain": pems["certificate"] + pems["key"]},
        ):
            succeeded(await poll(cluster, clock, ssl_truststore_certificates=pem(ca), **own))


async def test_mutual_tls_from_files(clock: Clock, ca: trustme.CA, tmp_path: Path) -> None:
    """The CA, the client's certificate and its encrypted key are files."""
    pems = client_pems(ca) | {"ca": pem(ca)}
    for name, text in pems.items():
        (tmp_path / name).write_text(text)
    async with FakeCluster(ssl_context=wanting_client_certificate(ca)).add(1) as cluster:
        answer = await poll(
            cluster,
            clock,
            ssl_truststore_location=tmp_path / "ca",
            ssl_keystore_location=tmp_path / "certificate",
            ssl_keystore_key_location=tmp_path / "encrypted",
            ssl_key_password=PASSWORD,
        )
    succeeded(answer)


async def test_files_that_were_read_are_not_read_again(
    clock: Clock, ca: trustme.CA, tmp_path: Path
) -> None:
    """A connection of the daemon reads no file: opening these would hang."""
    pems = client_pems(ca) | {"ca": pem(ca)}
    for name in pems:
        os.mkfifo(tmp_path / name)
    contents = [pems[name].encode() for name in ("ca", "certificate", "encrypted")]
    async with FakeCluster(ssl_context=wanting_client_certificate(ca)).add(1) as cluster:
        answer = await poll(
            cluster,
            clock,
            ssl_truststore_location=tmp_path / "ca",
            ssl_keystore_location=tmp_path / "certificate",
            ssl_keystore_key_location=tmp_path / "encrypted",
            ssl_key_password=PASSWORD,
            files=PemFiles(*contents),
        )
    succeeded(answer)


def refused(clock: Clock, **settings: Any) -> str:
    """What the settings are refused with."""
    with pytest.raises(SettingsError) as refusal:
        load_security(admin(NOWHERE, **settings), clock)
    assert len(refusal.value.problems) == 1
    return str(refusal.value)


@pytest.mark.slow
async def test_material_that_can_not_be_read(clock: Clock, ca: trustme.CA, tmp_path: Path) -> None:
    """Each refusal names the file and the reason in one line, and has no secret."""
    pems = client_pems(ca)
    missing = tmp_path / "missing.pem"
    text = refused(clock, security_protocol="SSL", ssl_truststore_location=missing)
    assert f"the CA certificate file {missing} can't be used: No such file" in text
    key_file = tmp_path / "key.pem"
    key_file.write_text(pems["key"])
    text = refused(clock, security_protocol="SSL", ssl_truststore_location=key_file)
    expected = (
        f"the CA certificate file {key_file} can't be used: it has no certificate (PEM that "
        "begins with -----BEGIN CERTIFICATE-----)"
    )
    assert expected == text
    text = refused(clock, security_protocol="SSL", ssl_truststore_certificates="nonsense")
    assert text.startswith("the CA certificate in the settings can't be used: it has no cert")
    key_file.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    text = refused(clock, security_protocol="SSL", ssl_truststore_location=key_file)
    assert "can't be used: " in text
    assert "password" not in text
    own = {"security_protocol": "SSL", "ssl_keystore_certificate_chain": pems["certificate"]}
    for key in (
        {"ssl_keystore_key": pems["encrypted"]},
        {"ssl_keystore_key": pems["encrypted"], "ssl_key_password": "Not it"},
        {"ssl_keystore_key": client_pems(ca)["key"]},
        {"ssl_keystore_key_location": missing},
        {},
    ):
        text = refused(clock, **own, **key)
        assert "the client certificate in the settings or its key" in text
        assert "can't be used: " in text
        assert "Not it" not in text
        assert "PRIVATE" not in text


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "SASL_PLAINTEXT needs a SASL mechanism"),
        ({"sasl_mechanism": "PLAIN"}, "PLAIN needs a user name and a password"),
        (
            {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "eve"},
            "SCRAM-SHA-512 needs a user name and a password",
        ),
        ({"sasl_mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs a token URL and a client id"),
        ({"sasl_mechanism": "GSSAPI"}, "GSSAPI needs a keytab and a principal"),
        ({"sasl_mechanism": "AWS_MSK_IAM"}, "AWS_MSK_IAM needs a region"),
    ],
)
async def test_credentials_that_are_missing(
    clock: Clock, settings: dict[str, Any], says: str
) -> None:
    """What the mechanism needs is asked for at the start, not at the first connection."""
    assert says == refused(clock, security_protocol="SASL_PLAINTEXT", **settings)


async def test_messages_know_where_user_and_password_come_from(clock: Clock) -> None:
    """They have the settings' names and their source."""
    made = admin(
        NOWHERE, sasl_setting_names=("USER", "PASSWORD_FILE"), settings_source="properties"
    )
    assert Names("properties", ("USER", "PASSWORD_FILE")) == load_security(made, clock).names
    await asyncio.sleep(0)


async def test_its_text_has_no_secret(clock: Clock) -> None:
    """A security that ends up in a log or a traceback reveals nothing."""
    security = load_security(
        admin(
            NOWHERE,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="eve",
            sasl_password=PASSWORD,
        ),
        clock,
    )
    assert "eve" in repr(security)
    assert PASSWORD not in repr(security)
    await asyncio.sleep(0)
