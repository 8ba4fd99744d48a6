"""A simulation of hundreds of brokers in zones, with a sidecar beside each, in virtual time.

It is lighter than ``tests.simulation.world``. The parts that see and decide are the product's own:
``KafkaVolumeSource``, ``Poller``, ``Observers``, ``Zones``, the board with fold and decision, and
the schedule. Instead of connections there is a function call, which asks whether one zone may call
another now. So this shows no fault of HTTP, of TLS, of the Kafka client or of a whole daemon.

A cut has a direction: it keeps one zone from calling others, or others from calling that zone, or
both. Calls into a cut are refused, or get no answer until their deadline. Brokers that do not reach
the controllers are fenced after 9 s in the lists of the others, and keep their own last list.

``python -m tests.simulation.many --seeds 1-200`` runs a cut of one zone for 30 minutes in each
seed, while a volume fills on one of its sides. Each sidecar that can call the full broker, and does
not know it as fenced, has to have the factor 0.0 within two check intervals, until the volume is
emptied. No sidecar throttles otherwise; one that can't see the whole cluster may keep the throttle
for the validity. ``--load`` counts the requests that a full
broker gets during a throttle. With ``--sidecars`` only the first brokers have one.
"""

import argparse
import asyncio
import logging
import math
import random
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import msgspec

from sidecar.control import poller
from sidecar.control.board import Board
from sidecar.control.poller import Poller
from sidecar.kafka.client.backoff import Backoff
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.cluster_messages import DESCRIBE_CLUSTER_KEY
from sidecar.kafka.source import KafkaVolumeSource
from sidecar.peers import observers
from sidecar.peers.addresses import Address, Addresses
from sidecar.peers.observations import ObservationLog, ObservationPage
from sidecar.peers.observers import Observer, Observers, Sight
from sidecar.peers.zones import Zones
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing
from sidecar.volumes import Failure, FailureKind, Observation
from tests.simulation.loop import VirtualLoop

INTERVAL_S: Final = 60.0
MINIMUM_S: Final = 1.0
VALIDITY_S: Final = 300.0
GIB: Final = 1 << 30
TOTAL: Final = 1000 * GIB
LIMIT: Final = 50 * GIB
CALM: Final = 500 * GIB
SESSION_S: Final = 9.0
"""Kafka's broker.session.timeout.ms: when a broker without its controllers is fenced."""
WARM_UP_S: Final = 180.0
CUT_S: Final = 1800.0
FULL_S: Final = 180.0
"""How long the volume stays full; polls are frequent meanwhile, so each second takes long."""
RELEASE_S: Final = VALIDITY_S + INTERVAL_S
ANSWER_S: Final = (0.001, 0.03)
"""How long a call takes, seconds."""
LOOK_S: Final = 1.0
"""How often a sidecar looks whether it has to poll, and whom to follow; the product's 0.25 and
0.5 s take most of the time of a run."""
STAGGER_S: Final = 0.25
LONG_POLL_S: Final = 10.0
CALL_S: Final = 13.0
"""The deadline of a call to an observer."""
_PORT: Final = 9092


@dataclass(frozen=True, slots=True)
class Cut:
    """Which calls do not pass.

    Attributes:
        zone: the zone that is cut off.
        outgoing: whether the zone can't call others.
        incoming: whether others can't call the zone.
        is_refused: whether calls fail at once; otherwise they get no answer.
        fences: whether the controllers, which are in other zones, fence brokers that can't call
            them.
    """

    zone: int
    outgoing: bool
    incoming: bool
    is_refused: bool
    fences: bool

    def stops(self, caller: int, called: int) -> bool:
        """Whether a call from one zone to another does not pass."""
        if caller == called:
            return False
        return (self.outgoing and caller == self.zone) or (self.incoming and called == self.zone)


@dataclass(slots=True)
class Filling:
    """The volume of one broker that fills evenly, and is emptied later.

    Attributes:
        broker: the broker.
        begins_at: when it begins to fill.
        full_at: when it reaches the limit.
        emptied_at: when it is emptied.
    """

    broker: int
    begins_at: float
    full_at: float
    emptied_at: float

    def available(self, now: float) -> int:
        """The available bytes; producers are stopped a little below the limit."""
        if not self.begins_at <= now < self.emptied_at:
            return CALM
        share = (now - self.begins_at) / (self.full_at - self.begins_at)
        return max(LIMIT - GIB, int(CALM - share * (CALM - LIMIT)))


