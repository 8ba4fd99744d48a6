"""Quotas that fall before a limit, whatever happens meanwhile; a simulation of Kafka's windows."""

import random
from dataclasses import dataclass, field

import pytest

from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.rate import QuotaWindow, Rate
from sidecar.quotas.throttle_time import unbounded_ms
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.quota_steps import LONGEST_PAUSE_S
from sidecar.throttle.schedule import Timing, next_poll
from tests.sidecar.client_quotas.build import KEY, FakeKafka, Killed, Sidecar
from tests.sidecar.throttle.build import FakeClock, reading, whole
from tests.support.examples import mostly_slow

LIMIT = 3_000_000_000
TOTAL = 10**13
FLOOR = 64 << 10
RESTORED_S = 120
"""From the floor, after a foreign file made the fill rate of before look high."""


@dataclass
class Producer:
    """One connection, whose requests are no larger than the floor."""

    broker_id: int
    entity: Entity
    rate: float
    window: Rate = field(default_factory=lambda: Rate(QuotaWindow()))
    next_ms: float = 0.0
    longest_ms: int = 0

    def write(self, from_ms: int, quota: float | None) -> float:
        """Write for a second; the bytes that land."""
        landed = 0.0
        self.next_ms = max(self.next_ms, from_ms)
        while self.next_ms < from_ms + 1000:
            now_ms, nbytes = int(self.next_ms), min(FLOOR, self.rate / 8)
            self.window.record(nbytes, now_ms)
            landed += nbytes
            rate, window_ms = self.window.observe(now_ms)
            wait_ms = 0 if quota is None else unbounded_ms(rate, quota, window_ms)
            self.longest_ms = max(self.longest_ms, wait_ms)
            self.next_ms = max(self.next_ms + 1000 * nbytes / self.rate, now_ms + wait_ms)
        return landed


@dataclass
class Watch:
    """What a sidecar does, and until when it does not."""

    sidecar: Sidecar
    timing: Timing
    poll_at: float = 0.0
    frozen_until: float = 0.0
    blind_until: float = 0.0

    async def act(self, now: float, available: dict[int, float]) -> None:
        """Poll when that is due, and settle every 2 s."""
        if now < self.frozen_until:
            return
        board, throttle = self.sidecar.board, self.sidecar.throttle
        if now >= self.poll_at:
            if now >= self.blind_until:
                answers = [
                    reading(broker_id, now, {"/d": max(0, int(free))}, total=TOTAL)
                    for broker_id, free in available.items()
                ]
                board.observe(whole(now, answers))
                throttle.observe(board.snapshot.memory)
            snapshot, steering = board.snapshot, board.readers.steering
            memory, released = snapshot.memory, snapshot.released
            plan = next_poll(memory, self.timing, now, 0.0, released, steering=steering)
            self.poll_at = now + plan.delay_s
        if int(now) % 2 == 0:
            try:
                await throttle.settle()
            except Killed:
                self.sidecar.start()


class Scene:
    """One to three brokers, some producers, and one or two sidecars."""

    def __init__(self, seed: int) -> None:
        self.rnd = rnd = random.Random(seed)
        self.clock = FakeClock(1000.0)
        brokers = range(rnd.choice([1, 1, 2, 3]))
        self.producers = [
            Producer(rnd.choice(brokers), Entity(client_id=f"c-{number}"), rate)
            for number, rate in enumerate(rnd.choices([5e5, 1e6, 2e6, 3e6], k=rnd.randrange(2, 6)))
        ]
        self.before = {
            each.entity: {KEY: each.rate * rnd.choice([1.5, 3.0, 10.0])}
            for each in self.producers
            if rnd.random() < 0.3
        }
        self.kafka = FakeKafka({entity: dict(own) for entity, own in self.before.items()})
        self.available = {
            broker_id: LIMIT + self._rate(broker_id) * rnd.choice([60, 150, 200, 300, 400, 800])
            for broker_id in brokers
        }
        self.foreign: dict[int, float] = {}
        timing = Timing(rnd.choice([10.0, 60.0]), 1.0)
        self.watches = [Watch(self._sidecar(), timing) for _ in range(rnd.choice([1, 2, 2]))]

    def _sidecar(self) -> Sidecar:
        return Sidecar(self.kafka, self.clock, limit=MinAvailableBytes(LIMIT), floor=FLOOR)

    def _rate(self, broker_id: int) -> float:
        rates = [each.rate for each in self.producers if each.broker_id == broker_id]
        return max(1e6, sum(rates))

    async def run(self, seconds: int) -> None:
        """Let time pass."""
        for _ in range(seconds):
            rest = self.kafka.produce(Entity(client_id=DEFAULT))
            for each in self.producers:
                quota = self.kafka.produce(each.entity)
                landed = each.write(int(1000 * self.clock.now), rest if quota is None else quota)
                self.available[each.broker_id] -= landed
            self.clock.now += 1.0
            for watch in self.watches:
                await watch.act(self.clock.now, self.available)

    def happen(self) -> None:
        """One thing may happen to a sidecar, and one to a client or a volume."""
        rnd, now = self.rnd, self.clock.now
        watch, producer = rnd.choice(self.watches), rnd.choice(self.producers)
        broker_id = rnd.choice(list(self.available))
        match rnd.randrange(10):
            case 0:
                watch.frozen_until = now + rnd.choice([5, 30, 120])
            case 1:
                watch.blind_until = now + rnd.choice([30, 120, 400])
            case 2:
                watch.sidecar.start()
            case 3:
                self.kafka.kill_after = rnd.randrange(6)
            case 4:
                watch.sidecar.file = {}
                watch.sidecar.start()
        match rnd.randrange(8):
            case 0:
                producer.rate *= rnd.choice([0.3, 1.5, 3.0])
            case 1:
                self.available[broker_id] += rnd.choice([50, 300, 1000]) * self._rate(broker_id)
            case 2 if broker_id in self.foreign:
                self.available[broker_id] += self.foreign.pop(broker_id)
            case 3 if broker_id not in self.foreign:
                room = max(0.0, self.available[broker_id] - LIMIT)
                self.foreign[broker_id] = rnd.choice([0.5, 1.2]) * room
                self.available[broker_id] -= self.foreign[broker_id]

    async def end(self) -> None:
        """Nothing happens any more, and there is space."""
        self.kafka.kill_after = None
        for watch in self.watches:
            watch.frozen_until = watch.blind_until = 0.0
        for broker_id in self.available:
            self.available[broker_id] = TOTAL / 2
        await self.run(RESTORED_S)


@pytest.mark.parametrize("seed", mostly_slow(range(30), 1, 9))
async def test_nobody_waits_long_and_in_the_end_every_quota_is_as_it_was(seed: int) -> None:
    """Sidecars are killed, freeze or see nothing, and producers and volumes change."""
    scene = Scene(seed)
    for _ in range(scene.rnd.randrange(4, 12)):
        scene.happen()
        await scene.run(scene.rnd.choice([20, 60, 150, 300]))
    await scene.end()
    assert scene.before == scene.kafka.quotas
    assert LONGEST_PAUSE_S * 1000 >= max(each.longest_ms for each in scene.producers)
