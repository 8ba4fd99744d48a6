"""Real clusters for the integration tests: one for each Kafka version, for the whole run.

A cluster starts when the first test asks for it and ends with the run, also when pytest is killed.
Whatever a test does to brokers, volumes and topics is undone after it. A test asks for

- ``kafka``: Kafka 4.3.1, three brokers with two volumes of 64 MiB each;
- ``any_kafka``: the same test on each of ``VERSIONS`` in turn, with fewer brokers and volumes;
- ``obeying``: as ``kafka``, its brokers with the quota callback; ``any_obeying``: on each version;
- ``secure_kafka``: one broker with listeners for TLS, SASL and mTLS, and an authorizer;
- ``start``: starts the real daemon beside a cluster's brokers, and ends it after the test.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509 import load_pem_x509_certificate

from sidecar.cli.callback.jar import callback_jar
from sidecar.demo.admin import Admin
from sidecar.demo.cache import cache_folder
from sidecar.demo.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from sidecar.demo.cluster import Cluster
from sidecar.demo.jars import DEFAULT_VERSION, jars
from sidecar.demo.listeners import Listener, Tls
from sidecar.demo.waiting import POLL_S, deadline
from tests.integration.daemon import Beside, Daemon

VOLUME_BYTES = 64 << 20
VERSIONS = {
    # version: brokers, volumes of each
    "3.3.2": (2, 2),
    "3.9.1": (2, 2),
    "4.3.1": (3, 2),
}
PASSWORD = "secret"
"""Of the users on the listener BASIC of brokers with the quota callback, ops and etl."""

_VERSIONED = ("any_kafka", "any_obeying", "version")
"""Parameters that are Kafka versions."""

Start = Callable[[Beside, Mapping[str, str]], Awaitable[Daemon]]
"""Starts a daemon with these SIDECAR_* variables; returns when it listens."""

# Kafka 3.3 first looks for deleted segments after 30 s.
_FREED_S = 60.0


@dataclass(frozen=True, slots=True)
class SecureKafka:
    """A cluster of one broker with an authorizer, and who may do what on it.

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


@dataclass(frozen=True, slots=True)
class Obeying:
    """A cluster whose brokers have the quota callback.

    Each asks the sidecar at its ``sidecar_url``, which the test starts. On the listener BASIC
    (SASL_PLAINTEXT, PLAIN) there are the users etl and ops, of whom ops is never held.

    Attributes:
        cluster: the cluster.
    """

    cluster: Cluster


class Clusters:
    """The run's clusters, started on demand."""

    def __init__(self) -> None:
        self._running: dict[str, Cluster] = {}
        self._stack = AsyncExitStack()

    async def obeying(self, version: str) -> Cluster:
        key = f"{version} with the callback"
        if key not in self._running:
            users = {"ops": PASSWORD, "etl": PASSWORD}
            cluster = Cluster(
                environ=os.environ,
                version=version,
                brokers=3,
                volumes=2,
                volume_bytes=VOLUME_BYTES,
                listeners=[Listener("BASIC", "SASL_PLAINTEXT", "PLAIN", users)],
                broker_jars=[callback_jar()],
                properties={
                    **CALLBACK_PROPERTIES,
                    "client.quota.callback.sidecar.excluded.principals": "User:ops",
                    # The volumes are so small that every leak would be an emergency.
                    "client.quota.callback.sidecar.emergency.horizon.ms": "1",
                },
                properties_of=asks_its_sidecar,
            )
            self._running[key] = await self._stack.enter_async_context(cluster)
        return self._running[key]

    async def get(self, version: str) -> Cluster:
        if version not in self._running:
            brokers, volumes = VERSIONS[version]
            cluster = Cluster(
                environ=os.environ,
                version=version,
                brokers=brokers,
                volumes=volumes,
                volume_bytes=VOLUME_BYTES,
            )
            self._running[version] = await self._stack.enter_async_context(cluster)
        return self._running[version]

    async def close(self) -> None:
        await self._stack.aclose()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a real cluster, and give it the time that starting one takes."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.integration)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(180))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Download what the chosen tests need before any test's time runs."""
    items = [item for item in session.items if item.get_closest_marker("integration") is not None]
    if not items or session.config.option.collectonly:
        return
    versions = {DEFAULT_VERSION}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            chosen = item.callspec.params
            versions |= {str(chosen[name]) for name in _VERSIONED if name in chosen}
    for version in sorted(versions):
        asyncio.run(jars(version, cache_folder(os.environ)))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def clusters() -> AsyncIterator[Clusters]:
    running = Clusters()
    try:
        yield running
    finally:
        await running.close()


