"""A simulated cluster: servers on loopback that speak as much of Kafka as a poll needs.

ApiVersions, DescribeCluster, DescribeLogDirs and SASL (PLAIN, OAUTHBEARER), each broker on a port
of its own, all in one process. Answers are encoded by kio, not by the code under test, once, and
sent again until what they say is changed. A broker misbehaves when its ``twist`` is replaced. With
``takes_s`` it is slow: one request of a connection is answered after the other, as Kafka does.

As a program, for benchmarks: ``python -m tests.support.fake_broker --brokers 1000 --volumes 12``
prints the address to begin from and runs until it is stopped.
"""

import argparse
import asyncio
import io
import resource
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, Self

from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i32, i64

API_VERSIONS = 18
SASL_HANDSHAKE = 17
SASL_AUTHENTICATE = 36
DESCRIBE_LOG_DIRS = 35
DESCRIBE_CLUSTER = 60

GIB = 1024**3
LONGEST_REQUEST_BYTES = 100 * 1024**2
"""Kafka's default of socket.request.max.bytes: a longer request, such as a TLS handshake read as
one, is not waited for."""
_HEADER = struct.Struct(">ihhih")
_MECHANISMS = ("PLAIN", "OAUTHBEARER")


@dataclass(frozen=True, slots=True)
class FakeLogDir:
    """One log dir as its broker describes it; topics only where a test wants them."""

    log_dir: str
    total_bytes: int = 100 * GIB
    available_bytes: int = 50 * GIB
    error_code: int = 0
    topics: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    """More topics, each with the size of its partition 0."""


@dataclass(frozen=True, slots=True)
class FakeRequest:
    """A request's header and its body, as it was received."""

    api_key: int
    api_version: int
    correlation_id: int
    body: bytes
    client_id: str = ""

    @property
    def decoded(self) -> Any:
        """The body as kio reads it."""
        of_kio = kio_type(self.api_key, self.api_version, EntityType.request)
        entity, _ = entity_reader(of_kio)(self.body, 0)
        return entity


Twist = Callable[["FakeConnection", FakeRequest, bytes], bytes | None]
"""Gets the frame that would be sent; returns the bytes to send instead, or None for nothing."""


