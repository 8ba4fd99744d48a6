"""Sidecars that follow observers, in virtual time: the protocol's own code, and no sockets.

``python -m tests.sidecar.peers.followers`` measures a cluster of 1,000 brokers and prints a table.
Each sidecar asks all brokers, while it is an observer, at each interval, and every second a broker
of which a volume nears its limit. What an answer takes from one to another is a chance of its own.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import looptime
import msgspec

from sidecar.peers.addresses import Addresses
from sidecar.peers.observations import ObservationLog, ObservationPage
from sidecar.peers.observers import Observer, Observers, Sight
from sidecar.volumes import Membership, Observation, Reading, Volume

INTERVAL_S: Final = 60.0
DEADLINE_S: Final = 10.0
TRANSIT_S: Final = (0.001, 0.05)
"""An answer's way, seconds: least and most."""
GIB: Final = 1 << 30


class Seen(NamedTuple):
    """What a sidecar knows of a broker: since when, when it was read, what its volume had then."""

    known_at: float
    read_at: float
    available: int


@dataclass(slots=True)
class Sidecar:
    """One sidecar.

    Attributes:
        number: its own, and its broker's.
        log: what it saw itself.
        seen: broker -> its last reading.
        alive: whether its process runs.
        whole_at: when the last whole observation that it knows was complete.
        polled_at: when it made one itself.
    """

    number: int
    log: ObservationLog
    seen: dict[int, Seen] = field(default_factory=dict)
    alive: bool = True
    whole_at: float = -1e9
    polled_at: float = -1e9
    observers: Observers | None = None
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://sidecar-{self.number}"


class World:
    """N brokers with two volumes each, a sidecar beside each, and k observers.

    Attributes:
        requests: broker -> how often it was asked.
        sent: bytes of all answers between sidecars.
        zones: the URL of a sidecar -> its zone, as all sidecars know it.
        near: brokers with a volume near its limit, which are asked every second.
        available: broker -> bytes that its first volume has.
    """

    def __init__(self, brokers: int, observers: int, seed: int = 1) -> None:
        self.requests: Counter[int] = Counter()
        self.sent = 0
        self.near: set[int] = set()
        self.zones: dict[str, str] = {}
        self.available = dict.fromkeys(range(brokers), 500 * GIB)
        self._chance = random.Random(seed)
        self._count = observers
        self.sidecars = [
            Sidecar(number, ObservationLog(f"s{number}", self.now)) for number in range(brokers)
        ]
        self._by_url = {each.url: each for each in self.sidecars}

    @staticmethod
    def now() -> float:
        """Virtual seconds."""
        return asyncio.get_running_loop().time()

    def start(self) -> None:
        """Start all sidecars."""
        urls = [each.url for each in self.sidecars]
        for each in self.sidecars:
            self._start(each, urls)

    def _start(self, sidecar: Sidecar, urls: Sequence[str]) -> None:
        def take(observation: Observation) -> None:
            self._take(sidecar, observation)

        def read_at(broker_id: int) -> float | None:
            seen = sidecar.seen.get(broker_id)
            return None if seen is None else seen.read_at

        where = Addresses(urls, self.now, _one_address)
        sight = Sight(sidecar.log, take, lambda: "A", lambda: sidecar.whole_at, 70.0, read_at)
        sidecar.observers = Observers(
            where, self._count, sight, zones=lambda: self.zones, ask=self._ask
        )
        sidecar.tasks = [
            asyncio.create_task(sidecar.observers.run()),
            asyncio.create_task(self._poll(sidecar)),
        ]

    def kill(self, number: int) -> None:
        """End one without a word."""
        sidecar = self.sidecars[number]
        sidecar.alive = False
        for task in sidecar.tasks:
            task.cancel()

    def revive(self, number: int) -> None:
        """Start it again; it knows nothing of before."""
        sidecar = self.sidecars[number] = Sidecar(number, ObservationLog(f"t{number}", self.now))
        self._by_url[sidecar.url] = sidecar
        self._start(sidecar, [each.url for each in self.sidecars])

    def blind(self, number: int) -> None:
        """It still answers other sidecars, and no broker answers it."""
        self.sidecars[number].tasks[1].cancel()

    async def _ask(self, observer: Observer) -> ObservationPage:
        other = self._by_url[observer.address.url]
        await asyncio.sleep(self._chance.uniform(*TRANSIT_S))
        if not other.alive:
            raise ConnectionRefusedError(111, "Connection refused")
        place = observer.after if observer.origin == other.log.start_id else None
        asked_at = self.now()
        if place is not None:
            try:
                async with asyncio.timeout(10.0):
                    await other.log.wait_for_more(place)
            except TimeoutError:
                pass
        if not other.alive:
            raise ConnectionResetError(104, "Connection reset by peer")
        body = other.log.page(place, asked_at)
        self.sent += len(body)
        await asyncio.sleep(self._chance.uniform(*TRANSIT_S))
        return msgspec.json.decode(body, type=ObservationPage)

    async def _poll(self, sidecar: Sidecar) -> None:
        observers = sidecar.observers
        assert observers is not None
        while True:
            if not observers.is_observer:
                await asyncio.sleep(0.25)
                continue
            now = self.now()
            whole = now - sidecar.polled_at >= INTERVAL_S
            asked = sorted(self.available) if whole else sorted(self.near)
            if whole:
                sidecar.polled_at = now
            if asked:
                observation = self._observe(asked, whole=whole)
                next_s = 1.0 if self.near else INTERVAL_S
                sidecar.log.plan(now + next_s + DEADLINE_S / 5)
                self._take(sidecar, observation)
                sidecar.log.add(observation)
            await asyncio.sleep(1.0)

    def _observe(self, asked: Sequence[int], *, whole: bool) -> Observation:
        now = self.now()
        self.requests.update(asked)
        answers = {
            broker: Reading(
                broker,
                now,
                (
                    Volume(broker, "/var/lib/kafka/data-0", 1000 * GIB, self.available[broker]),
                    Volume(broker, "/var/lib/kafka/data-1", 1000 * GIB, 500 * GIB),
                ),
            )
            for broker in asked
        }
        hosts = {broker: f"kafka-{broker}.kafka.svc:9092" for broker in self.available}
        members = Membership("A", hosts, {}) if whole else None
        return Observation(now, "poll", members, answers)

    def _take(self, sidecar: Sidecar, observation: Observation) -> None:
        now = self.now()
        if observation.membership is not None:
            sidecar.whole_at = observation.observed_at
        for broker_id, answer in observation.answers.items():
            if isinstance(answer, Reading):
                last = sidecar.seen.get(broker_id)
                if last is None or answer.read_at > last.read_at:
                    available = answer.volumes[0].available_bytes
                    sidecar.seen[broker_id] = Seen(now, answer.read_at, available)


