"""Lets a user's clients open producer ids on a real cluster, throttled by one arm after another.

The brokers have the quota callback and write their request logs; a sidecar beside each reads its
broker's log and asks the others. A neighbour produces all the time. The clients are those of
``tests.support.rogue``: each connects, gets an id, sends one record and disconnects, again and
again. Each arm has a user of its own with the same quota, so that none begins with what another has
counted.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.harness.results import Sampled
from benchmarks.harness.traffic import looking, sleep_until
from benchmarks.producer_ids.logged import RequestLogs, logged_user
from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.nodes import Broker
from kafka_lab.series import Series
from kafka_lab.sidecar_processes import Sidecar, start_sidecars
from kafka_lab.traffic import Traffic
from kafka_lab.waiting import deadline, until
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError
from sidecar.kafka.broker_loggers import REQUEST_LOGGER, set_levels
from sidecar.kafka.client_quotas import alter_client_quotas, describe_client_quotas
from sidecar.quotas.entities import Entity, QuotaKey
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure
from tests.support.bean_watch import BeanWatch
from tests.support.rogue import Rogue

RATE: Final = 30
"""producer_ids_rate, ids in a window."""
WINDOW_S: Final = 60
WINDOWS: Final = 2
PERCENTAGE: Final = 0.01
"""throttled_request_percentage."""
IP_RATE: Final = 2.0
"""connection_creation_rate of the clients' address, for each broker."""
CLIENTS: Final = 16
BATCH_BYTES: Final = 10_000
NEIGHBOUR_BYTES_PER_S: Final = 5e6
SETTLE_S: Final = 10.0
"""From the clients' beginning; a throttle that has not settled by then is measured unsettled."""
MEASURE_S: Final = 18.0

_NEIGHBOUR: Final = "neighbour"
_PASSWORD: Final = "secret"  # Of this machine's own listener, for the time of a measurement.
_LISTENER: Final = "BASIC"
_THROTTLED_TIMEOUT_S: Final = 8.0
_ID_COUNT: Final = "kafka.server:type=ReplicaManager,name=ProducerIdCount"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of throttling.

    Attributes:
        key: short, for names of files; also the user's name.
        name: for a reader, short enough for a legend.
        has_factor: the user's produce factor becomes 0.0.
        has_percentage: the user also gets a request_percentage.
        has_ip_rate: the clients' address may also open few connections.
    """

    key: str
    name: str
    has_factor: bool = False
    has_percentage: bool = False
    has_ip_rate: bool = False

    @property
    def is_throttled(self) -> bool:
        """Whether there is a quota at all."""
        return self.has_factor or self.has_percentage


ARMS: Final = (
    Arm("none", "free"),
    Arm("factor", "factor", has_factor=True),
    Arm("percentage", "percentage", has_percentage=True),
    Arm("both", "both", has_factor=True, has_percentage=True),
    # The last one: its limit on connections cannot be removed by those that it limits.
    Arm("ip", "both + IP rate", has_factor=True, has_percentage=True, has_ip_rate=True),
)


@dataclass(slots=True)
class Run:
    """What happened while a user's clients opened ids; times are of one monotonic clock.

    Attributes:
        arm: its key.
        began_at: when the clients began.
        settled_at: from when on it is measured.
        ended_at: until when.
        throttled_at: when every sidecar throttled the user; None: never.
        allocated: ids that brokers allocated to the user so far, by their request logs.
        counted: ids that all brokers together remember, by their metric ProducerIdCount.
        neighbour: bytes of the neighbour that brokers acknowledged so far.
        throttle_ms: API -> the longest throttle time in an answer to the user.
        neighbour_throttled_ms: the longest of the neighbour.
    """

    arm: str
    began_at: float
    settled_at: float
    ended_at: float
    throttled_at: float | None = None
    allocated: Sampled = field(default_factory=Series)
    counted: Sampled = field(default_factory=Series)
    neighbour: Sampled = field(default_factory=Series)
    throttle_ms: dict[str, int] = field(default_factory=dict)
    neighbour_throttled_ms: int = 0


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is there while arms change."""

    cluster: Cluster
    admin: KafkaAdmin
    sidecars: Sequence[Sidecar]
    neighbour: Traffic
    counts: Series


