"""What a thousand storage budgets over 10,000 topics cost in an interval.

Three brokers have a replica of each of 40,000 partitions, and a tenth of the topics grow in each
minute. Once a minute all topics are read. In between, the topics of the owners that are near their
soft bytes are read again, here of a hundred owners. Folds run in a thread of their own, but take
turns with the loop. The times are of the processor.
"""

import os
import time
from collections.abc import Collection
from typing import Final

from benchmarks.harness.machine import quiet_cores
from benchmarks.rows import Row, median_row
from sidecar.throttle.budgets import (
    Budget,
    BudgetRules,
    Owners,
    Seen,
    Usage,
    next_usages,
    throttles,
)
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.slope import SlopeRules
from sidecar.throttle.topic_sizes import TopicSizes, broker_topics

_OWNERS: Final = 1000
_EACH: Final = 10
_NEAR: Final = 100
_BROKERS: Final = 3
_GB: Final = 1_000_000_000
_ROUNDS: Final = 20
_MOST_MS: Final = 50.0
_RULES: Final = BudgetRules(SlopeRules(MinAvailableBytes(1)), 300.0, is_enforced=True)


def run() -> list[Row]:
    """Measures rounds a minute apart, each with an interval after it."""
    os.sched_setaffinity(0, {quiet_cores(1)[0]})
    names = [f"owner-{number:04}." for number in range(_OWNERS)]
    owners = Owners(
        Budget(name, 200 * _GB, 160 * _GB, prefixes=frozenset({name})) for name in names
    )
    topics = [f"{name}topic-{each}" for name in names for each in range(_EACH)]
    near = topics[: _NEAR * _EACH]
    sizes = TopicSizes()
    usages: dict[str, Usage] = {}
    takes, folds, intervals = [], [], []
    for count in range(_ROUNDS):
        now = 60.0 * count
        full = [_reading(topics, count) for _ in range(_BROKERS)]
        began = time.thread_time()
        for broker_id, log_dir in enumerate(full):
            sizes.take(broker_id, broker_topics(now, [log_dir]))
        taken = time.thread_time()
        usages = next_usages(owners, usages, Seen(sizes.sizes, (), now), _RULES)
        throttles(usages.values())
        folded = time.thread_time()
        few = [_reading(near, count + 1) for _ in range(_BROKERS)]
        read = frozenset(names[:_NEAR])
        between = time.thread_time()
        for broker_id, log_dir in enumerate(few):
            sizes.take(broker_id, broker_topics(now + 1.0, [log_dir]), frozenset(near))
        seen = Seen(sizes.sizes, (), now + 1.0)
        usages = next_usages(owners, usages, seen, _RULES, read)
        throttles(usages.values())
        ended = time.thread_time()
        if count:
            takes.append(1000 * (taken - began) / _BROKERS)
            folds.append(1000 * (folded - taken))
            intervals.append(1000 * (ended - between))
    assert len(usages) == _OWNERS
    what = f"{_OWNERS:,} budgets over {len(topics):,} topics"
    return [
        median_row(f"taking the topics of a broker, once a minute, {what}", takes, "ms"),
        median_row(f"folding {what}, once a minute", folds, "ms", _MOST_MS),
        median_row(f"reading and folding {_NEAR} near owners of {what}", intervals, "ms", _MOST_MS),
    ]


def _reading(topics: Collection[str], count: int) -> dict[str, list[tuple[int, int, bool]]]:
    # A tenth of the topics has grown since the reading before.
    return {
        topic: [
            (index, _GB + (count * 1_000_000 if number % 10 == 0 else 0), False)
            for index in range(4)
        ]
        for number, topic in enumerate(topics)
    }
