"""``python -m benchmarks.mutations``: a storm of new topics, and the waits of another user.

- none: nobody has a quota.
- kafka: the storm's user has a controller_mutation_rate; the controller rejects what exceeds it.
- endpoint: the storm asks a sidecar first, for a user with that quota, and logs in as another user
  without one, as a portal that asks Kafka for its users. The sidecar alone throttles it.

The sidecars run beside the brokers in each of the three. What the lab's brokers do every second to
be quick (checkpoints, retention) is as rare here as Kafka has it, since it walks all logs.

A wait that was not over when the watching ended counts with what was seen of it. Example: due at 10
s, watched until 40 s and without a record by then: "> 30.0 s".
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from statistics import median
from typing import Final

from benchmarks.harness import program
from benchmarks.harness.page import Pictures
from benchmarks.harness.program import Benchmark, Task, task
from benchmarks.harness.results import Results
from benchmarks.harness.tables import Figures, Value, by_arm, notes, seconds, whole
from benchmarks.mutations.clients import LISTENER, PASSWORD
from benchmarks.mutations.others import USER, Operation, Others
from benchmarks.mutations.storm import Load, Order, Request, storm
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.sidecar_processes import start_sidecars
from sidecar.cli.chart import Line, Mark, Panel, Point, svg
from sidecar.errors import ClusterError
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.topic_changes import create_topics
from sidecar.kafka.topic_messages import NewTopic
from sidecar.kafka.topic_results import Outcome
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses

ARMS: Final = {"none": "no quota", "kafka": "Kafka's quota", "endpoint": "admission endpoint"}
STORM: Final = "storm"
PORTAL: Final = "portal"
SLOWER: Final = 3.0
"""A wait of more than so many medians before the storm,"""
LEAST_SLOWER_S: Final = 0.25
"""and of more than so many seconds, is longer than before."""
QUIET_S: Final = 6.0
"""For so long before the storm the others are alone."""

_PATIENCE_S: Final = 90.0
_WARM_TOPICS: Final = 60
"""Created before anything is measured: a JVM's first logs are its slowest."""
_SETTLED_S: Final = 0.5
"""The others begin to count once their first records take no longer than that."""
_START_S: Final = 4.0
"""For so long before the quiet time the storm's process may start."""
_LONGEST_S: Final = 60.0
"""For so long at most others may need to settle, and are watched after the storm's time."""
_CALM: Final = 10
"""After so many operations in a row that took no longer than before, it is over."""
_PROPERTIES: Final = {
    "log.retention.check.interval.ms": "300000",
    "log.initial.task.delay.ms": "30000",
    "log.flush.offset.checkpoint.interval.ms": "60000",
    "log.flush.start.offset.checkpoint.interval.ms": "60000",
    "replica.high.watermark.checkpoint.interval.ms": "5000",
}


