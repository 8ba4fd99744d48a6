"""A host name whose first address drops packets."""

import asyncio
import socket
import ssl
from typing import Any

import pytest
import pytest_asyncio

from sidecar.http import request
from sidecar.kafka.client.connection import dial
from sidecar.kafka.client.security import load_security
from sidecar.settings import HostPort, KafkaAdmin
from tests.support.fake_broker import FakeCluster
from tests.support.raw_server import raw_server

DEAD, ALIVE = "127.0.0.2", "127.0.0.1"


@pytest_asyncio.fixture
async def _first_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect

    async def getaddrinfo(_host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in (DEAD, ALIVE)]

    async def sock_connect(sock: socket.socket, address: Any) -> None:
        if address[0] == DEAD:
            await asyncio.sleep(3600.0)
        await connect(sock, address)

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(loop, "sock_connect", sock_connect)


@pytest.mark.usefixtures("_first_is_dead")
async def test_a_broker_is_reached_at_the_second_address() -> None:
    """Within the deadline of a poll."""
    async with FakeCluster().add(1, 1) as cluster, asyncio.timeout(5.0):
        endpoint = HostPort("kafka", cluster.brokers[0].port)
        clock = asyncio.get_running_loop().time
        connection = await dial(endpoint, load_security(KafkaAdmin(), clock), "test", clock)
        assert connection.usable
        await connection.close()


@pytest.mark.usefixtures("_first_is_dead")
async def test_a_sidecar_is_reached_at_the_second_address() -> None:
    """The same over HTTP."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with raw_server(answer) as address, asyncio.timeout(5.0):
        assert (
            204
            == (
                await request(
                    "GET",
                    f"http://a:{address.port}/",
                    headers={},
                    ssl_context=ssl.create_default_context(),
                )
            ).status
        )
