"""OAUTHBEARER tokens from an endpoint, good and bad."""

import asyncio
import base64
import os
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from pydantic import SecretStr

from sidecar.kafka import KafkaVolumeSource
from sidecar.kafka.client.failures import TokenError
from sidecar.kafka.client.oauth_tokens import ClientCredentials, TokenFile
from sidecar.volumes import Observation, Reading
from tests.sidecar.kafka.servers import Clock, admin, bootstrap, hang, server_context
from tests.support.fake_broker import FakeCluster
from tests.support.raw_server import Handler, raw_server
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]

SECRET = "Tr0ub4dor"


class Endpoint:
    """Returns its answers one after another, and records what it was sent."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        writer.write(self.answers.pop(0))
        await writer.drain()


def http(status: int, body: str) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def token(value: str, life_s: int | None = 300) -> bytes:
    life = f',"expires_in":{life_s}' if life_s is not None else ""
    return http(200, f'{{"access_token":"{value}","token_type":"Bearer"{life}}}')


@asynccontextmanager
async def credentials(
    handler: Endpoint | Handler,
    clock: Clock,
    ca: trustme.CA | None = None,
    scope: str | None = None,
    *,
    is_trusted: bool = True,
    assertion: Path | None = None,
) -> AsyncIterator[ClientCredentials]:
    """Credentials that ask the endpoint, over TLS when there is a CA."""
    trust = ssl.create_default_context()
    if ca is not None and is_trusted:
        ca.configure_trust(trust)
    context = server_context(ca) if ca is not None else None
    handle = handler.handle if isinstance(handler, Endpoint) else handler
    async with raw_server(handle, context) as address:
        yield ClientCredentials(
            f"http{'s' if ca else ''}://{address}/realms/kafka/token?x=1",
            client_id=None if assertion else "sidecar",
            assertion_file=assertion,
            client_secret=SecretStr(SECRET),
            scope=scope,
            ssl_context=trust,
            clock=clock,
        )


async def test_the_request_is_a_client_credentials_grant(clock: Clock) -> None:
    """The client's id and secret are in the header, grant and scope in the form (RFC 6749)."""
    endpoint = Endpoint(token("abc"))
    async with credentials(endpoint, clock, scope="kafka read") as tokens:
        assert await tokens.token() == "abc"
    (request,) = endpoint.requests
    assert request.startswith(b"POST /realms/kafka/token?x=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    basic = base64.b64encode(f"sidecar:{SECRET}".encode())
    assert b"\r\nAuthorization: Basic " + basic + b"\r\n" in request
    assert request.endswith(b"\r\n\r\ngrant_type=client_credentials&scope=kafka+read")


async def test_an_assertion_takes_the_place_of_the_secret(clock: Clock, tmp_path: Path) -> None:
    """It is in the form (RFC 7523), and each request has what its file has then."""
    endpoint, file = Endpoint(token("abc"), token("def")), tmp_path / "assertion"
    async with credentials(endpoint, clock, assertion=file) as tokens:
        for assertion, expected in (("jwt.1", "abc"), ("jwt.2", "def")):
            file.write_text(f"{assertion}\n")
            assert expected == await tokens.token()
            clock.now += 300
        file.write_text("")
        with pytest.raises(TokenError, match=f"no client assertion, {file} is empty"):
            await tokens.token()
    kind = "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
    for request, assertion in zip(endpoint.requests, ("jwt.1", "jwt.2"), strict=True):
        assert b"Authorization" not in request
        form = f"client_assertion_type={kind}&client_assertion={assertion}"
        assert request.endswith(f"grant_type=client_credentials&{form}".encode())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "can't be read: No such file or directory"),
        (b"\xff", "is not ASCII"),
        (b"\n", "empty"),
    ],
)
async def test_a_token_file_without_a_token(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    """The message names the file, and nothing of its content."""
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TokenError, match=says) as refusal:
        await TokenFile(file).token()
    assert str(refusal.value).startswith(f"no OAUTHBEARER token, {file} ")


async def test_an_endpoint_with_tls(clock: Clock, ca: trustme.CA) -> None:
    """TLS is spoken, with the endpoint's certificate verified."""
    endpoint = Endpoint(token("abc"))
    async with credentials(endpoint, clock, ca) as tokens:
        assert await tokens.token() == "abc"


async def test_an_endpoint_that_is_not_trusted(clock: Clock, ca: trustme.CA) -> None:
    """The secret is sent to nobody whose certificate is unknown."""
    endpoint = Endpoint(token("abc"))
    async with credentials(endpoint, clock, ca, is_trusted=False) as tokens:
        with pytest.raises(TokenError, match="certificate verify failed"):
            await tokens.token()
    assert not endpoint.requests


