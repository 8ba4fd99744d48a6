"""The request_percentage of users who are held: set, taken back, and never an operator's."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from sidecar.board import Board
from sidecar.kafka.quota_messages import Alteration
from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.quotas.id_quotas import InForce, Origin, ProducerIdQuota
from sidecar.request_holds import SIGNATURE, RequestHolds
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.holds import hold
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.volumes import Failure, FailureKind
from tests.throttle.build import FakeClock

BOB = Entity(user="bob")
KEY = "request_percentage"
OURS = 0.01 + SIGNATURE
DOWN = Failure(FailureKind.CONNECT, "no broker answers")


@dataclass
class FakeKafka:
    """Client quotas, and what was done to them."""

    quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    failure: Failure | None = None
    log: list[str] = field(default_factory=list)

    async def describe(self) -> ClientQuotas | Failure:
        self.log.append("describe")
        return self.failure or self.quotas

    async def alter(self, alterations: Sequence[Alteration]) -> Failure | None:
        self.log.append("alter")
        if self.failure is not None:
            return self.failure
        for parts, values in alterations:
            of = self.quotas.setdefault(Entity.of(parts), {})
            for key, value in values.items():
                if value is None:
                    del of[key]
                else:
                    of[key] = value
        return None


@dataclass
class Scene:
    clock: FakeClock
    board: Board
    kafka: FakeKafka
    holds: RequestHolds
    persisted: list[dict[str, float]]

    def hold(self, user: str = "bob", for_s: float = 72.0) -> None:
        now = self.clock()
        self.board.update(
            lambda memory: replace(memory, holds=hold(memory.holds, user, now + for_s, "x", now))
        )

    def later(self, seconds: float) -> None:
        self.clock.now += seconds
        self.board.update(lambda memory: memory)

    @property
    def percentage(self) -> float | None:
        return self.kafka.quotas.get(BOB, {}).get(KEY)


def scene(memory: Memory | None = None, kafka: FakeKafka | None = None) -> Scene:
    clock = FakeClock(1000.0)
    board = Board(VolumeLimit(MinAvailableBytes(30), 120.0, 1.0), clock, memory=memory)
    kafka = kafka or FakeKafka()
    persisted: list[dict[str, float]] = []

    async def persist() -> bool:
        persisted.append(dict(board.snapshot.memory.request_holds))
        kafka.log.append("persist")
        return True

    quota = InForce(ProducerIdQuota(50, 0.01), Origin.FILE)
    holds = RequestHolds(board, lambda _: quota, kafka.describe, kafka.alter, persist)
    return Scene(clock, board, kafka, holds, persisted)


async def test_it_is_set_while_the_user_is_held_and_taken_back_after() -> None:
    """Noted on disk before Kafka has it; the user's other quotas stay."""
    kafka = FakeKafka({BOB: {"producer_byte_rate": 5.0}})
    one = scene(kafka=kafka)
    await one.holds.settle()
    one.hold()
    await one.holds.settle()
    assert pytest.approx(OURS, abs=1e-15) == one.percentage
    assert ["describe", "describe", "persist", "alter"] == kafka.log
    assert [{"bob": OURS}] == one.persisted
    one.later(73.0)
    await one.holds.settle()
    assert {BOB: {"producer_byte_rate": 5.0}} == kafka.quotas
    assert {} == one.board.snapshot.memory.request_holds
    kafka.log.clear()
    await one.holds.settle()
    assert [] == kafka.log, "nobody is held: Kafka is not asked"


async def test_what_an_operator_gave_is_neither_overwritten_nor_taken_away() -> None:
    """Given before the hold it stays; changed during it, it stays after."""
    one = scene(kafka=FakeKafka({BOB: {KEY: 200.0}}))
    one.hold()
    await one.holds.settle()
    one.later(73.0)
    await one.holds.settle()
    assert 200.0 == one.percentage

    two = scene()
    two.hold()
    await two.holds.settle()
    two.kafka.quotas[BOB][KEY] = 300.0
    await two.holds.settle()
    two.later(73.0)
    await two.holds.settle()
    assert 300.0 == two.percentage
    assert {} == two.board.snapshot.memory.request_holds


async def test_what_a_killed_sidecar_set_is_taken_back() -> None:
    """By the state file, and without one by the number itself."""
    left = {BOB: {KEY: OURS}}
    noted = scene(Memory(request_holds={"bob": OURS}), FakeKafka({**left}))
    await noted.holds.settle()
    assert noted.percentage is None

    quotas = {BOB: {KEY: OURS}, Entity(user="eve"): {KEY: 0.01}, Entity(user="dan"): {KEY: 200.0}}
    lost = scene(kafka=FakeKafka(quotas))
    await lost.holds.settle()
    assert lost.percentage is None
    assert (0.01, 200.0) == (quotas[Entity(user="eve")][KEY], quotas[Entity(user="dan")][KEY])


async def test_what_kafka_did_not_take_is_tried_again() -> None:
    """And what it did not give back, too."""
    one = scene()
    await one.holds.settle()
    one.hold()
    one.kafka.failure = DOWN
    await one.holds.settle()
    assert {} == one.kafka.quotas
    one.kafka.failure = None
    await one.holds.settle()
    assert OURS == one.percentage
    one.later(73.0)
    one.kafka.failure = DOWN
    await one.holds.settle()
    assert {"bob": OURS} == one.board.snapshot.memory.request_holds
    one.kafka.failure = None
    await one.holds.settle()
    assert one.percentage is None