@dataclass(eq=False)
class FakeBroker:
    """One broker: what it says, and who is connected to it.

    Attributes:
        takes_s: api key -> how long one such answer takes, seconds.
        throttle_ms: the throttle time in its answers, after which it reads the next request.
        advertised_port: the port that lists of brokers have for it; None for its own.
        users: the passwords that this broker alone accepts; None for those of the cluster.
        list_of_then: broker id -> whether it is fenced, if this broker lacks newer metadata.
    """

    broker_id: int
    cluster: "FakeCluster"
    log_dirs: tuple[FakeLogDir, ...]
    log_dirs_error: int = 0
    rack: str | None = None
    fenced: bool = False
    twist: Twist | None = None
    takes_s: Mapping[int, float] = field(default_factory=dict)
    throttle_ms: int = 0
    advertised_port: int | None = None
    users: Mapping[str, str] | None = None
    list_of_then: Mapping[int, bool] | None = None
    port: int = 0
    connections: set["FakeConnection"] = field(default_factory=set)
    connected: int = 0
    requests: list[FakeRequest] = field(default_factory=list)
    server: asyncio.Server | None = None
    answers: dict[tuple[int, int, bytes], bytes] = field(default_factory=dict)

    async def start(self) -> None:
        """Listen on the port it had, or on a free one."""
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(
            lambda: FakeConnection(self),
            "127.0.0.1",
            self.port,
            ssl=self.cluster.ssl_context,
            # A broker that is started anew listens on the port it had.
            reuse_address=True,
        )
        self.port = self.server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self.server is not None:
            self.server.close()
            self.drop()
            await self.server.wait_closed()
            self.server = None

    def drop(self) -> None:
        """Drop every connection."""
        for connection in list(self.connections):
            connection.transport.abort()

    def has(self, *log_dirs: FakeLogDir) -> None:
        """From its next answer on it has these log dirs."""
        self.log_dirs = log_dirs
        self.answers.clear()

    def answer(self, request: FakeRequest) -> bytes:
        """The answer's body, encoded at the first time; further requests' ones each time."""
        if request.api_key in self.cluster.answerers:
            return self.cluster.answerers[request.api_key](self, request)
        key = (request.api_key, request.api_version, request.body)
        body = self.answers.get(key)
        if body is None:
            body = self.answers[key] = self._encode(request)
        return body

    def _encode(self, request: FakeRequest) -> bytes:
        if request.api_key == DESCRIBE_CLUSTER:
            return self.cluster.describe(self, request)
        if request.api_key == DESCRIBE_LOG_DIRS:
            return self._describe_log_dirs(request.api_version)
        if request.api_key == API_VERSIONS:
            return self.cluster.api_versions_answer(request.api_version)
        raise AssertionError(f"a poll does not send {request}")

    def _describe_log_dirs(self, version: int) -> bytes:
        module = load_payload_module(DESCRIBE_LOG_DIRS, version, EntityType.response)
        results = tuple(
            module.DescribeLogDirsResult(
                error_code=ErrorCode(each.error_code),
                log_dir=each.log_dir,
                topics=tuple(
                    module.DescribeLogDirsTopic(name=name, partitions=()) for name in each.topics
                )
                + tuple(
                    module.DescribeLogDirsTopic(
                        name=name,
                        partitions=(
                            module.DescribeLogDirsPartition(
                                partition_index=i32(0),
                                partition_size=i64(size),
                                offset_lag=i64(0),
                                is_future_key=False,
                            ),
                        ),
                    )
                    for name, size in each.sizes
                ),
                total_bytes=each.total_bytes,
                usable_bytes=each.available_bytes,
            )
            for each in self.log_dirs
        )
        return encode(
            module.DescribeLogDirsResponse(
                throttle_time=timedelta(milliseconds=self.throttle_ms),
                error_code=ErrorCode(self.log_dirs_error),
                results=() if self.log_dirs_error else results,
            )
        )


