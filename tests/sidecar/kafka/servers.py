"""Servers that misbehave before or below Kafka's protocol, and ways to reach all servers."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import trustme
from pydantic import SecretStr

from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind
from tests.support.fake_broker import FakeCluster
from tests.support.raw_server import Handler

T = TypeVar("T")

PATIENCE_S = 60.0
"""The first answers of kio take their time on a busy machine."""


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Accept, and never say a word."""
    await asyncio.Event().wait()


_ALERT = b"\x15\x03\x03\x00\x02\x02P"
"""What Java answers to bytes that are not TLS; OpenSSL answers nothing."""


def handshaking(context: ssl.SSLContext) -> Handler:
    """Does the handshake and no more; one that fails ends with an alert, as at Kafka's listeners.

    asyncio's server ends it without.
    """

    async def handshake(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        while received := await reader.read(65536):
            incoming.write(received)
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
            except ssl.SSLError:
                writer.write(outgoing.read() or _ALERT)
                break
        await hang(reader, writer)

    return handshake


def free_port() -> HostPort:
    """An address where nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return HostPort("127.0.0.1", found.getsockname()[1])


def bootstrap(cluster: FakeCluster) -> HostPort:
    """The address of the first broker."""
    return HostPort("127.0.0.1", next(iter(cluster.brokers.values())).port)


def admin(*addresses: HostPort, **settings: Any) -> KafkaAdmin:
    """Settings for these addresses; secrets may be plain text."""
    for name in (
        "sasl_password",
        "sasl_oauthbearer_client_credentials_client_secret",
        "ssl_keystore_key",
        "ssl_key_password",
    ):
        if isinstance(settings.get(name), str):
            settings[name] = SecretStr(settings[name])
    return KafkaAdmin(bootstrap_servers=addresses, **settings)


def lookup_of(name: str) -> Callable[..., Any]:
    """A ``socket.getaddrinfo`` that finds this machine under a name."""
    look_up = socket.getaddrinfo

    def found(host: str, *args: Any, **options: Any) -> Any:
        return look_up("127.0.0.1" if host == name else host, *args, **options)

    return found


def server_context(ca: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    """TLS for a server of that name, signed by the CA."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert(name).configure_cert(context)
    return context


def wanting_client_certificate(ca: trustme.CA) -> ssl.SSLContext:
    """The same for a server that only lets in whom the CA signed."""
    context = server_context(ca)
    context.verify_mode = ssl.CERT_REQUIRED
    ca.configure_trust(context)
    return context


def pem(ca: trustme.CA) -> str:
    """The CA's certificate as text."""
    return ca.cert_pem.bytes().decode()


def failed(answer: object, kind: FailureKind) -> str:
    """The message of an answer that is a failure of this kind."""
    assert isinstance(answer, Failure), answer
    assert kind is answer.kind, answer
    return answer.message


def succeeded(answer: T | Failure) -> T:
    """The answer, which is no failure."""
    assert not isinstance(answer, Failure), answer
    return answer


def open_sockets() -> set[str]:
    """The sockets of this process."""
    links: set[str] = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            links.add(str(descriptor.readlink()))
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
    return {link for link in links if link.startswith("socket:")}