@pytest_asyncio.fixture
async def kafka(clusters: Clusters) -> AsyncIterator[Cluster]:
    """The cluster of 4.3.1: three brokers with two volumes each."""
    cluster = await clusters.get(DEFAULT_VERSION)
    yield cluster
    await _undo(cluster)


@pytest_asyncio.fixture(params=list(VERSIONS))
async def any_kafka(clusters: Clusters, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A cluster of each version in turn."""
    cluster = await clusters.get(request.param)
    yield cluster
    await _undo(cluster)


@pytest_asyncio.fixture
async def obeying(clusters: Clusters) -> AsyncIterator[Obeying]:
    """The cluster of 4.3.1 with the quota callback."""
    cluster = await clusters.obeying(DEFAULT_VERSION)
    yield Obeying(cluster)
    await _undo(cluster)


@pytest_asyncio.fixture(params=list(VERSIONS))
async def any_obeying(clusters: Clusters, request: pytest.FixtureRequest) -> AsyncIterator[Obeying]:
    """A cluster with the quota callback of each version in turn."""
    cluster = await clusters.obeying(request.param)
    yield Obeying(cluster)
    await _undo(cluster)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def secure_kafka(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SecureKafka]:
    """A cluster of one broker with every kind of listener and an authorizer."""
    folder = tmp_path_factory.mktemp("certificates")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    client = ca.issue_cert("alice@example.org", common_name="alice")
    client.cert_chain_pems[0].write_to_path(str(folder / "client.pem"))
    client.private_key_pem.write_to_path(str(folder / "client-key.pem"))
    tls = _broker_certificate(ca, folder)
    password = 'quoted "secret" \\ with a backslash'
    users = {"alice": password, "bob": password}
    cluster = Cluster(
        environ=os.environ,
        brokers=1,
        volumes=1,
        volume_bytes=VOLUME_BYTES,
        listeners=[
            Listener("SCRAM", "SASL_SSL", "SCRAM-SHA-512", users, tls),
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


@pytest_asyncio.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts daemons, each with a log in the test's folder; all that still run must end well."""
    daemons: list[Daemon] = []

    async def start_one(cluster: Beside, environ: Mapping[str, str]) -> Daemon:
        number = len(daemons)
        name = f"{tmp_path.name} {number}"
        daemon = Daemon(cluster, name, environ, tmp_path / f"sidecar-{number}.log")
        daemons.append(daemon)
        await daemon.start()
        return daemon

    yield start_one
    ends = await asyncio.gather(*(daemon.end() for daemon in daemons))
    for daemon, ended in zip(daemons, ends, strict=True):
        # None: the test has ended it by itself.
        assert ended in {0, None}, f"a daemon ended with {ended}:\n{daemon.said()}"


def _broker_certificate(ca: trustme.CA, folder: Path) -> Tls:
    certificate = ca.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(str(folder / "broker.pem"))
    # Kafka reads PKCS #8 keys, trustme writes the older form.
    key = load_pem_private_key(certificate.private_key_pem.bytes(), password=None)
    (folder / "broker-key.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    return Tls(folder / "broker.pem", folder / "broker-key.pem")


async def _undo(cluster: Cluster) -> None:
    """Make the cluster as it was before the test: whole, without topics, with free volumes."""
    await cluster.heal()
    async with Admin(cluster.bootstrap) as admin:
        topics = await admin.topics()
        await admin.delete_topic(*(name for name in topics if not name.startswith("__")))
    if cluster.volumes_are_real:
        async with deadline(_FREED_S, "deleted topics' space was not free"):
            for broker in cluster.brokers.values():
                for index in range(len(broker.volumes)):
                    await _wait_free(cluster, broker.id, index)


async def _wait_free(cluster: Cluster, broker_id: int, index: int) -> None:
    while True:
        total, available = await cluster.usage(broker_id, index)
        if available > 0.95 * total:
            return
        await asyncio.sleep(POLL_S)
