"""Binds requests to the cluster whose volumes the sidecar remembers."""

from collections.abc import Awaitable, Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from sidecar.control.board import Board
from sidecar.errors import SidecarError
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

_NO_BROKERS: Final = Failure(FailureKind.CONNECT, "no brokers are configured")

_P = ParamSpec("_P")
_T = TypeVar("_T")


def in_known_cluster(admin: KafkaAdmin, board: Board) -> KafkaAdmin:
    """Return settings with which no other cluster is read or changed.

    Before the first observation no cluster is known, and any is used.
    """
    return admin.model_copy(update={"cluster_id": board.snapshot.memory.cluster_id})


async def ask_known_cluster(
    admin: KafkaAdmin | None,
    board: Board,
    ask: Callable[Concatenate[KafkaAdmin, _P], Awaitable[_T | Failure]],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> _T | Failure:
    """Ask brokers of the known cluster; a failure without brokers, or without credentials.

    Args:
        admin: how to reach the brokers; None if none are configured.
        board: has the known cluster.
        ask: called with ``in_known_cluster`` and the other arguments; may raise SidecarError.
        args: the other arguments.
        kwargs: the same.
    """
    if admin is None:
        return _NO_BROKERS
    try:
        return await ask(in_known_cluster(admin, board), *args, **kwargs)
    except SidecarError as error:
        # Certificates or credentials can't be read now, because they are being replaced.
        return Failure(FailureKind.AUTHENTICATION, " ".join(str(error).split()))
