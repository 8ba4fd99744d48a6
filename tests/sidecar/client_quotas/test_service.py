"""Quotas that a sidecar lowers and restores, whatever happens to it and to them meanwhile."""

import logging
import random
from collections.abc import Sequence
from copy import deepcopy

import pytest

from sidecar.client_quotas.plan import MOST_FIGHTS
from sidecar.client_quotas.platform import KafkaQuotas
from sidecar.control.board import Board
from sidecar.kafka.quota_messages import Alteration
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.kept_originals import is_record
from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import BudgetThrottle
from sidecar.throttle.quota_steps import is_rung
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.client_quotas.build import (
    DOWN,
    FLOOR,
    KEY,
    LATEST_S,
    FakeKafka,
    Sidecar,
    SlowKafka,
)
from tests.sidecar.throttle.build import FakeClock, reading, remembering, whole
from tests.support.examples import mostly_slow

ALICE, BOB, SMALL = Entity("alice"), Entity("bob", DEFAULT), Entity(client_id="small")
REST = Entity(client_id=DEFAULT)
BEFORE = {
    ALICE: {KEY: 1e7, "request_percentage": 50.0},
    BOB: {KEY: 3e6},
    SMALL: {KEY: 5e4},
    Entity(ip="192.0.2.1"): {"connection_creation_rate": 2.0},
}
RELEASED_S = 120.0


def kafka(before: dict[Entity, dict[str, float]] | None = None) -> FakeKafka:
    return FakeKafka(deepcopy(BEFORE if before is None else before))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


async def test_quotas_fall_to_the_floor_and_come_back_exactly(clock: FakeClock) -> None:
    """A default reaches clients without a quota; a quota below the floor stays as it is."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(1.0, 10.0)
    assert BEFORE == cluster.quotas
    await sidecar.run(0.0, 600.0)
    lowered = {entity: cluster.produce(entity) for entity in (ALICE, BOB, REST)}
    assert all(value is not None and FLOOR <= value < 1.1 * FLOOR for value in lowered.values())
    assert 5e4 == cluster.produce(SMALL)
    assert 50.0 == cluster.quotas[ALICE]["request_percentage"]
    assert 3 == sidecar.board.readers.counts(clock.now).lowered
    await sidecar.run(1.0, RELEASED_S)
    assert BEFORE == cluster.quotas
    assert 0 == sidecar.board.readers.counts(clock.now).lowered
    assert {"client_quotas": {"kept": []}} == dict(sidecar.board.snapshot.memory.retained)


async def test_no_default_is_added_beside_a_default_user(clock: FakeClock) -> None:
    """Every user with a name has that quota already."""
    cluster = kafka({Entity(DEFAULT): {KEY: 1e7}})
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 30.0)
    lowered = [entity for entity in cluster.quotas if not is_record(entity)]
    assert [Entity(DEFAULT)] == lowered
    assert is_rung(cluster.produce(Entity(DEFAULT)))


async def test_a_quota_of_an_empty_name_stays_as_it_is(clock: FakeClock) -> None:
    """No client has it, and Kafka changes none. Migrations to KRaft left it (KAFKA-16411)."""
    nameless = {
        Entity(""): {KEY: 1e7},
        Entity(client_id=""): {KEY: 1e7},
        Entity("", "a"): {KEY: 1e7},
    }
    cluster = kafka({ALICE: {KEY: 1e7}, **nameless})
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 30.0)
    lowered = {entity for entity in cluster.quotas if not is_record(entity)} - nameless.keys()
    assert {ALICE, REST} == lowered == sidecar.throttle.lowered.keys()
    assert nameless == {entity: cluster.quotas[entity] for entity in nameless}


async def test_the_first_quota_of_clients_without_one_is_twice_what_they_write(
    clock: FakeClock,
) -> None:
    """The fill rate of the broker that fills fastest says how much that is."""
    cluster = kafka({})
    sidecar = Sidecar(cluster, clock)
    seen = []
    for _ in range(8):
        clock.now += 1.0
        free = {"/d": 10**12 - int(3e6 * clock.now)}
        seen.append(whole(clock.now, [reading(1, clock.now, free, total=10**12)]))
        memory = remembering(VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0))(*seen)
        sidecar.throttle.observe(memory)
    assert 3e6 == sidecar.throttle.rates.rate_of(REST)
    assert not sidecar.throttle.rates.by_log
    await sidecar.run(1.0, 8.0)
    await sidecar.settle(0.0)
    assert pytest.approx(6e6, rel=0.011) == cluster.produce(REST)


async def test_the_original_is_kept_before_a_quota_is_lowered(clock: FakeClock) -> None:
    """A kill after the first change leaves the record alone; the state file has it too."""
    cluster = kafka({ALICE: {KEY: 1e7}, REST: {KEY: 1e7}})
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(1.0, 10.0)
    cluster.kill_after = 4
    await sidecar.settle(0.0)
    assert 1e7 == cluster.produce(ALICE)
    assert 1e7 == cluster.produce(Entity("throttle-sidecar.before:alice"))
    assert sidecar.file
    await sidecar.run(1.0, RELEASED_S)
    assert {ALICE: {KEY: 1e7}, REST: {KEY: 1e7}} == cluster.quotas


@pytest.mark.parametrize("lost", ["state file", "records"])
async def test_either_place_is_enough_to_restore(clock: FakeClock, lost: str) -> None:
    """A start without the state file, or after somebody removed the records from the cluster."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 60.0)
    if lost == "state file":
        sidecar.file = {}
    else:
        await sidecar._persist()
        cluster.quotas = {key: each for key, each in cluster.quotas.items() if not is_record(key)}
    sidecar.start()
    await sidecar.run(1.0, RELEASED_S)
    assert BEFORE == cluster.quotas


