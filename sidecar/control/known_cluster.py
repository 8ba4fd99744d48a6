"""Binds requests to the cluster whose volumes the sidecar remembers."""

from sidecar.control.board import Board
from sidecar.settings import KafkaAdmin


def in_known_cluster(admin: KafkaAdmin, board: Board) -> KafkaAdmin:
    """Return settings with which no other cluster is read or changed.

    Before the first observation no cluster is known, and any is used.
    """
    return admin.model_copy(update={"cluster_id": board.snapshot.memory.cluster_id})
