"""Who observes, who follows, and what becomes of news, in virtual time."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
import pytest

from sidecar.http import HttpError
from sidecar.peers.addresses import Addresses
from sidecar.peers.observations import ObservationLog, ObservationPage
from sidecar.peers.observers import Observer, Observers, Sight
from sidecar.peers.rendezvous import in_order
from sidecar.volumes import Failure, FailureKind, Membership, Observation, Reading
from tests.sidecar.peers.followers import INTERVAL_S, World

pytestmark = pytest.mark.looptime


def observing(world: World) -> list[str]:
    """The addresses of those that ask all brokers."""
    return [
        each.url
        for each in world.sidecars
        if each.alive and each.observers is not None and each.observers.is_observer
    ]


def acting(world: World) -> list[str]:
    """The addresses of those that act alone on the cluster."""
    return [
        each.url
        for each in world.sidecars
        if each.alive and each.observers is not None and each.observers.is_first
    ]


@pytest.mark.slow
async def test_k_of_n_ask_all_brokers() -> None:
    """The first of the order, and every sidecar knows what they see, some milliseconds later."""
    world = World(10, 3)
    world.start()
    await asyncio.sleep(3 * INTERVAL_S)
    assert set(in_order(each.url for each in world.sidecars)[:3]) == set(observing(world))
    world.requests.clear()
    await asyncio.sleep(2 * INTERVAL_S)
    assert dict.fromkeys(range(10), 6) == dict(world.requests)
    ages = [world.now() - seen.read_at for each in world.sidecars for seen in each.seen.values()]
    assert (100, True) == (len(ages), max(ages) <= INTERVAL_S + 1.0)


@pytest.mark.slow
async def test_the_next_one_takes_the_place_of_one_that_dies() -> None:
    """Within seconds; who is back observes again, and the other stops. The first one acts alone."""
    world = World(6, 2)
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    order = in_order(each.url for each in world.sidecars)
    number = int(order[0].rpartition("-")[2])
    world.kill(number)
    await asyncio.sleep(15.0)
    assert set(order[1:3]) == set(observing(world))
    assert [order[1]] == acting(world)
    world.revive(number)
    await asyncio.sleep(60.0)
    assert set(order[:2]) == set(observing(world))
    assert [order[0]] == acting(world)


@pytest.mark.slow
async def test_alone_it_asks_itself() -> None:
    """After two renewals that did not come; with k of 1 nobody else is there to follow."""
    world = World(3, 1)
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    order = in_order(each.url for each in world.sidecars)
    for url in order[:2]:
        world.kill(int(url.rpartition("-")[2]))
    world.available[0] = 7
    await asyncio.sleep(30.0)
    assert [order[2]] == observing(world)
    (left,) = (each for each in world.sidecars if each.alive)
    assert 7 == left.seen[0].available


@pytest.mark.slow
async def test_an_observer_that_sees_nothing_is_not_waited_for() -> None:
    """It answers, and has nothing new: its followers ask the brokers themselves after a while."""
    world = World(4, 1)
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    (blind,) = observing(world)
    world.blind(int(blind.rpartition("-")[2]))
    await asyncio.sleep(5 * INTERVAL_S)
    assert 4 == len(observing(world))


@pytest.mark.slow
async def test_observers_are_in_different_zones() -> None:
    """As soon as the zones are known; one that dies is replaced from its own zone."""
    world = World(12, 3)
    zones = {each.url: "abc"[each.number % 3] for each in world.sidecars}
    world.start()
    await asyncio.sleep(2 * INTERVAL_S)
    world.zones = zones
    await asyncio.sleep(60.0)
    observing_zones = sorted(zones[url] for url in observing(world))
    assert ["a", "b", "c"] == observing_zones
    dead = observing(world)[0]
    world.kill(int(dead.rpartition("-")[2]))
    await asyncio.sleep(60.0)
    assert ["a", "b", "c"] == sorted(zones[url] for url in observing(world))


@pytest.mark.slow
async def test_an_observer_that_may_be_back_is_asked_beside_its_replacement() -> None:
    """Nothing passes to it, so each request takes its whole deadline."""
    alone = Alone("http://a", "http://b")
    gone, other = in_order(["http://a", "http://b"])

    def answer(observer: Observer) -> bytes:
        if observer.address.url == gone:
            raise TimeoutError
        return page(whole(at=5000.0 + asyncio.get_running_loop().time()))

    alone.answer = answer
    alone.takes_s[gone] = 13.0
    await alone.run(200.0)
    times = [at for at, url in alone.asked_at if url == other]
    assert max(late - early for early, late in pairwise(times)) < 3.0
    assert 8 == alone.asked.count(gone)


class Alone:
    """One sidecar and what it is answered."""

    def __init__(self, *urls: str, addresses: Sequence[str] = ()) -> None:
        loop = asyncio.get_running_loop()
        self.taken: list[Observation] = []
        self.cluster: str | None = "A"
        self.answer: Callable[[Observer], bytes] = self._nothing
        self.asked: list[str] = []
        self.asked_at: list[tuple[float, str]] = []
        self.takes_s: dict[str, float] = {}
        self.looked_up = 0
        self.log = ObservationLog("own", loop.time)
        self._addresses = addresses
        sight = Sight(
            self.log,
            self.taken.append,
            lambda: self.cluster,
            lambda: max((each.observed_at for each in self.taken), default=None),
            60.0,
            lambda _: None,
        )
        where = Addresses(urls, loop.time, self._resolve)
        self.observers = Observers(where, 1, sight, ask=self._ask)

    @staticmethod
    def _nothing(observer: Observer) -> bytes:
        raise ConnectionRefusedError(111, "Connection refused")

    async def _resolve(self, url: str) -> Sequence[str]:
        self.looked_up += 1
        return self._addresses

    async def _ask(self, observer: Observer) -> ObservationPage:
        where = observer.address.ip or observer.address.url
        self.asked.append(where)
        self.asked_at.append((asyncio.get_running_loop().time(), where))
        await asyncio.sleep(self.takes_s.get(where, 1.0))
        return msgspec.json.decode(self.answer(observer), type=ObservationPage)

    async def run(self, seconds: float) -> None:
        task = asyncio.create_task(self.observers.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def page(*observations: Observation, origin: str = "b2", number: int = 1) -> bytes:
    """As another sidecar sends it, at a time of its own."""
    log = ObservationLog(origin, lambda: 5000.0)
    log.plan(5060.0)
    for each in observations:
        log.add(each)
    return log.page(None).replace(b'"next":1', f'"next":{number}'.encode())


def whole(cluster_id: str | None = "A", at: float = 5000.0) -> Observation:
    return Observation(at, "poll", Membership(cluster_id, {1: "h:1"}), {1: Reading(1, at, ())})


async def test_news_of_another_cluster_is_dropped() -> None:
    """An observation without a cluster id contradicts nothing."""
    alone = Alone("http://b")
    alone.answer = lambda observer: page(whole("B"))
    await alone.run(1.5)
    assert ([], 1) == (alone.taken, alone.observers.dropped["contradicting"])
    alone.answer = lambda observer: page(whole(None))
    await alone.run(1.5)
    assert ["b2"] == [each.origin for each in alone.taken]


async def test_a_sidecar_that_knows_no_cluster_follows_nobody() -> None:
    """It asks the brokers first: the peers may include sidecars of another cluster."""
    alone = Alone("http://b")
    alone.cluster = None
    alone.answer = lambda observer: page(whole("B"))
    task = asyncio.create_task(alone.observers.run())
    await asyncio.sleep(3.0)
    assert ([], True) == (alone.asked, alone.observers.is_observer)
    alone.cluster = "A"
    await asyncio.sleep(1.9)
    assert ([], False) == (alone.taken, alone.observers.is_observer)
    alone.answer = lambda observer: page(whole("A"))
    await asyncio.sleep(0.5)
    task.cancel()
    assert ["b2"] == [each.origin for each in alone.taken]


async def test_an_answer_that_comes_after_the_cluster_is_forgotten_is_dropped() -> None:
    """An operator made the sidecar forget the last broker while it waited for an observer."""
    alone = Alone("http://b")

    def answer(observer: Observer) -> bytes:
        alone.cluster = None
        return page(whole("B"))

    alone.answer = answer
    await alone.run(1.5)
    assert ([], 1) == (alone.taken, alone.observers.dropped["contradicting"])


async def test_partial_news_of_another_cluster_is_dropped() -> None:
    """It has no cluster id of its own, and broker ids are the same in all clusters."""
    alone = Alone("http://b")
    partial = Observation(5000.0, "poll", None, {1: Reading(1, 5000.0, ())})
    alone.answer = lambda observer: page(whole("B"), partial)
    await alone.run(1.5)
    assert ([], 2) == (alone.taken, alone.observers.dropped["contradicting"])
    alone.answer = lambda observer: page(whole("A"), partial)
    await alone.run(1.5)
    assert [False, True] == [each.membership is None for each in alone.taken]


async def test_a_long_way_makes_nothing_younger() -> None:
    """Here an answer takes a second: what was seen as it was made is a second old, or held."""
    alone = Alone("http://b")
    alone.answer = lambda observer: page(whole())
    await alone.run(1.5)
    (seen,) = alone.taken
    assert 0.0 == seen.observed_at
    alone = Alone("http://b")
    alone.answer = lambda observer: page(whole()).replace(b'"held_ms":0', b'"held_ms":400')
    began = asyncio.get_running_loop().time()
    await alone.run(1.5)
    assert began + 0.4 == pytest.approx(alone.taken[0].observed_at)


async def test_older_news_counts_by_its_readings() -> None:
    """Another observer may have read a broker that did not answer this one's last."""
    silent = Failure(FailureKind.TIMEOUT, "no answer")
    later = Observation(5000.0, "poll", Membership("A", {1: "h:1", 2: "h:2"}), {1: silent})
    members = Membership("A", {1: "h:1", 2: "h:2"})
    earlier = Observation(4990.0, "poll", members, {1: Reading(1, 4989.0, ()), 2: silent})
    alone = Alone("http://b")
    pages = [page(later), page(earlier)]
    alone.answer = lambda observer: pages.pop(0) if pages else page()
    await alone.run(2.5)
    first, second = alone.taken
    assert (later.membership, None) == (first.membership, second.membership)
    assert [1] == list(second.answers)
    assert not alone.observers.dropped


