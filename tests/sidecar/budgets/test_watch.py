"""The watch of storage budgets reads what is due, and publishes throttles of owners."""

from dataclasses import replace

import msgspec
import pytest

from sidecar.budgets.followers import Factors
from sidecar.throttle.budgets import Budget, sentence
from sidecar.throttle.growth import Placement
from sidecar.throttle.memory import BudgetThrottle
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.budgets.build import BUDGETS, Scene
from tests.sidecar.growth.build import MB


@pytest.fixture
def scene() -> Scene:
    """A scene before the first reading."""
    return Scene()


async def test_an_owner_past_its_soft_bytes_is_read_alone(scene: Scene) -> None:
    """All topics once a minute; in between only what is near; and a new generation for brokers."""
    await scene.at(0.0)
    await scene.at(30.0)
    assert [(1, ()), (2, ())] == scene.asked
    scene.sizes[1]["etl.a"] = 195 * MB
    await scene.at(61.0)
    assert [(1, ()), (2, ())] * 2 == scene.asked, "no owner was near"
    generation = scene.board.snapshot.generation
    assert {"etl"} == scene.throttled().keys()
    scene.asked.clear()
    scene.sizes[1]["etl.a"] = 200 * MB
    await scene.at(63.0)
    assert [(1, ("etl.a",))] == scene.asked
    assert {"etl": 0.0} == scene.throttled()
    assert ("etl.a",) == scene.board.snapshot.decision.budgets["etl"].topics
    assert generation < scene.board.snapshot.generation
    scene.sizes[1]["etl.a"] = 10 * MB
    await scene.at(66.0)
    assert {} == scene.throttled()


async def test_a_silent_broker_keeps_its_owner_paused_for_the_validity(scene: Scene) -> None:
    """The other broker is still read; after the validity the size is not known."""
    scene.sizes[1]["etl.a"] = 200 * MB
    await scene.at(0.0)
    scene.silent = {1}
    for now in (100.0, 200.0, 300.0):
        await scene.at(now)
        assert {"etl": 0.0} == scene.throttled()
    await scene.at(361.0)
    assert {} == scene.throttled()
    assert (1,) == scene.watch.usages["etl"].unseen


async def test_an_owner_that_is_read_alone_stays_paused_while_a_round_takes_too_long(
    scene: Scene,
) -> None:
    """Its own topics are known, although the last reading of all is older than the validity."""
    scene.sizes[1]["etl.a"] = 200 * MB
    await scene.at(0.0)
    scene.hung = {1, 2}
    for now in range(50, 800, 50):
        await scene.at(float(now))
        assert {"etl": 0.0} == scene.throttled()
    usage = scene.watch.usages["etl"]
    assert ("at least 100 % of 200.0 MB", (1, 2)) == (sentence(usage), usage.unseen)
    scene.sizes[1]["etl.a"] = 100 * MB
    await scene.at(810.0)
    assert {} == scene.throttled()


@pytest.mark.parametrize("is_polled", [True, False])
async def test_an_offline_log_dir_keeps_its_owner_paused_for_the_validity(
    scene: Scene, is_polled: bool
) -> None:
    """Its broker answers without it, whether or not a poll has shown that it is offline."""
    scene.sizes[1]["etl.a"] = 200 * MB
    await scene.at(0.0)
    scene.offline, scene.is_polled = {1}, is_polled
    for now in (2.0, 100.0, 101.0, 200.0, 300.0):
        await scene.at(now)
        assert {"etl": 0.0} == scene.throttled()
        assert () == scene.watch.usages["etl"].unseen
    await scene.at(361.0)
    assert {} == scene.throttled()
    usage = scene.watch.usages["etl"]
    assert ("at least 0 % of 200.0 MB", (1,)) == (sentence(usage), usage.unseen)
    scene.offline = set()
    await scene.at(422.0)
    assert {"etl": 0.0} == scene.throttled()
    assert () == scene.watch.usages["etl"].unseen


async def test_slow_brokers_are_read_one_after_the_other(scene: Scene) -> None:
    """A round of 80 s is over too, also if it begins to be slow; so a silent broker is named."""
    scene.read_s = 40.0
    await scene.at(0.0)
    assert {"etl", "web"} == scene.watch.usages.keys()
    scene.sizes[2]["clicks"] = 200 * MB
    await scene.at(300.0)
    assert {"web": 0.0} == scene.throttled()
    scene.silent = {1}
    for now in (600.0, 900.0):
        await scene.at(now)
    assert [(1,), (1,)] == [each.unseen for each in scene.watch.usages.values()]
    assert {"web": 0.0} == scene.throttled()


async def test_a_broker_that_hangs_does_not_hold_up_the_others(scene: Scene) -> None:
    """It is missing until it is read: what the others have is the least."""
    scene.sizes[1]["etl.a"] = 200 * MB
    scene.hung = {2}
    for now in (0.0, 69.0):
        await scene.at(now)
    assert {} == scene.watch.usages, "broker 2 may still answer"
    await scene.at(70.0)
    assert {"etl": 0.0} == scene.throttled()
    assert ("at least 0 % of 200.0 MB", (2,)) == (
        sentence(scene.watch.usages["web"]),
        scene.watch.usages["web"].unseen,
    )
    scene.hung = set()
    await scene.at(130.0)
    assert [(), ()] == [each.unseen for each in scene.watch.usages.values()]
    scene.hung = {2}
    scene.sizes[1]["etl.a"] = 10 * MB
    await scene.at(190.0)
    assert {} == scene.throttled()
    await scene.at(431.0)
    assert [(2,), (2,)] == [each.unseen for each in scene.watch.usages.values()]


