"""Observers that do not reach a broker: their followers poll it, in virtual time.

Each sidecar has its own board, poller and observers, as in the daemon; what a broker answers and
what sidecars send each other takes milliseconds.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection
from functools import partial

import msgspec
import pytest

from sidecar.control.board import Board
from sidecar.control.journal import log_publication
from sidecar.control.poller import Poller
from sidecar.peers.addresses import Addresses
from sidecar.peers.observations import ObservationLog, ObservationPage
from sidecar.peers.observers import Observer, Observers, Sight
from sidecar.peers.rendezvous import in_order
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing
from sidecar.volumes import Failure, FailureKind, Membership, Observation, Reading, Volume
from tests.support.examples import mostly_rare

pytestmark = pytest.mark.looptime

BROKERS = 5
OBSERVERS = 2
INTERVAL_S = 60.0
VALIDITY_S = 300.0


def now() -> float:
    return asyncio.get_running_loop().time()


class World:
    """Brokers with a volume each, and a sidecar beside each broker.

    Attributes:
        available: broker -> available bytes of its volume; 100 is the limit.
        cut: (sidecar, broker) of which nothing passes.
        unlisted: (sidecar, broker) if the lists that it gets lack the broker.
        requests: (sidecar, broker) -> how often it was asked for its volumes.
    """

    def __init__(self, *, knows_own_broker: bool = False) -> None:
        self.available = dict.fromkeys(range(BROKERS), 500)
        self.cut: set[tuple[int, int]] = set()
        self.unlisted: set[tuple[int, int]] = set()
        self.requests: Counter[tuple[int, int]] = Counter()
        self.urls = [f"http://sidecar-{number}" for number in range(BROKERS)]
        self.logs = [ObservationLog(f"s{number}", now) for number in range(BROKERS)]
        self.boards = [
            Board(VolumeLimit(Rules(MinAvailableBytes(100), VALIDITY_S), 1.0), now)
            for _ in range(BROKERS)
        ]
        self.observers = [self._observers(number) for number in range(BROKERS)]
        self.pollers = [
            Poller(
                Source(self, number),
                self.boards[number],
                Timing(INTERVAL_S, 1.0),
                lambda _: None,
                self.logs[number].add,
                is_wanted=partial(self.is_observer, number),
                planned=self.logs[number].plan,
                own_broker=number if knows_own_broker else None,
            )
            for number in range(BROKERS)
        ]
        order = [int(url.rpartition("-")[2]) for url in in_order(self.urls)]
        self.observing, self.following = order[:OBSERVERS], order[OBSERVERS:]

    def is_observer(self, number: int) -> bool:
        return self.observers[number].is_observer

    def start(self) -> None:
        runs = [
            *(each.run for each in self.observers),
            *(each.run for each in self.pollers),
            *(each.publish_expiries for each in self.boards),
        ]
        self.tasks = [asyncio.create_task(run()) for run in runs]

    def factors(self) -> list[float]:
        return [board.snapshot.decision.factor for board in self.boards]

    def _observers(self, number: int) -> Observers:
        board = self.boards[number]

        def cluster_id() -> str | None:
            membership = board.snapshot.memory.membership
            return membership.cluster_id if membership else None

        def read_at(broker_id: int) -> float | None:
            state = board.snapshot.memory.brokers.get(broker_id)
            return state.read_at if state else None

        def take(observation: Observation) -> None:
            board.observe(observation)

        sight = Sight(
            self.logs[number],
            take,
            cluster_id,
            lambda: board.snapshot.memory.membership_at,
            INTERVAL_S + 10.0,
            read_at,
        )
        return Observers(Addresses(self.urls, now, _one), OBSERVERS, sight, ask=self._ask)

    async def _ask(self, observer: Observer) -> ObservationPage:
        log = self.logs[self.urls.index(observer.address.url)]
        place, asked_at = observer.after, now()
        await asyncio.sleep(0.005)
        if place is not None:
            try:
                async with asyncio.timeout(10.0):
                    await log.wait_for_more(place)
            except TimeoutError:
                pass
        body = log.page(place, asked_at)
        await asyncio.sleep(0.005)
        return msgspec.json.decode(body, type=ObservationPage)


class Source:
    """What one sidecar sees of the brokers."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._number = number

    async def observe(
        self, brokers: Collection[int] | None, timeout_s: float
    ) -> Observation | Failure:
        world, asked_at = self._world, now()
        await asyncio.sleep(0.01)
        answers: dict[int, Reading | Failure] = {}
        listed = [each for each in range(BROKERS) if (self._number, each) not in world.unlisted]
        for broker in listed if brokers is None else brokers:
            world.requests[self._number, broker] += 1
            volume = Volume(broker, "/d", 1000, world.available[broker])
            is_cut = (self._number, broker) in world.cut
            answers[broker] = (
                Failure(FailureKind.TIMEOUT, f"broker {broker}: no answer in time yet")
                if is_cut
                else Reading(broker, asked_at, (volume,))
            )
        if any(isinstance(each, Failure) for each in answers.values()):
            await asyncio.sleep(timeout_s - 0.02)
        hosts = {broker: f"broker-{broker}:9092" for broker in listed}
        members = Membership("A", hosts, {}) if brokers is None else None
        own = self._number
        is_seen = isinstance(answers.get(own), Reading)
        seen = {own: hosts[own]} if is_seen else {} if own in answers else None
        return Observation(now(), "poll", members, answers, seen)


