"""Two brokers with a partition of each of two owners, read by a watch of storage budgets."""

import asyncio
from collections.abc import Mapping, Sequence

from sidecar.budgets.watch import BudgetWatch
from sidecar.control.board import Board
from sidecar.control.volume_contents import ContentsResult, VolumeContents
from sidecar.throttle.budgets import Budget, BudgetRules, Owners
from sidecar.throttle.growth import Replicas
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import BudgetThrottle
from sidecar.throttle.slope import SlopeRules
from sidecar.volumes import Failure, Reading
from tests.sidecar.growth.build import FACTORS, MB, contents_of
from tests.sidecar.throttle.build import TIMED_OUT, FakeClock, reading, whole

BUDGETS = (
    Budget("etl", 200 * MB, 190 * MB, prefixes=frozenset({"etl."})),
    Budget("web", 200 * MB, 200 * MB, topics=frozenset({"clicks"})),
)


class Scene:
    """Brokers 1 and 2 with one partition of each owner, and what was asked of them.

    A silent broker fails at once, and a hung one does not answer. An offline one answers without
    its only log dir that has topics. ``read_s`` is how long a broker takes to answer a request for
    all topics.
    """

    def __init__(self, retained: Mapping[str, object] | None = None) -> None:
        self.clock = FakeClock()
        self.board = Board(FACTORS, self.clock)
        for capability, part in (retained or {}).items():
            self.board.retain(capability, part)
        self.sizes: dict[int, dict[str, int]] = {1: {"etl.a": 10 * MB}, 2: {"clicks": 10 * MB}}
        self.silent: set[int] = set()
        self.hung: set[int] = set()
        self.offline: set[int] = set()
        self.is_polled = True
        self.read_s = 0.0
        self.asked: list[tuple[int, tuple[str, ...]]] = []
        self.contents = VolumeContents(self._whole, self.clock)
        rules = BudgetRules(SlopeRules(MinAvailableBytes(1)), 300.0, is_enforced=True)
        self.is_observer = True
        self.observed: Mapping[str, BudgetThrottle] | None = None
        self.watch = BudgetWatch(
            self.board,
            self.contents,
            self._some,
            rules,
            1.0,
            lambda: self.is_observer,
            self._follow,
            Owners(BUDGETS),
        )

    async def _follow(self, _now: float) -> Mapping[str, BudgetThrottle] | None:
        return self.observed

    async def _whole(self, broker_id: int) -> ContentsResult:
        self.asked.append((broker_id, ()))
        if broker_id in self.hung:
            await asyncio.Event().wait()
        self.clock.now += self.read_s
        return TIMED_OUT if broker_id in self.silent else self._log_dir(broker_id)

    def _log_dir(self, broker_id: int) -> ContentsResult:
        found = {"/d": contents_of(0, self.sizes[broker_id]), "/e": contents_of(0, {})}
        return {"/e": found["/e"]} if broker_id in self.offline else found

    async def _some(
        self, topics: Mapping[int, Mapping[str, Sequence[int]]]
    ) -> Mapping[int, Sequence[Replicas] | Failure]:
        return {broker_id: self._of(broker_id, some) for broker_id, some in topics.items()}

    def _of(
        self, broker_id: int, topics: Mapping[str, Sequence[int]]
    ) -> Sequence[Replicas] | Failure:
        assert all(topics.values()), "Kafka reports nothing without the partitions"
        self.asked.append((broker_id, tuple(topics)))
        if broker_id in self.silent:
            return TIMED_OUT
        if broker_id in self.offline:
            return [{}]
        sizes = self.sizes[broker_id]
        return [{}, {topic: [(0, sizes[topic], False)] for topic in topics}]

    async def at(self, now: float) -> None:
        """Look at a time, until what was asked for is there."""
        self.clock.now = now
        if self.is_polled:
            self.board.observe(whole(now, [self._polled(each, now) for each in (1, 2)]))
        task = asyncio.create_task(self.contents.run())
        for _ in range(3):
            await self.watch.look()
            await asyncio.sleep(0.01)
        task.cancel()

    def _polled(self, broker_id: int, now: float) -> Reading:
        free = dict.fromkeys(("/d", "/e"), 50 * MB)
        offline = ["/d"] if broker_id in self.offline else []
        online = {key: each for key, each in free.items() if key not in offline}
        return reading(broker_id, now, online, total=100 * MB, offline=offline)

    def throttled(self) -> dict[str, float]:
        """Owner -> its factor, as brokers get it."""
        budgets = self.board.snapshot.decision.budgets
        return {owner: each.factor for owner, each in budgets.items()}
