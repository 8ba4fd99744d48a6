"""Counts a client's connection during its TLS handshake, and limits the time of the handshake.

asyncio tells a protocol of a connection only after the handshake, for which a client has a minute.
Until then nothing would limit the number of open files (``connections.py``).

Example: 200 clients connect and send nothing. 64 of them stay, and these are closed after 10 s.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any, Final, cast

from sidecar.api.protocol import SidecarProtocol

_HANDSHAKE_S: Final = 10
"""As long as a head may take."""


class TlsConnection(SSLProtocol):
    """One client's connection, below HTTP."""

    is_idle = True

    def __init__(
        self, http: SidecarProtocol, context: ssl.SSLContext, every: set["TlsConnection"]
    ) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            http,
            context,
            None,  # type: ignore[arg-type] # nobody waits for the handshake; asyncio accepts it
            server_side=True,
            ssl_handshake_timeout=_HANDSHAKE_S,
        )
        self._connections = http.all_connections
        self._every = every
        self._socket: asyncio.Transport | None = None
        http.handshake = self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection, and begin the handshake."""
        self._socket = cast("asyncio.Transport", transport)
        super().connection_made(transport)
        self._every.add(self)
        if not self._connections.enter(self):
            self.drop()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Count it no more."""
        self._every.discard(self)
        self._connections.leave(self)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close the connection at once, also after ``close``, which asyncio's ``abort`` may not."""
        if self._socket is not None:
            self._socket.abort()


def over_tls(
    http: type[SidecarProtocol],
    context: Callable[[], ssl.SSLContext],
    every: set[TlsConnection],
) -> Callable[..., TlsConnection]:
    """Return a protocol over TLS, for uvicorn.

    Args:
        http: the protocol of HTTP.
        context: returns the context of a new connection.
        every: gets each open connection, also during its handshake.
    """

    def connection(*args: Any, **kwargs: Any) -> TlsConnection:  # noqa: ANN401 - uvicorn's
        return TlsConnection(http(*args, **kwargs), context(), every)

    return connection
