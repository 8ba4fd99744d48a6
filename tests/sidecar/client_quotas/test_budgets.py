"""Users whose owner is past its storage budget: their quotas alone fall, and come back exactly."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.client_quotas import budget_users
from sidecar.client_quotas.plan import Found, Ledger, Wanted
from sidecar.client_quotas.rates import Rates
from sidecar.quotas.entities import DEFAULT, Entity, Name, resolve
from sidecar.quotas.kept_originals import Kept, without_records
from sidecar.throttle.memory import BudgetThrottle
from sidecar.throttle.quota_steps import STEP_S
from tests.sidecar.client_quotas.build import FLOOR, KEY, FakeKafka, Sidecar
from tests.sidecar.throttle.build import FakeClock

ETL: Name = "etl"
OF_ETL, OF_CLIENTS = Entity(ETL), Entity(ETL, DEFAULT)
REST = Entity(client_id=DEFAULT)
CLIENTS = [(user, client_id) for user in ("etl", "web") for client_id in ("a", "b")]
TICK_S = 2.0


@dataclass
class Cluster:
    """Produce quotas that a plan changes, without failures.

    Attributes:
        quotas: entity -> its produce quota.
    """

    quotas: dict[Entity, float]
    rates: Rates = field(default_factory=Rates)
    _kept: dict[Entity, Kept] = field(default_factory=dict, init=False)
    _ledger: Ledger = field(default_factory=Ledger, init=False)
    now: float = 1000.0

    def tick(self, factor: float, users: Mapping[Name, float]) -> None:
        """Make the changes that are due."""
        wanted = Wanted(factor, FLOOR, self.now, self.rates, users)
        planned = self._ledger.plan(Found(dict(self.quotas), dict(self._kept)), wanted)
        self._kept |= planned.keep
        self.quotas |= planned.values
        for entity, value in planned.values.items():
            self._ledger.note_set(entity, value, self.now)
        for entity, original in planned.restore.items():
            self._kept.pop(entity, None)
            self.quotas.pop(entity, None)
            if original is not None:
                self.quotas[entity] = original
            self._ledger.restored(entity, self.now)
        self.now += TICK_S

    def run(self, factor: float, users: Mapping[Name, float], seconds: float) -> None:
        for _ in range(int(seconds / TICK_S)):
            self.tick(factor, users)

    def limit(self, user: str, client_id: str) -> float:
        """What a client may write a second."""
        quotas = {entity: {KEY: value} for entity, value in self.quotas.items()}
        found = resolve(quotas, KEY, user, client_id)
        return float("inf") if found is None else found.limit

    def limits(self) -> dict[tuple[str, str], float]:
        return {each: self.limit(*each) for each in CLIENTS}


@pytest.mark.parametrize(
    ("before", "lowered"),
    [
        ({}, {OF_CLIENTS}),
        ({OF_ETL: 5e6, Entity("web"): 5e6}, {OF_ETL}),
        ({Entity(ETL, "a"): 5e6}, {Entity(ETL, "a"), OF_CLIENTS}),
        ({REST: 5e6, Entity(client_id="a"): 4e6}, {OF_CLIENTS, Entity(ETL, "a")}),
        ({Entity(DEFAULT): 5e6, REST: 3e6}, {OF_ETL}),
        ({Entity(DEFAULT, "a"): 5e6, Entity(client_id="a"): 3e6}, {Entity(ETL, "a"), OF_CLIENTS}),
    ],
)
def test_the_quotas_of_its_users_fall_alone(
    before: dict[Entity, float], lowered: set[Entity]
) -> None:
    """A user's own ones, or copies of those that limit its clients, each to the floor and back."""
    cluster = Cluster(dict(before))
    cluster.run(1.0, {}, 10.0)
    cluster.run(1.0, {ETL: 0.0}, 600.0)
    changed = {each for each, value in cluster.quotas.items() if before.get(each) != value}
    assert lowered == changed
    assert all(FLOOR <= cluster.quotas[each] < 1.1 * FLOOR for each in lowered)
    cluster.run(1.0, {}, 120.0)
    assert before == cluster.quotas


ENTITIES = [
    *(Entity(user, client) for user in (ETL, DEFAULT) for client in ("a", DEFAULT, None)),
    Entity(client_id="a"),
    REST,
    Entity("web"),
]
QUOTAS = st.dictionaries(st.sampled_from(ENTITIES), st.sampled_from([5e4, 4e6, 9e6, 3e7]))
FACTORS = st.sampled_from([0.0, 0.3, 1.0])
TIMES = st.lists(st.tuples(FACTORS, FACTORS, st.sampled_from([2.0, 8.0, 40.0, 200.0])), max_size=9)


