"""The HTTP client, asyncio and blocking: whole answers alone, bounded, and nothing left open."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager

import pytest
import trustme

from sidecar.http import (
    AnswerCutError,
    AnswerTooLongError,
    HttpError,
    Response,
    request,
    request_blocking,
)
from tests.sidecar.kafka.servers import lookup_of, server_context
from tests.support.examples import mostly_slow
from tests.support.raw_server import raw_server

Edge = Callable[..., Coroutine[None, None, Response]]


async def blocking(
    method: str, url: str, *, ssl_context: ssl.SSLContext | None = None, **more: object
) -> Response:
    """The blocking edge, in a thread."""
    more = {"headers": {}, "deadline_s": 20.0, "ssl_context": ssl_context, **more}
    return await asyncio.to_thread(lambda: request_blocking(method, url, **more))  # type: ignore[arg-type]


async def cancellable(
    method: str, url: str, *, ssl_context: ssl.SSLContext | None = None, **more: object
) -> Response:
    """The asyncio edge."""
    context = ssl_context or ssl.create_default_context()
    more = {"headers": {}, "ssl_context": context, **more}
    async with asyncio.timeout(20):
        return await request(method, url, **more)  # type: ignore[arg-type]


edges = pytest.mark.parametrize("edge", mostly_slow([cancellable, blocking]))


class Server:
    """Says the same pieces to whoever comes, then closes or keeps silent."""

    def __init__(self, *pieces: bytes, closes: bool = True) -> None:
        self.pieces = pieces
        self.closes = closes
        self.url = ""
        self.requests: list[bytes] = []
        self.came = asyncio.Event()
        self.gone = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        self.came.set()
        try:
            for piece in self.pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)
            if not self.closes:
                await reader.read()
        finally:
            writer.close()
            self.gone.set()

    @asynccontextmanager
    async def listening(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["Server"]:
        """Listens on loopback."""
        async with raw_server(self._serve, tls) as address:
            self.url = f"http{'s' if tls else ''}://{address}"
            yield self


OK = b"HTTP/1.1 200 OK\r\n"
SIZED = OK + b"Content-Length: 5\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@edges
@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([SIZED + b"hello"], id="sized"),
        pytest.param([SIZED + b"hello, and more"], id="more than its size"),
        pytest.param([CHUNKED + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"], id="chunks"),
        pytest.param([OK + b"\r\n", b"hel", b"lo"], id="up to its end"),
        pytest.param([b"HTTP/1.0 200 OK\r\n\r\nhello"], id="HTTP 1.0"),
        pytest.param([b"HTTP/1.1 103 Early Hints\r\n\r\n", SIZED + b"hello"], id="early hints"),
        pytest.param([bytes([byte]) for byte in SIZED + b"hello"], id="byte by byte"),
    ],
)
async def test_a_whole_answer(edge: Edge, pieces: list[bytes]) -> None:
    """It is read however it is framed, and however it comes."""
    async with Server(*pieces).listening() as server:
        assert Response(200, "OK", b"hello") == await edge("GET", server.url)


CUT = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"HTTP/1.1 2", id="half a status line"),
    pytest.param(OK + b"Content-Le", id="half a head"),
    pytest.param(SIZED + b"hell", id="a size"),
    pytest.param(CHUNKED + b"5\r\nhel", id="a chunk"),
    pytest.param(CHUNKED + b"5\r\nhello\r\n", id="the chunks' end"),
    pytest.param(b"HTTP/1.1 103 Early Hints\r\n\r\n", id="early hints alone"),
]


@edges
@pytest.mark.parametrize("said", CUT)
async def test_an_answer_that_is_cut_is_refused(edge: Edge, said: bytes) -> None:
    """What was left out could change what is there."""
    async with Server(said).listening() as server:
        with pytest.raises(AnswerCutError):
            await edge("GET", server.url)


@edges
@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        OK + b"Transfer-Encoding: gzip\r\n\r\n",
        CHUNKED + b"x\r\n",
        OK + b"no header\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused_at_once(edge: Edge, said: bytes) -> None:
    """It is, although the other side leaves the connection open."""
    async with Server(said, closes=False).listening() as server:
        with pytest.raises(HttpError, match="not HTTP"):
            await edge("GET", server.url)


@edges
@pytest.mark.parametrize(
    "said", [SIZED + b"hello", OK + b"\r\n" + b"x" * 90, OK + b"X: " + b"x" * 90]
)
async def test_an_answer_of_more_bytes_than_wanted_is_refused(edge: Edge, said: bytes) -> None:
    """The head's bytes count too."""
    async with Server(said, closes=False).listening() as server:
        with pytest.raises(AnswerTooLongError):
            await edge("GET", server.url, longest_answer=len(SIZED))