class World:
    """Brokers in zones, and their sidecars.

    Attributes:
        zones: how many zones there are; broker n is in zone n modulo that.
        brokers: the ids of the brokers.
        cut: the cut that lasts; None if there is none.
        cut_at: when it began.
        filling: the volume that fills; None if none does.
        late: a broker, two times, and by how many seconds it answers requests that are sent
            between them late; None if all answers come soon.
        asked: broker -> the requests that it got, by the key of the request.
    """

    def __init__(
        self,
        brokers: int,
        zones: int,
        chance: random.Random,
        *,
        sidecars: int | None = None,
        observers: int | None = 3,
        knows_own: bool = True,
    ) -> None:
        self.zones = zones
        self.chance = chance
        self.cut: Cut | None = None
        self.cut_at = 0.0
        self.filling: Filling | None = None
        self.late: tuple[int, float, float, float] | None = None
        self.asked: dict[int, Counter[int]] = {key: Counter() for key in range(brokers)}
        self.brokers = range(brokers)
        self.urls = [f"http://sidecar-{number}" for number in range(sidecars or brokers)]
        self.count = observers
        self._lists: dict[bool, Any] = {}
        self.sidecars = [
            Sidecar(self, number, knows_own=knows_own) for number in range(len(self.urls))
        ]

    @staticmethod
    def now() -> float:
        """Virtual seconds."""
        return asyncio.get_running_loop().time()

    def zone(self, broker: int) -> int:
        """The zone of a broker and its sidecar."""
        return broker % self.zones

    def passes(self, caller: int, called: int) -> bool:
        """Whether a call from beside one broker to another passes now."""
        return self.cut is None or not self.cut.stops(self.zone(caller), self.zone(called))

    def is_fenced(self, broker: int, listed_by: int) -> bool:
        """Whether a broker's list has another one as fenced."""
        cut = self.cut
        if cut is None or not (cut.fences and cut.outgoing) or self.now() < self.cut_at + SESSION_S:
            return False
        return self.zone(broker) == cut.zone != self.zone(listed_by)

    def sees(self, number: int) -> bool:
        """Whether a sidecar can read the full volume, and has reason to."""
        filling = self.filling
        assert filling is not None
        full = filling.broker
        return self.passes(number, full) and not self.is_fenced(full, number)

    def listed(self, broker: int) -> Any:
        """A broker's answer to DescribeCluster."""
        # Brokers of one zone are fenced at most, so there are two lists.
        has_fenced = self.cut is not None and self.is_fenced(self.cut.zone, broker)
        if has_fenced not in self._lists:
            brokers = [
                (each, f"broker-{each}", _PORT, f"zone-{self.zone(each)}", is_fenced)
                for each in self.brokers
                for is_fenced in (self.is_fenced(each, broker),)
            ]
            self._lists[has_fenced] = SimpleNamespace(
                API_VERSION=2,
                error_code=0,
                throttle_time_ms=0,
                cluster_id="A",
                brokers=brokers,
            )
        return self._lists[has_fenced]

    def described(self, broker: int) -> Any:
        """A broker's answer to DescribeLogDirs."""
        filling, available = self.filling, CALM
        if filling is not None and filling.broker == broker:
            available = filling.available(self.now())
        return SimpleNamespace(
            API_VERSION=4,
            error_code=0,
            throttle_time_ms=0,
            results=((0, "/d", (), TOTAL, available),),
        )

    async def call(self, caller: int, called: int, deadline: float) -> None:
        """One way from a sidecar to another machine; both ways have to pass when it is over.

        Raises:
            ConnectionRefusedError: the cut refuses the call.
            TimeoutError: there is no answer by the deadline.
        """
        late_s = self._late_s(called)
        await asyncio.sleep(self.chance.uniform(*ANSWER_S))
        if self.passes(caller, called):
            if self.now() + late_s < deadline:
                await asyncio.sleep(late_s)
                return
        elif self.cut is not None and self.cut.is_refused:
            raise ConnectionRefusedError(111, "Connection refused")
        await asyncio.sleep(max(0.0, deadline - self.now()))
        raise TimeoutError

    def _late_s(self, called: int) -> float:
        """By how much a broker's answer to a request that is sent now is late, seconds."""
        if self.late is None:
            return 0.0
        broker, begins_at, ends_at, late_s = self.late
        return late_s if called == broker and begins_at <= self.now() < ends_at else 0.0

    def set_cut(self, cut: Cut | None) -> None:
        """Begin a cut, or end it."""
        self.cut, self.cut_at = cut, self.now()
        self._lists.clear()

    def factors(self) -> list[float]:
        """The factor at each sidecar."""
        return [each.board.snapshot.decision.factor for each in self.sidecars]

    def start(self) -> list[asyncio.Task[None]]:
        """Start all sidecars within a few seconds."""
        return [asyncio.create_task(each.run()) for each in self.sidecars]


