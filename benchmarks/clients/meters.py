"""What a broker counts: bytes and connections of each listener, refused requests by client."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from benchmarks.clients.arms import CALLBACK_BEAN
from kafka_lab.cluster import Cluster
from tests.support.java import Bean, bean, beans

_SOCKETS: Final = "kafka.server:type=socket-server-metrics,*"


@dataclass(frozen=True, slots=True)
class Counts:
    """Since the broker's start.

    Attributes:
        received: listener -> bytes that were read from its connections.
        connections: listener -> how many were made.
        refused: client-id -> produce requests since the last throttle began, of the ten with most;
            None: there is no callback that counts them.
    """

    received: Mapping[str, int]
    connections: Mapping[str, int]
    refused: Mapping[str, int] | None


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
        found = await bean(cluster, broker, CALLBACK_BEAN)
        refused = of_clients(str(found["RefusedClients"] or ""))
    return of_listeners(await beans(cluster, broker, _SOCKETS), refused)


def of_clients(text: str) -> Mapping[str, int]:
    """The requests refused of each client-id, whoever used it.

    Example: ``ANONYMOUS/a%20b:9,bob/:1`` are 9 of "a b", and one without a client-id.
    """
    refused: Counter[str] = Counter()
    for each in filter(None, text.split(",")):
        client, _, requests = each.rpartition(":")
        refused[unquote(client.partition("/")[2])] += int(requests)
    return refused


def of_listeners(found: Mapping[str, Bean], refused: Mapping[str, int] | None) -> Counts:
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
