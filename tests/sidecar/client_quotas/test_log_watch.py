"""Whose quotas fall while a volume is full, by what the sidecars of all brokers tell each other."""

import asyncio
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

import pytest

from sidecar.client_quotas import log_watch as module
from sidecar.client_quotas.early_fall import EarlyFall
from sidecar.client_quotas.log_watch import EVERY_S, RATES_FRESH_S, LogWatch
from sidecar.client_quotas.writers import BrokerWriters, LoggedRates, Writer
from sidecar.control.board import Board
from sidecar.errors import SettingsError
from sidecar.http import HttpError
from sidecar.peers.addresses import Address, Addresses
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.throttle.approach import Approach
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import BudgetThrottle, Contents
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.client_quotas.build import FLOOR, KEY, FakeKafka, Sidecar
from tests.sidecar.throttle.build import FakeClock, reading, whole

ALICE, BOB, REST = Entity("alice"), Entity("bob"), Entity(client_id=DEFAULT)
CAROL = Entity("carol", DEFAULT)
BEFORE = {ALICE: {KEY: 1e7}, BOB: {KEY: 1e7, "request_percentage": 50.0}}
RULES = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0, is_of_volumes=True)
RELEASED_S = 120.0


@dataclass
class Cluster:
    """Two brokers, of which broker 1 has the volume with "full".

    Attributes:
        wrote: broker id -> user and topic.
        by_id: broker id -> user and a topic's id.
        names: id -> name.
        silent: the brokers whose sidecar does not answer.
        gaps: the brokers whose log is not whole.
        ids_fail: whether no broker resolves ids.
        asked: the sidecars that were asked.
        asked_ids: the ids that a broker was asked for, each time.
        cluster_id: the cluster that all sidecars name.
        topics: the topics on the volume.
        others: the topics on the volume of broker 2.
        rates: what clients write to the brokers, by their logs.
    """

    kafka: FakeKafka = field(default_factory=lambda: FakeKafka(deepcopy(BEFORE)))
    clock: FakeClock = field(default_factory=lambda: FakeClock(1000.0))
    wrote: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    by_id: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    gaps: set[int] = field(default_factory=set)
    ids_fail: bool = False
    asked: list[str] = field(default_factory=list)
    asked_ids: list[list[str]] = field(default_factory=list)
    cluster_id: str = "A"
    topics: set[str] = field(default_factory=lambda: {"full"})
    rates: dict[int, float] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)

    def told(self, broker_id: int) -> BrokerWriters:
        writers = [Writer(user, topic, "") for user, topic in self.wrote.get(broker_id, [])]
        writers += [Writer(user, "", id_) for user, id_ in self.by_id.get(broker_id, [])]
        is_whole = broker_id not in self.gaps
        rate = self.rates.get(broker_id)
        rates = None if rate is None else LoggedRates(rate, rate, rate)
        return BrokerWriters(broker_id, self.cluster_id, is_whole, writers, rates)

    async def ask(self, address: Address) -> BrokerWriters:
        self.asked.append(address.url)
        broker_id = int(address.url[-1])
        if broker_id in self.silent:
            raise ConnectionRefusedError(111, "Connection refused")
        return self.told(broker_id)

    async def names_of(self, broker_id: int, ids: Sequence[str]) -> Mapping[str, str] | Failure:
        self.asked_ids.append(list(ids))
        if self.ids_fail:
            return Failure(FailureKind.CONNECT, f"broker {broker_id} does not answer")
        return {each: self.names[each] for each in ids if each in self.names}