class Brokers:
    """In place of ``sidecar.kafka.client.pool.Pool``: the brokers as one sidecar reaches them."""

    principal = "throttle-sidecar"

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._number = number
        self._answered_last: int | None = None
        self._pauses: dict[int, Backoff] = {}

    async def call(
        self,
        broker_id: int,
        request: AdminRequest,
        deadline: float,
        *,
        cluster_id: str | None = None,
        is_doubtful: bool = False,
    ) -> Any:
        """See ``Pool.call``."""
        world = self._world
        pause = self._pauses.setdefault(broker_id, Backoff())
        if (refusal := pause.refusal(world.now())) is not None:
            return refusal
        try:
            await world.call(self._number, broker_id, deadline)
        except TimeoutError:
            failure = Failure(FailureKind.TIMEOUT, f"broker-{broker_id}:9092: no answer in time")
        except OSError:
            failure = Failure(FailureKind.CONNECT, f"broker-{broker_id}:9092: connection refused")
        else:
            pause.succeeded()
            world.asked[broker_id][request.API_KEY] += 1
            is_list = request.API_KEY == DESCRIBE_CLUSTER_KEY
            return world.listed(broker_id) if is_list else world.described(broker_id)
        pause.failed(failure, world.now())
        return failure

    async def call_any(
        self,
        request: AdminRequest,
        deadline: float,
        read: Callable[[Any, HostPort], Any],
        *,
        others: Iterable[int] | None = None,
    ) -> Any:
        """See ``Pool.call_any``."""
        world, last = self._world, self._answered_last
        candidates: Iterable[int]
        if others is None:
            first = self._number if last is None else last
            candidates = dict.fromkeys(
                [first, self._number, *world.chance.sample(world.brokers, 5)]
            )
        else:
            candidates = (each for each in others if each != last)
        for broker in candidates:
            if world.now() >= deadline:
                break
            if not world.passes(self._number, broker):
                # The next one is asked beside it.
                await asyncio.sleep(min(STAGGER_S, max(0.0, deadline - world.now())))
                continue
            answer = await self.call(broker, request, deadline)
            if not isinstance(answer, Failure):
                self._answered_last = broker
                return read(answer, HostPort(f"broker-{broker}", _PORT))
        return Failure(FailureKind.TIMEOUT, "no broker reported the list of brokers")

    def set_brokers(self, endpoints: Mapping[int, HostPort]) -> None:
        """See ``Pool.set_brokers``."""

    async def close(self) -> None:
        """See ``Pool.close``."""


