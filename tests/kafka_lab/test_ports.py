"""Reserved ports are nobody else's, and still the broker's."""

import socket

import pytest

from kafka_lab.ports import Ports


def test_a_server_can_listen_on_a_reserved_port() -> None:
    """A broker does so, with SO_REUSEADDR, while the reservation lasts."""
    with Ports() as ports:
        port = ports.reserve()
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", port))
            server.listen()
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                pass


def test_nobody_answers_on_a_reserved_port() -> None:
    """A client of a broker that is down is refused at once."""
    with Ports() as ports, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ports.reserve()), timeout=5)


def test_another_process_can_not_take_a_reserved_port() -> None:
    """A plain bind to it is refused until it is released."""
    with Ports() as ports:
        port = ports.reserve()
        with socket.socket() as thief, pytest.raises(OSError, match="in use"):
            thief.bind(("127.0.0.1", port))
    with socket.socket() as heir:
        heir.bind(("127.0.0.1", port))


def test_no_port_is_reserved_twice() -> None:
    """Many at once are all different."""
    with Ports() as ports:
        assert 200 == len({ports.reserve() for _ in range(200)})
