"""Which tenants count while they come and go, and how large a step is."""

from collections.abc import Iterable

import pytest

from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity
from sidecar.quotas.request_time.fair_shares import Tenant
from sidecar.quotas.request_time.plan_upkeep import Watch, limited
from sidecar.quotas.request_time.quota_plan import Change, TenantKind, Terms, named_plan

KEY = "request_percentage"
STABLE_MS = 300_000


def names(watch: Watch, there: Iterable[str], now_ms: int) -> list[str]:
    return [tenant.name for tenant in watch.count(map(Tenant, there), now_ms)]


def test_who_is_there_at_first_counts_at_once() -> None:
    """No quota exists yet that could change hands."""
    watch = Watch(STABLE_MS, 0.1)
    assert ["ann", "bob"] == names(watch, ["ann", "bob"], 0)
    assert 0 == watch.unstable


def test_who_comes_first_counts_at_once() -> None:
    """Nobody counted, or all had been gone for long: nobody's share changes."""
    watch = Watch(STABLE_MS, 0.1)
    assert [] == names(watch, [], 0)
    assert ["ann"] == names(watch, ["ann"], 1)
    names(watch, [], 2)
    assert [] == names(watch, [], 2 + STABLE_MS)
    assert ["bob"] == names(watch, ["bob"], 3 + STABLE_MS)
    assert 0 == watch.unstable


def test_who_comes_counts_after_the_stabilization_time() -> None:
    """A tenant does not count a millisecond before, and counts from then on."""
    watch = Watch(STABLE_MS, 0.1)
    names(watch, ["ann"], 0)
    assert ["ann"] == names(watch, ["ann", "bob"], 1000)
    assert 1 == watch.unstable
    assert ["ann"] == names(watch, ["ann", "bob"], 1000 + STABLE_MS - 1)
    assert ["ann", "bob"] == names(watch, ["ann", "bob"], 1000 + STABLE_MS)
    assert 0 == watch.unstable


def test_who_is_gone_counts_for_the_stabilization_time() -> None:
    """A tenant who is gone counts with its last terms."""
    watch = Watch(STABLE_MS, 0.1)
    bob = Tenant("bob", weight=3)
    watch.count([Tenant("ann"), bob], 0)
    assert bob in watch.count([Tenant("ann")], 1000)
    assert ["ann"] == names(watch, ["ann"], 1000 + STABLE_MS)


def test_who_only_restarts_changes_nothing() -> None:
    """The stabilization time begins anew each time a tenant goes or comes."""
    watch = Watch(STABLE_MS, 0.1)
    names(watch, ["ann", "bob"], 0)
    names(watch, ["ann"], 1000)
    names(watch, ["ann", "bob"], 2000)
    assert ["ann", "bob"] == names(watch, ["ann"], 1000 + STABLE_MS)
    names(watch, ["ann", "bob", "joe"], 400_000)
    names(watch, ["ann", "bob"], 500_000)
    assert ["ann", "bob"] == names(watch, ["ann", "bob", "joe"], 400_000 + STABLE_MS)


def test_a_larger_capacity_counts_after_the_stabilization_time() -> None:
    """While the smallest broker is restarted, nobody's share rises and falls again."""
    watch = Watch(100, 0.2)
    steps = [(0, 1100), (10, 1300), (50, 1100), (60, 1300), (159, 1300), (160, 1300), (170, 900)]
    expected = [1100, 1100, 1100, 1100, 1100, 1300, 900]
    assert expected == [watch.capacity(percent, now_ms) for now_ms, percent in steps]
    at_once = Watch(0, 0.2)
    assert [1, 2] == [at_once.capacity(percent, 0) for percent in (1, 2)]


def test_new_terms_count_at_once() -> None:
    """A weight that was changed is a decision, not a restart."""
    watch = Watch(STABLE_MS, 0.1)
    watch.count([Tenant("ann")], 0)
    assert [Tenant("ann", weight=2)] == watch.count([Tenant("ann", weight=2)], 1)


