"""One broker's slot against a broker that misbehaves, at every moment of a call."""

import asyncio
import struct
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
import trustme
from aiokafka.errors import KafkaConnectionError, UnsupportedVersionError
from pydantic import SecretStr

from sidecar.kafka.client.connection import LONGEST_FRAME_BYTES, dial
from sidecar.kafka.client.dialler import Dialler
from sidecar.kafka.client.link import RENEW_S, Link
from sidecar.kafka.client.security import load_security
from sidecar.kafka.cluster_messages import DescribeLogDirs
from sidecar.settings import HostPort
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.servers import (
    Clock,
    admin,
    bootstrap,
    failed,
    hang,
    pem,
    server_context,
    succeeded,
)
from tests.support.fake_broker import (
    API_VERSIONS,
    DESCRIBE_LOG_DIRS,
    FakeBroker,
    FakeCluster,
    FakeConnection,
    FakeRequest,
    Twist,
)
from tests.support.raw_server import raw_server
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]

REQUEST = DescribeLogDirs()


def link_to(address: HostPort, clock: Clock, **settings: Any) -> Link:
    """A link to one address."""
    security = load_security(admin(address, **settings), clock)
    return Link(address, Dialler(security, "tests", clock))


async def call(link: Link, within_s: float = 5.0) -> object:
    return await link.call(REQUEST, asyncio.get_running_loop().time() + within_s)


async def failing_call(link: Link, kind: FailureKind, within_s: float = 5.0) -> str:
    """The message of the failure of that kind."""
    return failed(await call(link, within_s), kind)


@contextmanager
def memory_below(most_bytes: int) -> Iterator[None]:
    """So much is allocated at any one time."""
    tracemalloc.start()
    try:
        yield
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < most_bytes


def one(cluster: FakeCluster) -> FakeBroker:
    return next(iter(cluster.brokers.values()))


@asynccontextmanager
async def linked(clock: Clock) -> AsyncIterator[tuple[FakeBroker, Link]]:
    """One broker and a link to it, which is closed at the end."""
    async with FakeCluster().add(1) as cluster:
        link = link_to(bootstrap(cluster), clock)
        yield one(cluster), link
        link.close()


async def test_a_name_without_an_address(clock: Clock) -> None:
    """A name that no one knows is a failure to connect."""
    link = link_to(HostPort("no-such-broker.invalid", 9092), clock)
    assert "the name has no address" in await failing_call(link, FailureKind.CONNECT)


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_server_that_accepts_and_is_silent(
    clock: Clock, ca: trustme.CA, encrypted: bool
) -> None:
    """The whole connect has a deadline, not only its TCP part; a TLS handshake too."""
    settings = (
        {"security_protocol": "SSL", "ssl_truststore_certificates": pem(ca)} if encrypted else {}
    )
    async with raw_server(hang) as address:
        started = asyncio.get_running_loop().time()
        link = link_to(address, clock, **settings)
        message = await failing_call(link, FailureKind.TIMEOUT, 0.2)
        assert asyncio.get_running_loop().time() - started < 1.0
    assert f"{address}: no answer in time while connecting" == message


async def test_a_frozen_tls_peer_is_not_waited_for(clock: Clock, ca: trustme.CA) -> None:
    """Closing a connection whose peer no longer reads or writes frees the socket at once."""
    async with FakeCluster(ssl_context=server_context(ca)).add(1) as cluster:
        address = bootstrap(cluster)
        link = link_to(address, clock, security_protocol="SSL", ssl_truststore_certificates=pem(ca))
        await call(link)
        for connection in one(cluster).connections:
            connection.transport.pause_reading()
        await failing_call(link, FailureKind.TIMEOUT, 0.2)
        await asyncio.sleep(0.05)
        assert not [task for task in asyncio.all_tasks() if "_read" in repr(task)]
        peers = [connection.transport for connection in one(cluster).connections]
        for transport in peers:
            transport.resume_reading()
        await asyncio.sleep(0.05)
        # A close_notify would be answered; a socket that is gone ends the peer's connection.
        assert not one(cluster).connections


async def test_tls_closes_without_an_answer(clock: Clock, ca: trustme.CA) -> None:
    """The socket is closed within moments although the peer never answers close_notify."""
    async with FakeCluster(ssl_context=server_context(ca)).add(1) as cluster:
        link = link_to(
            bootstrap(cluster), clock, security_protocol="SSL", ssl_truststore_certificates=pem(ca)
        )
        await call(link)
        for connection in one(cluster).connections:
            connection.transport.pause_reading()
        closed = link.close()
        assert closed is not None
        async with asyncio.timeout(0.5):
            await closed


