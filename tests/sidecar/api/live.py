"""A sidecar's server on a real socket, and what is sent to it as it is."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from sidecar import __version__
from sidecar.api.connections import Connections
from sidecar.api.server import HttpServer, Tls
from sidecar.settings import HostPort
from tests.sidecar.api.build import FakeSidecar, until
from tests.support.waiting import SEEN_S

URL = "/v1/throttle-factor"
HEALTH = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
HEALTHY = f'{{"status":"ok","version":"{__version__}"}}'.encode()
LOOPBACK = HostPort("127.0.0.1", 0)


@contextlib.asynccontextmanager
async def serving(
    sidecar: FakeSidecar, connections: Connections | None = None, tls: Tls | None = None
) -> AsyncIterator[HttpServer]:
    """A running server of the sidecar's app, stopped at the end."""
    if connections is None:
        connections = Connections(2048)
    server = HttpServer(sidecar.app, LOOPBACK, connections, tls=tls)
    task = asyncio.create_task(server.serve())
    try:
        yield server
    finally:
        server.stop()
        await task


async def ask(address: HostPort, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which a request, or something else, was sent."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(text.encode())
    await writer.drain()
    return reader, writer


@contextlib.asynccontextmanager
async def asking(
    text: str, sidecar: FakeSidecar | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Sends the same to a server of its own, for a minute at most."""
    async with asyncio.timeout(SEEN_S), serving(sidecar or FakeSidecar()) as server:
        reader, writer = await ask(server.address, text)
        try:
            yield reader, writer
        finally:
            writer.close()


def waiting_request(seconds: int = 100) -> str:
    return f"GET {URL} HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\nPrefer: wait={seconds}\r\n\r\n"


async def until_tasks(count: int) -> None:
    """Waits until so many tasks run, this one's included."""
    await until(lambda: len(asyncio.all_tasks()) >= count)