class Scoping(Sidecar):
    """A sidecar with the scope of volumes, beside a broker."""

    def __init__(self, cluster: Cluster, broker_id: int = 1, *, enforces: bool = True) -> None:
        self.cluster, self.broker_id, self.enforces = cluster, broker_id, enforces
        super().__init__(cluster.kafka, cluster.clock)

    def start(self) -> None:
        super().start()
        clock = self.clock
        rules = replace(RULES, is_enforced=self.enforces)
        self.board = self.throttle.board = Board(rules, clock)

        async def resolve(url: str) -> list[str]:
            return [url]

        addresses = Addresses(["http://s1", "http://s2"], clock, resolve)
        self.logs = self.throttle.logs = LogWatch(
            self.board,
            lambda: self.cluster.told(self.broker_id),
            addresses,
            self.cluster.ask,
            self.cluster.names_of,
        )

    async def settle(self, factor: float, available: int | None = None) -> None:
        """Read the volumes, of which broker 1's is full at 0.0, and act once."""
        now = self.clock.now
        first = available or (50 if factor else 5)
        answers = [reading(1, now, {"/d": first}, total=200), reading(2, now, {"/d": 50})]
        self.board.observe(whole(now, answers))
        if available:
            self.throttle.observe(self.board.snapshot.memory)
        past = {owner: replace(each, at=now) for owner, each in self.past_budget.items()}
        topics = {1: self.cluster.topics, 2: self.cluster.others}
        contents = {
            (key, "/d"): Contents(frozenset(names), now) for key, names in topics.items() if names
        }
        self.board.update(lambda memory: replace(memory, contents=contents, budgets=past))
        await self.throttle.settle()

    @property
    def said(self) -> str:
        scoped = self.throttle.in_scope
        return "" if scoped is None else scoped.sentence


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(wrote={1: [("bob", "free")], 2: [("alice", "full"), ("carol", "full")]})


@pytest.mark.slow
async def test_only_writers_fall_and_all_come_back(cluster: Cluster) -> None:
    """Alice's own quota, and a copy for carol, who has none, also with a soft limit's factor."""
    sidecar = Scoping(cluster)
    await sidecar.run(1.0, 10.0)
    assert ([], "") == (cluster.asked, sidecar.said)
    await sidecar.run(0.0, 600.0)
    assert FLOOR <= (cluster.kafka.produce(ALICE) or 0.0) < 1.1 * FLOOR
    assert FLOOR <= (cluster.kafka.produce(CAROL) or 0.0) < 1.1 * FLOOR
    assert BEFORE[BOB] == cluster.kafka.quotas[BOB]
    assert cluster.kafka.produce(REST) is None
    assert sidecar.said.endswith(": alice, carol.")
    await sidecar.run(1.0, RELEASED_S)
    assert BEFORE == cluster.kafka.quotas


@pytest.mark.parametrize("silent", [set(), {2}], ids=["known", "not known"])
async def test_before_a_limit_only_quotas_of_known_writers_fall(
    cluster: Cluster, silent: set[int]
) -> None:
    """At the limit, all fall if it is not known who writes there."""
    cluster.rates, cluster.silent = {1: 3e6, 2: 3e6}, silent
    sidecar = Scoping(cluster)

    async def fill(left: int, seconds: int) -> None:
        """A byte a second until that many are left above the limit; then act without a change."""
        for above in range(left + seconds, left, -2):
            cluster.clock.now += 2.0
            await sidecar.settle(1.0, available=10 + above)

    await fill(60, 60)
    lowered = {
        each for each in (ALICE, BOB, CAROL, REST) if cluster.kafka.produce(each) is not None
    }
    assert lowered == ({ALICE, BOB} if silent else {ALICE, BOB, CAROL})
    assert (cluster.kafka.produce(ALICE) == 1e7) == bool(silent)
    assert 1e7 == cluster.kafka.produce(BOB)
    assert ("alice, carol" in sidecar.said) != bool(silent)
    await sidecar.run(0.0, 20.0)
    assert (cluster.kafka.produce(BOB) == 1e7) != bool(silent)


@pytest.mark.parametrize("has_scope", [True, False])
async def test_quotas_begin_near_what_the_logs_of_all_brokers_tell(
    cluster: Cluster, *, has_scope: bool
) -> None:
    """A file that somebody copies to broker 2 does not count; without its log, it does."""
    cluster.wrote = {2: [("carol", "full")]}
    cluster.rates = {1: 1e6, 2: 3e6}
    sidecar = Scoping(cluster)
    sidecar.logs.has_scope = has_scope
    sidecar.fills(dict.fromkeys((1, 2), 300e6))
    await sidecar.settle(1.0)
    assert 300e6 == sidecar.throttle.rates.rate_of(CAROL)
    await sidecar.settle(0.0)
    lowered = CAROL if has_scope else ALICE
    assert pytest.approx(6e6, rel=0.011) == cluster.kafka.produce(lowered)
    assert {1, 2} == set(sidecar.throttle.rates.by_log)
    cluster.silent = {2}
    cluster.clock.now += RATES_FRESH_S + 1.0
    await sidecar.settle(0.0)
    assert ((1,), (2,)) == (sidecar.throttle.rates.by_log, sidecar.throttle.rates.by_fill)


