"""A sidecar's server on a real socket, and what is sent to it as it is."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from sidecar.api.connections import Connections
from sidecar.api.server import HttpServer
from sidecar.settings import HostPort
from tests.api.build import FakeSidecar, until

URL = "/v1/throttle-factor"
LOOPBACK = HostPort("127.0.0.1", 0)


@contextlib.asynccontextmanager
async def serving(
    sidecar: FakeSidecar, connections: Connections | None = None
) -> AsyncIterator[HttpServer]:
    """A running server of the sidecar's app, stopped at the end."""
    if connections is None:
        connections = Connections(2048)
    server = HttpServer(sidecar.app, LOOPBACK, connections)
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


def waiting_request(seconds: int = 100) -> str:
    return f"GET {URL} HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\nPrefer: wait={seconds}\r\n\r\n"


async def until_tasks(count: int) -> None:
    """Waits until so many tasks run, this one's included."""
    await until(lambda: len(asyncio.all_tasks()) >= count)
