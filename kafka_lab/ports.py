"""Free ports that stay ours for as long as the cluster lives.

Each port is bound, but not listened on, by a socket that stays open. With SO_REUSEADDR, which a
broker's Java sets too, the broker can still listen there, while the kernel allocates the port to no
other socket, nor to an outgoing connection. So two clusters that start together do not
take each other's ports, and a killed broker finds its own still free when it comes back.
"""

import socket

from kafka_lab.closing import Closing


class Ports(Closing):
    """The reserved ports."""

    __slots__ = ("_sockets",)

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def reserve(self) -> int:
        """One more free port on the loopback address."""
        reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind(("127.0.0.1", 0))
        except OSError:
            reserved.close()
            raise
        self._sockets.append(reserved)
        port: int = reserved.getsockname()[1]
        return port

    def close(self) -> None:
        """Free all of them; more than once is harmless."""
        while self._sockets:
            self._sockets.pop().close()