async def test_another_volume_that_will_be_full_has_its_own_writers(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their quotas fall too, and those of nobody else; when it has room, they are as before."""
    soon = Approach((2, "/d"), 1.0, 1.0, frozenset({(2, "/d")}), 1.0, frozenset({2}))
    near = [soon]

    def judge(early: EarlyFall, *_: object, **__: object) -> None:
        early.nearest, early.is_near = near[0], near[0].falls

    monkeypatch.setattr(EarlyFall, "judge", judge)
    cluster.wrote = {1: [("alice", "full"), ("carol", "else")], 2: [("bob", "soon")]}
    cluster.others = {"soon"}
    sidecar = Scoping(cluster)
    await sidecar.run(0.0, 60.0)
    lowered = {entity.user for entity in sidecar.throttle.lowered}
    assert {"alice", "bob"} == lowered
    near[0] = Approach()
    await sidecar.run(0.0, 60.0)
    assert {"alice"} == {entity.user for entity in sidecar.throttle.lowered}


async def test_peers_are_asked_every_few_seconds_and_only_during_a_throttle(
    cluster: Cluster,
) -> None:
    """Also in observe mode, whose page says whose quotas would fall."""
    sidecar = Scoping(cluster, enforces=False)
    await sidecar.run(1.0, 20.0)
    assert not cluster.asked
    await sidecar.run(0.0, 60.0)
    assert 60.0 / EVERY_S >= len(cluster.asked) / 2 >= 60.0 / (EVERY_S + 2.0)
    assert BEFORE == cluster.kafka.quotas
    assert (2, sidecar.said.endswith(": alice, carol.")) == (sidecar.throttle.would_lower, True)
    # It leaves acting to others, and so does not know.
    sidecar.throttle._acts = False
    assert not sidecar.said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why", "failure"),
    [
        (
            {"silent": {2}},
            "no sidecar tells who writes to broker 2",
            "The sidecar http://s2 does not tell who writes: Connection refused.",
        ),
        ({"gaps": {2}}, "the request log of broker 2 has not been read for a minute", ""),
        ({"gaps": {1}}, "the request log of broker 1 has not been read for a minute", ""),
        (
            {"cluster_id": "B"},
            "no sidecar tells who writes to broker 2",
            "The sidecar http://s1 does not tell who writes: it is of another cluster.",
        ),
    ],
)
async def test_a_broker_that_is_not_known_puts_all_in_scope_until_it_is(
    cluster: Cluster, change: dict[str, object], why: str, failure: str
) -> None:
    """Then all quotas fall; and those of users out of scope come back while the throttle lasts."""
    known = {name: getattr(cluster, name) for name in change}
    for name, value in change.items():
        setattr(cluster, name, value)
    sidecar = Scoping(cluster)
    await sidecar.run(1.0, 10.0)
    await sidecar.run(0.0, 60.0)
    assert sidecar.said.startswith(f"The throttle is for all clients, since {why}")
    assert failure == sidecar.logs.failure
    lowered = [each for each in (ALICE, BOB, REST) if cluster.kafka.produce(each) is not None]
    assert [ALICE, BOB, REST] == lowered
    assert all((cluster.kafka.produce(each) or 0.0) < 5e6 for each in (ALICE, BOB))
    for name, value in known.items():
        setattr(cluster, name, value)
    await sidecar.run(0.0, RELEASED_S)
    assert sidecar.said.endswith(": alice, carol.")
    assert (BEFORE[BOB], None) == (cluster.kafka.quotas[BOB], cluster.kafka.produce(REST))
    assert (cluster.kafka.produce(ALICE) or 0.0) < 5e6
    await sidecar.run(1.0, RELEASED_S)
    assert BEFORE == cluster.kafka.quotas


async def test_who_begins_to_write_comes_into_scope_and_who_ends_stays(cluster: Cluster) -> None:
    """Within seconds; until the release. Then it is forgotten."""
    sidecar = Scoping(cluster)
    await sidecar.run(0.0, 60.0)
    cluster.wrote = {1: [("bob", "full")]}
    await sidecar.run(0.0, EVERY_S + 10.0)
    assert (cluster.kafka.produce(BOB) or 0.0) < 1e7
    assert sidecar.said.endswith(": alice, bob, carol.")
    await sidecar.run(0.0, 60.0)
    assert sidecar.said.endswith(": alice, bob, carol.")
    await sidecar.run(1.0, RELEASED_S)
    await sidecar.run(0.0, 60.0)
    assert sidecar.said.endswith(": bob.")
    assert BEFORE[ALICE] == cluster.kafka.quotas[ALICE]


async def test_ids_are_resolved_once_and_count_while_they_can_not_be(cluster: Cluster) -> None:
    """A user whose topic has no name yet falls, and comes back when its topic is another one."""
    cluster.wrote, cluster.by_id = {}, {1: [("bob", "I1")], 2: [("alice", "I2")]}
    cluster.names, cluster.ids_fail = {"I1": "free", "I2": "full"}, True
    sidecar = Scoping(cluster)
    await sidecar.run(0.0, 30.0)
    assert sidecar.said.endswith(
        ": alice, bob. 2 of them count because ids of topics can't be resolved, which needs "
        "DESCRIBE on topics."
    )
    assert (cluster.kafka.produce(BOB) or 0.0) < 1e7
    cluster.ids_fail = False
    await sidecar.run(0.0, RELEASED_S)
    asked = len(cluster.asked_ids)
    await sidecar.run(0.0, 30.0)
    assert (asked, ["I1", "I2"]) == (len(cluster.asked_ids), cluster.asked_ids[-1])
    assert sidecar.said.endswith(": alice.")
    assert (BEFORE[BOB], True) == (
        cluster.kafka.quotas[BOB],
        (cluster.kafka.produce(ALICE) or 0.0) < 1e7,
    )


async def test_other_topics_are_asked_for_at_once(cluster: Cluster) -> None:
    """What was told before has only the writers to the topics of then; nothing else is kept."""
    sidecar = Scoping(cluster)
    await sidecar.run(0.0, EVERY_S + 4.0)
    kept = [each.writers.writers for each in sidecar.logs._told.values()]
    assert {"full"} == {each.topic for writers in kept for each in writers}
    cluster.topics.add("free")
    asked = len(cluster.asked)
    await sidecar.settle(0.0)
    assert asked + 2 == len(cluster.asked)
    assert sidecar.said.endswith(": alice, bob, carol.")


async def test_too_many_writers_of_a_broker_do_not_count(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no answer fills the memory; only those that may be in scope are many."""
    monkeypatch.setattr(module, "MOST_TOLD", 2)
    cluster.wrote[1] *= 3
    sidecar = Scoping(cluster)
    await sidecar.run(0.0, 10.0)
    assert sidecar.said.endswith(": alice, carol.")
    cluster.wrote[2].append(("dave", "full"))
    await sidecar.run(0.0, 30.0)
    assert "since no sidecar tells who writes to broker 2." in sidecar.said
    assert sidecar.logs.failure.endswith(": all sidecars have more than 2 users and topics.")


async def test_an_id_without_a_topic_is_asked_for_again(cluster: Cluster) -> None:
    """The asked broker may not know a new topic yet."""
    cluster.wrote, cluster.by_id, cluster.names = {}, {2: [("alice", "I2")]}, {"I2": ""}
    sidecar = Scoping(cluster)
    await sidecar.run(0.0, 10.0)
    assert sidecar.said.startswith("By request logs, nobody is known to write")
    cluster.names = {"I2": "full"}
    await sidecar.run(0.0, EVERY_S + 2.0)
    assert sidecar.said.endswith(": alice.")


@pytest.mark.slow
async def test_the_lower_factor_of_a_budget_and_the_scope_counts(cluster: Cluster) -> None:
    """Of a user with both; a user with a budget alone falls by that."""
    sidecar = Scoping(cluster)
    sidecar.past_budget = {
        "a": BudgetThrottle(0.5, ("t",), 0.0, ("alice",)),
        "b": BudgetThrottle(0.5, ("t",), 0.0, ("bob",)),
    }
    await sidecar.run(0.0, 600.0)
    assert (cluster.kafka.produce(ALICE) or 0.0) < 1.1 * FLOOR
    assert 4.9e6 <= (cluster.kafka.produce(BOB) or 0.0) <= 5.1e6
    sidecar.past_budget = {}
    await sidecar.run(1.0, RELEASED_S)
    assert BEFORE == cluster.kafka.quotas


@pytest.mark.parametrize(
    "error", [TimeoutError(), SettingsError(("a file",)), HttpError("it answers 404"), ValueError()]
)
async def test_no_answer_ends_the_throttle(cluster: Cluster, error: Exception) -> None:
    """Whatever is wrong with it: then all clients are in scope."""
    sidecar = Scoping(cluster)

    async def fails(_: Address) -> BrokerWriters:
        raise error

    sidecar.logs.ask = fails
    await sidecar.run(0.0, 60.0)
    assert "since no sidecar tells who writes to broker 2." in sidecar.said
    assert (cluster.kafka.produce(BOB) or 0.0) < 1e7


@pytest.mark.slow
async def test_two_sidecars_that_know_different_things_do_no_harm(cluster: Cluster) -> None:
    """One does not see broker 2, and wants all to fall: those in scope do, and nobody gives up."""
    first, second = Scoping(cluster), Scoping(cluster)

    async def fails(_: Address) -> BrokerWriters:
        raise TimeoutError

    second.logs.ask = fails
    await first.run(1.0, 10.0, second)
    await first.run(0.0, 600.0, second)
    assert second.said.startswith("The throttle is for all clients")
    assert FLOOR <= (cluster.kafka.produce(ALICE) or 0.0) < 1.1 * FLOOR
    assert FLOOR <= (cluster.kafka.produce(CAROL) or 0.0) < 1.1 * FLOOR
    assert FLOOR <= (cluster.kafka.produce(BOB) or 0.0) <= 1e7
    assert ([], []) == (first.throttle.ledger.left, second.throttle.ledger.left)
    await first.run(1.0, RELEASED_S, second)
    assert BEFORE == cluster.kafka.quotas


async def test_too_many_quotas_are_all_clients(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would need a record of its original, and a change every six seconds."""
    monkeypatch.setattr(module, "MOST_QUOTAS", 1)
    sidecar = Scoping(cluster)
    await sidecar.run(0.0, 30.0)
    assert "since more than 1 quotas are needed for 2 users." in sidecar.said
    assert (cluster.kafka.produce(BOB) or 0.0) < 1e7


async def test_a_cluster_of_one_broker_needs_no_peers(cluster: Cluster) -> None:
    """Its sidecar reads the only log."""
    cluster.wrote = {1: [("alice", "full")]}
    sidecar = Scoping(cluster)
    sidecar.logs.addresses = None
    now = sidecar.clock.now
    sidecar.board.observe(whole(now, [reading(1, now, {"/d": 5})]))
    contents = {(1, "/d"): Contents(frozenset({"full"}), now)}
    sidecar.board.update(lambda memory: replace(memory, contents=contents))
    await sidecar.throttle.settle()
    assert sidecar.said.endswith(": alice.")


@pytest.mark.looptime
async def test_a_sidecar_that_hangs_delays_nobody_for_long(cluster: Cluster) -> None:
    """What the others told counts."""
    sidecar = Scoping(cluster, broker_id=2)
    asked = cluster.ask

    async def hangs(address: Address) -> BrokerWriters:
        await asyncio.sleep(0.0 if address.url == "http://s1" else 3600.0)
        return await asked(address)

    sidecar.logs.ask = hangs
    loop = asyncio.get_running_loop()
    began = loop.time()
    await sidecar.settle(0.0)
    assert module.DEADLINE_S == pytest.approx(loop.time() - began)
    assert sidecar.said.endswith(": alice, carol.")
