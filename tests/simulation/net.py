"""The simulated network: names, listeners and connections between processes, with faults.

A connection is a pair of transports. What one end writes arrives at the other in order, a latency
later. Between two hosts that are cut off from each other nothing arrives and nothing fails until
the cut is mended: then all of it arrives, as TCP repeats it. A cut may be one way only: what is
sent the other way arrives, but no new connection is made, since that takes both. A killed process's
connections are reset; a frozen one accepts, as its kernel does, and says nothing.

Example: sidecar 0 is cut off from broker 1: a new connection waits, and one that is open is silent.
"""

import asyncio
import errno
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from sidecar.errors import ListenError
from sidecar.settings import HostPort
from sidecar.threads import OwnThreads
from tests.simulation.loop import HangsError, Process, VirtualLoop, current_process

LATENCY_S: Final = 0.0005
_RETRY_S: Final = 1.0
"""A connection attempt that is lost is repeated."""
_FIRST_PORT: Final = 40_000
_LOOKUPS: Final = OwnThreads("name lookup")
"""As the daemon's loop has them: a look-up that hangs takes no thread of the pool."""

Address = tuple[str, int]
Way = tuple[str, str]
"""From a process to another one, by name."""
Factory = Callable[[], asyncio.BaseProtocol]


class Listener:
    """Who listens on an address; stands for a socket too."""

    def __init__(self, network: "Network", address: Address, process: Process | None) -> None:
        self.address = address
        self.process = process
        self.factory: Factory | None = None
        self._network = network

    def getsockname(self) -> Address:
        """Where it listens."""
        return self.address

    def listen(self, backlog: int = 0) -> None:
        """It listens from the beginning."""

    def close(self) -> None:
        """Listens no more."""
        if self._network.listeners.get(self.address) is self:
            del self._network.listeners[self.address]


class Server:
    """What a loop's ``create_server`` returns."""

    def __init__(self, listener: Listener) -> None:
        self.sockets = (listener,)

    def close(self) -> None:
        """Listens no more."""
        self.sockets[0].close()

    async def wait_closed(self) -> None:
        """At once."""