async def _one_address(url: str) -> list[str]:
    return [url]


def percentile(values: Sequence[float], share: float) -> float:
    """Of sorted or unsorted values."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run came to.

    Attributes:
        per_broker: requests of each broker in an interval, on average.
        change_p99_s: until the first reading of a volume that fell was at 99 % of the sidecars,
            from when an observer had it.
        calm_bytes_per_s: what all sidecars send each other while nothing nears a limit, bytes/s.
        near_bytes_per_s: the same while one volume does.
        blind_s: how long the blindest sidecar had nothing new of the cluster after an observer was
            killed, beside a volume near its limit.
    """

    per_broker: float
    change_p99_s: float
    calm_bytes_per_s: float
    near_bytes_per_s: float
    blind_s: float


async def measure(brokers: int, observers: int) -> Figures:
    """Two calm intervals, one with a volume near its limit, and the death of an observer."""
    world = World(brokers, observers)
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    world.requests.clear()
    world.sent = 0
    await asyncio.sleep(2 * INTERVAL_S)
    per_broker = world.requests.total() / brokers / 2
    calm = world.sent / (2 * INTERVAL_S)
    world.near.add(7)
    await asyncio.sleep(INTERVAL_S + 5.0)
    world.sent = 0
    await asyncio.sleep(10.0)
    near = world.sent / 10.0
    world.available[7] = GIB
    first: float | None = None
    delays: dict[int, float] = {}
    while len(delays) < brokers:
        await asyncio.sleep(0.01)
        for each in world.sidecars:
            known = each.seen[7].available
            if each.number not in delays and known == GIB:
                first = world.now() if first is None else first
                delays[each.number] = world.now() - first
    killed = next(each.number for each in world.sidecars if _observes(each))
    world.kill(killed)
    began, blind = world.now(), 0.0
    while world.now() - began < 15.0:
        await asyncio.sleep(0.1)
        for each in world.sidecars:
            if each.alive:
                blind = max(blind, world.now() - each.seen[7].read_at)
    return Figures(per_broker, percentile(list(delays.values()), 0.99), calm, near, blind)


def _observes(sidecar: Sidecar) -> bool:
    return sidecar.alive and sidecar.observers is not None and sidecar.observers.is_observer


def measured(brokers: int, observers: int) -> Figures:
    """In a loop of its own, whose time is virtual."""
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        return runner.run(measure(brokers, observers))


def table(brokers: int, observers: int) -> str:
    """As docs/reliability.md has it."""
    found = measured(brokers, observers)
    calm, near = found.calm_bytes_per_s / 1e6, found.near_bytes_per_s / 1e6
    return "\n".join(
        [
            f"| {brokers:,} brokers, {observers} observers | |",
            "|---|---|",
            f"| requests of each broker in an interval | {found.per_broker:.1f} |",
            f"| a change is at 99 % of the sidecars after | {found.change_p99_s:.2f} s |",
            f"| sent by all while nothing nears a limit | {calm:.1f} MB/s |",
            f"| sent by all while a volume does | {near:.1f} MB/s |",
            f"| the blindest, after an observer was killed | {found.blind_s:.1f} s |",
        ]
    )


if __name__ == "__main__":
    print(table(1000, 3))
