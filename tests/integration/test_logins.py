"""Logins by AWS IAM, token file and Kerberos, and Java's key stores, at real brokers.

The broker ends each session after 2 s, so that a daemon logs in again and again.
"""

import asyncio
import base64
import json
import os
import re
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.jars import DEFAULT_VERSION, jars
from kafka_lab.listeners import Listener
from sidecar.formats.cache_folder import cache_folder
from tests.support.clusters import VOLUME_BYTES
from tests.support.command import command, run
from tests.support.daemon import Daemon, settings, started
from tests.support.extras import AWS, KERBEROS, installed
from tests.support.java import compiled
from tests.support.kerberos import REALM, realm
from tests.support.raw_server import raw_server
from tests.support.secured import SecureKafka, tls
from tests.support.waiting import seen

pytestmark = pytest.mark.slow

SESSION_MS: Final = 2000
REGION: Final = "eu-west-1"
KEY_ID, SECRET_KEY = "AKIAEXAMPLE", "s3cret/of+amazon"
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@asynccontextmanager
async def cluster(protocol: str, jaas: str, handler: str = "", **more: Path) -> AsyncIterator[str]:
    """A broker with one mechanism, where alice may DESCRIBE the cluster; the listener's address."""
    own = "listener.name.login."
    properties = {
        f"{own}sasl.enabled.mechanisms": protocol,
        f"{own}{protocol.lower()}.sasl.jaas.config": jaas,
        "connections.max.reauth.ms": str(SESSION_MS),
        "sasl.kerberos.service.name": "kafka",
    }
    if handler:
        name = f"{own}{protocol.lower()}.sasl.server.callback.handler.class"
        properties[name] = handler
    kafka = Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=VOLUME_BYTES,
        listeners=[Listener("LOGIN", "SASL_PLAINTEXT")],
        broker_jars=list(more.values()),
        properties=properties,
        super_users=[],
    )
    async with kafka, Admin(kafka.bootstrap) as admin:
        await admin.allow("alice", "DESCRIBE", "BROKER", "kafka-cluster")
        yield kafka.bootstrap_of("LOGIN")


def login(bootstrap: str, mechanism: str, **more: str) -> dict[str, str]:
    """Settings with this mechanism; ``more`` without SIDECAR_KAFKA_ADMIN_SASL_."""
    names = {f"KAFKA_ADMIN_SASL_{name}": value for name, value in more.items()}
    protocol = {"KAFKA_ADMIN_SECURITY_PROTOCOL": "SASL_PLAINTEXT"}
    return settings(bootstrap, KAFKA_ADMIN_SASL_MECHANISM=mechanism, **protocol, **names)


async def logs_in_again(daemon: Daemon) -> None:
    """Waits for more logins than one, and for a poll after them."""
    await asyncio.sleep(2 * SESSION_MS / 1000)
    brokers = partial(daemon.get, "/v1/brokers")
    await seen("a poll", brokers, lambda each: each["failed_polls"] == 0)
    assert "observation" == (await daemon.factor())["source"]


@pytest.mark.timeout(600)  # the package is installed once
async def test_aws_iam_logs_in_with_what_amazons_signer_makes() -> None:
    """A handler in the broker checks the signature; another key is refused, none is named."""
    classes = await compiled("SignedTokens", await jars(DEFAULT_VERSION, cache_folder(os.environ)))
    options = f'accessKey="{KEY_ID}" secretKey="{SECRET_KEY}" region="{REGION}" principal="alice"'
    # A broker whose module has options needs a token of its own, which nobody uses.
    options += ' unsecuredLoginStringClaim_sub="broker"'
    library = {"PYTHONPATH": str(await installed(AWS))}
    aws = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    async with cluster(
        "OAUTHBEARER", f"{_OAUTH} {options};", "SignedTokens", classes=classes
    ) as bootstrap:
        environ = login(bootstrap, "AWS_MSK_IAM", AWS_REGION=REGION) | library
        done = await command("check", environ=environ | aws)
        assert (0, "") == (done.code, done.err)
        done = await command("check", environ=environ | aws | {"AWS_SECRET_ACCESS_KEY": "other"})
        assert "the login was refused" in done.err
        nobody = {"AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent"}
        done = await command("check", environ=environ | nobody)
        assert "no token for AWS_MSK_IAM: AWS's variables, files" in done.err
        assert SECRET_KEY not in done.said