def test_time_that_stands_still_or_goes_back_moves_nobody() -> None:
    """Whoever waits continues to wait."""
    watch = Watch(STABLE_MS, 0.1)
    names(watch, ["ann"], 1000)
    for now_ms in (1000, 1000, 0):
        assert ["ann"] == names(watch, ["ann", "bob"], now_ms)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (64.0, 55.7, 57.6),
        (57.6, 55.7, 55.7),
        (64.0, 128.0, 70.4),
        (64.0, 70.4, 70.4),
        (0.3, 0.1, 0.2),
        (None, 55.7, 55.7),
        (64.0, None, None),
        (0.12, 0.01, 0.01),
    ],
)
def test_a_step_is_a_tenth_of_the_quota(
    before: float | None, after: float | None, expected: float | None
) -> None:
    """A step is at least 0.1, so that it ends; a first quota and a removal are one step."""
    change = limited(Change(Entity("ann"), KEY, before, after), 0.1)
    assert (before, expected) == (change.before, change.after)


def test_a_whole_step_is_made_as_it_is() -> None:
    """0.75 has more decimals than steps have."""
    change = limited(Change(Entity("ann"), KEY, 0.5, 0.75), 0.5)
    assert 0.75 == change.after


def test_steps_reach_the_plan() -> None:
    """The example: 64 becomes 57.6 and then 55.7, and nothing more follows."""
    watch = Watch(STABLE_MS, 0.1)
    target = {Entity(DEFAULT): {KEY: 55.7}}
    today = 64.0
    seen = []
    for _ in range(3):
        step = watch.step({Entity(DEFAULT): {KEY: today}}, target)
        seen.append([change.after for change in step])
        today = step[0].after or 0.0 if step else today
    assert [[57.6], [55.7], []] == seen


def gone(today: ClientQuotas) -> list[tuple[Entity, float | None]]:
    """What a watch that has set 200 % each for ann and bob changes once bob is gone."""
    watch = Watch(0, 1.0)
    terms = Terms(400)
    both = [Tenant("ann"), Tenant("bob")]
    watch.step({}, named_plan(terms, both).target(TenantKind.USERS))
    left = named_plan(terms, both[:1]).target(TenantKind.USERS)
    return [(change.entity, change.after) for change in watch.step(today, left)]


def test_who_is_gone_loses_the_quota() -> None:
    """Bob's quota is removed, and ann's is raised by it."""
    today = {Entity("ann"): {KEY: 200.0}, Entity("bob"): {KEY: 200.0}}
    assert [(Entity("ann"), 400.0), (Entity("bob"), None)] == gone(today)


def test_a_removal_that_failed_is_tried_again() -> None:
    """It is tried until bob has another quota or none, which is not ours to remove."""
    watch = Watch(0, 1.0)
    bob = Entity("bob")
    watch.step({}, {bob: {KEY: 400.0}})
    today = {bob: {KEY: 400.0}}
    removed = (Change(bob, KEY, 400.0, None),)
    assert [removed, removed] == [watch.step(today, {}) for _ in range(2)]
    assert () == watch.step({bob: {KEY: 300.0}}, {})
    assert () == watch.step(today, {})


def test_who_is_gone_loses_the_quota_that_a_failed_step_left() -> None:
    """Bob keeps 400 %, because two steps to a smaller quota failed before he left."""
    watch = Watch(0, 1.0)
    ann, bob = Entity("ann"), Entity("bob")
    today = {bob: {KEY: 400.0}}
    watch.step({}, {bob: {KEY: 400.0}})
    watch.step(today, {bob: {KEY: 200.0}})
    watch.step(today, {bob: {KEY: 100.0}, ann: {KEY: 100.0}})
    assert Change(bob, KEY, 400.0, None) in watch.step(today, {ann: {KEY: 100.0}})


@pytest.mark.parametrize("bob", [{KEY: 300.0}, {}, {"producer_byte_rate": 1e6}])
def test_what_someone_else_has_set_is_left(bob: dict[str, float]) -> None:
    """Bob's quota was changed, or is removed already."""
    today = {Entity("ann"): {KEY: 400.0}, Entity("bob"): bob}
    assert [] == gone(today)


def test_a_step_that_was_not_done_takes_nothing_back() -> None:
    """Bob has no quota: there is nothing to remove."""
    assert [(Entity("ann"), 400.0)] == gone({})


@pytest.mark.parametrize(("stable_ms", "largest"), [(-1, 0.1), (0, 0.0), (0, -1.0)])
def test_a_watch_that_makes_no_sense_is_refused(stable_ms: int, largest: float) -> None:
    """Time does not go back, and a step of nothing never ends."""
    with pytest.raises(ValueError, match=r"^a stabilization time .* needed$"):
        Watch(stable_ms, largest)