@dataclass(slots=True)
class Run:
    """What one arm came to; times are seconds from the storm's beginning, before it below 0.

    Attributes:
        arm: its key.
        storm_s: how long the storm was to last.
        watched_until: when the watching ended.
        operations: in the order in which they were due.
        requests: likewise.
        notes: what else a reader has to know.
    """

    arm: str
    storm_s: float
    watched_until: float = 0.0
    operations: list[Operation] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def happen(arm: str, load: Load) -> Run:
    """Start everything, and let the storm happen.

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
        limit = {"SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "1"}
        sidecars = await start_sidecars(cluster, limit)
        await _prepare(cluster, load, has_quota=arm != "none")
        others = Others(cluster, load.replication, _PATIENCE_S)
        await stack.enter_async_context(others)
        await wait_calm(others.operations, _SETTLED_S)
        begin = now() + _START_S + QUIET_S
        order = Order(
            load=load,
            brokers=[broker.addresses[LISTENER] for broker in cluster.brokers.values()],
            user=PORTAL if arm == "endpoint" else STORM,
            begin=begin,
            patience_s=_PATIENCE_S,
            ask_url=sidecars[0].url if arm == "endpoint" else None,
            ask_for=STORM,
        )
        async with asyncio.TaskGroup() as group:
            storming = group.create_task(storm(order), name="storm")
            await asyncio.sleep(begin + load.seconds - now())
            await wait_calm(others.operations, as_before(others.operations, begin))
            watched_until = now()
        run = Run(arm, load.seconds, watched_until - begin)
        seen = [each for each in others.operations if each.due >= begin - QUIET_S]
        run.operations = [
            replace(
                each,
                due=each.due - begin,
                answered=None if each.answered is None else each.answered - begin,
                usable=None if each.usable is None else each.usable - begin,
            )
            for each in seen
        ]
        for each in storming.result():
            answered = None if each.answered is None else each.answered - begin
            run.requests.append(replace(each, due=each.due - begin, answered=answered))
        stopped = [key for key in cluster.brokers if not cluster.is_running(key)]
        run.notes += [f"broker {key} ended by itself" for key in stopped]
    return run


async def _prepare(cluster: Cluster, load: Load, *, has_quota: bool) -> None:
    admin = KafkaAdmin(bootstrap_servers=addresses(cluster.bootstrap))
    topics = (
        NewTopic(f"warm-{each}", load.partitions, load.replication) for each in range(_WARM_TOPICS)
    )
    made = await create_topics(admin, list(topics))
    failed = [each for each in made if each.outcome is not Outcome.DONE]
    if failed:
        raise ClusterError(f"{len(failed)} topics can't be created: {failed[0].message}")
    if has_quota:
        quota = ({"user": STORM}, {"controller_mutation_rate": load.rate})
        failure = await alter_client_quotas(admin, [quota])
        if failure is not None:
            raise ClusterError(f"the quota can't be set: {failure.message}")


def as_before(operations: Sequence[Operation], begin: float) -> float:
    """The longest wait that is as before the storm, seconds."""
    before = [
        each.usable - each.due
        for each in operations
        if begin - QUIET_S <= each.due < begin and each.usable is not None
    ]
    if not before:
        raise ClusterError("no record got through before the storm")
    return slower_s(median(before))


async def wait_calm(operations: Sequence[Operation], most: float) -> None:
    """Until the last operations took no longer than this, or for a minute."""
    now = asyncio.get_running_loop().time
    end = now() + _LONGEST_S
    while now() < end:
        ripe = [each for each in operations if each.due <= now() - most][-_CALM:]
        fast = [each for each in ripe if each.usable is not None and each.usable - each.due <= most]
        if len(fast) == _CALM:
            return
        await asyncio.sleep(0.5)


def slower_s(before: float) -> float:
    """The longest wait that is still as before, seconds; of a median of 0.1 s it is 0.3 s."""
    return max(SLOWER * before, LEAST_SLOWER_S)


def figures(run: Run) -> Figures:
    """The figures of a run.

    Raises:
        ValueError: there was no operation before the storm, or none in its time.
    """
    answer = _Waits(run, lambda each: each.answered)
    record = _Waits(run, lambda each: each.usable)
    slower = slower_s(record.before)
    slow = [due for due, wait, _ in record.waits if due >= 0 and wait > slower]
    sent = [each for each in run.requests if each.admitted]
    own = [each.answered - each.due for each in sent if each.answered is not None]
    kept = [each for each in run.requests if not each.admitted and not each.error]
    asking = [each.answered - each.due for each in kept if each.answered is not None]
    rejected = sum(each.asked - each.admitted for each in run.requests if not each.error)
    return {
        "others before the storm: answered, median": _s(answer.before),
        "others before the storm: first record, median": _s(record.before),
        "others in its time: answered, median": _s(answer.during),
        "others from then on: answered, longest": answer.longest,
        "others in its time: first record, median": _s(record.during),
        "others from then on: first record, longest": record.longest,
        "due time of the last with a longer wait for its first record than before": _s(
            max(slow, default=None)
        ),
        "others' operations that failed": _count(sum(bool(each.error) for each in run.operations)),
        "the storm: requests that reached Kafka": _count(len(sent)),
        "the storm: topics created": _count(sum(each.created for each in sent)),
        "the storm: topics rejected by Kafka, each time": _count(
            sum(each.throttled for each in sent)
        ),
        "the storm: topics rejected by the endpoint, each time": _count(rejected),
        "the storm: answered by Kafka, median": _s(median(own) if own else None),
        "the storm: answered by the endpoint alone, median": _s(median(asking) if asking else None),
        "the storm: requests that failed": _count(sum(bool(each.error) for each in run.requests)),
    }


class _Waits:
    """How long others waited for one thing: (due, seconds, whether it was not over) each."""

    def __init__(self, run: Run, get: Callable[[Operation], float | None]) -> None:
        self.waits = [(each.due, *_wait(each, get(each), run)) for each in run.operations]
        before = [wait for due, wait, _ in self.waits if due < 0]
        during = [wait for due, wait, _ in self.waits if 0 <= due < run.storm_s]
        if not before or not during:
            raise ValueError("there were no operations before the storm, or none in its time")
        self.before, self.during = median(before), median(during)
        longest, is_least = max((wait, unseen) for due, wait, unseen in self.waits if due >= 0)
        self.longest = Value(longest, text=seconds, is_least=is_least)


def _wait(operation: Operation, end: float | None, run: Run) -> tuple[float, bool]:
    return (run.watched_until if end is None else end) - operation.due, end is None


def _s(value: float | None) -> Value:
    return Value(value, text=seconds)


def _count(value: int) -> Value:
    return Value(value, text=whole)


def section(part: str, results: Results, pictures: Pictures) -> str:
    """The table and the picture."""
    runs = {ARMS[arm]: of for arm, of in results.by_arm(Run, part, ARMS).items()}
    if not runs:
        return ""
    title = "Another's new topic during a storm of new topics"
    found = {name: list(map(figures, of)) for name, of in runs.items()}
    image = pictures.add("", title, picture(title, {name: of[0] for name, of in runs.items()}))
    return f"{by_arm('figure', found)}{notes(runs)}\n{image}"


def picture(title: str, runs: Mapping[str, Run]) -> str:
    """Others' waits over time, and the storm's topics; time counts from the storm's beginning."""
    answers, records, topics = [], [], []
    for style, (name, run) in enumerate(runs.items()):
        of = run.operations
        answered = [(each.due, _wait(each, each.answered, run)[0]) for each in of]
        usable = [(each.due, _wait(each, each.usable, run)[0]) for each in of]
        created = created_so_far(run)
        answers.append(Line(name, answered, style))
        records.append(Line(name, usable, style))
        # Flat to the end of the watching, as the others' lines.
        topics.append(Line(name, [*created, (run.watched_until, created[-1][1])], style))
    over = max(run.storm_s for run in runs.values())
    moments = [Mark("the storm begins", 0.0), Mark("its time is over", over)]
    return svg(
        title,
        "seconds from the storm's beginning",
        [
            Panel("answered after, s", answers, moments),
            Panel("first record after, s", records, moments),
            Panel("the storm's topics", topics, moments),
        ],
    )


def created_so_far(run: Run) -> list[Point]:
    """(seconds, topics of the storm that are there), by the times of Kafka's answers."""
    answers = sorted(
        (each.answered, each.created)
        for each in run.requests
        if each.answered is not None and each.created
    )
    return list(
        accumulate(answers, lambda so_far, each: (each[0], so_far[1] + each[1]), initial=(0.0, 0.0))
    )


def _tasks(asked: argparse.Namespace) -> Iterator[Task]:
    load = Load(seconds=asked.seconds or Load().seconds, requests=asked.requests)
    for count in range(asked.rounds):
        for arm in asked.arms:
            yield task(STORM, arm, count, partial(happen, arm, load))


BENCHMARK: Final = Benchmark(
    "mutations",
    "Others' waits during a storm of new topics.",
    parts=(STORM,),
    arms=tuple(ARMS),
    tasks=_tasks,
    section=section,
    options=lambda parser: parser.add_argument(
        "--requests", type=int, default=Load().requests, help="of 50 topics each"
    ),
    compared=("seconds", "requests"),
)

if __name__ == "__main__":
    sys.exit(program.main(BENCHMARK))
