"""The simulated network: what passes a cut, and what does not."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.net import Network


class _End(asyncio.Protocol):
    """One end of a connection."""

    def __init__(self) -> None:
        self.received = b""
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def write(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.WriteTransport)
        self.transport.write(data)


def _connected(play: Callable[[Network, Process, _End, _End], Coroutine[Any, Any, None]]) -> None:
    """Plays with a client that is connected to a server, and both ends, in virtual time."""
    loop = VirtualLoop()
    network = loop.network = Network(loop)
    client, server = Process("client"), Process("server")
    asks, answers = _End(), _End()

    async def connected() -> None:
        server.context.run(network.serve, lambda: answers, "127.0.0.1", 1)
        await network.connect(lambda: asks, "127.0.0.1", 1)
        await asyncio.sleep(1.0)
        await play(network, server, asks, answers)

    try:
        loop.run_until_complete(loop.create_task(connected(), context=client.context))
    finally:
        loop.close()


def test_a_cut_of_one_way() -> None:
    """What is sent the other way arrives, nobody connects, and all arrives when it has ended.

    A second cut of the same way ends by itself.
    """

    async def play(network: Network, _: Process, asks: _End, answers: _End) -> None:
        network.cut([("client", "server")])
        network.cut([("client", "server")])
        asks.write(b"a question")
        answers.write(b"news")
        dials = asyncio.create_task(network.connect(_End, "127.0.0.1", 1))
        await asyncio.sleep(5.0)
        assert (b"news", b"") == (asks.received, answers.received)
        network.mend([("client", "server")])
        await asyncio.sleep(5.0)
        assert (b"", False) == (answers.received, dials.done())
        network.mend([("client", "server")])
        await asyncio.sleep(5.0)
        assert (b"a question", True) == (answers.received, dials.done())

    _connected(play)


def test_what_arrived_at_a_frozen_process_before_a_cut() -> None:
    """Its kernel has it; what is sent later waits for the end of the cut."""

    async def play(network: Network, server: Process, asks: _End, answers: _End) -> None:
        server.freeze()
        asks.write(b"before")
        await asyncio.sleep(1.0)
        network.cut([("client", "server")])
        asks.write(b", after")
        await asyncio.sleep(1.0)
        server.thaw()
        await asyncio.sleep(1.0)
        assert b"before" == answers.received
        network.mend([("client", "server")])
        await asyncio.sleep(1.0)
        assert b"before, after" == answers.received

    _connected(play)