@dataclass(eq=False)
class FakeCluster:
    """Brokers that know each other.

    Attributes:
        versions: api key -> the oldest and newest version that every broker reports.
        users: with it, clients have to log in: PLAIN with one of these passwords, or OAUTHBEARER
            with one of these values as the token.
        session_lifetime_ms: how long a login's session lasts; 0 is no end.
        answerers: further api keys -> the body of a broker's answer; see ``answer``.
        ssl_context: with it, the listeners speak TLS.
        rights: the operations that the user may do on the cluster, as bits; by default not told.
        controller_id: who is named as the controller; None: the first broker.
    """

    versions: dict[int, tuple[int, int]] = field(
        default_factory=lambda: {
            API_VERSIONS: (0, 2),
            SASL_HANDSHAKE: (0, 1),
            SASL_AUTHENTICATE: (0, 1),
            DESCRIBE_LOG_DIRS: (1, 5),
            DESCRIBE_CLUSTER: (0, 2),
        }
    )
    users: Mapping[str, str] | None = None
    session_lifetime_ms: int = 0
    ssl_context: ssl.SSLContext | None = None
    cluster_id: str = "fake-cluster"
    host: str = "127.0.0.1"
    rights: int = -(2**31)
    controller_id: int | None = None
    brokers: dict[int, FakeBroker] = field(default_factory=dict)
    answerers: dict[int, Callable[["FakeBroker", FakeRequest], bytes]] = field(default_factory=dict)

    def answer(
        self, api_key: int, version: int, body: Callable[["FakeBroker", FakeRequest], bytes]
    ) -> Self:
        """Answer a further request, of a flexible version, with a body that kio encoded."""
        self.versions[api_key] = (version, version)
        self.answerers[api_key] = body
        return self

    def add(self, brokers: int, volumes: int = 2) -> Self:
        """Add brokers with volumes of 100 GiB, half full; their ids go on from the last one."""
        first = max(self.brokers, default=-1) + 1
        for broker_id in range(first, first + brokers):
            log_dirs = tuple(FakeLogDir(f"/var/lib/kafka/data-{n}") for n in range(volumes))
            self.brokers[broker_id] = FakeBroker(broker_id, self, log_dirs)
        return self

    async def __aenter__(self) -> Self:
        for broker in self.brokers.values():
            await broker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker in self.brokers.values():
            await broker.stop()

    def fence(self, *broker_ids: int) -> None:
        """List these brokers as fenced, and no other."""
        for broker in self.brokers.values():
            broker.fenced = broker.broker_id in broker_ids
        self.forget_answers()

    def forget_answers(self) -> None:
        """Encode anew, after what brokers say was changed."""
        for broker in self.brokers.values():
            broker.answers.clear()

    def describe(self, asked: FakeBroker, request: FakeRequest) -> bytes:
        """DescribeCluster's answer of a broker, in any version."""
        version = request.api_version
        module = load_payload_module(DESCRIBE_CLUSTER, version, EntityType.response)
        controller_id = self.controller_id
        with_fenced = getattr(request.decoded, "include_fenced_brokers", False)
        fenced = {key: broker.fenced for key, broker in self.brokers.items()}
        if asked.list_of_then is not None:
            fenced = dict(asked.list_of_then)
        listed = [
            module.DescribeClusterBroker(
                broker_id=broker.broker_id,
                host=self.host,
                port=broker.advertised_port or broker.port,
                rack=broker.rack,
                **({"is_fenced": fenced[broker.broker_id]} if version >= 2 else {}),
            )
            for broker in self.brokers.values()
            if broker.broker_id in fenced and (with_fenced or not fenced[broker.broker_id])
        ]
        return encode(
            module.DescribeClusterResponse(
                throttle_time=timedelta(milliseconds=asked.throttle_ms),
                error_code=ErrorCode.none,
                error_message=None,
                cluster_id=self.cluster_id,
                controller_id=next(iter(self.brokers)) if controller_id is None else controller_id,
                brokers=tuple(listed),
                cluster_authorized_operations=i32(self.rights),
            )
        )

    def api_versions_answer(self, version: int) -> bytes:
        """What every broker knows."""
        module = load_payload_module(API_VERSIONS, version, EntityType.response)
        keys = tuple(
            module.ApiVersion(api_key=key, min_version=oldest, max_version=newest)
            for key, (oldest, newest) in self.versions.items()
        )
        throttled = {"throttle_time": timedelta(0)} if version >= 1 else {}
        return encode(
            module.ApiVersionsResponse(error_code=ErrorCode.none, api_keys=keys, **throttled)
        )