async def test_with_another_enforcement_only_an_earlier_run_is_cleaned_up(clock: FakeClock) -> None:
    """The state file or the cluster tells of it. Afterwards, quotas are not even read."""
    for is_lost in (False, True):
        cluster = kafka()
        sidecar = Sidecar(cluster, clock)
        await sidecar.run(0.0, 60.0)
        await sidecar._persist()
        if is_lost:
            sidecar.file = {}
        sidecar.lowers = False
        sidecar.start()
        await sidecar.run(0.0, RELEASED_S)
        assert BEFORE == cluster.quotas
        reads = cluster.reads
        await sidecar.run(0.0, 90.0)
        assert reads == cluster.reads


@pytest.mark.slow
async def test_with_another_enforcement_nobody_is_told_that_quotas_can_not_be_read(
    clock: FakeClock,
) -> None:
    """It looks less and less often until it has read them once, and then restores what is left."""
    for down_s, reads in ((0.0, 1), (150.0, 4), (3600.0, 11)):
        cluster = kafka()
        sidecar = Sidecar(cluster, clock, lowers=False)
        cluster.is_down = True
        await sidecar.run(0.0, down_s)
        assert "" == sidecar.throttle.failure
        cluster.is_down = False
        await sidecar.run(0.0, 1200.0)
        assert reads == cluster.reads
        assert BEFORE == cluster.quotas


@pytest.mark.slow
async def test_with_another_enforcement_quotas_are_restored_after_a_long_outage(
    clock: FakeClock,
) -> None:
    """However long no quota can be read after a start without the state file."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 60.0)
    sidecar.file, sidecar.lowers = {}, False
    sidecar.start()
    cluster.is_down = True
    await sidecar.run(0.0, 3600.0)
    cluster.is_down = False
    await sidecar.run(0.0, 600.0 + RELEASED_S)
    assert BEFORE == cluster.quotas


@pytest.mark.slow
async def test_with_another_enforcement_one_undoes_little_of_what_another_sidecar_lowers(
    clock: FakeClock,
) -> None:
    """An upgrade replaces one after the other. When the last of them is gone, all is restored."""
    cluster = kafka()
    old = Sidecar(cluster, clock)
    await old.run(0.0, 300.0)
    new = Sidecar(cluster, clock, lowers=False)
    highest = []
    for _ in range(150):
        await old.run(0.0, 2.0, new)
        highest.append(cluster.produce(ALICE) or 0.0)
    assert 4 * FLOOR > max(highest)
    assert 1.5 * FLOOR > sum(highest) / len(highest)
    await new.run(0.0, 300.0 + RELEASED_S)
    assert BEFORE == cluster.quotas


async def test_a_new_sidecar_changes_nothing_before_it_has_seen_the_volumes(
    clock: FakeClock,
) -> None:
    """Its fallback would release what is full; after the validity the fallback counts."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 60.0)
    lowered = deepcopy(cluster.quotas)
    sidecar.start()
    for _ in range(140):
        await sidecar.throttle.settle()
        clock.now += 2.0
    assert lowered == cluster.quotas
    for _ in range(60):
        await sidecar.throttle.settle()
        clock.now += 2.0
    assert BEFORE == cluster.quotas


