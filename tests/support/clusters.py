"""Real clusters that tests borrow: started on demand, cleaned after each test, ended after use.

``async with clusters.borrow(THREE_BROKERS) as cluster`` gives a cluster that is whole, without
topics and with free volumes. Afterwards it is made so again; one that can't be is ended, so that
the next test gets a new one, and the failure says what its nodes' logs complain of.

Example of what no clean-up mends: a volume that a producer fills to its last byte. Its broker takes
the log dir offline and never deletes from it again, whatever becomes of the topic.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.jars import DEFAULT_VERSION
from kafka_lab.listeners import Listener
from kafka_lab.waiting import POLL_S, deadline
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError
from tests.support.raw_server import raw_server

VOLUME_BYTES: Final = 64 << 20

SHIPPER: Final = "User:ANONYMOUS|request-log-shipper"
"""Who ships request logs (docs/pipeline.md), and is never throttled by the quota callback."""

PASSWORD: Final = "secret"
"""Of ops and etl, the users on the listener BASIC of brokers with the quota callback."""

FENCED_MS: Final = 9000
"""Kafka's own default: a broker on a busy machine is not fenced while no test means it to be."""

JVMS: Final = 3
"""How many nodes a test process may run at once: two cores serve no more than six in time."""

_SASL: Final = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
_RELEASED: Final = b'{"factor": 1.0, "valid_for_ms": 1000}'
_HEARD_S: Final = 60.0
# Kafka 3.3 first looks for deleted segments after 30 s.
_FREED_S: Final = 60.0
_COMPLAINT: Final = re.compile(r"\b(?:WARN|ERROR|FATAL)\b|Exception|serving replicas in dir")
_COMPLAINTS: Final = 12


def login(user: str | None) -> dict[str, str]:
    """Librdkafka's properties for the listener BASIC; None: for the one without a login."""
    if user is None:
        return {}
    return _SASL | {"sasl.username": user, "sasl.password": PASSWORD}