async def test_a_reassignment_pauses_nobody(scene: Scene) -> None:
    """Each replica counts, and one moves from broker 1 to 2, which reports that it arrives."""
    moving = {("etl.a", 0): (2,)}

    async def place(broker_id: int, _: object) -> Placement:
        return Placement(arriving=dict(moving) if broker_id == 2 else {})

    scene.contents.place = place
    scene.watch.change([replace(BUDGETS[0], counts_replicas=True)])
    scene.sizes = {1: {"etl.a": 120 * MB}, 2: {"etl.a": 110 * MB}}
    await scene.at(0.0)
    assert 120 * MB == scene.watch.usages["etl"].used_bytes
    moving.clear()
    await scene.at(60.0)
    assert 230 * MB == scene.watch.usages["etl"].used_bytes


async def test_changed_budgets_apply_at_once(scene: Scene) -> None:
    """With the sizes that are known."""
    await scene.at(0.0)
    scene.watch.change([Budget("web", 9 * MB, 9 * MB, topics=frozenset({"clicks"}))])
    await scene.at(1.0)
    assert {"web": 0.0} == scene.throttled()
    assert [(1, ()), (2, ())] == scene.asked, "nothing is read for that"


async def test_a_restart_releases_no_paused_owner(scene: Scene) -> None:
    """It stays paused until all brokers were read; an owner that has left the file does not."""
    scene.sizes[1]["etl.a"] = 200 * MB
    await scene.at(0.0)
    kept = scene.board.snapshot.memory.retained
    assert {"budgets": {"paused": {"etl": ["etl.a"]}}} == kept
    again = Scene({"budgets": {"paused": {"etl": ["etl.a"], "gone": ["x"]}}})
    again.watch.resume()
    assert {"etl": 0.0} == again.throttled()
    await again.at(1.0)
    assert {} == again.throttled(), "it has less now"
    assert {"budgets": {"paused": {}}} == again.board.snapshot.memory.retained


async def test_after_a_restart_a_silent_broker_releases_nobody() -> None:
    """Before the validity is over; what others have is not all."""
    scene = Scene({"budgets": {"paused": {"etl": ["etl.a"]}}})
    scene.watch.resume()
    scene.silent = {1}
    for now in (1.0, 12.0, 290.0):
        await scene.at(now)
        assert {"etl": 0.0} == scene.throttled()
    assert (1,) == scene.watch.usages["etl"].unseen
    await scene.at(351.0)
    assert {} == scene.throttled()


async def test_a_follower_takes_the_throttles_of_an_observer(scene: Scene) -> None:
    """It reads no broker, and keeps the throttles for the validity when no observer answers."""
    scene.sizes[1]["etl.a"] = 200 * MB
    await scene.at(0.0)
    observer = FakeSidecar(board=scene.board)
    answer = msgspec.json.decode((await observer.get("/v1/quota-factors")).content, type=Factors)
    follower = Scene()
    follower.is_observer = False
    follower.observed = answer.throttles(0.0)
    await follower.at(0.0)
    assert ({"etl": 0.0}, []) == (follower.throttled(), follower.asked)
    assert ("etl.a",) == follower.board.snapshot.decision.budgets["etl"].topics
    kept = follower.board.snapshot.memory.retained
    assert {"budgets": {"paused": {"etl": ["etl.a"]}}} == kept, "for its own restart"
    follower.observed = None
    await follower.at(300.0)
    assert {"etl": 0.0} == follower.throttled()
    await follower.at(301.0)
    assert {} == follower.throttled()
    follower.observed = answer.throttles(302.0)
    await follower.at(303.0)
    assert {"etl": 0.0} == follower.throttled()
    follower.observed = {}
    await follower.at(305.0)
    assert {} == follower.throttled()


async def test_a_follower_that_becomes_an_observer_releases_nobody(scene: Scene) -> None:
    """Before all brokers were read, or the validity is over; what some brokers have is not all."""
    scene.watch.change([replace(each, principals=(each.owner,)) for each in BUDGETS])
    scene.is_observer = False
    scene.observed = {
        "etl": BudgetThrottle(0.0, ("etl.a",), 0.0),
        "web": BudgetThrottle(0.5, ("clicks",), 0.0),
    }
    scene.sizes[2]["clicks"] = 200 * MB
    for now, factor in ((0.0, 0.5), (10.0, 0.0), (300.0, 0.0)):
        await scene.at(now)
        assert {"etl": 0.0, "web": factor} == scene.throttled()
        budgets = scene.board.snapshot.decision.budgets
        named = {owner: each.principals for owner, each in budgets.items()}
        assert {"etl": ("etl",), "web": ("web",)} == named
        scene.is_observer, scene.silent = True, {1}
    await scene.at(301.0)
    assert {"web": 0.0} == scene.throttled()


async def test_a_new_observer_releases_owners_that_have_less(scene: Scene) -> None:
    """Once all brokers were read."""
    scene.is_observer = False
    scene.observed = {"etl": BudgetThrottle(0.0, ("etl.a",), 0.0)}
    await scene.at(0.0)
    scene.is_observer, scene.hung = True, {2}
    await scene.at(10.0)
    assert {"etl": 0.0} == scene.throttled()
    scene.hung = set()
    await scene.at(70.0)
    assert {} == scene.throttled()


async def test_a_throttle_ends_with_the_validity(scene: Scene) -> None:
    """If the watch does not run any more."""
    scene.sizes[1]["etl.a"] = 200 * MB
    await scene.at(0.0)
    scene.clock.now = 300.0
    scene.board.update(lambda memory: memory)
    assert {"etl": 0.0} == scene.throttled()
    scene.clock.now = 300.1
    scene.board.update(lambda memory: memory)
    assert {} == scene.throttled()
