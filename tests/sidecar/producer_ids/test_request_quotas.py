"""The request_percentage of throttled users: set, taken back, and never an operator's."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from sidecar.control.board import Board, PersistedState
from sidecar.kafka.quota_messages import Alteration
from sidecar.producer_ids.request_quotas import LATE_S, RequestQuotaEnforcer
from sidecar.producer_ids.retained import NAME, Retained
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity
from sidecar.quotas.producer_ids.id_quotas import InForce, Origin, ProducerIdQuota
from sidecar.quotas.producer_ids.throttle_signature import SIGNATURE
from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.throttle.build import FakeClock, throttle_user

VIRTUAL = pytest.mark.looptime(noop_cycles=1)
"""Nothing here comes from outside the loop, so time may move as soon as nothing is ready."""
BOB = Entity(user="bob")
KEY = "request_percentage"
OURS = 0.01 + SIGNATURE
DOWN = Failure(FailureKind.CONNECT, "no broker answers")
REFUSED = Failure(FailureKind.AUTHORIZATION, "it needs AlterConfigs")


@dataclass
class FakeKafka:
    """Client quotas, and what was done to them.

    Attributes:
        quotas: entity -> its quotas.
        failure: what both are answered with.
        refused: users whose quotas are not altered.
        takes_s: how long altering takes.
        log: what was asked.
    """

    quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    failure: Failure | None = None
    refused: set[str] = field(default_factory=set)
    takes_s: float = 0.0
    log: list[str] = field(default_factory=list)

    async def describe(self) -> ClientQuotas | Failure:
        self.log.append("describe")
        await asyncio.sleep(0)
        return self.failure or {entity: dict(values) for entity, values in self.quotas.items()}

    async def alter(self, alterations: Sequence[Alteration]) -> list[Failure | None] | Failure:
        self.log.append("alter")
        await asyncio.sleep(self.takes_s)
        return self.failure or [self._alter(*each) for each in alterations]

    def _alter(
        self, parts: Mapping[str, str | None], values: Mapping[str, float | None]
    ) -> Failure | None:
        if parts["user"] in self.refused:
            return REFUSED
        of = self.quotas.setdefault(Entity.of(parts), {})
        for key, value in values.items():
            if value is None:
                # As a broker: what is not there can be removed.
                of.pop(key, None)
            else:
                of[key] = value
        return None

    def percentage(self, user: str = "bob") -> float | None:
        return self.quotas.get(Entity(user=user), {}).get(KEY)


@dataclass
class Scene:
    clock: FakeClock
    board: Board
    kafka: FakeKafka
    user_throttles: RequestQuotaEnforcer
    persisted: list[dict[str, float]]
    asked: list[float | None]

    def throttle_user(self, user: str = "bob", for_s: float = 72.0) -> None:
        now = self.clock()
        self.board.update(
            lambda memory: replace(
                memory,
                user_throttles=throttle_user(memory.user_throttles, user, now + for_s, "x", now),
            )
        )

    async def throttled(self, *users: str) -> None:
        """Users, bob by default, are throttled for 72 s, and Kafka is settled."""
        for user in users or ("bob",):
            self.throttle_user(user)
        await self.user_throttles.settle()

    async def settled_later(self, seconds: float = LATE_S + 1) -> None:
        """After the default time no one is throttled, and nothing is set late any more."""
        self.clock.now += seconds
        self.board.update(lambda memory: memory)
        await self.user_throttles.settle()

    @property
    def percentage(self) -> float | None:
        return self.kafka.percentage()

    @property
    def noted(self) -> Mapping[str, float]:
        return self.user_throttles.retained.enforced_request_percentages


def scene(
    memory: Memory | None = None, kafka: FakeKafka | None = None, percentage: float | None = 0.01
) -> Scene:
    clock = FakeClock(1000.0)
    restored = PersistedState(memory or Memory(), 1.0, Source.FALLBACK, 0.0)
    board = Board(VolumeLimit(Rules(MinAvailableBytes(30), 120.0), 1.0), clock, restored=restored)
    retained = Retained(board)
    kafka = kafka or FakeKafka()
    persisted: list[dict[str, float]] = []

    async def persist() -> bool:
        persisted.append(dict(retained.enforced_request_percentages))
        kafka.log.append("persist")
        return True

    asked = [percentage]

    def quota_of(_: str) -> InForce:
        return InForce(ProducerIdQuota(50, asked[0]), Origin.FILE)

    user_throttles = RequestQuotaEnforcer(
        board, retained, quota_of, kafka.describe, kafka.alter, persist
    )
    return Scene(clock, board, kafka, user_throttles, persisted, asked)


async def test_it_is_set_while_the_user_is_throttled_and_taken_back_after() -> None:
    """It is noted on disk before Kafka has it; the user's other quotas stay."""
    kafka = FakeKafka({BOB: {"producer_byte_rate": 5.0}})
    one = scene(kafka=kafka)
    await one.user_throttles.settle()
    await one.throttled()
    assert pytest.approx(OURS, abs=1e-15) == one.percentage
    assert ["describe", "describe", "persist", "alter"] == kafka.log
    assert [{"bob": OURS}] == one.persisted
    await one.settled_later()
    assert {BOB: {"producer_byte_rate": 5.0}} == kafka.quotas
    assert {} == one.noted
    kafka.log.clear()
    await one.user_throttles.settle()
    assert [] == kafka.log, "nobody is throttled: Kafka is not asked"