async def test_somebody_elses_change_is_the_new_original(clock: FakeClock) -> None:
    """It is lowered from there, and restored to that."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 60.0)
    cluster.quotas[ALICE][KEY] = 2e6
    del cluster.quotas[BOB]
    await sidecar.run(0.0, 60.0)
    lowered = cluster.produce(ALICE)
    assert lowered is not None
    assert lowered < 2e6
    await sidecar.run(1.0, RELEASED_S)
    after = {**BEFORE, ALICE: {**BEFORE[ALICE], KEY: 2e6}}
    del after[BOB]
    assert after == cluster.quotas


async def test_a_quota_that_is_set_back_each_time_is_left_alone(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said in the log, and the others are still lowered."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    for _ in range(MOST_FIGHTS + 3):
        await sidecar.run(0.0, 20.0)
        cluster.quotas[ALICE][KEY] = 1e7
    await sidecar.run(0.0, 20.0)
    assert 1e7 == cluster.produce(ALICE)
    assert [ALICE] == sidecar.throttle.ledger.left
    texts = [
        record.getMessage() for record in caplog.records if "left alone" in record.getMessage()
    ]
    assert [True] == [text.endswith("several times: user 'alice'") for text in texts]
    assert is_rung(cluster.produce(BOB))
    await sidecar.run(1.0, RELEASED_S)
    assert BEFORE == cluster.quotas


async def test_a_throttle_of_many_users_is_one_line(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It names three of six, with the default; so does the line of their release."""
    caplog.set_level(logging.INFO, "sidecar.client_quotas.service")
    cluster = FakeKafka({Entity(f"user-{number}"): {KEY: 1e7} for number in range(5)})
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 20.0)
    (lowering,) = caplog.messages
    begin = "lowering produce quotas on each broker: user 'user-0' from 10000000 B/s to "
    assert lowering.startswith(begin)
    assert lowering.endswith("; and 3 more")
    caplog.clear()
    await sidecar.run(1.0, RELEASED_S)
    (restored,) = caplog.messages
    assert (
        "restored produce quotas: user 'user-0'; user 'user-1'; user 'user-2'; and 3 more"
        == restored
    )


async def test_a_failure_is_logged_once(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """So is the end of it; meanwhile the quotas stay as they are, and then they go on."""
    caplog.set_level(logging.INFO)
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 20.0)
    cluster.is_down = True
    lowered = deepcopy(cluster.quotas)
    await sidecar.run(1.0, 3600.0)
    assert lowered == cluster.quotas
    cluster.is_down = False
    await sidecar.run(1.0, RELEASED_S)
    assert BEFORE == cluster.quotas
    texts = [
        text for record in caplog.records if "client quotas can" in (text := record.getMessage())
    ]
    assert [
        "client quotas can't be read or set: no broker answers",
        "client quotas can be read and set again",
    ] == [text for text in texts if text.startswith("client quotas can")]


async def test_a_change_that_comes_after_another_sidecar_restored_brings_its_original(
    clock: FakeClock,
) -> None:
    """Else nobody would know of it once the sidecar is killed and its state file lost."""
    cluster = kafka()
    late = Sidecar(cluster, clock)
    await late.run(0.0, 60.0)

    restored: list[float] = []

    def restore() -> None:
        cluster.quotas = deepcopy(BEFORE)
        restored.append(clock.now)

    cluster.late = restore
    while not restored:
        await late.run(0.0, 2.0)
    assert 1e7 > (cluster.produce(ALICE) or 0.0)
    await Sidecar(cluster, clock).run(1.0, RELEASED_S)
    assert BEFORE == cluster.quotas


@pytest.mark.slow
async def test_a_sidecar_that_sees_nothing_undoes_little_of_what_another_lowers(
    clock: FakeClock,
) -> None:
    """It tries once in a validity; and when the other one is gone, it restores everything."""
    cluster = kafka()
    sees, blind = Sidecar(cluster, clock), Sidecar(cluster, clock)
    highest = []
    for _ in range(600):
        await sees.settle(0.0)
        await blind.throttle.settle()
        clock.now += 2.0
        highest.append(cluster.produce(ALICE) or 0.0)
    assert 1.1 * FLOOR > min(highest[:150])
    assert 4 * FLOOR > max(highest[150:])
    assert 1.3 * FLOOR > sum(highest[150:]) / len(highest[150:])
    for _ in range(300):
        await blind.throttle.settle()
        clock.now += 2.0
    assert BEFORE == cluster.quotas


