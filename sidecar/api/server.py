"""The HTTP server: uvicorn in the daemon's own loop.

Its constructor binds the address, so an address in use is reported before anything starts. It
changes no signal handlers and no log settings. When it stops, it closes all connections within half
a second, whatever the clients do.

Example: ``HttpServer(app, HostPort("127.0.0.1", 0)).address`` has the free port that was taken.
"""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from sidecar.api.connections import Connections
from sidecar.api.protocol import protocol_of
from sidecar.api.tls_connection import TlsConnection, over_tls
from sidecar.errors import ListenError
from sidecar.settings import HostPort

_GRACE_S: Final = 0.3
"""The time for answers in progress at the end. Waiting readers were answered before."""

_CHECKS: Final = 30
"""How often the server then checks whether all connections and tasks have ended."""

_KEEP_ALIVE_S: Final = 75
"""Longer than the usual scrape interval of 15 to 60 s, so that Prometheus keeps its connection."""

_DATE_S: Final = 1.0
"""How often the header Date is renewed."""

_BACKLOG: Final = 1024

_ACCEPTED_AT_ONCE: Final = 16
"""The most connections that are accepted before they are counted; a larger burst could take all
files. asyncio also uses this number as the backlog, which is therefore set separately."""


_ABSENT: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""The errors of an address, and of a family of addresses, that this machine does not have."""

Listen = Callable[[HostPort], list[socket.socket]]
"""Create the sockets that listen on an address."""

Tls = Callable[[], ssl.SSLContext]


class HttpServer:
    """Serves an app at an address.

    Attributes:
        address: the address of the server, with the actual port if 0 was requested.
        scheme: http or https.
    """

    def __init__(
        self,
        app: ASGIApp,
        address: HostPort,
        connections: Connections,
        listen: Listen | None = None,
        tls: Tls | None = None,
    ) -> None:
        """Start to listen; port 0 takes a free port.

        Args:
            app: the app to serve.
            address: the address to listen on.
            connections: limits the number of clients.
            listen: creates the sockets; None uses this machine.
            tls: returns the TLS context of a new connection; None serves plain HTTP. Whether
                clients need a certificate stays as it is at first.

        Raises:
            ListenError: the address can't be listened on.
        """
        self._sockets = (listen or listen_on)(address)
        self.address = HostPort(address.host, self._sockets[0].getsockname()[1])
        encrypted: set[TlsConnection] = set()
        self.scheme = "http" if tls is None else "https"
        requires = tls is not None and tls().verify_mode is not ssl.CERT_NONE
        http = protocol_of(connections, requires_certificate=requires)
        config = uvicorn.Config(
            app,
            loop="none",
            http=http if tls is None else over_tls(http, tls, encrypted),  # type: ignore[arg-type] # only called
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=[("X-Content-Type-Options", "nosniff")],
            backlog=_ACCEPTED_AT_ONCE,
            timeout_keep_alive=_KEEP_ALIVE_S,
        )
        self._server = _Server(config, encrypted)

    async def serve(self) -> None:
        """Serve until stopped, then close all sockets."""
        try:
            await self._server.serve(sockets=self._sockets)
        finally:
            self._server.cut()
            self._close()

    def stop(self) -> None:
        """End ``serve`` soon. If it never ran, close the sockets."""
        self._server.exit()
        # Set at once: a reader that is answered now must not come back on the same connection.
        self._server.close_when_answered()
        if not self._server.started:
            self._close()

    def _close(self) -> None:
        for listening in self._sockets:
            listening.close()


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, and with an end to its shutdown."""

    def __init__(self, config: uvicorn.Config, encrypted: set[TlsConnection]) -> None:
        super().__init__(config)
        self._encrypted = encrypted
        self._exiting = asyncio.Event()

    def exit(self) -> None:
        """End ``serve`` soon."""
        self.should_exit = True
        self._exiting.set()

    async def main_loop(self) -> None:
        """Wait for the end. uvicorn's method would wake up ten times a second."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DATE_S):
                    await self._exiting.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals, since the daemon handles them."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close idle connections, wait for answers in progress, and cut the other connections."""
        for server in self.servers:
            server.close()
        for listening in sockets or ():
            listening.close()
        self.close_when_answered()
        await self._wait_until_gone()
        self.cut()
        await self._wait_until_gone()

    def close_when_answered(self) -> None:
        """Close idle connections now, and each other connection after its answer."""
        for connection in list(self.server_state.connections):
            connection.shutdown()

    def cut(self) -> None:
        """Close every connection without waiting for the clients."""
        for server in getattr(self, "servers", ()):
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        for below in list(self._encrypted):
            below.drop()

    async def _wait_until_gone(self) -> None:
        for _ in range(_CHECKS):
            if not self.server_state.connections and not self.server_state.tasks:
                return
            await asyncio.sleep(_GRACE_S / _CHECKS)


def listen_on(listen: HostPort) -> list[socket.socket]:
    """Return a listening socket for each address of the name, all with one port.

    An address that this machine does not have is left out if the name has another one: in the hosts
    file of a container without IPv6, localhost is ``::1`` too.

    Raises:
        ListenError: the address can't be listened on.
    """
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    port = listen.port
    try:
        found = socket.getaddrinfo(
            listen.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                listening = _bound(family, kind, protocol, (address[0], port, *address[2:]))
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                absent = error
            else:
                sockets.append(listening)
                port = listening.getsockname()[1]
        if absent is not None and not sockets:
            raise absent
    except OSError as error:
        for listening in sockets:
            listening.close()
        raise ListenError(f"can't listen on {listen}: {_why(error)}") from error
    return sockets


def _bound(family: int, kind: int, protocol: int, address: tuple[Any, ...]) -> socket.socket:
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # [::] means every address of the machine, also of IPv4.
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != "::")
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _why(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"the name has no address here ({error.strerror})"
    if error.errno is None:
        return str(error)
    return os.strerror(error.errno).lower()