@pytest.mark.parametrize(("life_s", "used_s"), [(300, 240.0), (None, 48.0), (0, 48.0)])
async def test_a_token_is_used_until_near_its_end(
    clock: Clock, life_s: int | None, used_s: float
) -> None:
    """It is for four fifths of its life, which is a minute when the endpoint does not say."""
    endpoint = Endpoint(token("old", life_s), token("new", life_s))
    async with credentials(endpoint, clock) as tokens:
        assert await tokens.token() == "old"
        clock.now += used_s
        assert await tokens.token() == "old"
        clock.now += 0.001
        assert await tokens.token() == "new"


async def test_many_connections_ask_once(clock: Clock) -> None:
    """A thousand connections made at the same time are one request."""
    endpoint = Endpoint(token("abc"))
    async with credentials(endpoint, clock) as tokens:
        assert {"abc"} == set(await asyncio.gather(*(tokens.token() for _ in range(1000))))
    assert len(endpoint.requests) == 1


async def test_a_token_that_a_broker_refuses_is_not_sent_again(clock: Clock) -> None:
    """The endpoint signs with a new key; a token for a day is replaced at the next login."""
    endpoint = Endpoint(token("old", 86_400), token("new", 86_400))
    cluster = FakeCluster(users={"x": "old"}).add(2)
    async with cluster, raw_server(endpoint.handle) as address:
        settings = admin(
            bootstrap(cluster),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=f"http://{address}/",
            sasl_oauthbearer_client_credentials_client_id="sidecar",
            sasl_oauthbearer_client_credentials_client_secret=SecretStr(SECRET),
        )
        async with KafkaVolumeSource(settings, clock=clock) as source:
            await source.observe(None, 3.0)
            cluster.users = {"x": "new"}
            for broker in cluster.brokers.values():
                broker.drop()
            clock.now += 60.0
            await source.observe(None, 3.0)
            clock.now += 60.0
            observed = await source.observe(None, 3.0)
    assert isinstance(observed, Observation)
    assert [Reading, Reading] == [type(each) for each in observed.answers.values()]
    assert [] == endpoint.answers


async def test_refused_tokens_are_requested_once_a_second_at_most(clock: Clock) -> None:
    """Each broker may refuse them, also the new one, as a client that has no rights."""
    endpoint = Endpoint(token("a"), token("b"), token("c"))
    async with credentials(endpoint, clock) as tokens:
        tokens.refused()
        assert "a" == await tokens.token()
        for later_s, expected in ((0.5, "a"), (1.0, "b"), (0.5, "b"), (1.0, "c")):
            clock.now += later_s
            tokens.refused()
            assert expected == await tokens.token()


async def test_a_failure_stands_for_a_second(clock: Clock) -> None:
    """A broken endpoint is not asked once per broker, and is asked again later."""
    endpoint = Endpoint(http(503, ""), token("abc"))
    async with credentials(endpoint, clock) as tokens:
        for _ in range(3):
            with pytest.raises(TokenError, match="answered 503"):
                await tokens.token()
        assert len(endpoint.requests) == 1
        clock.now += 1.001
        assert await tokens.token() == "abc"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (http(401, '{"error":"invalid_client"}'), "answered 401 (invalid_client)"),
        (http(401, f'{{"error":"{SECRET}","error_description":"{SECRET}"}}'), "answered 401"),
        (http(200, '{"access_token":""}'), "answered 200"),
        (http(200, '["access_token"]'), "answered 200"),
        (http(200, "<html>"), "answered 200"),
        (http(200, "[" * 60_000), "answered 200"),
        (http(302, ""), "answered 302"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the answer is not HTTP"),
        (b"", "no answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "the answer ends early"),
        (http(200, "x" * 70_000), "the answer is too long"),
    ],
)
async def test_an_endpoint_that_returns_no_token(clock: Clock, answer: bytes, says: str) -> None:
    """Each failure is one line without what the endpoint was sent."""
    endpoint = Endpoint(answer)
    async with credentials(endpoint, clock) as tokens:
        with pytest.raises(TokenError) as refusal:
            await tokens.token()
        assert says in str(refusal.value)
        assert SECRET not in str(refusal.value) + repr(tokens)


async def test_a_caller_that_times_out_does_not_stop_the_next(clock: Clock) -> None:
    """The first caller's deadline ends its request; the next one makes its own."""
    endpoint = Endpoint(token("abc"))
    hung = [False, True]

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await (hang(reader, writer) if hung.pop() else endpoint.handle(reader, writer))

    async with credentials(handle, clock) as tokens:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await tokens.token()
        assert await tokens.token() == "abc"


async def test_a_token_file_whose_disk_hangs_has_one_thread(tmp_path: Path) -> None:
    """However many logins give up; once the disk is back, the next login gets the token."""
    file = tmp_path / "token"
    os.mkfifo(file)
    threads = threading.active_count()
    for _ in range(5):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(TokenFile(file).token(), 0.01)
    assert threads + 1 == threading.active_count()
    login = asyncio.create_task(TokenFile(file).token())
    # It has to wait for the read in flight, because the pipe has the token only once.
    await asyncio.sleep(0)
    await asyncio.to_thread(file.write_text, "abc\n")
    assert "abc" == await login