class Sidecar:
    """A sidecar: the product's parts, put together as ``sidecar.daemon.composition`` does.

    Attributes:
        board: its board.
        observers: whom it follows; None if every sidecar polls.
    """

    def __init__(self, world: World, number: int, *, knows_own: bool) -> None:
        self._world = world
        self._number = number
        now = world.now
        rules = Rules(MinAvailableBytes(LIMIT), VALIDITY_S)
        self.board = Board(VolumeLimit(rules, 1.0), now)
        self.source = KafkaVolumeSource(
            KafkaAdmin(bootstrap_servers=(HostPort(f"broker-{number}", _PORT),)),
            clock=now,
            cluster_id=lambda: self.board.snapshot.memory.cluster_id,
            own_broker=number if knows_own else None,
        )
        self.source._pool = Brokers(world, number)  # type: ignore[assignment]
        self.log = ObservationLog(f"s{number}", now)
        self.observers: Observers | None = None
        self._zone = number if knows_own else None
        timing = Timing(INTERVAL_S, MINIMUM_S, world.count)
        own = number if knows_own else None
        self._parts: list[Callable[[], Coroutine[Any, Any, None]]] = [self.board.publish_expiries]
        polling = Poller(
            self.source, self.board, timing, _ignore, _ignore_observation, own_broker=own
        )
        if world.count is not None:
            self._follow(world.count, timing)
            polling = Poller(
                self.source,
                self.board,
                timing,
                _ignore,
                self.log.add,
                is_wanted=lambda: self.polls,
                planned=self.log.plan,
                own_broker=own,
            )
        self._parts.append(polling.run)

    def _follow(self, count: int, timing: Timing) -> None:
        world, board = self._world, self.board

        def take(observation: Observation) -> None:
            board.observe(observation)

        def read_at(broker_id: int) -> float | None:
            state = board.snapshot.memory.brokers.get(broker_id)
            return None if state is None else state.read_at

        sight = Sight(
            self.log,
            take,
            lambda: board.snapshot.memory.cluster_id,
            lambda: board.snapshot.memory.membership_at,
            timing.interval_s + timing.deadline_s,
            read_at,
        )
        addresses = Addresses(world.urls, world.now, _one_address)
        zones = Zones(addresses, ask=self._ask_zone)
        self.observers = Observers(
            addresses, count, sight, zones=lambda: zones.known, ask=self._ask
        )
        self._parts += [self.observers.run, zones.run]

    @property
    def polls(self) -> bool:
        """Whether it polls all brokers."""
        return self.observers is None or self.observers.is_observer

    async def run(self) -> None:
        """Run all parts, until cancelled."""
        await asyncio.sleep(self._world.chance.uniform(0.0, 5.0))
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(part())

    @property
    def zone(self) -> str | None:
        """Its zone, as ``composition._zone`` has it."""
        return None if self._zone is None else self.source.racks.get(self._zone)

    def _sidecar_at(self, url: str) -> "Sidecar":
        return self._world.sidecars[int(url.rpartition("-")[2])]

    async def _ask_zone(self, address: Address) -> str | None:
        world, other = self._world, self._sidecar_at(address.url)
        await world.call(self._number, other._number, world.now() + 3.0)
        return other.zone

    async def _ask(self, observer: Observer) -> ObservationPage:
        world, other = self._world, self._sidecar_at(observer.address.url)
        deadline = world.now() + CALL_S
        place = observer.after if observer.origin == other.log.start_id else None
        await world.call(self._number, other._number, deadline)
        asked_at = world.now()
        if place is not None:
            try:
                async with asyncio.timeout(LONG_POLL_S):
                    await other.log.wait_for_more(place)
            except TimeoutError:
                pass
        body = other.log.page(place, asked_at)
        await world.call(self._number, other._number, deadline)
        return msgspec.json.decode(body, type=ObservationPage)


async def _one_address(url: str) -> list[str]:
    return [url]


def _ignore(_duration_s: float) -> None:
    """Nobody scrapes metrics here."""


def _ignore_observation(_observation: Observation) -> None:
    """Nobody follows."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a seed came to.

    Attributes:
        scenario: the cut and the volume, for a person.
        faults: each violated claim; none if all hold.
        reaction_s: the longest time from when the volume reached the limit until a sidecar that
            sees it had the factor 0.0.
        release_s: the same from when it was emptied until all sidecars had 1.0.
        most_observers: the most sidecars that polled all brokers at a time during the cut.
    """

    scenario: str
    faults: list[str]
    reaction_s: float
    release_s: float
    most_observers: int


def scenario_of(seed: int, brokers: int, zones: int) -> tuple[Cut, Filling, bool]:
    """The cut, the volume, and whether sidecars know their own brokers.

    Five seeds cut each zone once. The directions and sides follow each other, so that 30 seeds have
    every combination; the rest is chance.
    """
    chance = random.Random(seed)
    direction = seed // zones % 3
    cut = Cut(
        zone=seed % zones,
        outgoing=direction in {0, 1},
        incoming=direction in {0, 2},
        is_refused=chance.random() < 0.3,
        fences=chance.random() < 0.5,
    )
    is_inside = seed // (3 * zones) % 2 == 0
    candidates = [each for each in range(brokers) if (each % zones == cut.zone) == is_inside]
    full_at = WARM_UP_S + chance.uniform(30.0, CUT_S - FULL_S)
    fills_s = chance.uniform(1.0, 60.0) if chance.random() < 0.5 else chance.uniform(60.0, 1200.0)
    begins_at = max(WARM_UP_S / 2, full_at - fills_s)
    emptied_at = full_at + FULL_S
    return (
        cut,
        Filling(chance.choice(candidates), begins_at, full_at, emptied_at),
        (chance.random() < 0.75),
    )


