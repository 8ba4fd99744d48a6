"""Requests to brokers of the known cluster."""

from sidecar.control.board import Board
from sidecar.control.known_cluster import ask_known_cluster
from sidecar.errors import SettingsError
from sidecar.settings import KafkaAdmin
from sidecar.throttle.decision import Disabled
from sidecar.volumes import Failure, FailureKind


async def refused(_admin: KafkaAdmin) -> str:
    raise SettingsError(("the file /p", "can't be read"))


async def test_credentials_that_can_not_be_read_are_a_failure() -> None:
    """It is one line. A password file that is gone ends no task."""
    board = Board(Disabled(), lambda: 0.0)
    expected = Failure(FailureKind.AUTHENTICATION, "the file /p can't be read")
    assert expected == await ask_known_cluster(KafkaAdmin(), board, refused)


async def test_without_brokers_nothing_is_asked() -> None:
    """That is a failure of its own."""
    board = Board(Disabled(), lambda: 0.0)
    expected = Failure(FailureKind.CONNECT, "no brokers are configured")
    assert expected == await ask_known_cluster(None, board, refused)