@pytest.mark.slow
@given(QUOTAS, TIMES, st.sampled_from([None, 2e6]))
@example({}, [(1.0, 0.0, 2.0), (0.0, 0.0, 8.0)], None)
@example({Entity(DEFAULT, "a"): 5e4}, [(0.0, 0.0, 8.0)], None)
@example({Entity(client_id="a"): 4e6, Entity(DEFAULT, DEFAULT): 5e4}, [(0.0, 0.0, 2.0)], None)
def test_no_client_may_write_more_than_before_and_each_step_is_small(
    before: dict[Entity, float],
    times: list[tuple[float, float, float]],
    rate: float | None,
) -> None:
    """Whatever volumes and the budget want. The bound on pauses needs no larger steps, nor sooner.

    Nobody waits for the first quota of a rate that is known.
    """
    cluster = Cluster(dict(before), Rates(rate, rate, rate))
    cluster.run(1.0, {}, 10.0)
    originals, last = cluster.limits(), cluster.limits()
    fell_at = dict.fromkeys(CLIENTS, 0.0)
    for factor, of_user, seconds in [*times, (1.0, 1.0, 120.0)]:
        users = {ETL: of_user} if of_user < 1.0 else {}
        for _ in range(int(seconds / TICK_S)):
            cluster.tick(factor, users)
            now = cluster.limits()
            if factor == 1.0 and all(each == 1.0 for each, *_ in times):
                others = {each: originals[each] for each in CLIENTS if each[0] != ETL}
                assert others == {each: now[each] for each in others}
            for each in CLIENTS:
                assert originals[each] >= now[each]
                # A copy is up to one rung below what it is made of.
                assert 0.989 * min(originals[each], FLOOR) <= now[each]
                if now[each] < 0.989 * last[each]:
                    first = (2 * rate) if rate else 0.99 * 2**30
                    step = (11 * last[each] + 2 * FLOOR) / 13
                    assert now[each] >= min(step, first)
                    if rate is None:
                        assert cluster.now - fell_at[each] >= STEP_S
                    fell_at[each] = cluster.now
            last = now
    assert before == cluster.quotas


async def test_a_budget_acts_through_the_same_journal() -> None:
    """A kill after the original is kept; another sidecar at once; observe mode only counts."""
    clock, before = FakeClock(1000.0), {OF_ETL: {KEY: 1e7}, Entity("web"): {KEY: 1e7}}
    cluster = FakeKafka({entity: dict(own) for entity, own in before.items()})
    first, second = Sidecar(cluster, clock), Sidecar(cluster, clock)
    both = (first, second)
    await first.run(1.0, 10.0, second)
    cluster.kill_after = 1
    for each in both:
        each.past_budget = {"owner": BudgetThrottle(0.0, ("t",), clock.now, ("etl", "loader"))}
    await first.run(1.0, 100.0, second)
    assert 2e6 > (cluster.produce(OF_ETL) or 0.0) >= FLOOR
    assert cluster.produce(Entity("loader", DEFAULT))
    assert 1e7 == cluster.produce(Entity("web"))
    assert {"etl": 0.0, "loader": 0.0} == first.throttle.slowed
    for each in both:
        each.past_budget = {}
    await first.run(1.0, 120.0, second)
    assert before == cluster.quotas


@pytest.mark.slow
async def test_an_owner_whose_users_need_too_many_copies_is_not_slowed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither before nor while another owner is; it is as soon as its users have own quotas.

    Of 9 quotas of client-ids, each of the other owner's users gets 10 copies.
    """
    monkeypatch.setattr(budget_users, "MOST_QUOTAS", 20)
    clock = FakeClock(1000.0)
    before = {Entity(client_id=f"app-{number}"): {KEY: 1e7} for number in range(9)}
    cluster = FakeKafka({entity: dict(own) for entity, own in before.items()})
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(1.0, 10.0)
    past = BudgetThrottle(0.0, ("t",), clock.now, ("etl", "loader"))
    sidecar.past_budget = {"etl": past, "web": replace(past, principals=("web",))}
    await sidecar.run(1.0, 60.0)
    assert {"etl", "loader", None} == {each.user for each in without_records(cluster.quotas)}
    assert frozenset({"web"}) == sidecar.board.readers.unslowed
    sidecar.past_budget = dict(reversed(sidecar.past_budget.items()))
    await sidecar.run(1.0, 20.0)
    assert {"etl": 0.0, "loader": 0.0} == sidecar.throttle.slowed
    said = "its principals are not slowed, because they would need more than 2000 new quotas"
    assert ["web"] == [text.split()[3][:-1] for text in caplog.messages if said in text]
    cluster.quotas[Entity("web")] = {KEY: 1e7}
    await sidecar.run(1.0, 60.0)
    assert 1e7 > (cluster.produce(Entity("web")) or 0.0)
    assert frozenset() == sidecar.board.readers.unslowed
    sidecar.past_budget = {}
    await sidecar.run(1.0, 200.0)
    assert {**before, Entity("web"): {KEY: 1e7}} == cluster.quotas