class Judge:
    """Notes when each sidecar throttles, and what violates the claims.

    Attributes:
        faults: what violates them, for a person.
        reaction_s: see ``Outcome``.
        release_s: see ``Outcome``.
    """

    def __init__(self, world: World, filling: Filling) -> None:
        self.faults: list[str] = []
        self.reaction_s = self.release_s = 0.0
        self._world = world
        self._filling = filling
        self._throttled: set[int] = set()

    def look(self) -> None:
        """Judge all factors of now."""
        now, filling = self._world.now(), self._filling
        factors = self._world.factors()
        if filling.full_at <= now < filling.emptied_at:
            for number in filter(self._world.sees, range(len(factors))):
                self._full(number, factors[number], now - filling.full_at)
            return
        throttling = sum(factor < 1.0 for factor in factors)
        if now >= filling.emptied_at:
            if throttling:
                self.release_s = now - filling.emptied_at
            if now < filling.emptied_at + RELEASE_S:
                return
        if throttling and now > 10.0:
            self.faults.append(f"{now:.0f} s: {throttling} sidecars throttle without a full volume")

    def _full(self, number: int, factor: float, since_s: float) -> None:
        if factor == 0.0:
            if number not in self._throttled:
                self._throttled.add(number)
                self.reaction_s = max(self.reaction_s, since_s)
        elif number in self._throttled:
            self.faults.append(f"sidecar {number} released after {since_s:.0f} s of a full volume")
        elif since_s > 2 * INTERVAL_S:
            self.faults.append(f"sidecar {number} has {factor} after {since_s:.0f} s")


async def cut_of_a_zone(
    seed: int, brokers: int, zones: int, sidecars: int | None = None
) -> Outcome:
    """Run one seed."""
    cut, filling, knows_own = scenario_of(seed, brokers, zones)
    world = World(brokers, zones, random.Random(-seed), sidecars=sidecars, knows_own=knows_own)
    world.filling = filling
    judge, most_observers = Judge(world, filling), 0
    tasks = world.start()
    while world.now() < WARM_UP_S + CUT_S + 2 * INTERVAL_S and len(judge.faults) < 5:
        await asyncio.sleep(1.0)
        is_cut = WARM_UP_S <= world.now() < WARM_UP_S + CUT_S
        if is_cut != (world.cut is not None):
            world.set_cut(cut if is_cut else None)
        judge.look()
        if is_cut:
            most_observers = max(most_observers, sum(each.polls for each in world.sidecars))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    way = {(True, True): "both ways", (True, False): "outgoing", (False, True): "incoming"}
    text = ", ".join(
        (
            f"zone {cut.zone} cut {way[cut.outgoing, cut.incoming]}",
            "refused" if cut.is_refused else "dropped",
            "fenced" if cut.fences and cut.outgoing else "not fenced",
            f"volume {'inside' if world.zone(filling.broker) == cut.zone else 'outside'}",
            "with broker ids" if knows_own else "without broker ids",
        )
    )
    return Outcome(text, judge.faults, judge.reaction_s, judge.release_s, most_observers)


@dataclass(frozen=True, slots=True)
class Load:
    """The requests that a broker with a full volume gets in a throttle.

    Attributes:
        log_dirs_per_s: DescribeLogDirs of the modelled sidecars, requests a second.
        lists_per_s: DescribeCluster of the same, requests a second.
        most_in_10_s: the most requests of both kinds in ten seconds, a second.
    """

    log_dirs_per_s: float
    lists_per_s: float
    most_in_10_s: float


