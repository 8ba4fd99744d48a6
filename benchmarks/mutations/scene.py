"""Lets the storm happen once: a dedicated controller, three brokers, and who throttles the storm.

- none: nobody has a quota.
- kafka: the storm's user has a controller_mutation_rate: the controller rejects what is over it.
- endpoint: the storm asks a sidecar first, for a user with that quota, and logs in as another, who
  has none: as a portal that asks Kafka for its users. The sidecar alone throttles it.

The sidecars run beside the brokers in each of the three. What the demo's cluster does every second
to be quick (checkpoints, retention) is as rare here as Kafka has it, since it walks all logs.

Example: from the first tick on 20 s of storm, then at most 60 s until operations take as long as
before it.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from benchmarks.mutations.clients import LISTENER, PASSWORD
from benchmarks.mutations.course import Course, Operation, Request
from benchmarks.mutations.figures import slower_s
from benchmarks.mutations.others import USER, Others
from benchmarks.mutations.storm import Load
from benchmarks.mutations.storm_process import Order, storm
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.sidecar_processes import start_sidecars
from sidecar.errors import ClusterError
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.topic_changes import create_topics
from sidecar.kafka.topic_messages import NewTopic
from sidecar.kafka.topic_results import Outcome
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses

STORM: Final = "storm"
PORTAL: Final = "portal"
QUIET_S: Final = 6.0
"""For so long before the storm the others are alone."""
_SIDECAR_LIMIT: Final = "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES"
_PATIENCE_S: Final = 90.0
_WARM_TOPICS: Final = 60
"""Created before anything is measured: a JVM's first logs are its slowest."""
_SETTLED_S: Final = 0.5
"""The others begin to count when their first records take no longer than that."""
_START_S: Final = 4.0
"""For so long before the quiet time the storm's process may start."""
_LONGEST_S: Final = 60.0
"""So long after the storm's time the others are watched at most, and so long they may need to
settle before it."""
_CALM: Final = 10
"""So many operations in a row that took no longer than before: it is over."""
_CHECK_S: Final = 0.5
_PROPERTIES: Final = {
    "log.retention.check.interval.ms": "300000",
    "log.initial.task.delay.ms": "30000",
    "log.flush.offset.checkpoint.interval.ms": "60000",
    "log.flush.start.offset.checkpoint.interval.ms": "60000",
    "replica.high.watermark.checkpoint.interval.ms": "5000",
}


@dataclass(frozen=True, slots=True)
class Contender:
    """What stands between the storm and the controller.

    Attributes:
        key: short, for names of files.
        name: for a reader.
        limited_user: the user that has the quota; None: nobody has.
        user: who the storm logs in as.
        asks: whether it asks a sidecar first.
    """

    key: str
    name: str
    limited_user: str | None
    user: str
    asks: bool


CONTENDERS: Final = (
    Contender("none", "no quota", None, STORM, asks=False),
    Contender("kafka", "Kafka's quota", STORM, STORM, asks=False),
    Contender("endpoint", "admission endpoint", STORM, PORTAL, asks=True),
)


async def happen(contender: Contender, load: Load) -> Course:
    """Start all, and let it happen.

    Raises:
        ClusterError: it could not be measured.
    """
    users = dict.fromkeys((STORM, PORTAL, USER), PASSWORD)
    cluster = Cluster(
        environ=os.environ,
        brokers=3,
        volumes=1,
        volume_bytes=2 << 30,
        properties=_PROPERTIES,
        listeners=[Listener(LISTENER, "SASL_PLAINTEXT", mechanism="PLAIN", users=users)],
        heap_mb=1024,
    )
    # time.monotonic(), too: one clock for all processes of the machine.
    now = asyncio.get_running_loop().time
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        sidecars = await start_sidecars(cluster, {_SIDECAR_LIMIT: "1"})
        await _prepare(cluster, contender.limited_user, load)
        others = Others(cluster, load.replication, _PATIENCE_S)
        await stack.enter_async_context(others)
        await _wait_calm(others.operations, _SETTLED_S)
        begin = now() + _START_S + QUIET_S
        order = Order(
            load=load,
            brokers=[broker.addresses[LISTENER] for broker in cluster.brokers.values()],
            user=contender.user,
            begin=begin,
            patience_s=_PATIENCE_S,
            ask_url=sidecars[0].url if contender.asks else None,
            ask_for=contender.limited_user or "",
        )
        async with asyncio.TaskGroup() as group:
            storming = group.create_task(storm(order), name="storm")
            await asyncio.sleep(begin + load.seconds - now())
            await _wait_calm(others.operations, _as_before(others.operations, begin))
            watched_until = now()
        course = Course(contender.key, load.seconds, watched_until - begin)
        seen = [each for each in others.operations if each.due >= begin - QUIET_S]
        course.operations = [_since(begin, each) for each in seen]
        course.requests = [_sent_since(begin, each) for each in storming.result()]
        stopped = [key for key in cluster.brokers if not cluster.is_running(key)]
        course.notes += [f"broker {key} ended itself" for key in stopped]
    return course


async def _prepare(cluster: Cluster, limited_user: str | None, load: Load) -> None:
    admin = KafkaAdmin(bootstrap_servers=addresses(cluster.bootstrap))
    warm = [
        NewTopic(f"warm-{number}", load.partitions, load.replication)
        for number in range(_WARM_TOPICS)
    ]
    failed = [each for each in await create_topics(admin, warm) if each.outcome is not Outcome.DONE]
    if failed:
        raise ClusterError(f"{len(failed)} topics can't be created: {failed[0].message}")
    if limited_user is not None:
        quota = ({"user": limited_user}, {"controller_mutation_rate": load.rate})
        failure = await alter_client_quotas(admin, [quota])
        if failure is not None:
            raise ClusterError(f"the quota can't be set: {failure.message}")


def _as_before(operations: Sequence[Operation], begin: float) -> float:
    """The longest wait that is as before the storm, seconds."""
    before = [
        each.usable - each.due
        for each in operations
        if begin - QUIET_S <= each.due < begin and each.usable is not None
    ]
    if not before:
        raise ClusterError("no record got through before the storm")
    return slower_s(median(before))


async def _wait_calm(operations: Sequence[Operation], most: float) -> None:
    """Until the last operations took no longer than this, or that takes too long."""
    now = asyncio.get_running_loop().time
    end = now() + _LONGEST_S
    while now() < end:
        ripe = [each for each in operations if each.due <= now() - most][-_CALM:]
        fast = [each for each in ripe if each.usable is not None and each.usable - each.due <= most]
        if len(fast) == _CALM:
            return
        await asyncio.sleep(_CHECK_S)


def _since(begin: float, each: Operation) -> Operation:
    return replace(
        each,
        due=each.due - begin,
        answered=None if each.answered is None else each.answered - begin,
        usable=None if each.usable is None else each.usable - begin,
    )


def _sent_since(begin: float, each: Request) -> Request:
    answered = None if each.answered is None else each.answered - begin
    return replace(each, due=each.due - begin, answered=answered)
