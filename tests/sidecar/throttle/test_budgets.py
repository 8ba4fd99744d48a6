"""Storage budgets: sizes of topics, owners, and the factor between soft and hard bytes."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from sidecar.throttle.budgets import (
    MOST_CHARACTERS,
    MOST_OWNERS,
    MOST_TOPICS,
    Budget,
    BudgetRules,
    Owners,
    Seen,
    Usage,
    next_usages,
    sentence,
    throttles,
)
from sidecar.throttle.fill import first_fill
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.slope import SlopeRules
from sidecar.throttle.topic_sizes import (
    BrokerTopics,
    Partitions,
    TopicSize,
    TopicSizes,
    broker_topics,
)

RULES = BudgetRules(SlopeRules(MinAvailableBytes(1)), 300.0, is_enforced=True)
MB = 1_000_000
ETL = Budget("etl", 200 * MB, 160 * MB, prefixes=frozenset({"etl."}))


def usage(
    used_bytes: int, at: float, before: Mapping[str, Usage] | None = None, budget: Budget = ETL
) -> dict[str, Usage]:
    """The usage of an owner with one topic, after it has grown to a size."""
    sizes = {"etl.a": TopicSize(used_bytes, 3 * used_bytes)}
    return next_usages(Owners([budget]), before or {}, Seen(sizes, (), at), RULES)


def test_whose_factor_applies() -> None:
    """Client quotas need the names of an owner's users."""
    named = replace(ETL, principals=("etl",))
    by_quotas, shown = replace(RULES, by_quotas=True), replace(RULES, is_enforced=False)
    assert [True, True] == [RULES.enforces(each) for each in (ETL, named)]
    assert [False, True] == [by_quotas.enforces(each) for each in (ETL, named)]
    assert not shown.enforces(named)


def test_a_partition_counts_once_or_with_each_replica() -> None:
    """A replica that is behind, two log dirs, and a log-dir move, whose copy does not count."""
    sizes = TopicSizes()
    one = [{"a": [(0, 100, False), (1, 40, False)]}, {"a": [(2, 5, False), (0, 77, True)]}]
    sizes.take(1, broker_topics(0.0, one))
    sizes.take(2, broker_topics(0.0, [{"a": [(0, 90, False)], "b": [(0, 7, False)]}]))
    assert {"a": TopicSize(145, 235), "b": TopicSize(7, 7)} == sizes.sizes


def test_a_reassignment_counts_no_partition_more_often_than_it_has_replicas() -> None:
    """Three replicas move from brokers 1, 2 and 3 to 4, 5 and 6, until the old ones are deleted."""
    sizes = TopicSizes()
    old = {"a": [(0, 60, False), (1, 5, False)]}
    arriving = {("a", 0): (4, 5, 6)}
    for broker_id in (1, 2, 3):
        sizes.take(broker_id, broker_topics(0.0, [old]))
    for broker_id in (4, 5, 6):
        sizes.take(broker_id, broker_topics(0.0, [{"a": [(0, 59, False)]}], arriving))
    assert {"a": TopicSize(65, 195)} == sizes.sizes
    for broker_id in (1, 2, 3):
        sizes.take(broker_id, BrokerTopics(9.0, {"a": {1: 5}}), {"a"})
    assert {"a": TopicSize(64, 192)} == sizes.sizes, "a reading of some topics knows no moves"
    for broker_id in (4, 5, 6):
        sizes.take(broker_id, broker_topics(60.0, [{"a": [(0, 59, False)]}]))
    assert {"a": TopicSize(64, 192)} == sizes.sizes


def test_what_a_reassignment_adds_counts_as_far_as_it_stays() -> None:
    """A second replica is added; and what was added counts once more when the move is over."""
    sizes = TopicSizes()
    sizes.take(1, broker_topics(0.0, [{"a": [(0, 60, False)]}]))
    two = [{"a": [(0, 20, False)]}]
    sizes.take(2, broker_topics(0.0, two, {("a", 0): (1, 2)}))
    assert 80 == sizes.sizes["a"].replicas
    sizes.take(2, broker_topics(60.0, two, {("a", 0): (2,)}))
    assert 60 == sizes.sizes["a"].replicas
    sizes.take(2, broker_topics(120.0, two))
    assert 80 == sizes.sizes["a"].replicas


def test_a_reading_of_some_topics_changes_only_these() -> None:
    """One of them is gone; and a broker that was never read whole stays unknown.

    They count for the validity, and the others no longer than the reading that has them.
    """
    sizes = TopicSizes()
    sizes.take(1, BrokerTopics(0.0, {"a": {0: 10}, "b": {0: 20}, "c": {0: 30}}))
    sizes.take(1, BrokerTopics(9.0, {"a": {0: 11}}), {"a", "b"})
    sizes.take(2, BrokerTopics(9.0, {"a": {0: 500}}), {"a"})
    once = {topic: each.once for topic, each in sizes.sizes.items()}
    assert {"a": 11, "b": 0, "c": 30} == once
    assert [2] == sizes.seen([1, 2], 300.0, 300.0)
    assert [1, 2] == sizes.seen([1, 2], 300.0, 300.1), "a part of its topics renews no reading"
    assert {"a": 11, "b": 0} == {topic: each.once for topic, each in sizes.sizes.items()}
    assert [1, 2] == sizes.seen([1, 2], 300.0, 309.1)
    assert {} == sizes.sizes