@pytest.mark.parametrize(
    ("length", "says"),
    [
        (2**31 - 1, "a frame of 2147483647 bytes"),
        (LONGEST_FRAME_BYTES + 1, f"a frame of {LONGEST_FRAME_BYTES + 1} bytes"),
        (-1, "a frame of -1 bytes"),
        (-(2**31), "a frame of -2147483648 bytes"),
        (3, "a frame of 3 bytes"),
        (0, "a frame of 0 bytes"),
    ],
)
async def test_a_length_is_checked_before_it_is_believed(
    clock: Clock, length: int, says: str
) -> None:
    """An absurd or negative length ends the connection, whatever follows, and memory stays."""
    filler = b"x" * 65536

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(struct.pack(">i", length))
        for _ in range(500):
            writer.write(filler)
            await writer.drain()
        await hang(reader, writer)

    async with raw_server(flood) as address:
        # 32 MB are sent; what may be in memory is a few reads and the server's buffers.
        with memory_below(4_000_000):
            message = await failing_call(link_to(address, clock), FailureKind.PROTOCOL)
    assert says in message


async def test_an_answer_that_is_too_long_is_called_so(clock: Clock) -> None:
    """Not another protocol: the broker has already answered."""
    length = struct.pack(">i", 18_100_000)
    async with linked(clock) as (broker, link):
        broker.twist = on_log_dirs(lambda _, frame: length + frame[4:])
        message = await failing_call(link, FailureKind.PROTOCOL)
    assert message.endswith("sends an answer of 18.1 MB; at most 16 MiB are read")


async def test_the_longest_frame_that_is_believed_costs_only_what_comes(clock: Clock) -> None:
    """A frame of the longest length that stays half sent takes no memory for the rest."""

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(struct.pack(">i", LONGEST_FRAME_BYTES) + b"x" * 1000)
        await hang(reader, writer)

    async with raw_server(half) as address:
        with memory_below(2_000_000):
            await failing_call(link_to(address, clock), FailureKind.TIMEOUT, 0.2)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "another protocol"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "does this listener need TLS? (SIDECAR_KAFKA_ADMIN_SEC"),
        (b"\0\0\0\x08\0\0\0\x01\xff\xff\xff\xff", "can't be decoded"),
        (b"\0\0\0\x04\0\0\0\x01", "can't be decoded"),
        (b"\0\0\0\x0a\0\0\0\x01\0\0\0\0\0\0", "needed"),
    ],
)
async def test_another_protocol_is_reported_as_such(clock: Clock, reply: bytes, says: str) -> None:
    """HTTP, TLS, garbage and an empty list of versions are each one clear line."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(reply)
        await hang(reader, writer)

    async with raw_server(talk) as address:
        link = link_to(address, clock)
        kind = FailureKind.UNSUPPORTED if says == "needed" else FailureKind.PROTOCOL
        assert says in await failing_call(link, kind)
        link.close()


def on_log_dirs(reply: Callable[[FakeConnection, bytes], bytes | None]) -> Twist:
    """A twist of the answers to DescribeLogDirs alone."""

    def twist(connection: FakeConnection, request: FakeRequest, frame: bytes) -> bytes | None:
        return reply(connection, frame) if request.api_key == DESCRIBE_LOG_DIRS else frame

    return twist


def drop(connection: FakeConnection, _frame: bytes) -> None:
    connection.transport.abort()


def say_half(connection: FakeConnection, frame: bytes) -> None:
    connection.transport.write(frame[: len(frame) // 2])
    connection.transport.close()


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (lambda _, frame: frame[:4] + b"\x7f" + frame[5:], "Correlation ids do not match"),
        (lambda _, frame: frame[:9] + b"\xff" * (len(frame) - 9), "can't be decoded"),
        (lambda _, frame: b"\0\0\0\x08" + frame[4:12], "can't be decoded"),
    ],
)
async def test_an_answer_that_makes_no_sense(
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    reply: Callable[[FakeConnection, bytes], bytes | None],
    says: str,
) -> None:
    """A wrong correlation id, garbage or a cut frame ends it with one line and no traceback."""
    async with linked(clock) as (broker, link):
        broker.twist = on_log_dirs(reply)
        assert says in await failing_call(link, FailureKind.PROTOCOL)
        await asyncio.sleep(0.05)
        assert not broker.connections
        assert broker.connected == 1
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]


async def test_a_broker_that_can_not_list_its_versions_yet(clock: Clock) -> None:
    """Such as a proxy's whose broker starts: the next connection asks again."""

    def refuse(_: FakeConnection, request: FakeRequest, frame: bytes) -> bytes:
        body = struct.pack(">hi", UnsupportedVersionError.errno, 0)
        answer = frame[4:8] + body
        return struct.pack(">i", len(answer)) + answer if request.api_key == API_VERSIONS else frame

    async with linked(clock) as (broker, link):
        broker.twist = refuse
        message = await failing_call(link, FailureKind.BROKER)
        assert message.endswith("UnsupportedVersionError: in answer to ApiVersions")
        broker.twist = None
        clock.now += 60.0
        assert not isinstance(await call(link), Failure)


