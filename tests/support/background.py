"""Servers beside a test that itself is not async: a cluster, and sidecars with prepared answers."""

import asyncio
import http.server
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.fake_broker import FakeCluster


@contextmanager
def running(cluster: FakeCluster) -> Iterator[FakeCluster]:
    """Runs a cluster in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def call(coroutine: Callable[[], object]) -> None:
        asyncio.run_coroutine_threadsafe(_awaited(coroutine), loop).result(10)

    call(cluster.__aenter__)
    try:
        yield cluster
    finally:
        call(cluster.__aexit__)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _awaited(coroutine: Callable[[], object]) -> None:
    result = coroutine()
    assert asyncio.iscoroutine(result)
    await result


def bootstrap(cluster: FakeCluster) -> str:
    """The addresses of all its brokers."""
    return ",".join(f"{cluster.host}:{broker.port}" for broker in cluster.brokers.values())


Reply = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


def reply(document: object, status: int = 200) -> Reply:
    """An answer in JSON."""
    return status, {"Content-Type": "application/json"}, json.dumps(document).encode()


@dataclass(frozen=True)
class Asked:
    """A request that a canned server got."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Canned:
    """A server with prepared answers.

    Attributes:
        answers: by "METHOD /path"; anything else is 404.
        asked: what it was asked.
        url: where it listens.
    """

    answers: dict[str, Reply] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    @property
    def address(self) -> str:
        """host:port."""
        return self.url.removeprefix("http://")


@contextmanager
def serving(canned: Canned) -> Iterator[Canned]:
    """Runs a canned server in threads."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            canned.asked.append(Asked(self.command, self.path, dict(self.headers), body))
            nothing = reply({}, 404)
            status, headers, content = canned.answers.get(f"{self.command} {self.path}", nothing)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # Closing it then waits for the threads, which close their connections.
    server.daemon_threads = False
    canned.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(0.01))
    thread.start()
    try:
        yield canned
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