def unsecured(user: str) -> str:
    """A token that Kafka's handler for tests accepts: JSON without a signature."""
    return jwt("none", user) + "."


def jwt(algorithm: str, user: str) -> str:
    """A token but for its signature."""
    now = time.time()
    parts = ({"alg": algorithm}, {"sub": user, "iat": now, "exp": now + 3600})
    return ".".join(base64url(json.dumps(part).encode()) for part in parts)


def base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def assertion(key: Ed25519PrivateKey) -> str:
    """What says that its sender is alice (RFC 7523), signed."""
    signed = jwt("EdDSA", "alice")
    return f"{signed}.{base64url(key.sign(signed.encode()))}"


async def test_a_token_file_is_read_at_each_login(tmp_path: Path) -> None:
    """Another's token is used, who may not DESCRIBE the cluster; a file without one is named."""
    file = tmp_path / "token"
    file.write_text(unsecured("alice") + "\n")
    async with cluster("OAUTHBEARER", f"{_OAUTH};") as bootstrap:
        environ = login(bootstrap, "OAUTHBEARER", OAUTHBEARER_TOKEN_ENDPOINT_URL=file.as_uri())
        async with started(tmp_path, environ) as daemon:
            await daemon.decides(1.0)
            file.write_text(unsecured("bob"))
            broker = await daemon.shows_broker(0, "refuses", lambda each: each["last_failure"])
            assert "authorization" == broker["last_failure"]["kind"]
            file.write_text(unsecured("alice"))
            await logs_in_again(daemon)
        file.write_text("")
        done = await command("check", environ=environ)
        assert f"no OAUTHBEARER token, {file} is empty" in done.err


async def test_an_assertion_gets_a_token_of_an_endpoint(tmp_path: Path) -> None:
    """The endpoint checks its signature; the file is read at each login; another key is refused."""
    key, file, granted = Ed25519PrivateKey.generate(), tmp_path / "assertion", list[str]()

    async def endpoint(reader: StreamReader, writer: StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        (length,) = re.findall(r"content-length: (\d+)", head)
        form = parse_qs((await reader.readexactly(int(length))).decode())
        assert ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"] == form[
            "client_assertion_type"
        ]
        (sent,) = form["client_assertion"]
        signed, _, signature = sent.rpartition(".")
        status, answer = "200 OK", {"access_token": unsecured("alice"), "expires_in": 1}
        try:
            key.public_key().verify(base64.urlsafe_b64decode(signature + "=="), signed.encode())
            granted.append(sent)
        except InvalidSignature:
            status, answer = "401 Unauthorized", {"error": "invalid_client"}
        body = json.dumps(answer)
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()

    file.write_text(assertion(key))
    async with raw_server(endpoint) as idp, cluster("OAUTHBEARER", f"{_OAUTH};") as bootstrap:
        ways = {"TOKEN_ENDPOINT_URL": f"http://{idp}/token", "ASSERTION_FILE": str(file)}
        more = {f"OAUTHBEARER_{name}": value for name, value in ways.items()}
        environ = login(bootstrap, "OAUTHBEARER", **more)
        async with started(tmp_path, environ) as daemon:
            await daemon.decides(1.0)
            file.write_text(renewed := assertion(key))
            await logs_in_again(daemon)
            assert renewed in granted
        file.write_text(assertion(Ed25519PrivateKey.generate()))
        done = await command("check", environ=environ)
        assert 0 != done.code
        assert "no OAUTHBEARER token, the endpoint" in done.err