class Pipe(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: "Network", process: Process | None, addresses: Any) -> None:
        super().__init__()
        self.process = process
        self.peer: Pipe
        self._network = network
        self._addresses = addresses
        self._protocol: Any = None
        self._closing = False
        self._lost = False
        # What its process has to take, and what waits for the end of a cut. A frozen process has a
        # kernel that takes: what was sent before a cut is not lost by it.
        self._arriving: deque[bytes | BaseException | None] = deque()
        self._kept: deque[bytes | BaseException | None] = deque()
        self._paused: list[bytes] | None = None

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """Gives it its protocol."""
        self._protocol = protocol
        protocol.connection_made(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Both ends' addresses."""
        return self._addresses.get(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Another protocol takes what comes."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who takes what comes."""
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def is_closing(self) -> bool:
        """Whether nothing is sent any more."""
        return self._closing

    def pause_reading(self) -> None:
        """Retains what comes."""
        if self._paused is None:
            self._paused = []

    def resume_reading(self) -> None:
        """Takes what came."""
        waiting, self._paused = self._paused, None
        for data in waiting or ():
            self._protocol.data_received(data)

    def is_reading(self) -> bool:
        """Whether what comes is taken."""
        return self._paused is None and not self._closing

    def get_write_buffer_size(self) -> int:
        """What is written has left."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends."""
        if not self._closing and data:
            self.peer.arrive(bytes(data))

    def can_write_eof(self) -> bool:
        """Not used."""
        return False

    def close(self) -> None:
        """Ends the connection after what was written."""
        self._end(None, None)

    def forget(self) -> None:
        """No collector warns of what a killed process left open: aiokafka's connections do."""
        reader = getattr(self._protocol, "_stream_reader", None)
        if reader is not None:
            reader.feed_eof()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._end(None, ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def reset(self) -> None:
        """Its process is gone: the other end is reset."""
        if not self._closing:
            self._closing = self._lost = True
            self._network.pipes.discard(self)
            self.peer.arrive(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def _end(self, own: BaseException | None, for_peer: BaseException | None) -> None:
        if self._closing:
            return
        self._closing = True
        self.peer.arrive(for_peer)
        self._lose(own)

    def _lose(self, error: BaseException | None) -> None:
        if not self._lost:
            self._lost = True
            self._network.pipes.discard(self)
            loop = self._network.loop
            context = None if self.process is None else self.process.context
            loop.call_soon(self._protocol.connection_lost, error, context=context)

    def arrive(self, what: bytes | BaseException | None) -> None:
        """Something is under way to this end: bytes, the end (None), or a reset."""
        if self._network.is_cut(self.peer.process, self.process):
            self._kept.append(what)
            return
        self._arriving.append(what)
        loop = self._network.loop
        context = None if self.process is None else self.process.context
        loop.call_at(loop.now + self._network.latency_s, self._take, context=context)

    def mend(self) -> None:
        """What was kept is sent again, unless another cut keeps it."""
        kept, self._kept = self._kept, deque()
        for what in kept:
            self.arrive(what)

    def _take(self) -> None:
        what = self._arriving.popleft()
        if self._lost:
            return
        if isinstance(what, bytes):
            if self._closing:
                return
            if self._paused is not None:
                self._paused.append(what)
            else:
                self._protocol.data_received(what)
        elif what is None:
            self._paused = None
            if not self._closing and not self._protocol.eof_received():
                self.close()
        else:
            self._closing = True
            self._lose(what)


class Network:
    """Everything that is connected, and what is wrong with it.

    Attributes:
        loop: whose time counts.
        listeners: by address.
        pipes: the ends of all open connections.
        latency_s: how long bytes take.
        no_names: the processes that can't resolve names now.
        hanging_names: those whose name server does not answer them now.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.listeners: dict[Address, Listener] = {}
        self.pipes: _Ordered = _Ordered()
        self.latency_s = LATENCY_S
        self.no_names: set[str] = set()
        self.hanging_names: set[str] = set()
        self._lookups: list[Callable[[], object]] = []
        self._cuts: Counter[Way] = Counter()
        self._port = _FIRST_PORT
        self._owners: dict[Address, Process | None] = {}

    def listen_for(self, process: Process) -> Callable[[HostPort], list[socket.socket]]:
        """What makes a process listen; see ``sidecar.api.server.Listen``."""

        def listen(at: HostPort) -> list[socket.socket]:
            try:
                listener: Any = self._listen((at.host, at.port), process)
            except OSError as error:
                raise ListenError(f"can't listen on {at}: {error.strerror}") from error
            return [listener]

        return listen

    def serve(
        self,
        factory: Factory,
        host: str | None = None,
        port: int | None = None,
        *,
        sock: Any = None,
        **_: Any,
    ) -> Server:
        """As a loop's ``create_server``."""
        listener = sock or self._listen((host or "", port or 0), current_process())
        listener.factory = factory
        return Server(listener)

    async def connect(
        self,
        factory: Factory,
        host: str,
        port: int,
        *,
        ssl: Any = None,
        **_: Any,
    ) -> tuple[Pipe, asyncio.BaseProtocol]:
        """As a loop's ``create_connection``, without TLS."""
        assert ssl is None
        process = current_process()
        await asyncio.sleep(self.latency_s)
        if process is not None and process.name in self.hanging_names:
            await self.loop.run_in_executor(_LOOKUPS, self._look_up, process.name)
        if process is not None and process.name in self.no_names:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        while True:
            listener = self.listeners.get((host, port))
            owner = listener.process if listener is not None else self.owners.get((host, port))
            if not (self.is_cut(process, owner) or self.is_cut(owner, process)):
                break
            await asyncio.sleep(_RETRY_S)
        if listener is None or listener.factory is None:
            text = f"Connect call failed ('{host}', {port})"
            raise ConnectionRefusedError(errno.ECONNREFUSED, text)
        self._port += 1
        own = ("client", self._port)
        one = Pipe(self, process, {"peername": (host, port), "sockname": own})
        other = Pipe(self, listener.process, {"peername": own, "sockname": (host, port)})
        one.peer, other.peer = other, one
        self.pipes.add(one)
        self.pipes.add(other)
        context = None if listener.process is None else listener.process.context
        made = listener.factory
        self.loop.call_soon(lambda: other.start(made()), context=context)
        protocol = factory()
        one.start(protocol)
        return one, protocol

    def _look_up(self, process: str) -> None:
        if process in self.hanging_names:
            raise HangsError(self._lookups)

    def answer_names(self, process: str) -> None:
        """From now on its name server answers a process."""
        self.hanging_names.discard(process)
        waiting, self._lookups = self._lookups, []
        for again in waiting:
            again()

    @property
    def owners(self) -> dict[Address, Process | None]:
        """Whose an address is, also while nobody listens there."""
        return self._owners

    def is_cut(self, one: Process | None, other: Process | None) -> bool:
        """Whether nothing passes from one process to another."""
        if not self._cuts or one is None or other is None:
            return False
        return self._cuts.get((one.name, other.name), 0) > 0

    def are_joined(self, one: str, other: str) -> bool:
        """Whether everything passes between two processes, by name."""
        return not (self._cuts.get((one, other)) or self._cuts.get((other, one)))

    def cut(self, ways: Iterable[Way]) -> None:
        """From now on nothing passes these ways; each cut ends by itself."""
        self._cuts.update(ways)

    def mend(self, ways: Iterable[Way]) -> None:
        """From now on everything passes that no other cut keeps, what was lost first."""
        self._cuts.subtract(ways)
        self._cuts += Counter()
        for pipe in list(self.pipes):
            pipe.mend()

    def lose(self, process: Process) -> None:
        """Resets and closes all that a killed process had."""
        for address, listener in list(self.listeners.items()):
            if listener.process is process:
                del self.listeners[address]
        for pipe in list(self.pipes):
            if pipe.process is process:
                pipe.reset()
                pipe.forget()

    def of(self, process: Process) -> Iterator[Pipe]:
        """A process's open connections."""
        return (pipe for pipe in self.pipes if pipe.process is process)

    def _listen(self, address: Address, process: Process | None) -> Listener:
        host, port = address
        if not port:
            self._port += 1
            address = (host, self._port)
        if address in self.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listener = self.listeners[address] = Listener(self, address, process)
        self._owners[address] = process
        return listener


class _Ordered(dict[Pipe, None]):
    """A set in the order of its additions: the same in each run."""

    def add(self, pipe: Pipe) -> None:
        self[pipe] = None

    def discard(self, pipe: Pipe) -> None:
        self.pop(pipe, None)