async def test_what_an_operator_set_is_neither_overwritten_nor_taken_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Set before a throttle it stays, with one warning each; changed during one it stays after."""
    one = scene(kafka=FakeKafka({BOB: {KEY: 200.0}}))
    for _ in range(2):
        await one.throttled()
        await one.user_throttles.settle()
        await one.settled_later()
    assert 2 == sum(
        "gets no request_percentage for the throttle: an operator" in line
        for line in caplog.messages
    )
    assert 200.0 == one.percentage

    two = scene()
    await two.throttled()
    two.kafka.quotas[BOB][KEY] = 300.0
    await two.user_throttles.settle()
    await two.settled_later()
    assert 300.0 == two.percentage
    assert {} == two.noted


async def test_a_quota_of_the_users_client_ids_has_precedence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kafka ignores a quota of bob then, so it is not set, and removed if it was set before."""
    each_client = Entity("bob", DEFAULT)
    one = scene()
    await one.throttled()
    one.kafka.quotas[each_client] = {KEY: 200.0}
    for _ in range(2):
        await one.user_throttles.settle()
        assert one.percentage is None
    (message,) = caplog.messages
    assert "an operator set one of 200 for each of the user's client-ids" in message
    del one.kafka.quotas[each_client]
    await one.user_throttles.settle()
    assert OURS == one.percentage


async def test_a_client_id_with_its_own_quota_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """The other clients of bob are throttled."""
    one = scene(kafka=FakeKafka({Entity("bob", "etl"): {KEY: 200.0}, Entity("eve", "x"): {KEY: 1}}))
    for _ in range(2):
        await one.throttled()
    assert OURS == one.percentage
    (message,) = caplog.messages
    assert "user bob is throttled only in part" in message


async def test_what_a_killed_sidecar_set_is_taken_back() -> None:
    """It is known by the state file, and without one by the number itself."""
    left = {BOB: {KEY: OURS}}
    part = {"quotas": [], "enforced_request_percentages": {"bob": OURS}}
    noted = scene(Memory(retained={NAME: part}), FakeKafka({**left}))
    await noted.user_throttles.settle()
    assert noted.percentage is None

    quotas = {BOB: {KEY: OURS}, Entity(user="eve"): {KEY: 0.01}, Entity(user="dan"): {KEY: 200.0}}
    lost = scene(kafka=FakeKafka(quotas))
    await lost.user_throttles.settle()
    assert lost.percentage is None
    assert (0.01, 200.0) == (quotas[Entity(user="eve")][KEY], quotas[Entity(user="dan")][KEY])


async def test_what_kafka_did_not_take_is_tried_again() -> None:
    """A removal that Kafka refused is tried again, too."""
    one = scene()
    await one.user_throttles.settle()
    one.kafka.failure = DOWN
    await one.throttled()
    assert {} == one.kafka.quotas
    one.kafka.failure = None
    await one.user_throttles.settle()
    assert OURS == one.percentage
    one.kafka.failure = DOWN
    await one.settled_later()
    assert {"bob": OURS} == one.noted
    one.kafka.failure = None
    await one.user_throttles.settle()
    assert one.percentage is None


@pytest.mark.parametrize(
    "value", [1e5 + 0.00001, 9.2e18, 1e303, 1.7976931348623157e308, math.inf, math.nan, 0.0, -1.0]
)
async def test_no_number_of_an_operator_is_taken_for_ours(value: float) -> None:
    """Java's largest numbers stand for "unlimited"; none ends the daemon or is taken away."""
    one = scene(kafka=FakeKafka({BOB: {KEY: value}}))
    await one.user_throttles.settle()
    await one.throttled()
    await one.settled_later()
    assert str(value) == str(one.percentage)


