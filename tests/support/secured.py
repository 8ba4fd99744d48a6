"""A real cluster with TLS, SASL and an authorizer, and how its listeners are reached."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509 import load_pem_x509_certificate

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener, Tls
from tests.support.clusters import VOLUME_BYTES
from tests.support.daemon import settings

SCRAM: Final = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class SecureKafka:
    """A cluster of one combined node with an authorizer, and who may do what on it.

    Listeners: "SCRAM" (SASL_SSL, SCRAM-SHA-512), "BASIC" (SASL_PLAINTEXT, PLAIN), "TLS" (SSL) and
    "MTLS" (SSL, a client certificate is required). On every one of them a user needs an ACL.

    Attributes:
        cluster: the cluster.
        password: of all users, alice, who may DESCRIBE the cluster, and bob, who may nothing.
        ca_file: what signed the broker's certificate, which is for 127.0.0.1.
        client_certificate_file: of a principal that may DESCRIBE the cluster too.
        client_key_file: its key.
    """

    cluster: Cluster
    password: str
    ca_file: Path
    client_certificate_file: Path
    client_key_file: Path


@asynccontextmanager
async def secured(folder: Path) -> AsyncIterator[SecureKafka]:
    """Starts a secured cluster; its certificates and keys are in the folder."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    client = ca.issue_cert("alice@example.org", common_name="alice")
    client.cert_chain_pems[0].write_to_path(str(folder / "client.pem"))
    client.private_key_pem.write_to_path(str(folder / "client-key.pem"))
    certificate = ca.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(str(folder / "broker.pem"))
    key = pkcs8(certificate.private_key_pem.bytes(), folder / "broker-key.pem")
    tls = Tls(folder / "broker.pem", key)
    password = 'quoted "secret" \\ with a backslash'
    users = {"alice": password, "bob": password}
    cluster = Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=VOLUME_BYTES,
        listeners=[
            Listener("SCRAM", "SASL_SSL", SCRAM, users, tls),
            Listener("BASIC", "SASL_PLAINTEXT", "PLAIN", users),
            Listener("TLS", "SSL", tls=tls),
            Listener("MTLS", "SSL", tls=Tls(tls.certificate, tls.key, folder / "ca.pem")),
        ],
        super_users=[],
    )
    async with cluster:
        async with Admin(cluster.bootstrap) as admin:
            # The principal of a certificate is its whole subject as Java writes it: by RFC 2253,
            # with each # escaped, not only a leading one.
            subject = load_pem_x509_certificate(client.cert_chain_pems[0].bytes()).subject
            for user in ("alice", subject.rfc4514_string().replace("#", r"\#")):
                await admin.allow(user, "DESCRIBE", "BROKER", "kafka-cluster")
        yield SecureKafka(
            cluster=cluster,
            password=password,
            ca_file=folder / "ca.pem",
            client_certificate_file=folder / "client.pem",
            client_key_file=folder / "client-key.pem",
        )


def pkcs8(key: bytes, file: Path) -> Path:
    """Writes a private key in the form that Java reads; trustme writes the older one."""
    pem = load_pem_private_key(key, password=None)
    file.write_bytes(pem.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return file


def tls(secure: SecureKafka, listener: str, **more: str) -> dict[str, str]:
    """Settings for a listener with TLS; ``more`` without SIDECAR_KAFKA_ADMIN_."""
    merged = {"SECURITY_PROTOCOL": "SSL", "SSL_TRUSTSTORE_LOCATION": str(secure.ca_file), **more}
    admin = {f"KAFKA_ADMIN_{name}": value for name, value in merged.items()}
    return settings(secure.cluster.bootstrap_of(listener), **admin)


def scram(secure: SecureKafka, **more: str) -> dict[str, str]:
    """Settings for SCRAM over TLS, as alice."""
    login = {"SASL_MECHANISM": SCRAM, "SASL_USERNAME": "alice", "SASL_PASSWORD": secure.password}
    return tls(secure, "SCRAM", **({"SECURITY_PROTOCOL": "SASL_SSL"} | login | more))