async def _one(url: str) -> list[str]:
    return [url]


@pytest.mark.rare
async def test_followers_poll_a_broker_that_no_observer_reaches() -> None:
    """It fills meanwhile. Whoever reaches it throttles within two intervals, and it stays so."""
    world = World()
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    full = world.following[-1]
    world.cut = {(each, full) for each in world.observing}
    world.available[full] = 50
    await asyncio.sleep(2 * INTERVAL_S)
    for _ in range(30):
        assert [0.0] * len(world.following) == [world.factors()[each] for each in world.following]
        await asyncio.sleep(INTERVAL_S)
    world.available[full] = 500
    await asyncio.sleep(2 * INTERVAL_S)
    assert [1.0] * len(world.following) == [world.factors()[each] for each in world.following]


@pytest.mark.slow
@pytest.mark.parametrize("offset_s", mostly_rare([32.0, 36.0]))
async def test_a_broker_that_hangs_does_not_delay_its_neighbour(offset_s: float) -> None:
    """Observers reach neither. While the first fills, the second answers nobody.

    The second one is polled a few seconds before the first one reaches its limit.
    """
    world = World(knows_own_broker=True)
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    filling, hanging, follower = world.following
    world.cut = {(each, filling) for each in world.observing}
    world.cut |= {(each, hanging) for each in range(BROKERS)}
    fills_s = 280.0 + offset_s
    full_at = now() + fills_s
    while now() < full_at:
        world.available[filling] = int(101 + 399 * (full_at - now()) / fills_s)
        await asyncio.sleep(0.25)
    world.available[filling] = 50
    await asyncio.sleep(2.0)
    assert 0.0 == world.factors()[follower]


@pytest.mark.rare
async def test_a_follower_that_sees_more_is_not_told_otherwise() -> None:
    """The observers' failure does not hide its own reading, so nothing flaps."""
    world = World()
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    unseen = world.following[0]
    world.cut = {(each, unseen) for each in world.observing}
    await asyncio.sleep(4 * INTERVAL_S)
    follower = world.boards[world.following[-1]]
    generation = follower.snapshot.generation
    for _ in range(100):
        await asyncio.sleep(INTERVAL_S / 7)
        state = follower.snapshot.memory.brokers[unseen]
        assert state.failure is None
        assert state.read_at is not None
        assert now() - state.read_at < 2 * INTERVAL_S
    assert generation == follower.snapshot.generation


