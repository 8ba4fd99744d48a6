"""What a broker counts: bytes and connections of each listener, and refused requests."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.clients.arms import CALLBACK_BEAN
from sidecar.demo.cluster import Cluster
from tests.support.java import Bean, bean, beans

_SOCKETS: Final = "kafka.server:type=socket-server-metrics,*"


@dataclass(frozen=True, slots=True)
class Counts:
    """Since the broker's start.

    Attributes:
        received: listener -> bytes that were read from its connections.
        connections: listener -> how many were made.
        refused: produce requests; None: there is no callback that counts them.
    """

    received: Mapping[str, int]
    connections: Mapping[str, int]
    refused: int | None


async def count(cluster: Cluster, broker: int, *, is_ours: bool) -> Counts:
    """Read them.

    Args:
        cluster: it runs.
        broker: which.
        is_ours: whether it has the callback.

    Raises:
        ClusterError: they can't be read.
    """
    refused = None
    if is_ours:
        refused = int(float((await bean(cluster, broker, CALLBACK_BEAN))["RefusedTotal"] or 0))
    return of_listeners(await beans(cluster, broker, _SOCKETS), refused)


def of_listeners(found: Mapping[str, Bean], refused: int | None) -> Counts:
    """The counts of each listener, whose network threads have a bean each.

    Example: ``{"kafka.server:type=socket-server-metrics,listener=A,networkProcessor=0":
    {"incoming-byte-total": 7.0, "connection-creation-total": 1.0}}`` are 7 bytes of A.
    """
    received: Counter[str] = Counter()
    connections: Counter[str] = Counter()
    for name, attributes in found.items():
        keys = dict(each.split("=", 1) for each in name.partition(":")[2].split(",") if "=" in each)
        listener = keys.get("listener")
        if listener is not None:
            received[listener] += int(float(attributes.get("incoming-byte-total") or 0))
            connections[listener] += int(float(attributes.get("connection-creation-total") or 0))
    return Counts(received, connections, refused)
