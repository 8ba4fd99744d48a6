"""Lets a throttle happen to several clients at once, each alone on a broker or beside others.

A throttle acts on a client through its own broker, so clients on different brokers disturb each
other by the machine alone. Each has a topic, a client-id and a listener of its own, by which Kafka
counts its bytes and connections. A record lands when its broker says so (LogAppendTime).

The callback is throttled by an override at each sidecar, as by an operator. Kafka's own quota is
what an operator sets without this project: 1 % of each client's rate, by its client-id. Its pauses
are of minutes, so what lands behind them is not seen in a short run.
"""

import asyncio
import os
import time
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import httpx

from benchmarks.clients.clients import CLIENTS, EXPIRING, Client
from benchmarks.clients.figures import RECORD_BYTES
from benchmarks.clients.run import Program, Run, read_log
from benchmarks.harness.throttles import CALLBACK_BEAN, LEAK_RATIO, callbacks_read
from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.sidecar_processes import start_sidecars, write_token
from sidecar.errors import ClusterError
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from tests.support.java import Bean, bean, beans

AUTHORIZER: Final = "authorizer"
QUOTA: Final = "quota"
RELEASE: Final = "release"
"""The part of clients whose records expire: how soon they are back."""
ARMS: Final = {
    "callback": "The callback alone",
    AUTHORIZER: "With the authorizer",
    QUOTA: "Without us, Kafka's own quota of 1 %",
}
_REFUSES: Final = {
    "authorizer.class.name": "throttlesidecar.SidecarAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_AUTHORIZER_CLASS: Final = "throttlesidecar/SidecarAuthorizer.class"
_TOPIC: Final = {"message.timestamp.type": "LogAppendTime", "segment.bytes": str(128 << 20)}
_SAMPLE_S: Final = 10.0
"""Connections are counted so often in a throttle, or twenty times: each time starts a JVM."""
_COUNTING_S: Final = 4.0
"""Counting takes about so long; the last time is to be over before the release."""
_SOCKETS: Final = "kafka.server:type=socket-server-metrics,*"
_AT_ONCE: Final = 7


@dataclass(frozen=True, slots=True)
class Part:
    """A throttle of each client alone, or a long one of seven at once.

    A throttle of 10 minutes for one client after another would take four hours. With all 19 clients
    at once two cores had nothing left for the controller, and brokers were fenced in the middle.
    Pauses are of a broker's clients together: one with requests of 1 MB makes those with 10 kB wait
    for 4 s as well, instead of 1 s. So clients with large requests have a broker of their own.

    Attributes:
        key: short, for names of files.
        is_shared: whether clients share brokers; else each has a broker of its own.
        throttle_s: how long they are throttled, seconds.
        before_s: at full speed before that: longer than a quota window, which is of 11 s.
        after_s: watched after the release.
        start_timeout_s: until each has had a record acknowledged.
        bytes_per_s: of values, each client's.
        volume_mb: of each broker, MiB: with less than 10 minutes until it is full pauses would be
            those of an emergency. It takes memory as it fills.
        clients: that are measured.
    """

    key: str
    is_shared: bool
    throttle_s: float
    before_s: float
    after_s: float
    start_timeout_s: float
    bytes_per_s: int
    volume_mb: int
    clients: Sequence[Client] = CLIENTS

    def placed(self, clients: Sequence[Client], abreast: int) -> list[list[list[Client]]]:
        """The clients of each broker in each run; without sharing, ``abreast`` brokers at once.

        Example: of java, franz-go and aiokafka the long part has one run, of two brokers:
        ``[[[java, aiokafka], [franz_go]]]``.
        """
        step = _AT_ONCE if self.is_shared else abreast
        groups = [clients[start : start + step] for start in range(0, len(clients), step)]
        if not self.is_shared:
            return [[[client] for client in group] for group in groups]
        sizes = (False, True)
        apart = [
            [[c for c in group if c.has_large_requests is is_large] for is_large in sizes]
            for group in groups
        ]
        return [[broker for broker in group if broker] for group in apart]


PARTS: Final = {
    part.key: part
    for part in (
        Part("short", False, 75.0, 14.0, 40.0, 60.0, 2_000_000, 4096),
        # A backlog of 10 minutes at 2 MB/s is 1.2 GB, and most clients keep all of it in memory.
        Part("long", True, 600.0, 30.0, 120.0, 240.0, 1_000_000, 12_288),
        Part(RELEASE, False, 70.0, 14.0, 40.0, 60.0, 4_000_000, 4096, EXPIRING),
    )
}


@dataclass(frozen=True, slots=True)
class Case:
    """What happens to the clients.

    Attributes:
        part: for how long, and at which rate.
        arm: what throttles, of ``ARMS``.
        partitions: of each client's topic.
        jar: the quota callback's.
    """

    part: Part
    arm: str
    partitions: int
    jar: Path

    @property
    def is_possible(self) -> bool:
        """Whether the jar has what the arm needs."""
        if self.arm != AUTHORIZER:
            return True
        with zipfile.ZipFile(self.jar) as opened:
            return _AUTHORIZER_CLASS in opened.namelist()

    def cluster(self) -> dict[str, Any]:
        """What ``Cluster`` gets, so that the arm can throttle."""
        if self.arm == QUOTA:
            return {}
        more = _REFUSES if self.arm == AUTHORIZER else {}
        return {
            "properties": {**CALLBACK_PROPERTIES, **more},
            "properties_of": asks_its_sidecar,
            "broker_jars": (self.jar,),
        }


@dataclass(slots=True)
class _Place:
    """A client's program, its broker, its listener, and the connections counted there."""

    program: Program
    broker: int
    listener: str
    dialed: list[tuple[float, int]] = field(default_factory=list)

    @property
    def key(self) -> str:
        return self.program.client.key


class _Throttle:
    """Throttles the clients of a cluster, and releases them."""

    def __init__(self, case: Case, cluster: Cluster, client_ids: Sequence[str]) -> None:
        self._case = case
        self._cluster = cluster
        self._client_ids = client_ids
        self._urls: list[str] = []
        self._headers: dict[str, str] = {}

    async def prepare(self) -> None:
        """Start the sidecars, and wait until every callback has read its own."""
        if self._case.arm == QUOTA:
            return
        token = write_token(self._cluster)
        settings = {
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(1 << 20),
            "SIDECAR_TOKEN_FILE": str(token),
        }
        self._urls = [each.url for each in await start_sidecars(self._cluster, settings)]
        self._headers = {"Authorization": f"Bearer {token.read_text().strip()}"}
        await callbacks_read(self._cluster)

    async def set(self, *, throttled: bool) -> None:
        """Throttle or release."""
        if self._case.arm == QUOTA:
            rate = LEAK_RATIO * self._case.part.bytes_per_s if throttled else None
            admin = KafkaAdmin(bootstrap_servers=addresses(self._cluster.bootstrap))
            changes = [
                ({"client-id": each}, {"producer_byte_rate": rate}) for each in self._client_ids
            ]
            failure = await alter_client_quotas(admin, changes)
            if failure is not None:
                raise ClusterError(f"the quotas can't be set: {failure.message}")
            return
        document = {"factor": 0.0, "reason": "make bench-clients", "duration": "PT1H"}
        method, body = ("PUT", document) if throttled else ("DELETE", None)
        async with httpx.AsyncClient(headers=self._headers, timeout=5.0, verify=False) as client:
            requests = (
                client.request(method, f"{url}/v1/override", json=body) for url in self._urls
            )
            for answer in await asyncio.gather(*requests):
                answer.raise_for_status()


async def happen(
    placed: Sequence[Sequence[Client]], case: Case, folder: Path
) -> dict[str, Run | ClusterError]:
    """Start brokers and producers, throttle and release.

    Args:
        placed: the clients of each broker.
        case: what happens to them.
        folder: where the programs' reports and logs go.

    Returns:
        Client's key -> its run, or why it has none.

    Raises:
        ClusterError: nothing could be measured.
    """
    part = case.part
    clients = [(broker, client) for broker, of in enumerate(placed) for client in of]
    places = [
        _Place(
            Program(client, folder / f"{part.key}.{case.arm}.{client.key}"), broker, f"CLIENT{at}"
        )
        for at, (broker, client) in enumerate(clients)
    ]
    cluster = Cluster(
        environ=os.environ,
        brokers=len(placed),
        volumes=1,
        volume_bytes=part.volume_mb << 20,
        listeners=[Listener(each.listener, "PLAINTEXT") for each in places],
        heap_mb=512,
        **case.cluster(),
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        throttle = _Throttle(case, cluster, [each.key for each in places])
        await throttle.prepare()
        async with Admin(cluster.bootstrap) as admin:
            for each in places:
                leaders = [[each.broker]] * case.partitions
                await admin.create_topic(each.key, assignment=leaders, config=_TOPIC)
                stack.push_async_callback(each.program.kill)
        begin = await _count(cluster, case.arm)
        found = await _each(places, {}, lambda place: _start(place, cluster, case))
        if len(found) == len(places):
            raise next(iter(found.values()))
        await asyncio.sleep(part.before_s)
        throttled_at = time.time()
        await throttle.set(throttled=True)
        await _watch(places, cluster, case.arm, throttled_at + part.throttle_s)
        released_at = time.time()
        await throttle.set(throttled=False)
        await asyncio.sleep(part.after_s)
        times = (throttled_at, released_at, time.time())
        failures = found | await _each(places, found, lambda place: place.program.end())
        end = await _count(cluster, case.arm)
        runs: dict[str, Run | ClusterError] = {}
        for each in places:
            if each.key in failures:
                runs[each.key] = failures[each.key]
                continue
            run = Run(each.key, part.throttle_s, *times, dialed=each.dialed)
            await asyncio.to_thread(_fill, run, each, begin[each.broker], end[each.broker])
            run.landed = await asyncio.to_thread(
                read_log, cluster.bootstrap, each.key, case.partitions
            )
            runs[each.key] = run
    return runs


async def _start(place: _Place, cluster: Cluster, case: Case) -> None:
    words = {
        "bootstrap": cluster.brokers[place.broker].addresses[place.listener],
        "topic": place.key,
        "partitions": case.partitions,
        "rate": case.part.bytes_per_s,
        "size": RECORD_BYTES,
    }
    await place.program.start(words, case.part.start_timeout_s)


async def _each(
    places: Sequence[_Place],
    failures: Mapping[str, ClusterError],
    do: Callable[[_Place], Awaitable[None]],
) -> dict[str, ClusterError]:
    """Do something at once for each client that has not failed yet; those that fail now."""
    left = [each for each in places if each.key not in failures]
    done = await asyncio.gather(*(do(each) for each in left), return_exceptions=True)
    found = {}
    for place, error in zip(left, done, strict=True):
        if isinstance(error, ClusterError):
            found[place.key] = error
        elif error is not None:
            raise error
    return found


async def _watch(places: Sequence[_Place], cluster: Cluster, arm: str, until: float) -> None:
    """Count connections now and then until the throttle is to end."""
    step_s = max(_SAMPLE_S, (until - time.time()) / 20)
    last = until - _COUNTING_S
    while True:
        counted = await _count(cluster, arm)
        now = time.time()
        for each in places:
            each.dialed.append((now, counted[each.broker].connections.get(each.listener, 0)))
        if now >= last:
            break
        await asyncio.sleep(min(step_s, last - now))
    await asyncio.sleep(max(0.0, until - time.time()))


@dataclass(frozen=True, slots=True)
class Counts:
    """What a broker has counted since its start.

    Attributes:
        received: listener -> bytes that were read from its connections.
        connections: listener -> how many were made.
        refused: client-id -> produce requests since the last throttle began, of the ten with most;
            None: there is no callback that counts them.
    """

    received: Mapping[str, int]
    connections: Mapping[str, int]
    refused: Mapping[str, int] | None


async def _count(cluster: Cluster, arm: str) -> dict[int, Counts]:
    async def one(broker: int) -> Counts:
        refused = None
        if arm != QUOTA:
            found = await bean(cluster, broker, CALLBACK_BEAN)
            refused = of_clients(str(found["RefusedClients"] or ""))
        return of_listeners(await beans(cluster, broker, _SOCKETS), refused)

    counts = await asyncio.gather(*map(one, cluster.brokers))
    return dict(zip(cluster.brokers, counts, strict=True))


def of_clients(text: str) -> Mapping[str, int]:
    """The requests refused of each client-id, of all its users.

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


def _fill(run: Run, place: _Place, begin: Counts, end: Counts) -> None:
    """Add what the program reported and what its broker counted."""
    name = place.listener
    run.received = end.received.get(name, 0) - begin.received.get(name, 0)
    run.connections = end.connections.get(name, 0) - begin.connections.get(name, 0)
    if end.refused is not None:
        run.refused = end.refused.get(place.key, 0)
    run.add_reports(place.program.reports.read_bytes().splitlines(keepends=True))