async def load_of_a_throttle(
    brokers: int, sidecars: int, observers: int | None, throttle_s: float = 300.0
) -> Load:
    """Fill the volume of a broker, and count its requests from 20 s after that on.

    The sidecar beside it is no observer, so one more sidecar asks it.
    """
    world = World(brokers, 5, random.Random(1), sidecars=sidecars, observers=observers)
    full_at = WARM_UP_S
    end = full_at + 20.0 + throttle_s
    tasks = world.start()
    await asyncio.sleep(full_at - 60.0)
    full = next(
        each
        for each, sidecar in enumerate(world.sidecars)
        if observers is None or not sidecar.polls
    )
    world.filling = Filling(full, full_at - 60.0, full_at, end + 1.0)
    await asyncio.sleep(80.0)
    asked, most = world.asked[full], 0.0
    before = asked.copy()
    while world.now() < end:
        last = asked.total()
        await asyncio.sleep(10.0)
        most = max(most, (asked.total() - last) / 10.0)
    assert set(world.factors()) == {0.0}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    counted = asked - before
    lists = counted[DESCRIBE_CLUSTER_KEY]
    return Load((counted.total() - lists) / throttle_s, lists / throttle_s, most)


async def reaction_to_a_full_volume(
    brokers: int, fills_s: float, sent_before_s: float = 0.0, late_s: float = 0.0
) -> float:
    """How long after a volume reaches its limit the one modelled sidecar throttles, seconds.

    Args:
        brokers: the number of brokers.
        fills_s: how long the volume takes to reach its limit.
        sent_before_s: requests that are sent to its broker from 0.35 s before until 0.35 s after
            this long before the limit have a late answer.
        late_s: by how much it is late, seconds; inf if it never comes.
    """
    world = World(brokers, 5, random.Random(1), sidecars=1, observers=None)
    full, full_at = brokers - 1, 2 * WARM_UP_S
    world.filling = Filling(full, full_at - fills_s, full_at, math.inf)
    middle = full_at - sent_before_s
    world.late = (full, middle - 0.35, middle + 0.35, late_s)
    tasks = world.start()
    await asyncio.sleep(full_at - 0.1)
    assert world.factors() == [1.0]
    board = world.sidecars[0].board
    async with asyncio.timeout(VALIDITY_S):
        while (snapshot := board.snapshot).decision.factor != 0.0:
            await board.wait_for_change(snapshot.generation, VALIDITY_S)
    reaction_s = world.now() - full_at
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return reaction_s


def run(scenario: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a scenario in a loop of its own, whose time is virtual."""
    context = ssl.create_default_context()
    with (
        # Each look of each sidecar costs time here, and each TLS context 20 ms.
        patch.object(poller, "_LOOK_S", LOOK_S),
        patch.object(observers, "_LOOK_S", LOOK_S),
        patch.object(ssl, "create_default_context", lambda: context),
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        return runner.run(scenario())


def _seeds(text: str) -> Iterator[int]:
    first, _, last = text.partition("-")
    return iter(range(int(first), int(last or first) + 1))


def main() -> int:
    """Run the seeds that the command line names; return 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", default="1-5", help="such as 1-200")
    parser.add_argument("--brokers", type=int, default=200)
    parser.add_argument(
        "--sidecars", type=int, help="beside the first brokers only; each costs time"
    )
    parser.add_argument("--load", action="store_true", help="count the requests of a throttle")
    parser.add_argument("--observers", type=int, default=3, help="with --load; 0 for none")
    parser.add_argument("--zones", type=int, default=5)
    chosen = parser.parse_args()
    logging.disable(logging.ERROR)
    if chosen.load:
        sidecars, observers = chosen.sidecars or chosen.brokers, chosen.observers or None
        load = run(partial(load_of_a_throttle, chosen.brokers, sidecars, observers))
        print(f"simulated: {chosen.brokers} brokers, {sidecars} of their sidecars: {load}")
        return 0
    good, count, slowest = 0, 0, 0.0
    for seed in _seeds(chosen.seeds):
        began = time.process_time()
        outcome = run(partial(cut_of_a_zone, seed, chosen.brokers, chosen.zones, chosen.sidecars))
        count += 1
        good += not outcome.faults
        slowest = max(slowest, outcome.reaction_s)
        print(
            f"seed {seed}: {'; '.join(outcome.faults[:3]) or 'held'}: {outcome.scenario}; throttled"
            f" after {outcome.reaction_s:.0f} s, released after {outcome.release_s:.0f} s, at most"
            f" {outcome.most_observers} observers; took {time.process_time() - began:.0f} s of CPU",
            flush=True,
        )
    print(
        f"simulated: {good} of {count} seeds held; the slowest throttle came after {slowest:.0f} s"
    )
    return 0 if good == count else 1


if __name__ == "__main__":
    sys.exit(main())