@pytest.mark.timeout(600)  # the package is compiled once
async def test_kerberos_logs_in_with_a_keytab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon needs no kinit, and uses new keys of its own and of the broker."""
    own, brokers = tmp_path / "alice.keytab", tmp_path / "broker.keytab"
    library = await installed(KERBEROS)
    async with realm(tmp_path / "realm") as kerberos:
        await kerberos.keytab("alice", own)
        await kerberos.keytab("kafka/127.0.0.1", brokers)
        monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Djava.security.krb5.conf={kerberos.config}")
        jaas = (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
            f' keyTab="{brokers}" principal="kafka/127.0.0.1@{REALM}";'
        )
        async with cluster("GSSAPI", jaas) as bootstrap:
            principal = {"KERBEROS_KEYTAB": str(own), "KERBEROS_PRINCIPAL": f"alice@{REALM}"}
            library_too = {"KRB5_CONFIG": str(kerberos.config), "PYTHONPATH": str(library)}
            environ = login(bootstrap, "GSSAPI", **principal) | library_too
            done = await command("check", environ=environ)
            assert (0, "") == (done.code, done.err)
            async with started(tmp_path, environ) as daemon:
                await daemon.decides(1.0)
                await kerberos.keytab("alice", own)
                # The tickets are for the broker's former key now, and valid for hours.
                await kerberos.keytab("kafka/127.0.0.1", brokers)
                await logs_in_again(daemon)
            own.write_bytes(b"")
            done = await command("check", environ=environ)
            assert f"no Kerberos login of alice@{REALM} with the keytab {own}: " in done.err
            del environ["PYTHONPATH"]
            done = await command("check", environ=environ)
            assert "In a checkout, run: pip install '.[kerberos]'" in done.err


@pytest.mark.parametrize("form", ["JKS", "PKCS12"])
async def test_javas_key_stores_are_read_as_they_are(
    secure_kafka: SecureKafka, tmp_path: Path, form: str
) -> None:
    """Java's keytool makes them; the certificate logs in, and the broker's is trusted."""
    trust, own, p12 = tmp_path / "trust", tmp_path / "own", tmp_path / "client.p12"
    made = pkcs12.serialize_key_and_certificates(
        b"client",
        load_pem_private_key(secure_kafka.client_key_file.read_bytes(), None),  # type: ignore[arg-type]
        load_pem_x509_certificate(secure_kafka.client_certificate_file.read_bytes()),
        None,
        BestAvailableEncryption(b"changeit"),
    )
    p12.write_bytes(made)
    password = ("-storepass", "changeit", "-noprompt", "-storetype", form)
    for words in (
        ("-importcert", "-file", str(secure_kafka.ca_file), "-keystore", str(trust), *password),
        (
            *("-importkeystore", "-srckeystore", str(p12), "-srcstorepass", "changeit"),
            *("-destkeystore", str(own), "-deststorepass", "changeit", "-deststoretype", form),
        ),
    ):
        done = await run(["keytool", *words])
        assert 0 == done.code, done.said
    stores = {
        "SSL_TRUSTSTORE_LOCATION": str(trust),
        "SSL_TRUSTSTORE_PASSWORD": "changeit",
        "SSL_KEYSTORE_LOCATION": str(own),
        "SSL_KEYSTORE_PASSWORD": "changeit",
    }
    done = await command("check", environ=tls(secure_kafka, "MTLS", **stores))
    assert (0, "") == (done.code, done.err)
    async with started(tmp_path, tls(secure_kafka, "MTLS", **stores)) as daemon:
        await daemon.decides(1.0)
        text = (await daemon.ask("/metrics")).text
        assert 'expiry_timestamp_seconds{setting="kafka.admin.ssl.keystore.location"}' in text
    wrong = stores | {"SSL_KEYSTORE_PASSWORD": "hunter2"}
    done = await command("check", environ=tls(secure_kafka, "MTLS", **wrong))
    assert f"the key store {own} can't be used: the password is wrong" in done.err