class FakeConnection(asyncio.Protocol):
    """One client at one broker."""

    transport: asyncio.Transport

    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self._received = bytearray()
        self._muted_until = 0.0
        self._owed: list[tuple[float, bytes]] = []
        self._logged_in = broker.cluster.users is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.broker.connections.add(self)
        self.broker.connected += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.broker.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if end > LONGEST_REQUEST_BYTES:
                self.transport.abort()
            if len(self._received) < end:
                return
            frame = bytes(self._received[:end])
            del self._received[:end]
            self._handle(frame)

    def _handle(self, frame: bytes) -> None:
        _, key, version, correlation_id, client_id_length = _HEADER.unpack_from(frame)
        start = _HEADER.size + max(client_id_length, 0)
        # Of the requests that are spoken here these have the header that ends in tags.
        flexible = (
            key in {DESCRIBE_CLUSTER, DESCRIBE_LOG_DIRS} or key in self.broker.cluster.answerers
        )
        client_id = frame[_HEADER.size : start].decode()
        request = FakeRequest(key, version, correlation_id, frame[start + flexible :], client_id)
        self.broker.requests.append(request)
        body = self._answer(request)
        if body is None:
            self.transport.close()
            return
        tags = b"\0" if flexible else b""
        head = struct.pack(">ii", 4 + len(tags) + len(body), correlation_id)
        sent: bytes | None = head + tags + body
        if self.broker.twist is not None:
            sent = self.broker.twist(self, request, head + tags + body)
        if sent is None:
            return
        # A throttled answer goes at once, and the next request is read when the time is over.
        now = asyncio.get_running_loop().time()
        muted_s = max(0.0, self._muted_until - now)
        if request.api_key in {DESCRIBE_CLUSTER, DESCRIBE_LOG_DIRS}:
            self._muted_until = now + muted_s + self.broker.throttle_ms / 1000
        self._owed.append((self.broker.takes_s.get(request.api_key, 0.0) + muted_s, sent))
        if len(self._owed) == 1:
            self._answer_next()

    def _answer_next(self) -> None:
        """Writes what is owed, in the order of the requests; each takes its time, then the next."""
        while self._owed and not self._owed[0][0]:
            self.transport.write(self._owed.pop(0)[1])
        if self._owed:
            takes_s, frame = self._owed[0]
            self._owed[0] = (0.0, frame)
            asyncio.get_running_loop().call_later(takes_s, self._answer_next)

    def _answer(self, request: FakeRequest) -> bytes | None:
        if request.api_key == SASL_HANDSHAKE:
            return self._handshake(request)
        if request.api_key == SASL_AUTHENTICATE:
            return self._authenticate(request)
        if not self._logged_in and request.api_key != API_VERSIONS:
            return None
        return self.broker.answer(request)

    def _handshake(self, request: FakeRequest) -> bytes:
        asked = request.body[2:].decode()
        code = ErrorCode.none if asked in _MECHANISMS else ErrorCode.unsupported_sasl_mechanism
        if self.broker.cluster.users is None:
            code = ErrorCode.illegal_sasl_state
        return _handshaken(request.api_version, code)

    def _authenticate(self, request: FakeRequest) -> bytes:
        self._logged_in = self._right(request.decoded.auth_bytes)
        lifetime_ms = self.broker.cluster.session_lifetime_ms
        return _authenticated(request.api_version, lifetime_ms, right=self._logged_in)

    def _right(self, auth_bytes: bytes) -> bool:
        users = self.broker.users or self.broker.cluster.users or {}
        if auth_bytes.startswith(b"n,,"):
            return auth_bytes.split(b"Bearer ")[1].rstrip(b"\1").decode() in users.values()
        _, user, password = auth_bytes.decode().split("\0")
        return users.get(user) == password


@cache
def _handshaken(version: int, code: ErrorCode) -> bytes:
    module = load_payload_module(SASL_HANDSHAKE, version, EntityType.response)
    return encode(module.SaslHandshakeResponse(error_code=code, mechanisms=_MECHANISMS))


@cache
def _authenticated(version: int, lifetime_ms: int, *, right: bool) -> bytes:
    module = load_payload_module(SASL_AUTHENTICATE, version, EntityType.response)
    lifetime = timedelta(milliseconds=lifetime_ms)
    return encode(
        module.SaslAuthenticateResponse(
            error_code=ErrorCode.none if right else ErrorCode.sasl_authentication_failed,
            error_message=None if right else "Authentication failed",
            auth_bytes=b"",
            **({"session_lifetime": lifetime} if version >= 1 else {}),
        )
    )


@cache
def kio_type(api_key: int, version: int, kind: Any) -> Any:
    """The class of a request or an answer in kio."""
    classes = vars(load_payload_module(api_key, version, kind)).values()
    return next(each for each in classes if getattr(each, "__type__", None) is kind)


def encode(entity: Any) -> bytes:
    """An entity of kio's as the bytes on the wire."""
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


async def _serve(brokers: int, volumes: int) -> None:
    async with FakeCluster().add(brokers, volumes) as cluster:
        for broker in cluster.brokers.values():
            broker.requests = _Nothing()
        print(f"127.0.0.1:{cluster.brokers[0].port}", flush=True)
        await asyncio.Event().wait()


class _Nothing(list[FakeRequest]):
    """Retains nothing, so that a benchmark's server does not grow."""

    def append(self, _: FakeRequest) -> None:
        pass


def main() -> None:
    """Run a cluster until it is stopped."""
    parser = argparse.ArgumentParser(description="Simulate the brokers of a Kafka cluster.")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--volumes", type=int, default=2)
    asked = parser.parse_args()
    # Each broker is a listening socket and a connection.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_serve(asked.brokers, asked.volumes))


if __name__ == "__main__":
    main()