async def test_news_of_an_hour_ago_is_dropped() -> None:
    """It changes nothing any more."""
    alone = Alone("http://b")
    alone.answer = lambda observer: page(whole(at=1000.0))
    await alone.run(1.5)
    assert ([], 1) == (alone.taken, alone.observers.dropped["old"])


async def test_an_observer_that_promises_for_later_is_not_believed() -> None:
    """It says that the next observation comes in a day: two intervals are waited for."""
    alone = Alone("http://b")
    pages = [page(whole()).replace(b'"due_ms":60000', b'"due_ms":86400000')]
    alone.answer = lambda observer: pages.pop(0) if pages else page()
    task = asyncio.create_task(alone.observers.run())
    await asyncio.sleep(110.0)
    early = alone.observers.is_observer
    await asyncio.sleep(20.0)
    task.cancel()
    assert [False, True] == [early, alone.observers.is_observer]


async def test_a_bug_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and counts as a failure of that observer."""
    alone = Alone("http://b", "http://c")

    def breaks(observer: Observer) -> bytes:
        raise KeyError(str(observer.address))

    alone.answer = breaks
    await alone.run(5.0)
    assert 2 == caplog.text.count("could not be used")
    assert ["http://b", "http://c"] == sorted(alone.asked)


@pytest.mark.parametrize(
    "answer",
    [b"", b"[]", b"{}", page(whole()).replace(b'"h:1"', b"7"), page(whole(), origin="a-b")],
)
async def test_what_makes_no_sense_is_dropped(
    answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a failure: the next one is asked, and the log has it once."""
    caplog.set_level(logging.WARNING)
    alone = Alone("http://b")
    alone.answer = lambda observer: answer
    await alone.run(60.0)
    assert [] == alone.taken
    assert alone.observers.dropped["malformed"] >= 3
    assert 1 == caplog.text.count("the observer http://b can't be followed")


