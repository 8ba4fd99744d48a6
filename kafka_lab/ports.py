"""Reserves free ports for as long as the cluster exists.

A socket binds each port, without listening, and stays open. With SO_REUSEADDR, which a broker's
Java sets too, the broker can still listen on the port. The kernel gives the port to no other
socket, and to no outgoing connection. So two clusters that start at the same time do not take each
other's ports, and the port of a killed broker is still free when it is started again.
"""

import socket

from kafka_lab.closing import Closing


class Ports(Closing):
    """The reserved ports."""

    __slots__ = ("_sockets",)

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def reserve(self) -> int:
        """Return another free port on the loopback address."""
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
        """Free all ports; it can be called more than once."""
        while self._sockets:
            self._sockets.pop().close()