@edges
async def test_what_is_sent(edge: Edge) -> None:
    """One request has its own connection; no user or password of the address is sent."""
    async with Server(SIZED + b"hello").listening() as server:
        url = server.url.replace("//", "//ann:pass@") + "/a%20b?c=d"
        await edge("GET", url, headers={"Accept": "text/plain"})
        (sent,) = server.requests
    host = server.url.removeprefix("http://").encode()
    expected = [
        b"GET /a%20b?c=d HTTP/1.1",
        b"Host: " + host,
        b"Content-Length: 0",
        b"Connection: close",
        b"Accept: text/plain",
    ]
    assert expected == sent.removesuffix(b"\r\n\r\n").split(b"\r\n")


@edges
@pytest.mark.parametrize(
    ("path", "headers"), [("/a b", {}), ("/", {"X": "a\r\nB: c"}), ("/", {"X\r\nB": "c"})]
)
async def test_what_can_t_be_sent_is_refused(
    edge: Edge, path: str, headers: dict[str, str]
) -> None:
    """It is before anybody is dialled: nothing smuggles a second header."""
    with pytest.raises(HttpError, match="request"):
        await edge("GET", f"http://127.0.0.1:1{path}", headers=headers)


@edges
async def test_tls_with_a_certificate_that_is_trusted(edge: Edge) -> None:
    """Without that trust it is refused, before anything is sent."""
    ca = trustme.CA()
    trusting = ssl.create_default_context()
    ca.configure_trust(trusting)
    async with Server(SIZED + b"hello").listening(server_context(ca)) as server:
        answer = await edge("GET", server.url, ssl_context=trusting)
        assert b"hello" == answer.body
        with pytest.raises(ssl.SSLError, match="verify failed"):
            await edge("GET", server.url)
    assert 1 == len(server.requests)


@edges
async def test_a_name_with_a_dot_at_its_end(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked up with the dot, and its certificate has none."""
    monkeypatch.setattr(socket, "getaddrinfo", lookup_of("sidecar.example."))
    ca = trustme.CA()
    trusting = ssl.create_default_context()
    ca.configure_trust(trusting)
    context = server_context(ca, "sidecar.example")
    async with Server(SIZED + b"hello").listening(context) as server:
        url = server.url.replace("127.0.0.1", "sidecar.example.")
        answer = await edge("GET", url, ssl_context=trusting)
    assert b"hello" == answer.body


async def test_the_blocking_edge_has_one_deadline_for_everything() -> None:
    """Each byte comes in time, the answer never does."""
    async with Server(OK + b"X: ", *[b"x"] * 2000).listening() as server:
        with pytest.raises(TimeoutError):
            await blocking("GET", server.url, deadline_s=0.3)
        await asyncio.wait_for(server.gone.wait(), 20)


@pytest.mark.slow
@pytest.mark.parametrize("dead", [0, 1])
async def test_a_dead_address_leaves_the_others_time(
    dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocking edge shares its deadline among the addresses of a name."""
    async with Server(SIZED + b"hello").listening() as server:
        port = int(server.url.rpartition(":")[2])
        with ExitStack() as sockets:
            silent = sockets.enter_context(socket.create_server(("127.0.0.2", port), backlog=0))
            for _ in range(4):  # The backlog is full then, and further calls get no answer.
                call = sockets.enter_context(socket.socket())
                call.setblocking(False)
                call.connect_ex(silent.getsockname())
            hosts = ["127.0.0.1", "127.0.0.1"]
            hosts[dead] = "127.0.0.2"
            found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in hosts]
            monkeypatch.setattr("sidecar.http.socket.getaddrinfo", lambda *_a, **_k: found)
            response = await blocking("GET", f"http://sidecars:{port}/", deadline_s=2.0)
        assert b"hello" == response.body


async def test_the_error_of_the_last_address_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each address of the name refuses the call."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)] * 2
    monkeypatch.setattr("sidecar.http.socket.getaddrinfo", lambda *_a, **_k: found)
    with pytest.raises(ConnectionRefusedError):
        await blocking("GET", f"http://sidecars:{address[1]}/")


async def test_cancelling_leaves_nothing_open() -> None:
    """The other side sees the connection end."""
    async with Server(closes=False).listening() as server:
        task = asyncio.create_task(cancellable("GET", server.url))
        await asyncio.wait_for(server.came.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), 20)
