"""Settings that do not fit the brokers' listener: what ``check`` and a polling sidecar say."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from sidecar.cli import group
from tests.sidecar.kafka.servers import handshaking, pem, server_context, wanting_client_certificate
from tests.support.background import bootstrap
from tests.support.examples import mostly_slow
from tests.support.fake_broker import FakeCluster
from tests.support.raw_server import raw_server
from tests.support.stepped import SteppedSidecar, effect, settings_at

PASSWORD = 'quoted "secret" \\ with a backslash'
SECRETS = (PASSWORD, "with a backslash", "PRIVATE KEY")

LOGIN = {"SASL_MECHANISM": "PLAIN", "SASL_USERNAME": "alice", "SASL_PASSWORD": PASSWORD}
TLS = {"SECURITY_PROTOCOL": "SSL", "SSL_TRUSTSTORE_LOCATION": "ca.pem"}


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    """Signed the listeners' certificates, which are for 127.0.0.1."""
    return trustme.CA()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, ca: trustme.CA) -> Path:
    """The files that settings name: the CA's certificate, another's, and what the other signed."""
    folder, other = tmp_path_factory.mktemp("certificates"), trustme.CA()
    (folder / "ca.pem").write_text(pem(ca))
    (folder / "other-ca.pem").write_text(pem(other))
    own = other.issue_cert("alice@example.org", common_name="alice")
    own.private_key_and_cert_chain_pem.write_to_path(str(folder / "other-client.pem"))
    return folder


@asynccontextmanager
async def listening(name: str, ca: trustme.CA) -> AsyncIterator[str]:
    """Runs a listener of that name; its address."""
    async with AsyncExitStack() as stack:
        if name in {"TLS", "mutual TLS"}:
            context = server_context(ca) if name == "TLS" else wanting_client_certificate(ca)
            yield str(await stack.enter_async_context(raw_server(handshaking(context))))
        else:
            users = {"alice": PASSWORD} if "login" in name else None
            speaks_tls = server_context(ca) if "TLS" in name else None
            cluster = FakeCluster(users=users, ssl_context=speaks_tls).add(1)
            yield bootstrap(await stack.enter_async_context(cluster))


@dataclass(frozen=True, slots=True)
class Mistake:
    """Settings that can't work.

    Attributes:
        listener: which of those of ``listening``.
        kind: of the failure.
        setting: the one that the message names, without SIDECAR_KAFKA_ADMIN_.
        settings: the settings, without that prefix; files are of the folder.
        host: what is dialled.
    """

    listener: str
    kind: str
    setting: str
    settings: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"


MISTAKES = {
    "wrong mechanism": Mistake(
        "login",
        "authentication",
        "SASL_MECHANISM",
        LOGIN | {"SECURITY_PROTOCOL": "SASL_PLAINTEXT", "SASL_MECHANISM": "SCRAM-SHA-512"},
    ),
    "wrong certificates to trust": Mistake(
        "TLS",
        "tls",
        "SSL_TRUSTSTORE_LOCATION",
        TLS | {"SSL_TRUSTSTORE_LOCATION": "other-ca.pem"},
    ),
    "no certificates to trust": Mistake(
        "TLS", "tls", "SSL_TRUSTSTORE_LOCATION", {"SECURITY_PROTOCOL": "SSL"}
    ),
    "another name than the certificate's": Mistake(
        "TLS", "tls", "SSL_ENDPOINT_IDENTIFICATION_ALGORITHM", TLS, "localhost"
    ),
    "no certificate of our own": Mistake("mutual TLS", "tls", "SSL_KEYSTORE_LOCATION", TLS),
    "a certificate of our own that it doesn't trust": Mistake(
        "mutual TLS",
        "tls",
        "SSL_KEYSTORE_LOCATION",
        TLS | {"SSL_KEYSTORE_LOCATION": "other-client.pem"},
    ),
    "TLS where there is none": Mistake("plain", "connect", "SECURITY_PROTOCOL", TLS),
    "a login where there is none": Mistake(
        "plain",
        "authentication",
        "SECURITY_PROTOCOL",
        LOGIN | {"SECURITY_PROTOCOL": "SASL_PLAINTEXT"},
    ),
    "no login where there is": Mistake("login", "connect", "SASL_MECHANISM"),
    "no login over TLS where there is": Mistake("login over TLS", "connect", "SASL_MECHANISM", TLS),
    "no TLS where there is": Mistake("TLS", "protocol", "SECURITY_PROTOCOL"),
}


@pytest.mark.parametrize("what", mostly_slow(MISTAKES, 2))
async def test_what_is_wrong_is_said_in_a_line(
    what: str, ca: trustme.CA, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """``check`` says it with exit code 2, a poll by its kind of failure; neither says a secret."""
    mistake = MISTAKES[what]
    settings = {
        f"KAFKA_ADMIN_{name}": str(folder / value) if value.endswith(".pem") else value
        for name, value in mistake.settings.items()
    }
    caplog.set_level(logging.DEBUG)
    async with listening(mistake.listener, ca) as address:
        environ = settings_at(address.replace("127.0.0.1", mistake.host), **settings)
        async with SteppedSidecar(environ) as sidecar:
            assert (1.0, "fallback") == effect(await sidecar.poll())
            assert {mistake.kind} == sidecar.metrics.failure_kinds()
        logged = caplog.messages[:]
        done = await asyncio.to_thread(CliRunner().invoke, group, ["check"], env=environ)
    (warned,) = [line for line in logged if line.startswith("polling: ")]
    assert warned.startswith(f"polling: {mistake.kind}: ")
    assert 2 == done.exit_code
    (refusal,) = done.stderr.splitlines()
    for line in (warned, refusal):
        assert f"SIDECAR_KAFKA_ADMIN_{mistake.setting}" in line
    for secret in SECRETS:
        assert secret not in "\n".join([*logged, done.output])