async def test_originals_that_were_set_without_an_answer_are_nobody_elses_change(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A platform that sets one after the other may keep the records: later, quotas fall as ever."""
    cluster = kafka()

    async def stops_at_records(alterations: Sequence[Alteration]) -> Failure:
        clients = [each for each in alterations if not is_record(Entity.of(each[0]))]
        await cluster.alter(clients)
        return DOWN

    sidecar = Sidecar(cluster, clock)
    stopping = KafkaQuotas(cluster.describe, stops_at_records)
    for _ in range(MOST_FIGHTS + 1):
        await sidecar.run(0.0, 60.0)
        assert 1e7 > (cluster.produce(ALICE) or 0.0)
        with monkeypatch.context() as patched:
            patched.setattr(sidecar.throttle, "platform", stopping)
            await sidecar.run(1.0, 60.0)
        assert 1e7 == cluster.produce(ALICE)
    await sidecar.run(1.0, 60.0)
    assert BEFORE == cluster.quotas
    assert [] == sidecar.throttle.ledger.left


@pytest.mark.parametrize("seed", mostly_slow(range(30), 3))
async def test_changes_that_brokers_make_up_to_a_minute_late_leave_no_quota(
    clock: FakeClock, seed: int
) -> None:
    """A frozen broker still makes a change that another address has long made, and later ones.

    Nobody remembers such a change: all sidecars lose their state files meanwhile.
    """
    cluster = SlowKafka(deepcopy(BEFORE), clock=clock, random=random.Random(seed))
    sidecars = [Sidecar(cluster, clock), Sidecar(cluster, clock)]
    await sidecars[0].run(0.0, 60.0, sidecars[1])
    # They see that there is room one after the other, so one lowers while the other restores.
    for factor in (1.0, 0.0, 1.0, 0.0):
        await sidecars[0].run(factor, 8.0)
        await sidecars[1].run(1.0, 8.0)
    await sidecars[0].run(1.0, 20.0, sidecars[1])
    cluster.is_slow = False
    for each in sidecars:
        each.file.clear()
        each.start()
    await sidecars[0].run(1.0, LATEST_S + RELEASED_S, sidecars[1])
    assert BEFORE == cluster.quotas


async def test_one_that_leaves_acting_to_others(clock: FakeClock) -> None:
    """Its page knows what they lowered. If they lower nothing for a minute, it acts itself."""
    cluster = kafka()
    acts, follows = Sidecar(cluster, clock), Sidecar(cluster, clock)
    await acts.run(0.0, 30.0)
    follows.board.take_factor(0.0, clock.now)
    await follows.throttle._look()
    assert acts.throttle.lowered == follows.throttle.lowered
    assert 3 == follows.board.readers.counts(clock.now).lowered
    await acts.run(1.0, RELEASED_S)
    for alone in (False, True):
        follows.board.take_factor(0.0, clock.now)
        await follows.throttle._look()
        assert alone == follows.throttle._is_alone
        clock.now += 60.0
    assert BEFORE == cluster.quotas


async def test_one_that_only_observes_does_not_act_for_others(clock: FakeClock) -> None:
    """Nothing is lowered in observe mode, however often it looks."""
    follows = Sidecar(kafka(), clock)
    limit = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0, is_enforced=False)
    follows.board = follows.throttle.board = Board(limit, clock)
    for _ in range(3):
        follows.board.observe(whole(clock.now, [reading(1, clock.now, {"/d": 5})]))
        await follows.throttle._look()
        clock.now += 60.0
    assert follows.throttle.would_lower
    assert not follows.throttle._is_alone


async def test_observe_mode_restores_nothing(clock: FakeClock) -> None:
    """What is lowered when the mode changes stays, so "quotas restore" comes after the change."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 60.0)
    lowered = deepcopy(cluster.quotas)
    sidecar.start()
    limit = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0, is_enforced=False)
    sidecar.board = sidecar.throttle.board = Board(limit, clock)
    for available in [5] * 10 + [50] * 100:
        sidecar.board.observe(whole(clock.now, [reading(1, clock.now, {"/d": available})]))
        await sidecar.throttle.settle()
        clock.now += 6.0
    assert lowered == cluster.quotas