async def test_a_name_with_several_addresses_is_several_sidecars() -> None:
    """Each is asked for itself, and this one finds itself among them."""
    alone = Alone("http://sidecars", addresses=["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    alone.answer = lambda observer: page(origin="own")
    await alone.run(5.0)
    first = in_order(f"http://sidecars at {each}" for each in ("10.0.0.1", "10.0.0.2", "10.0.0.3"))
    assert [first[0].rpartition(" ")[2]] == alone.asked
    assert alone.observers.is_observer


async def test_a_name_that_leads_to_another_sidecar_again_is_not_this_one() -> None:
    """Its old address was this sidecar's for a moment. From then on, the name is asked again."""
    alone = Alone("http://b")
    alone.answer = lambda observer: page(origin="own")
    task = asyncio.create_task(alone.observers.run())
    await asyncio.sleep(2.0)
    assert alone.observers.is_first
    alone.answer = lambda observer: page(whole(), origin="b2")
    await asyncio.sleep(35.0)
    assert (False, True) == (alone.observers.is_first, bool(alone.taken))
    task.cancel()


@pytest.mark.slow
async def test_a_name_that_leads_to_several_sidecars_in_turn_makes_none_the_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As of a Service with a cluster IP: each sidecar would think that it acts alone."""
    alone = Alone("http://b")
    origins = iter(["own", "b2", "own", "own", "b2", "own", "own", "own", "own"])
    alone.answer = lambda observer: page(origin=next(origins, "own"))
    task = asyncio.create_task(alone.observers.run())
    await asyncio.sleep(40.0)
    firsts = set()
    for _ in range(600):
        await asyncio.sleep(1.0)
        firsts.add(alone.observers.is_first)
    assert {False} == firsts
    assert 1 == caplog.text.count("http://b leads to several sidecars in turn")
    await asyncio.sleep(300.0)
    task.cancel()
    assert alone.observers.is_first, "the name was mended, and the sidecar was not restarted"


async def test_names_are_looked_up_twice_a_minute() -> None:
    """Not at each look."""
    alone = Alone("http://sidecars", addresses=["10.0.0.1", "10.0.0.2"])
    await alone.run(29.0)
    assert 1 == alone.looked_up
    await alone.run(32.0)
    assert 3 == alone.looked_up


async def test_whoever_is_followed_observes() -> None:
    """It need not know why; when nobody asks any more it stops."""
    alone = Alone("http://b")
    alone.answer = lambda observer: page(whole(at=5000.0 + asyncio.get_running_loop().time()))
    task = asyncio.create_task(alone.observers.run())
    observes = []
    for seconds in (3.0, 0.0, 30.0):
        await asyncio.sleep(seconds)
        observes.append(alone.observers.is_observer)
        if seconds == 3.0:
            alone.log.page(None)
    task.cancel()
    assert [False, True, False] == observes


async def test_an_answer_that_is_no_page_is_a_failure() -> None:
    """As of a sidecar that has no observers set."""

    def refuses(observer: Observer) -> bytes:
        raise HttpError("it answers 404")

    alone = Alone("http://b")
    alone.answer = refuses
    await alone.run(10.0)
    assert alone.observers.is_observer, "two renewals did not come"