def quota_file(arms: Sequence[Arm]) -> str:
    """The sidecars' TOML file with a quota for each user that is to be throttled."""
    parts = []
    for each in arms:
        if each.is_throttled:
            parts.append(f"[users.{each.key}]\nproducer_ids_rate = {RATE}\n")
            if each.has_percentage:
                parts.append(f"throttled_request_percentage = {PERCENTAGE}\n")
    return "".join(parts)


def excluded(arms: Sequence[Arm]) -> str:
    """The callback's excluded.principals: a request_percentage acts alone where it is measured."""
    return ";".join(f"User:{each.key}" for each in arms if not each.has_factor)


async def happen(brokers: int, arms: Sequence[Arm], measure_s: float) -> AsyncIterator[Run]:
    """Start a cluster, and measure one arm after another on it.

    Args:
        brokers: how many.
        arms: in this order; one with a limit on connections must be the last.
        measure_s: for how long each is measured once it has settled, seconds.

    Raises:
        ClusterError: it could not be measured.
    """
    async with _scene(brokers, arms) as scene:
        for arm in arms:
            yield await _act(scene, arm, measure_s)


@asynccontextmanager
async def id_counts(cluster: Cluster) -> AsyncIterator[Series]:
    """How many producer ids all brokers together remember, twice a second.

    KIP-936 wants to bound that number: the ids of all partitions, replicas included, each for
    producer.id.expiration.ms (a day).

    Raises:
        ClusterError: they cannot be read, or (in a group) cannot be read any more.
    """
    async with BeanWatch(_ID_COUNT, ["Value"]) as watch:
        for broker in cluster.brokers.values():
            watch.follow(broker.id, broker.pid)

        def total() -> float | None:
            found = [watch.figures(broker_id) for broker_id in cluster.brokers]
            return None if None in found else sum(float(each["Value"]) for each in found if each)

        async with deadline(30.0, "the brokers' counts of producer ids can't be read"):
            await until(lambda: total() is not None)
        counts = Series()

        async def look() -> None:
            if (count := total()) is None:
                raise ClusterError("the brokers' counts of producer ids can't be read any more")
            counts.add(time.monotonic(), count)

        async with looking(look, 0.5):
            yield counts