async def test_an_answer_that_nothing_asked_for(clock: Clock) -> None:
    """A second answer to one request ends the connection; the next call makes a new one."""
    async with linked(clock) as (broker, link):
        broker.twist = on_log_dirs(lambda _, frame: frame + frame)
        await call(link)
        await asyncio.sleep(0.05)
        assert not link.usable
        broker.twist = None
        succeeded(await call(link))


async def test_a_dropped_connection_is_dialled_anew_once(clock: Clock) -> None:
    """A connection that drops during a call costs the caller nothing: the read is repeated."""
    async with linked(clock) as (broker, link):
        await call(link)

        def drop_once(connection: FakeConnection, _frame: bytes) -> None:
            broker.twist = None
            connection.transport.abort()

        broker.twist = on_log_dirs(drop_once)
        succeeded(await call(link))
        assert broker.connected == 2


@pytest.mark.parametrize("reply", [drop, say_half])
async def test_a_broker_that_always_drops_is_asked_twice(
    clock: Clock, reply: Callable[[FakeConnection, bytes], bytes | None]
) -> None:
    """There is one retry, not more, also when half of an answer came."""
    async with linked(clock) as (broker, link):
        broker.twist = on_log_dirs(reply)
        message = await failing_call(link, FailureKind.CONNECT)
        assert broker.connected == 2
    assert "waiting for DescribeLogDirs" in message


@pytest.mark.parametrize("logged_in", [False, True])
async def test_a_login_that_nobody_made(clock: Clock, logged_in: bool) -> None:
    """A listener with SASL reports its versions and hangs up: a login may be missing.

    Whoever has logged in is dropped for another reason.
    """
    users = {"ann": "secret"}
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "ann",
        "sasl_password": SecretStr("secret"),
    }
    async with FakeCluster(users=users).add(1) as cluster:
        one(cluster).twist = on_log_dirs(drop)
        link = link_to(bootstrap(cluster), clock, **(login if logged_in else {}))
        message = await failing_call(link, FailureKind.CONNECT)
    assert "closed while waiting for DescribeLogDirs" in message
    assert logged_in is ("if this listener requires a login" not in message)


async def test_a_listener_that_had_answered_wants_no_login(clock: Clock) -> None:
    """No missing login is mentioned when a connection in use drops, nor for the next one."""
    async with FakeCluster().add(1) as cluster:
        connection = await dial(
            bootstrap(cluster), load_security(admin(bootstrap(cluster)), clock), "tests", clock
        )
        await connection.call(REQUEST)
        one(cluster).twist = on_log_dirs(drop)
        with pytest.raises(KafkaConnectionError):
            await connection.call(REQUEST)


async def test_a_connection_that_missed_a_deadline_is_closed(clock: Clock) -> None:
    """A late answer can't be taken for the next call's: that one has a connection of its own."""
    async with linked(clock) as (broker, link):
        broker.twist = on_log_dirs(lambda *_: None)
        message = await failing_call(link, FailureKind.TIMEOUT, 0.1)
        assert "no answer in time while waiting for DescribeLogDirs" in message
        broker.twist = None
        clock.now += 1
        succeeded(await call(link))
        assert broker.connected == 2


