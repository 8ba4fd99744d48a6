"""Sidecars in every state that the status page has to show, without brokers."""

from collections.abc import Mapping

from sidecar.kafka.largest_topics import LogDirTopics, TopicSize
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Override
from sidecar.throttle.readers import Report
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.throttle.build import reading, whole, with_rules

GB = 10**9
FACTORS = VolumeLimit(Rules(MinAvailableBytes(10 * GB), 300.0), 1.0)
DIRS = ("/var/lib/kafka/data-0", "/var/lib/kafka/data-1")
UNSEEN = Failure(
    FailureKind.CONNECT,
    "no broker reported the list of brokers: broker-0:9092: connection refused, connecting",
)


async def lies_there(_: int) -> Mapping[str, LogDirTopics]:
    """What lies on every volume of a broker."""
    largest = (
        TopicSize("orders", 41 * GB, tuple(range(12)), 7 * GB),
        TopicSize("clicks-eu", 22 * GB, tuple(range(24)), GB),
        TopicSize("__consumer_offsets", 2 * GB, (3, 7), GB),
    )
    return dict.fromkeys(DIRS, LogDirTopics(37, 91 * GB, largest))


class Scene(FakeSidecar):
    """Three brokers with two volumes of 100 GB each."""

    def __init__(self, *, validity_s: float = 300.0) -> None:
        super().__init__(factors=with_rules(FACTORS, validity_s=validity_s), ask=lies_there)

    def poll(self, at: float, left: float) -> None:
        """One poll; ``left`` is what the worst volume has, GB."""
        self.clock.now = at
        free = {0: (52.0, 61.0), 1: (44.0, 58.0), 2: (left, 39.0)}
        answers = [
            reading(
                broker_id,
                at,
                {log_dir: round(each * GB) for log_dir, each in zip(DIRS, pair, strict=True)},
                total=100 * GB,
            )
            for broker_id, pair in free.items()
        ]
        self.see(
            whole(at, answers, silent=[3] if left < 10 else [], fenced=[4] if left < 10 else [])
        )
        self.board.readers.record(Report(2, left < 9, 12), self.board.snapshot.generation, at)


def normal() -> Scene:
    """Nobody is throttled, and one volume fills."""
    scene = Scene()
    scene.poll(0.0, 30.0)
    scene.poll(60.0, 29.0)
    scene.clock.now = 64.0
    return scene


def throttled() -> Scene:
    """One volume is at its limit and fills on, one broker is silent, one fenced."""
    scene = normal()
    for at, left in ((70.0, 8.1), (90.0, 8.1), (110.0, 8.05)):
        scene.poll(at, left)
    scene.clock.now = 112.0
    return scene


def fallback() -> Scene:
    """Nothing is seen any more."""
    scene = normal()
    scene.clock.now = 500.0
    for _ in range(5):
        scene.board.fail(UNSEEN)
    return scene


def override() -> Scene:
    """An operator released all, although a volume is at its limit."""
    scene = throttled()
    set_by_hand = Override(1.0, "disk is being replaced, ticket 4711", 112.0, 112.0 + 3600.0)
    scene.board.set_override(set_by_hand)
    return scene


def unseen() -> Scene:
    """Nothing was observed yet."""
    scene = Scene()
    scene.board.fail(UNSEEN)
    scene.clock.now = 20.0
    return scene


def thousand() -> Scene:
    """1,000 volumes, 100 of them at their limit."""
    scene = Scene()
    for at in (0.0, 60.0):
        scene.clock.now = at
        answers = [
            reading(
                broker_id,
                at,
                {
                    f"/var/lib/kafka/data-{n}": (5 + 10 * n) * GB - round(at * 1e6) * (n % 3)
                    for n in range(10)
                },
                total=100 * GB,
            )
            for broker_id in range(100)
        ]
        scene.see(whole(at, answers))
    return scene


SCENES = {
    "normal": normal,
    "throttled": throttled,
    "fallback": fallback,
    "override": override,
    "no observation yet": unseen,
    "1,000 volumes": thousand,
}
