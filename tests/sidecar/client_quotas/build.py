"""Sidecars that throttle by the client quotas of a cluster in memory; a test moves their clock."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random

from sidecar.client_quotas.plan import Ledger
from sidecar.client_quotas.platform import KafkaQuotas
from sidecar.client_quotas.retained import read_kept
from sidecar.client_quotas.service import QuotaThrottle
from sidecar.control.board import Board
from sidecar.kafka.quota_messages import Alteration
from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import BudgetThrottle
from sidecar.throttle.peak import Peak
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.throttle.build import FakeClock

KEY = "producer_byte_rate"
FLOOR = 100_000
LATEST_S = 60.0
DOWN = Failure(FailureKind.CONNECT, "no broker answers")


class Killed(BaseException):
    """The sidecar is killed in the middle of a request."""


@dataclass
class FakeKafka:
    """Client quotas.

    Attributes:
        quotas: entity -> its quotas.
        kill_after: after so many more changes the sidecar is killed; None: never.
        is_down: whether no broker answers.
        changes: how many alterations were made.
        reads: how often quotas were read.
        late: what others do while the next alteration is under way; None: nothing.
    """

    quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    kill_after: int | None = None
    is_down: bool = False
    changes: int = 0
    reads: int = 0
    late: Callable[[], None] | None = None

    async def describe(self) -> ClientQuotas | Failure:
        self.reads += 1
        return DOWN if self.is_down else deepcopy(self.quotas)

    async def alter(self, alterations: Sequence[Alteration]) -> list[Failure | None] | Failure:
        if self.is_down:
            return DOWN
        late, self.late = self.late, None
        if late is not None:
            late()
        for parts, values in alterations:
            if self.kill_after is not None:
                self.kill_after -= 1
                if self.kill_after < 0:
                    self.kill_after = None
                    raise Killed
            self.changes += 1
            entity = Entity.of(parts)
            of = self.quotas.setdefault(entity, {})
            for key, value in values.items():
                of.pop(key, None)
                if value is not None:
                    of[key] = value
            if not of:
                del self.quotas[entity]
        return [None] * len(alterations)

    def produce(self, entity: Entity) -> float | None:
        return self.quotas.get(entity, {}).get(KEY)


@dataclass
class SlowKafka(FakeKafka):
    """A simulation of brokers some of which make changes late, and answer nothing until then.

    A request may be made late, be made at once without an answer, or both. Each is made whole, as
    Kafka's controllers (KRaft) do.

    Attributes:
        clock: moved by the test.
        random: decides what happens to each request.
        is_slow: whether requests that come now may be late.
        waiting: when to make which changes.
    """

    clock: FakeClock = field(kw_only=True)
    random: Random = field(kw_only=True)
    is_slow: bool = True
    waiting: list[tuple[float, list[Alteration]]] = field(default_factory=list)

    async def describe(self) -> ClientQuotas | Failure:
        await self._catch_up()
        return await super().describe()

    async def alter(self, alterations: Sequence[Alteration]) -> list[Failure | None] | Failure:
        await self._catch_up()
        fate = self.random.choice(["late", "lost", "both", "well"]) if self.is_slow else "well"
        if fate in {"late", "both"}:
            at = self.clock.now + self.random.uniform(0.0, LATEST_S)
            self.waiting.append((at, list(alterations)))
        answer = DOWN if fate == "late" else await super().alter(alterations)
        # The other sidecar's late change may come between any two requests.
        if self.waiting and self.random.random() < 0.2:
            self.waiting[0] = (self.clock.now, self.waiting[0][1])
        return answer if fate in {"both", "well"} else DOWN

    async def _catch_up(self) -> None:
        due = sorted((each for each in self.waiting if each[0] <= self.clock.now), key=_at)
        self.waiting = [each for each in self.waiting if each[0] > self.clock.now]
        for _, alterations in due:
            await super().alter(alterations)


def _at(change: tuple[float, list[Alteration]]) -> float:
    return change[0]


class Sidecar:
    """One sidecar with its state file; each start reads the file."""

    def __init__(
        self,
        kafka: FakeKafka,
        clock: FakeClock,
        *,
        lowers: bool = True,
        limit: Limit | None = None,
        floor: float = FLOOR,
    ) -> None:
        self.kafka, self.clock, self.lowers = kafka, clock, lowers
        self.limit, self.floor = limit, floor
        self.file: dict[str, object] = {}
        self.past_budget: dict[str, BudgetThrottle] = {}
        self.start()

    def start(self) -> None:
        """Start, with the state file; nothing else survives."""
        self.board = Board(VolumeLimit(Rules(self.limit, 300.0), 1.0), self.clock)
        for name, part in self.file.items():
            self.board.retain(name, part)
        quotas = KafkaQuotas(self.kafka.describe, self.kafka.alter)
        self.throttle = QuotaThrottle(
            self.board,
            quotas,
            self.floor,
            self._persist,
            self.lowers,
            lambda: True,
            Ledger(read_kept(self.board)),
        )

    def fills(self, rates: Mapping[int, float]) -> None:
        """Let brokers fill at these rates."""
        for broker_id, rate in rates.items():
            peak = self.throttle._early.fills._peaks.setdefault(broker_id, Peak())
            peak.add(rate, self.clock.now)

    async def _persist(self) -> None:
        self.file = deepcopy(dict(self.board.snapshot.memory.retained))

    async def settle(self, factor: float) -> None:
        """Decide and act once; a kill starts it again."""
        self.board.take_factor(factor, self.clock.now)
        past = {owner: replace(each, at=self.clock.now) for owner, each in self.past_budget.items()}
        self.board.update(lambda memory: replace(memory, budgets=past))
        try:
            await self.throttle.settle()
        except Killed:
            self.start()

    async def run(self, factor: float, seconds: float, *others: "Sidecar") -> None:
        """Act every 2 s, together with others."""
        until = self.clock.now + seconds
        while self.clock.now < until:
            for each in (self, *others):
                await each.settle(factor)
            self.clock.now += 2.0