@pytest.mark.parametrize("asked", [1e-5, 0.0000149, 0.123456, 1 / 3, 7.0, 1e5])
async def test_any_percentage_that_may_be_asked_for_is_known_again(asked: float) -> None:
    """Without a state file its last digits identify it."""
    one = scene(percentage=asked)
    await one.throttled()
    assert asked == pytest.approx(one.percentage, abs=0.6e-5)
    other = scene(kafka=one.kafka)
    await other.user_throttles.settle()
    assert one.percentage is None


async def test_certificates_that_are_being_replaced_end_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Reading and setting fail with one warning, and there is one line when all is well again."""
    caplog.set_level(logging.INFO)
    one = scene()
    await one.user_throttles.settle()
    one.kafka.failure = Failure(FailureKind.AUTHENTICATION, "ca.pem can't be used")
    await one.throttled()
    await one.user_throttles.settle()
    one.kafka.failure = None
    await one.user_throttles.settle()
    assert OURS == one.percentage
    lines = [line for line in caplog.messages if "be set in Kafka" in line]
    assert [
        "the request_percentage of throttled users can't be set in Kafka: ca.pem can't be used",
        "the request_percentage of throttled users can be set in Kafka again",
    ] == lines


async def test_one_user_who_is_refused_delays_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The refusal is reported once, not at every review, although each review begins well."""
    caplog.set_level(logging.INFO)
    one = scene(kafka=FakeKafka(refused={"bob"}))
    for user in ("alice", "bob", "carol"):
        one.throttle_user(user)
    for _ in range(3):
        await one.user_throttles.settle()
    assert (OURS, None, OURS) == tuple(map(one.kafka.percentage, ("alice", "bob", "carol")))
    assert {"alice", "carol"} == one.user_throttles.enforced
    assert 1 == sum("can't be set" in line for line in caplog.messages)
    assert 0 == sum("set in Kafka again" in line for line in caplog.messages)
    one.kafka.refused = {"alice"}
    await one.settled_later()
    assert {"alice": OURS} == one.noted
    assert (OURS, None, None) == tuple(map(one.kafka.percentage, ("alice", "bob", "carol")))


async def test_many_users_are_one_request() -> None:
    """A connection for each would take minutes."""
    one = scene()
    await one.throttled(*map(str, range(500)))
    assert 500 == len(one.kafka.quotas)
    await one.settled_later()
    assert ["describe", "persist", "alter", "describe", "alter"] == one.kafka.log


async def test_a_scan_for_what_was_left_that_fails_is_no_alarm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is INFO while no user needs a request_percentage, and WARNING once one is throttled."""
    caplog.set_level(logging.INFO)
    one = scene(kafka=FakeKafka(failure=REFUSED))
    await one.user_throttles.settle()
    await one.user_throttles.settle()
    assert [logging.INFO] == [record.levelno for record in caplog.records]
    await one.throttled()
    assert [logging.INFO, logging.WARNING] == [record.levelno for record in caplog.records]


async def test_two_sidecars_that_throttle_a_user_leave_nothing_behind() -> None:
    """The first one sets it, both would take it back; one may be killed in between."""
    kafka = FakeKafka()
    one, other = scene(kafka=kafka), scene(kafka=kafka)
    for each in (one, other):
        await each.throttled()
    assert 1 == kafka.log.count("alter")
    # The one that set it was killed and never came back.
    await other.settled_later()
    assert kafka.percentage() is None


async def test_who_still_throttles_sets_it_anew() -> None:
    """The other's throttle ended first."""
    kafka = FakeKafka()
    one, other = scene(kafka=kafka), scene(kafka=kafka)
    one.throttle_user(for_s=10.0)
    other.throttle_user(for_s=20.0)
    for each in (one, other):
        await each.user_throttles.settle()
    await one.settled_later(11.0)
    assert kafka.percentage() is None
    await other.user_throttles.settle()
    assert OURS == kafka.percentage()
    await other.settled_later(21.0)
    assert kafka.percentage() is None