@pytest.mark.slow
async def test_a_follower_always_polls_its_own_broker() -> None:
    """Whatever observers say of it; and nobody else's while observers see them."""
    world = World(knows_own_broker=True)
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    world.requests.clear()
    await asyncio.sleep(10 * INTERVAL_S)
    for each in world.following:
        assert {each} == {broker for number, broker in world.requests if number == each}
        assert 9 <= world.requests[each, each] <= 11


@pytest.mark.slow
async def test_followers_leave_brokers_alone_that_observers_see() -> None:
    """A broker is asked as often as there are observers."""
    world = World()
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    world.requests.clear()
    await asyncio.sleep(10 * INTERVAL_S)
    assert set(world.observing) == {number for number, _ in world.requests}


@pytest.mark.slow
async def test_a_follower_sees_its_own_broker_in_spite_of_an_old_list() -> None:
    """Observers have lists without the newest broker, which is full; its own sidecar throttles.

    That sidecar is not told otherwise by the next lists, until its broker does not answer.
    """
    world = World(knows_own_broker=True)
    own = world.following[-1]
    world.unlisted = {(each, own) for each in world.observing}
    world.available[own] = 50
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    board = world.boards[own]
    generation = board.snapshot.generation
    for _ in range(30):
        assert 0.0 == world.factors()[own]
        assert own in board.snapshot.memory.active
        await asyncio.sleep(INTERVAL_S / 7)
    assert generation == board.snapshot.generation
    world.available[own] = 500
    await asyncio.sleep(10.0)
    assert 1.0 == world.factors()[own]
    # Nobody knows it, and it does not answer, so it is no member.
    world.cut = {(own, own)}
    await asyncio.sleep(3 * INTERVAL_S)
    assert own not in board.snapshot.memory.active
    assert "observation" == board.snapshot.decision.source
    world.requests.clear()
    await asyncio.sleep(10 * INTERVAL_S)
    assert 9 <= world.requests[own, own] <= 11
    world.cut, world.available[own] = set(), 50
    await asyncio.sleep(INTERVAL_S)
    assert 0.0 == world.factors()[own]


@pytest.mark.slow
async def test_a_full_broker_that_only_its_own_sidecar_lists_is_asked_rarely_while_silent() -> None:
    """Once in each interval, although its volume was full when last read."""
    world = World(knows_own_broker=True)
    own = world.following[-1]
    world.unlisted = {(each, own) for each in world.observing}
    world.available[own] = 50
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    world.cut = {(own, own)}
    await asyncio.sleep(2 * INTERVAL_S)
    world.requests.clear()
    await asyncio.sleep(2 * INTERVAL_S)
    assert 0.0 == world.factors()[own]
    assert 1 <= world.requests[own, own] <= 2


@pytest.mark.slow
async def test_a_follower_that_does_not_reach_its_own_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It logs that when it begins and ends, since observers read the broker, and counts each."""
    caplog.set_level(logging.INFO)
    world = World(knows_own_broker=True)
    own = world.following[-1]
    board = world.boards[own]
    board._listeners = (log_publication,)
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    caplog.clear()
    world.cut = {(own, own)}
    await asyncio.sleep(10 * INTERVAL_S)
    begins = f"broker {own}: timeout: broker {own}: no answer in time yet; observers read it"
    assert [begins] == caplog.messages
    assert board.snapshot.memory.brokers[own].failure is None
    assert board.tally.failures[FailureKind.TIMEOUT] > 5
    world.cut = set()
    await asyncio.sleep(2 * INTERVAL_S)
    assert [begins, f"broker {own} answers this sidecar again"] == caplog.messages
    world.cut = {(each, own) for each in range(BROKERS)}
    await asyncio.sleep(4 * INTERVAL_S)
    assert board.snapshot.memory.brokers[own].failure is not None