@pytest.mark.parametrize("acts", [False, True])
async def test_a_failure_is_over_once_quotas_are_read_again_or_need_not_be(
    clock: FakeClock, acts: bool
) -> None:
    """Also of a sidecar that leaves acting to others, or that only observes."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    limit = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0, is_enforced=False)
    sidecar.board = sidecar.throttle.board = Board(limit, clock)
    throttle = sidecar.throttle
    failures = []
    for is_down, available in ((True, 5), (False, 5), (True, 5), (True, 50)):
        cluster.is_down = is_down
        sidecar.board.observe(whole(clock.now, [reading(1, clock.now, {"/d": available})]))
        await (throttle.settle() if acts else throttle._look())
        failures.append(bool(throttle.failure))
        clock.now += 60.0
    assert [True, False, True, acts] == failures


async def test_a_failure_to_set_quotas_lasts_until_one_is_set_or_none_is_lowered(
    clock: FakeClock,
) -> None:
    """On the fallback, quotas rise in only a quarter of the steps."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 60.0)
    throttle, platform = sidecar.throttle, sidecar.throttle.platform

    async def denied(_: object) -> Failure:
        return Failure(FailureKind.AUTHORIZATION, "denied")

    async def run(seconds: int) -> set[str]:
        failures = set()
        for _ in range(0, seconds, 2):
            clock.now += 2.0
            sidecar.board.update(lambda memory: memory)
            await throttle.settle()
            failures.add(throttle.failure)
        return failures

    throttle.platform = KafkaQuotas(cluster.describe, denied)
    await run(400)
    assert Source.FALLBACK is sidecar.board.snapshot.decision.source
    assert {"denied"} == await run(300)
    throttle.platform = platform
    while throttle.failure:
        await run(2)
    throttle.platform = KafkaQuotas(cluster.describe, denied)
    assert "denied" in await run(60)
    cluster.quotas = deepcopy(BEFORE)
    await run(10)
    assert "" == throttle.failure


@pytest.mark.parametrize("seed", mostly_slow(range(200), 3, 37))
async def test_in_the_end_every_quota_is_as_it_was(seed: int) -> None:
    """A simulation: two sidecars are killed at any change, lose state files or the brokers."""
    rnd = random.Random(seed)
    clock = FakeClock(1000.0)
    cluster = kafka()
    expected = deepcopy(BEFORE)
    sidecars = [Sidecar(cluster, clock) for _ in range(2)]
    of_budgets = random.Random(seed + 1_000_000)
    for _ in range(rnd.randrange(5, 25)):
        owner = BudgetThrottle(of_budgets.choice([0.0, 0.5]), (), 0.0, ("alice", "carol"))
        for each in sidecars:
            each.past_budget = {"owner": owner} if of_budgets.random() < 0.5 else {}
        factor = rnd.choice([0.0, 0.0, 0.3, 1.0])
        cluster.is_down = rnd.random() < 0.1
        if rnd.random() < 0.4:
            cluster.kill_after = rnd.randrange(12)
        if rnd.random() < 0.1:
            rnd.choice(sidecars).file = {}
        if rnd.random() < 0.1:
            rnd.choice(sidecars).start()
        if rnd.random() < 0.05:
            value = rnd.choice([2e6, 3e7])
            expected[ALICE][KEY] = cluster.quotas[ALICE][KEY] = value
        await sidecars[0].run(factor, rnd.choice([2.0, 8.0, 40.0]), *sidecars[1:])
    cluster.is_down, cluster.kill_after = False, None
    for each in sidecars:
        each.past_budget = {}
    await sidecars[0].run(1.0, RELEASED_S + 60.0, *sidecars[1:])
    assert expected == cluster.quotas


async def test_a_sidecar_that_still_throttles_lowers_a_restored_quota_within_10_s(
    clock: FakeClock,
) -> None:
    """So ``quotas restore --forget`` and the chart's hook look for 20 s."""
    cluster = kafka()
    sidecar = Sidecar(cluster, clock)
    await sidecar.run(0.0, 60.0)
    cluster.quotas = deepcopy(BEFORE)
    await sidecar.run(0.0, 10.0)
    assert any(is_record(entity) for entity in cluster.quotas)
    assert 1e7 > (cluster.produce(ALICE) or 0.0)