async def test_a_quota_that_kafka_sets_late_is_removed() -> None:
    """The broker had been frozen; the user was released before Kafka had the quota."""
    one = scene()
    await one.user_throttles.settle()
    one.throttle_user(for_s=15.0)
    real, late = one.kafka.alter, list[Sequence[Alteration]]()

    async def takes_too_long(alterations: Sequence[Alteration]) -> Failure:
        late.append(alterations)
        return Failure(FailureKind.TIMEOUT, "no answer within 10 s")

    one.user_throttles.alter = takes_too_long
    await one.user_throttles.settle()
    one.user_throttles.alter = real
    await one.settled_later(16.0)
    assert (None, {"bob": OURS}, set()) == (one.percentage, one.noted, one.user_throttles.enforced)
    await real(late[0])
    await one.settled_later(60.0)
    assert (None, {}) == (one.percentage, one.noted)


async def test_a_broker_that_does_not_know_of_the_quota_yet_is_not_believed() -> None:
    """It answers with the quotas of an hour ago when the user is released."""
    one = scene()
    await one.user_throttles.settle()
    one.throttle_user(for_s=3600.0)
    for _ in range(719):
        await one.settled_later(5.0)
    assert OURS == one.kafka.percentage()
    quotas, one.kafka.quotas = one.kafka.quotas, {}
    await one.settled_later(6.0)
    one.kafka.quotas = quotas
    await one.settled_later()
    assert (None, {}) == (one.percentage, one.noted)


@pytest.mark.parametrize("noted", [{"bob": OURS}, {}])
async def test_a_quota_of_an_earlier_run_that_kafka_sets_late_is_removed(
    noted: dict[str, float],
) -> None:
    """The state file has a note of it, or it is found by its number."""
    part = {"quotas": [], "enforced_request_percentages": noted}
    one = scene(Memory(retained={NAME: part}))
    await one.user_throttles.settle()
    one.kafka.quotas[BOB] = {KEY: OURS}
    await one.settled_later()
    assert (None, {}) == (one.percentage, one.noted)


async def test_the_quota_of_another_sidecar_is_removed_twice_at_most() -> None:
    """Once when this sidecar releases the user, and once when nothing is set late any more."""
    kafka = FakeKafka()
    one, other = scene(kafka=kafka), scene(kafka=kafka)
    one.throttle_user(for_s=10.0)
    other.throttle_user(for_s=3600.0)
    removals = 0
    for _ in range(60):
        for each in (one, other):
            before = kafka.percentage()
            await each.settled_later(5.0)
            removals += before is not None and kafka.percentage() is None
    assert (2, OURS) == (removals, kafka.percentage())


async def test_a_stop_leaves_the_quota_that_another_sidecar_set_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A start removed it as that of an earlier run, but another sidecar throttles the user."""
    kafka = FakeKafka()
    other, one = scene(kafka=kafka), scene(kafka=kafka)
    await other.throttled()
    await one.user_throttles.settle()
    assert kafka.percentage() is None
    await other.user_throttles.settle()
    await one.user_throttles.leave(1.0)
    assert OURS == kafka.percentage()
    assert "is left in Kafka" not in caplog.text


async def test_a_stop_removes_the_quota_of_a_user_who_was_released_just_now() -> None:
    """A broker did not show the quota when the user was released."""
    one = scene()
    await one.throttled()
    quotas, one.kafka.quotas = one.kafka.quotas, {}
    await one.settled_later(73.0)
    one.kafka.quotas = quotas
    await one.user_throttles.leave(1.0)
    assert one.percentage is None


async def test_nothing_is_set_after_a_stop() -> None:
    """A comparison that had not begun when its task was cancelled comes after the removal."""
    one = scene()
    await one.throttled()
    one.board.close()
    await one.user_throttles.leave(1.0)
    await one.user_throttles.settle()
    assert one.percentage is None


async def test_sidecars_that_disagree_do_not_set_it_in_turns() -> None:
    """The stricter stays, and the laxer takes it back too when it is the last."""
    kafka = FakeKafka()
    strict, lax = scene(kafka=kafka), scene(kafka=kafka, percentage=5.0)
    for each in (lax, strict) * 3:
        await each.throttled()
    assert OURS == kafka.percentage()
    assert 2 == kafka.log.count("alter")
    await lax.settled_later()
    assert kafka.percentage() is None


async def test_a_percentage_that_is_changed_counts_during_the_throttle() -> None:
    """It becomes larger, smaller and none."""
    one = scene()
    one.throttle_user()
    for asked in (5.0, 0.5, 200.0):
        one.asked[0] = asked
        await one.user_throttles.settle()
        assert asked == pytest.approx(one.percentage, abs=1e-5)
    one.asked[0] = None
    await one.user_throttles.settle()
    assert one.percentage is None


async def test_a_stop_takes_back_what_it_can(caplog: pytest.LogCaptureFixture) -> None:
    """The user is still throttled, and an operator's quota is still not touched.

    The note stays, because Kafka may make a change late; nothing is reported as left.
    """
    kafka = FakeKafka({Entity(user="alice"): {KEY: 200.0}})
    one = scene(kafka=kafka)
    await one.throttled("alice", "bob")
    assert OURS == kafka.percentage()
    await one.user_throttles.leave(1.0)
    assert (200.0, None) == (kafka.percentage("alice"), kafka.percentage("bob"))
    assert {"bob": OURS} == one.noted
    kafka.log.clear()
    await one.user_throttles.leave(1.0)
    assert ["describe"] == kafka.log
    assert "is left in Kafka" not in caplog.text


@VIRTUAL
async def test_a_stop_does_not_wait_for_a_broker_that_hangs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is left is noted for the next start, and reported by name."""
    one = scene()
    await one.throttled()
    one.kafka.takes_s = 60.0
    before = asyncio.get_running_loop().time()
    await one.user_throttles.leave(1.0)
    assert 1.0 == pytest.approx(asyncio.get_running_loop().time() - before)
    assert {"bob": OURS} == one.noted
    assert "is left in Kafka; the next start of a sidecar removes it: bob" in caplog.text


