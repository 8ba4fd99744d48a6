"""The parts of a daemon that a capability is built with."""

from collections.abc import Callable

from sidecar.control.board import Board
from sidecar.control.capability import Services
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.persistence import Persistence
from sidecar.control.tokens import Tokens
from sidecar.requestlog.reader import LogReader


async def _persist() -> Persistence:
    return Persistence.NONE


def services(
    board: Board,
    capability: str,
    request_log: LogReader | None = None,
    wall: Callable[[float], float] = lambda _: 0.0,
) -> Services:
    """Without a token and a state file."""
    failures = CapabilityFailures([capability])
    return Services(board, wall, Tokens(None, board.now), _persist, request_log, failures)