def java_login(user: str | None) -> dict[str, str]:
    """The same for Kafka's own client."""
    if user is None:
        return {}
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    of_user = f'{module} required username="{user}" password="{PASSWORD}";'
    return _SASL | {"sasl.jaas.config": of_user}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of cluster.

    Attributes:
        version: Kafka's.
        brokers: 1: one combined node; more: so many, and a controller of its own.
        has_callback: whether they have the quota callback, each asking the sidecar at its
            ``sidecar_url``, and the listener BASIC (SASL_PLAINTEXT, PLAIN) with the users etl and
            ops; ops and ``SHIPPER`` are never throttled. A combined node then has an authorizer
            too.
        fenced_ms: how long after its last heartbeat a broker is fenced, ms.
        volume_bytes: the size of each volume.
    """

    version: str = DEFAULT_VERSION
    brokers: int = 1
    has_callback: bool = False
    fenced_ms: int = FENCED_MS
    volume_bytes: int = VOLUME_BYTES

    @property
    def jvms(self) -> int:
        """How many nodes it has."""
        return 1 if self.brokers == 1 else self.brokers + 1

    def make(self) -> Cluster:
        """One that is not started yet."""
        users = {"ops": PASSWORD, "etl": PASSWORD}
        return Cluster(
            environ=os.environ,
            version=self.version,
            brokers=self.brokers,
            combined=self.brokers == 1,
            volumes=2,
            volume_bytes=self.volume_bytes,
            session_timeout_ms=self.fenced_ms,
            listeners=(
                [Listener("BASIC", "SASL_PLAINTEXT", "PLAIN", users)] if self.has_callback else []
            ),
            super_users=[] if self.has_callback and self.brokers == 1 else None,
            broker_jars=[callback_jar()] if self.has_callback else [],
            properties=_CALLBACK if self.has_callback else {},
            properties_of=asks_its_sidecar if self.has_callback else None,
        )


_CALLBACK: Final = {
    **CALLBACK_PROPERTIES,
    "client.quota.callback.sidecar.excluded.principals": "User:ops",
    "client.quota.callback.sidecar.excluded.clients": SHIPPER,
    # A test does not wait for minutes until the ramp of the one before is over.
    "client.quota.callback.sidecar.ramp.ms": "5000",
}


class Clusters:
    """The clusters of a test process."""

    def __init__(self) -> None:
        self._running: dict[Kind, Cluster] = {}

    @asynccontextmanager
    async def borrow(self, kind: Kind) -> AsyncIterator[Cluster]:
        """A clean cluster of a kind for one test.

        Raises:
            ClusterError: it can't be started, or could not be cleaned afterwards and was ended.
        """
        cluster = await self._get(kind)
        try:
            yield cluster
        finally:
            await self._give_back(kind, cluster)

    async def _get(self, kind: Kind) -> Cluster:
        cluster = self._running.pop(kind, None)
        if cluster is None:
            await self._make_room(kind.jvms)
            cluster = await kind.make().__aenter__()
        # The last in the dictionary is the one used last.
        self._running[kind] = cluster
        return cluster

    async def _make_room(self, jvms: int) -> None:
        for kind in list(self._running):
            if sum(each.jvms for each in self._running) + jvms > JVMS:
                await self._end(kind)

    async def _give_back(self, kind: Kind, cluster: Cluster) -> None:
        try:
            await clean(cluster)
            if kind.has_callback:
                await release(cluster)
        except ClusterError as error:
            said = complaints(cluster.folder)
            await self._end(kind)
            raise ClusterError(f"the cluster was ended: {error}\n{said}") from error

    async def _end(self, kind: Kind) -> None:
        await self._running.pop(kind).__aexit__(None, None, None)

    async def close(self) -> None:
        """End all."""
        for kind in list(self._running):
            await self._end(kind)


async def clean(cluster: Cluster) -> None:
    """Make a cluster as it was at its start: whole, without topics, with free volumes.

    Raises:
        ClusterError: it can't be.
    """
    await cluster.heal()
    async with Admin(cluster.bootstrap) as admin:
        topics = await admin.topics()
        await admin.delete_topic(*(name for name in topics if not name.startswith("__")))
    if cluster.volumes_are_real:
        async with deadline(_FREED_S, "deleted topics' space was not free"):
            for broker in cluster.brokers.values():
                for index in range(len(broker.volumes)):
                    await _wait_free(cluster, broker.id, index)


async def release(cluster: Cluster) -> None:
    """Let each broker's callback hear factor 1.0, in place of the sidecars that have ended.

    It would go on with their last word for the rest of its validity, which is minutes.

    Raises:
        ClusterError: a callback does not ask.
    """
    async with deadline(_HEARD_S, "not every callback heard that the throttle is over"):
        await asyncio.gather(*(_release(each.sidecar_port) for each in cluster.brokers.values()))


async def _release(sidecar_port: int) -> None:
    heard = asyncio.Event()
    answer = partial(_answer_released, heard)
    async with raw_server(answer, port=sidecar_port):
        await heard.wait()


async def _answer_released(
    heard: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(_RELEASED), _RELEASED)
    )
    await writer.drain()
    heard.set()


async def _wait_free(cluster: Cluster, broker_id: int, index: int) -> None:
    path = cluster.brokers[broker_id].volumes[index].path
    while True:
        if _is_offline(cluster.brokers[broker_id].log, path):
            raise ClusterError(f"broker {broker_id} has taken {path} offline")
        total, available = await cluster.usage(broker_id, index)
        if available > 0.95 * total:
            return
        await asyncio.sleep(POLL_S)


def _is_offline(log: Path, log_dir: str) -> bool:
    """Whether the broker of this log has taken a log dir offline since its start."""
    return log.exists() and f"serving replicas in dir {log_dir}".encode() in log.read_bytes()


def complaints(folder: Path | None) -> str:
    """The last warnings and errors of each node's log in a cluster's folder."""
    found = []
    for log in sorted(folder.glob("*.log")) if folder is not None else []:
        lines = log.read_text(errors="replace").splitlines()
        last = [line for line in lines if _COMPLAINT.search(line)][-_COMPLAINTS:]
        found += [f"{log.name} says:", *last] if last else [f"{log.name} complains of nothing."]
    return "\n".join(found)