async def test_a_cancelled_call_leaves_its_connection(clock: Clock) -> None:
    """Its late answer is dropped, and the next call's, behind it, is right; none is dialled."""
    async with linked(clock) as (broker, link):
        broker.takes_s = {DESCRIBE_LOG_DIRS: 1.0}
        task = asyncio.ensure_future(call(link))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert link.awaits_answer
        succeeded(await call(link))
        assert broker.connected == 1


async def test_a_connection_made_with_former_secrets_is_not_replaced_under_a_call(
    clock: Clock,
) -> None:
    """It is replaced at the next call after five minutes, once no answer is outstanding."""
    async with linked(clock) as (broker, link):
        succeeded(await call(link))
        security = load_security(admin(link.endpoint), clock)
        link.redial_with(Dialler(security, "tests", clock), keep=True)
        broker.takes_s = {DESCRIBE_LOG_DIRS: 1.0}
        calling = asyncio.ensure_future(call(link))
        await asyncio.sleep(0.5)
        clock.now += RENEW_S
        meanwhile = link.usable
        succeeded(await calling)
        assert (True, False) == (meanwhile, link.usable)
        succeeded(await call(link))
        assert broker.connected == 2


async def test_a_hung_broker_is_found_by_the_call_after_a_cancelled_one(clock: Clock) -> None:
    """Its deadline closes the connection, and the next call has another one."""
    async with linked(clock) as (broker, link):
        asked = asyncio.Event()
        broker.twist = on_log_dirs(lambda *_: asked.set())
        task = asyncio.ensure_future(call(link))
        await asked.wait()
        task.cancel()
        await failing_call(link, FailureKind.TIMEOUT, 0.1)
        await asyncio.sleep(0.05)
        assert not broker.connections
        broker.twist = None
        clock.now += 1
        succeeded(await call(link))


@pytest.mark.parametrize("deadline_s", [1.0, 5.0])
async def test_a_cancelled_call_leaves_the_connection_to_another(
    clock: Clock, deadline_s: float
) -> None:
    """Its late answer is dropped, and the other call's is right; without one all is closed."""
    async with linked(clock) as (broker, link):
        broker.takes_s = {DESCRIBE_LOG_DIRS: 2.0}
        tasks = [asyncio.ensure_future(call(link, deadline_s)) for _ in range(2)]
        await asyncio.sleep(0.5)
        tasks.pop(0).cancel()
        if deadline_s == 1.0:
            failed(await tasks.pop(), FailureKind.TIMEOUT)
            assert not link.awaits_answer
        else:
            succeeded(await tasks.pop())
            assert link.usable
        assert broker.connected == 1


async def test_a_broker_that_closed_an_idle_connection_is_dialled_quietly(clock: Clock) -> None:
    """connections.max.idle.ms on the broker is nothing that a poll notices."""
    async with linked(clock) as (broker, link):
        await call(link)
        broker.drop()
        await asyncio.sleep(0.05)
        succeeded(await call(link))


async def test_a_broker_that_failed_is_left_alone(clock: Clock) -> None:
    """In the pause calls fail at once with the failure that began it; after it one is made."""
    async with linked(clock) as (broker, link):
        broker.twist = lambda *_: b"nonsense"
        first = await call(link)
        assert isinstance(first, Failure)
        assert first is await call(link)
        assert broker.connected == 1
        clock.now += 0.11
        await failing_call(link, first.kind)
        assert broker.connected == 2
        clock.now += 0.11
        await failing_call(link, first.kind)
        assert broker.connected == 2
        broker.twist = None
        clock.now += 0.1
        succeeded(await call(link))


async def test_a_broker_without_sizes_keeps_its_connection(clock: Clock) -> None:
    """A broker before Kafka 3.3 is unsupported, which each call reports, over one connection."""
    async with linked(clock) as (broker, link):
        broker.cluster.versions[DESCRIBE_LOG_DIRS] = (1, 3)
        for _ in range(2):
            message = await failing_call(link, FailureKind.UNSUPPORTED)
            assert "supports DescribeLogDirs v1 to v3; v4 (Kafka 3.3)" in message
        assert broker.connected == 1
        assert {API_VERSIONS} == {request.api_key for request in broker.requests}


async def test_two_callers_share_one_dial(clock: Clock) -> None:
    """Calls at the same time wait for one connection and then share it."""
    async with linked(clock) as (broker, link):
        answers = await asyncio.gather(*(call(link) for _ in range(5)))
        assert not any(isinstance(answer, Failure) for answer in answers)
        assert broker.connected == 1