@VIRTUAL
async def test_a_stop_that_is_cancelled_reports_what_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A busy daemon's own deadline may come before that of the enforcer is noticed."""
    one = scene()
    await one.throttled()
    one.kafka.takes_s = 60.0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await one.user_throttles.leave(1.0)
    assert "is left in Kafka; the next start of a sidecar removes it: bob" in caplog.text


@VIRTUAL
async def test_a_stop_reports_a_quota_whose_answer_does_not_come(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The sidecar stops while Kafka sets it, or the answer is lost and no broker answers then."""
    one, other = scene(), scene()
    real = one.kafka.alter

    async def hangs(alterations: Sequence[Alteration]) -> list[Failure | None]:
        await real(alterations)
        await asyncio.sleep(60.0)
        return [None]

    async def is_lost(alterations: Sequence[Alteration]) -> Failure:
        other.kafka.failure = DOWN
        return Failure(FailureKind.TIMEOUT, f"no answer for {len(alterations)} users")

    one.user_throttles.alter, other.user_throttles.alter = hangs, is_lost
    setting = asyncio.create_task(one.throttled())
    await asyncio.sleep(1.0)
    await one.user_throttles.leave(1.0)
    setting.cancel()
    assert OURS == one.percentage
    await other.throttled("eve")
    await other.user_throttles.leave(1.0)
    assert set() == other.user_throttles.enforced
    removes = "is left in Kafka; the next start of a sidecar removes it: "
    assert ["bob", "eve"] == [
        line.partition(removes)[2] for line in caplog.messages if removes in line
    ]


@VIRTUAL
async def test_a_stop_reports_no_quota_that_kafka_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No broker answers when the sidecar stops."""
    one = scene(kafka=FakeKafka(refused={"bob"}))
    await one.throttled()
    one.kafka.failure = DOWN
    await one.user_throttles.leave(1.0)
    assert "is left in Kafka" not in caplog.text


@VIRTUAL
async def test_a_stop_while_it_is_being_set_takes_it_back() -> None:
    """A request that is cancelled while it runs is waited for: it may have been done."""
    one = scene(kafka=FakeKafka(takes_s=0.5))
    one.throttle_user()
    task = asyncio.create_task(one.user_throttles.run())
    await asyncio.sleep(0.25)
    task.cancel()
    one.board.close()
    await one.user_throttles.leave(2.0)
    assert one.percentage is None
    assert 2 == one.kafka.log.count("alter")
    assert task.cancelled()


@VIRTUAL
async def test_a_disk_that_hangs_throttles_nobody_for_ever() -> None:
    """The number itself is recognized."""
    one = scene()

    async def hangs() -> bool:
        await asyncio.sleep(1e6)
        return True

    one.user_throttles.persist = hangs
    await one.throttled()
    assert OURS == one.percentage
    assert 10 > asyncio.get_running_loop().time()


@asynccontextmanager
async def running(one: Scene) -> AsyncIterator[asyncio.Task[None]]:
    """Runs in virtual time, which the board's clock follows; the task must not end by itself."""
    loop = asyncio.get_running_loop()
    began = one.clock.now - loop.time()
    task = asyncio.create_task(one.user_throttles.run())

    async def publish_expiries() -> None:
        while True:
            await asyncio.sleep(0.1)
            one.clock.now = began + loop.time()

    ticking = [
        asyncio.create_task(publish_expiries()),
        asyncio.create_task(one.board.publish_expiries()),
    ]
    try:
        yield task
        assert not task.done()
        one.board.close()
        await asyncio.wait([task], timeout=2)
        assert task.done()
        assert task.exception() is None
    finally:
        for each in (task, *ticking):
            each.cancel()


@pytest.mark.slow
@VIRTUAL
async def test_it_follows_throttles_by_itself() -> None:
    """It is set at once and removed at the end; while nobody is throttled Kafka is not asked."""
    one = scene()
    async with running(one):
        await asyncio.sleep(200)
        assert ["describe", "describe"] == one.kafka.log
        one.throttle_user(for_s=72.0)
        await asyncio.sleep(0.5)
        assert OURS == one.kafka.percentage()
        await asyncio.sleep(71.0)
        assert OURS == one.kafka.percentage()
        await asyncio.sleep(2.0)
        assert one.kafka.percentage() is None
        asked = len(one.kafka.log)
        await asyncio.sleep(200)
        assert asked + 1 == len(one.kafka.log), "is it there again?"
        assert {} == one.noted


@VIRTUAL
async def test_a_percentage_that_is_put_during_a_user_throttle_is_set_without_another_change() -> (
    None
):
    """When an operator removes a quota, the percentage is set, too."""
    one = scene(percentage=None, kafka=FakeKafka({BOB: {KEY: 200.0}}))
    async with running(one):
        one.throttle_user(for_s=3600.0)
        await asyncio.sleep(60)
        one.asked[0] = 0.01
        await asyncio.sleep(6)
        assert 200.0 == one.percentage
        del one.kafka.quotas[BOB]
        await asyncio.sleep(6)
        assert OURS == one.percentage


@pytest.mark.slow
@VIRTUAL
async def test_short_throttles_that_follow_each_other_do_not_wear_kafka() -> None:
    """Two a second for twenty seconds cause at most one request a second."""
    one = scene()
    async with running(one):
        before = one.board.snapshot.generation
        for _ in range(40):
            one.throttle_user(for_s=0.1)
            await asyncio.sleep(0.5)
        assert 80 == one.board.snapshot.generation - before
        assert 10 <= one.kafka.log.count("describe") <= 22
        await asyncio.sleep(6)
        assert one.percentage is None


@pytest.mark.slow
@VIRTUAL
async def test_an_unreachable_cluster_is_asked_every_now_and_then() -> None:
    """It is asked every 30 s for what was left, although decisions change every 2 s.

    It is asked at once when a user is throttled, and then every 5 s.
    """
    one = scene(kafka=FakeKafka(failure=DOWN))
    async with running(one):
        for number in range(155):
            one.board.set_override(Override(0.5, f"reason {number}", 0.0, 1e9))
            await asyncio.sleep(2)
        assert 10 <= len(one.kafka.log) <= 11
        one.throttle_user(for_s=3600.0)
        await asyncio.sleep(1)
        assert 11 <= len(one.kafka.log) <= 12
        one.kafka.log.clear()
        await asyncio.sleep(60)
        assert 10 <= len(one.kafka.log) <= 13
        one.kafka.failure = None
        await asyncio.sleep(6)
        assert OURS == one.percentage


async def test_in_observe_mode_nothing_is_written_to_kafka() -> None:
    """Neither at first, nor while a user would be throttled, nor at the end."""
    one = scene(kafka=FakeKafka({Entity(user="bob"): {KEY: OURS}}))
    observing = VolumeLimit(Rules(MinAvailableBytes(30), 120.0), 1.0, is_enforced=False)
    memory = Memory()
    restored = PersistedState(memory, 1.0, Source.FALLBACK, 0.0)
    one.board = Board(observing, one.clock, restored=restored)
    one.user_throttles.board = one.board
    one.user_throttles.retained = Retained(one.board)
    one.user_throttles.retained.set_enforced_request_percentages({"bob": OURS})
    await one.user_throttles.settle()
    await one.throttled("bob", "alice")
    await one.settled_later()
    await one.user_throttles.leave(1.0)
    assert [] == one.kafka.log
    assert OURS == one.percentage