def test_a_reading_without_a_log_dir_renews_what_it_has() -> None:
    """What may be in the log dir counts for the validity; after that, the broker is not seen."""
    sizes = TopicSizes()
    sizes.take(1, BrokerTopics(0.0, {"a": {0: 10, 1: 20}, "b": {0: 30}}))
    for at, size_bytes in ((60.0, 11), (120.0, 12)):
        sizes.take(1, BrokerTopics(at, {"a": {0: size_bytes}, "c": {0: 1}}, is_partial=True))
    sizes.take(1, BrokerTopics(121.0, {"a": {0: 13}}, is_partial=True), {"a", "b"})
    assert [] == sizes.seen([1], 300.0, 300.0)
    once = {topic: each.once for topic, each in sizes.sizes.items()}
    assert {"a": 33, "b": 30, "c": 1} == once
    assert [1] == sizes.seen([1], 300.0, 300.1)
    assert {"a": 12, "c": 1} == {topic: each.once for topic, each in sizes.sizes.items()}
    sizes.take(1, BrokerTopics(360.0, {"a": {0: 14}}, is_partial=True))
    assert [1] == sizes.seen([1], 300.0, 421.0)
    assert {"a": 14} == {topic: each.once for topic, each in sizes.sizes.items()}


def test_a_broker_that_is_not_seen_is_not_empty() -> None:
    """Its size counts for the validity; after that the usage says what is missing."""
    sizes, owners = TopicSizes(), Owners([ETL])
    for broker_id in (1, 2):
        topics: dict[str, Partitions] = {f"etl.{broker_id}": {0: 90 * MB}}
        sizes.take(broker_id, BrokerTopics(0.0, topics))
    found: dict[str, Usage] = {}
    seen = []
    for at in (0.0, 300.0, 301.0):
        sizes.take(1, BrokerTopics(at, {"etl.1": {0: 90 * MB}}))
        unseen = tuple(sizes.seen([1, 2], 300.0, at))
        found = next_usages(owners, found, Seen(sizes.sizes, unseen, at), RULES)
        seen.append((found["etl"].used_bytes // MB, found["etl"].unseen, sentence(found["etl"])))
    assert [
        (180, (), "90 % of 200.0 MB"),
        (180, (), "90 % of 200.0 MB"),
        (90, (2,), "at least 45 % of 200.0 MB"),
    ] == seen
    assert found["etl"].bytes_per_second is None, "what is not seen has not shrunk"


@pytest.mark.parametrize(
    ("topic", "owner"),
    [
        ("orders", "web"),
        ("etl.", "etl"),
        ("etl.raw.1", "raw"),
        ("etl.rare", "etl"),
        ("etl.raw.sold", "web"),
        ("other", None),
        ("et", None),
    ],
)
def test_a_topic_has_one_owner(topic: str, owner: str | None) -> None:
    """Its name counts more than a prefix, and a longer prefix more than a shorter one."""
    budgets = [
        Budget("web", 9, 9, topics=frozenset({"orders", "etl.raw.sold"})),
        ETL,
        Budget("raw", 9, 9, prefixes=frozenset({"etl.raw."})),
    ]
    assert owner == Owners(budgets).owner(topic)


def test_between_soft_and_hard_the_factor_falls_step_by_step() -> None:
    """1 MB/s times the factor: it falls to the smallest step, is 0 at hard, and 1 below soft."""
    found = usage(150 * MB, 0.0)
    used, at = 150.0 * MB, 0.0
    factors = []
    while found["etl"].state != "paused" and at < 2000:
        at += 1.0
        used += MB * found["etl"].factor
        found = usage(int(used), at, found)
        factors.append(found["etl"].factor)
    assert sorted(factors, reverse=True) == factors
    assert 0.25 >= max(before - after for before, after in pairwise(factors)), "without a jump"
    assert (0.05, 0.0) == tuple(factors[-2:])
    assert 0.5 * MB > used - 200 * MB
    assert 0.05 == usage(int(199 * MB), at + 1, found)["etl"].factor, "it does not jump up either"
    assert 1.0 == usage(159 * MB, at + 1, found)["etl"].factor


def test_a_small_rest_of_a_budget_brakes_at_once() -> None:
    """15 MB are left at 6 MB/s: 20 s later at most half a megabyte is past the budget."""
    budget = Budget("etl", 200 * MB, 185 * MB, prefixes=frozenset({"etl."}))
    used, at = 180.0 * MB, 0.0
    found: dict[str, Usage] = {}
    while at < 60.0 and used < 200 * MB:
        used += 6 * MB * (found["etl"].factor if found else 1.0)
        at += 1.0
        found = usage(int(used), at, found, budget)
    assert 20.0 < at
    assert 0.5 * MB > used - 200 * MB


@pytest.mark.parametrize(
    ("budget", "used_mb", "factor"),
    [
        (Budget("etl", 200 * MB, 200 * MB, prefixes=frozenset({"etl."})), 199, 1.0),
        (Budget("etl", 200 * MB, 200 * MB, prefixes=frozenset({"etl."})), 200, 0.0),
        (Budget("etl", 200 * MB, 200 * MB, frozenset({"etl.a"}), counts_replicas=True), 67, 0.0),
        (Budget("etl", 200 * MB, 200 * MB, frozenset({"etl.a"}), counts_replicas=True), 66, 1.0),
        (Budget("etl", 200 * MB, 1, topics=frozenset({"gone"})), 999, 1.0),
    ],
)
def test_without_a_slope_the_hard_bytes_pause(budget: Budget, used_mb: int, factor: float) -> None:
    """Also where each replica counts; an owner without topics uses nothing."""
    found = usage(used_mb * MB, 0.0, budget=budget)["etl"]
    assert (factor, None) == (found.factor, found.slope)


@pytest.mark.parametrize(
    ("used_mb", "cluster_mb_s", "wait_s"),
    [
        (10, 0.0, 60.0),
        (10, 0.1, 60.0),
        (100, 6.0, 5.0),
        (159, 6.0, 1.0),
        (170, 6.0, 2.5),
        (200, 6.0, 2.0),
    ],
)
def test_it_is_read_sooner_the_less_is_left(
    used_mb: int, cluster_mb_s: float, wait_s: float
) -> None:
    """After half the time until the next line, if it was as fast as the whole cluster."""
    found = usage(used_mb * MB, 0.0)["etl"]
    assert wait_s == pytest.approx(found.next_read_s(cluster_mb_s * MB, 1.0))


def test_owners_that_were_not_read_keep_their_usage() -> None:
    """Their old size is no reading of now; changed bytes of their budget begin anew."""
    first = usage(100 * MB, 0.0)
    sizes = {"etl.a": TopicSize(150 * MB, 0)}
    later = next_usages(Owners([ETL]), first, Seen(sizes, (), 9.0), RULES, read=frozenset())
    assert first == later
    other = Budget("etl", 400 * MB, 160 * MB, prefixes=frozenset({"etl."}))
    changed = next_usages(Owners([other]), first, Seen(sizes, (), 9.0), RULES)
    assert 150 * MB == changed["etl"].used_bytes


def test_the_fullest_owners_are_throttled_if_there_are_too_many_topics() -> None:
    """Those left out are named."""
    found: dict[str, Usage] = {}
    for number, used in enumerate((250, 210, 199, 10)):
        topic = f"{number}" + "x" * (MOST_CHARACTERS // 2 - 1)
        budget = Budget(f"o{number}", 200, 160, topics=frozenset({topic}))
        seen = Seen({topic: TopicSize(used, 0)}, (), 5.0)
        found |= next_usages(Owners([budget]), {}, seen, RULES)
    throttled, left_out = throttles(found.values())
    assert (["o0", "o1"], ("o2",)) == (list(throttled), left_out)
    assert (0.0, 5.0) == (throttled["o0"].factor, throttled["o0"].at)


def test_an_owner_that_is_left_out_takes_no_place_from_others() -> None:
    """Its own topics are too many; those of emptier owners still fit."""
    found: dict[str, Usage] = {}
    for owner, used, characters in (("huge", 250, MOST_CHARACTERS + 1), ("web", 210, 9)):
        topic = owner + "x" * (characters - len(owner))
        budget = Budget(owner, 200, 160, topics=frozenset({topic}))
        seen = Seen({topic: TopicSize(used, 0)}, (), 5.0)
        found |= next_usages(Owners([budget]), {}, seen, RULES)
    throttled, left_out = throttles(found.values())
    assert (["web"], ("huge",)) == (list(throttled), left_out)


@pytest.mark.parametrize(("owners", "topics"), [(3, MOST_TOPICS // 2), (MOST_OWNERS + 1, 1)])
def test_brokers_get_no_more_than_their_callbacks_take(owners: int, topics: int) -> None:
    """The owner that uses the smallest part is left out."""
    names = tuple(f"{number:x}" for number in range(topics))
    budgets = (Budget(f"o{number}", 200, 160) for number in range(owners))
    usages = [
        Usage(budget, 10**6 - number, names, first_fill(0.0, 0), None, 0.0, (), 0.0)
        for number, budget in enumerate(budgets)
    ]
    throttled, left_out = throttles(usages)
    assert owners - 1 == len(throttled)
    assert (f"o{owners - 1}",) == left_out