@asynccontextmanager
async def _scene(brokers: int, arms: Sequence[Arm]) -> AsyncIterator[_Scene]:
    users = dict.fromkeys([_NEIGHBOUR, *(each.key for each in arms)], _PASSWORD)
    exclusion = {"client.quota.callback.sidecar.excluded.principals": excluded(arms)}
    cluster = Cluster(
        environ=os.environ,
        brokers=brokers,
        volumes=1,
        volume_bytes=256 << 20,
        listeners=[Listener(_LISTENER, "SASL_PLAINTEXT", "PLAIN", users)],
        broker_jars=[callback_jar()],
        properties=CALLBACK_PROPERTIES | exclusion,
        properties_of=asks_its_sidecar,
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        hosts = [broker.address.rpartition(":") for broker in cluster.brokers.values()]
        admin = KafkaAdmin(
            bootstrap_servers=tuple(HostPort(host, int(port)) for host, _, port in hosts)
        )
        wanted = dict.fromkeys(cluster.brokers, "DEBUG")
        if (levels := await set_levels(admin, wanted, REQUEST_LOGGER)) != wanted:
            raise ClusterError(f"the request log can't be turned on: {levels}")
        # One partition on each broker, so that most ids are used where they were not allocated.
        leaders = [[broker] for broker in cluster.brokers]
        little = {"retention.bytes": str(16 << 20)}
        async with Admin(cluster.bootstrap) as topics:
            await topics.create_topic("ids", assignment=leaders)
            await topics.create_topic(_NEIGHBOUR, assignment=leaders, config=little)
        sidecars = await start_sidecars(
            cluster, _settings(cluster, arms), partial(_settings_of, cluster)
        )
        async with deadline(30.0, "the sidecars did not see the volumes"):
            for sidecar in sidecars:
                await _until(partial(_observes, sidecar))
        traffic = Traffic(
            cluster.bootstrap_of(_LISTENER),
            _NEIGHBOUR,
            bytes_per_s=NEIGHBOUR_BYTES_PER_S,
            partitions=range(brokers),
            config=_login(_NEIGHBOUR),
        )
        neighbour = await stack.enter_async_context(traffic)
        counts = await stack.enter_async_context(id_counts(cluster))
        await asyncio.sleep(3.0)
        yield _Scene(cluster, admin, sidecars, neighbour, counts)


async def _act(scene: _Scene, arm: Arm, measure_s: float) -> Run:
    cluster, user = scene.cluster, arm.key
    logs = RequestLogs(Path(f"{broker.log}.requests") for broker in cluster.brokers.values())
    began = time.monotonic()
    settled = began + SETTLE_S
    run = Run(user, began, settled, settled + measure_s)
    bootstrap = cluster.bootstrap_of(_LISTENER)
    async with Rogue(bootstrap, "ids", _login(user), CLIENTS, BATCH_BYTES):
        if arm.is_throttled:
            run.throttled_at = await _throttle(scene, arm)
        # A sample of everything after the end: nothing is measured past the last one.
        await sleep_until(run.ended_at + 1.0)
    lines = await asyncio.to_thread(logs.lines)
    ahead_s = time.monotonic() - time.time()
    found, of_neighbour = (logged_user(lines, who, began, ahead_s) for who in (user, _NEIGHBOUR))
    run.allocated, run.throttle_ms = found.allocated, dict(found.throttle_ms)
    run.neighbour_throttled_ms = max(of_neighbour.throttle_ms.values(), default=0)
    run.counted = scene.counts.window(began - 1.0, run.ended_at + 1.0)
    run.neighbour = scene.neighbour.samples.window(began - 1.0, run.ended_at + 1.0)
    return run


async def _throttle(scene: _Scene, arm: Arm) -> float | None:
    """Wait until all that throttles the user applies; when every sidecar throttled the user."""
    try:
        async with asyncio.timeout(_THROTTLED_TIMEOUT_S):
            await _until(lambda: _is_throttled(scene.sidecars, arm.key))
            throttled_at = time.monotonic()
            if arm.has_percentage:
                await _until(lambda: _has_percentage(scene.admin, arm.key))
    except TimeoutError:
        return None
    if arm.has_ip_rate:
        # Not before: sidecars and this process ask from the same address.
        rate = {"connection_creation_rate": IP_RATE}
        failure = await alter_client_quotas(scene.admin, [({"ip": "127.0.0.1"}, dict(rate))])
        if failure is not None:
            raise ClusterError(f"connections can't be limited: {failure.message}")
    return throttled_at


async def _is_throttled(sidecars: Sequence[Sidecar], user: str) -> bool:
    for sidecar in sidecars:
        answer = await sidecar.get("/v1/quota-factors")
        if answer.document()["users"].get(user) != 0.0:
            return False
    return True


async def _has_percentage(admin: KafkaAdmin, user: str) -> bool:
    found = await describe_client_quotas(admin)
    return not isinstance(found, Failure) and QuotaKey.REQUEST in found.get(Entity(user=user), {})


async def _observes(sidecar: Sidecar) -> bool:
    found = (await sidecar.get("/v1/throttle-factor")).document()
    return bool(found["source"] == "observation")


async def _until(is_met: Callable[[], Awaitable[bool]]) -> None:
    """Poll every 100 ms; the caller has the deadline."""
    while not await is_met():  # noqa: ASYNC110 - brokers and sidecars are asked
        await asyncio.sleep(0.1)


def _settings(cluster: Cluster, arms: Sequence[Arm]) -> dict[str, str]:
    if cluster.folder is None:
        raise ClusterError("the cluster is not up")
    quotas = cluster.folder / "producer-ids.toml"
    quotas.write_text(quota_file(arms), encoding="utf-8")
    return {
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(1 << 20),
        "SIDECAR_PRODUCER_ID_QUOTA_FILE": str(quotas),
        # Without the polls' interval, the throttle alone is measured.
        "SIDECAR_PRODUCER_ID_QUOTA_COUNTS": "allocated",
        "SIDECAR_PRODUCER_ID_QUOTA_WINDOW_NUM": str(WINDOWS),
        "SIDECAR_PRODUCER_ID_QUOTA_WINDOW_SIZE_SECONDS": str(WINDOW_S),
    }


def _settings_of(cluster: Cluster, broker: Broker) -> dict[str, str]:
    others = [each.sidecar_url for each in cluster.brokers.values() if each.id != broker.id]
    settings = {"SIDECAR_REQUEST_LOG_FILE": f"{broker.log}.requests"}
    return {**settings, "SIDECAR_PEERS": ",".join(others)} if others else settings


def _login(user: str) -> dict[str, object]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": _PASSWORD,
    }
