"""A proxy of a server, which a test can close after a request of its choice, and open again.

A client that is to be killed between two of its requests is killed there for certain: the first is
let through, the next one never reaches the server.

Example: ``Gate(port, b"PUT /bucket/journal")`` lets all through up to that, and blocks the rest;
``Gate(port, 40)`` lets 40 requests through.
"""

import socket
import threading
from contextlib import suppress
from typing import Final, Self

_METHODS: Final = (b"GET /", b"HEAD /", b"PUT /", b"POST /", b"DELETE /")
_CHUNK: Final = 1 << 16


class Gate:
    """Listens on loopback, and connects each client to the server.

    Attributes:
        port: where it listens.
        blocked: set once a request is blocked.
        requests: the first lines of those that were let through, without the exempt ones.
    """

    def __init__(
        self, server_port: int, last: bytes | int | None = None, *, exempt: bytes | None = None
    ) -> None:
        """Begins to listen.

        Args:
            server_port: on loopback.
            last: how the first line of the last request begins that goes through, or its
                number, from 1; None: all go through.
            exempt: what the first line of requests has in it that always go through, and are not
                counted.
        """
        self.blocked = threading.Event()
        self.requests: list[str] = []
        self._counting = threading.Lock()
        self._is_closed = False
        self._opened = threading.Event()
        self._server_port = server_port
        self._last = last
        self._exempt = exempt
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self._ends: list[socket.socket] = [self._listening]
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        # What is still blocked finds its connections closed.
        self._opened.set()

    def open(self) -> None:
        """Lets through what is blocked, and all that follows."""
        self._opened.set()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._ends += [client, server]
                for pump in (self._ask, self._answer):
                    threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            # Clients wait for an answer before they ask again, so a request begins a chunk.
            while chunk := client.recv(_CHUNK):
                if chunk.startswith(_METHODS) and not self._lets_through(chunk):
                    self.blocked.set()
                    self._opened.wait()
                server.sendall(chunk)
            server.shutdown(socket.SHUT_WR)

    def _lets_through(self, request: bytes) -> bool:
        line = request.partition(b"\r\n")[0]
        if self._exempt is not None and self._exempt in line:
            return True
        with self._counting:
            if self._is_closed:
                return self._opened.is_set()
            self.requests.append(line.decode())
            if isinstance(self._last, bytes):
                self._is_closed = line.startswith(self._last)
            else:
                self._is_closed = len(self.requests) == self._last
            return True

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while chunk := server.recv(_CHUNK):
                client.sendall(chunk)
            client.shutdown(socket.SHUT_WR)
