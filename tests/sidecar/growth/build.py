"""A volume near its limit whose parts are read a minute apart."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sidecar.control.board import Board
from sidecar.control.volume_contents import ContentsResult, VolumeContents
from sidecar.growth.watch import GrowthWatch
from sidecar.kafka.largest_topics import LogDirTopics
from sidecar.kafka.log_dir_messages import PartitionSizes
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.growth import Placement
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import TIMED_OUT, FakeClock, reading, whole

MB = 1_000_000
FACTORS = VolumeLimit(Rules(MinAvailableBytes(10 * MB), 300.0), 1.0)
LEADERS = {("orders", 0): 1}


def contents_of(used_bytes: int, topics: Mapping[str, int]) -> LogDirTopics:
    """A log dir with partition 0 of each topic."""
    packed = {
        topic: PartitionSizes(bytes(4) + size.to_bytes(8, "big") + bytes(10))
        for topic, size in topics.items()
    }
    return LogDirTopics(len(topics), sum(topics.values()), (), used_bytes, packed)


@dataclass
class Scene:
    """Broker 1 with a volume of 100 MB, of which 5 MB are left, and what reads it.

    Attributes:
        broker_id: the broker beside the sidecar.
        is_observer: whether the sidecar polls all brokers.
        asked: the brokers that were read.
        arriving: the partitions that arrive at broker 1.
        sizes: their sizes on their leaders.
        moves: the brokers that were asked for all reassignments.
        brokers: the active brokers.
        places: lets placements be read; they hang while it is clear.
        lost: what can't be read: the broker's "answer", its "arriving" partitions or their "sizes".
        other: what is left of /e, which then has the topic clicks; None without it.
    """

    broker_id: int | None = 1
    is_observer: bool = True
    asked: list[int] = field(default_factory=list)
    arriving: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    sizes: dict[tuple[str, int], int] = field(default_factory=dict)
    moves: list[int] = field(default_factory=list)
    brokers: tuple[int, ...] = (1, 2)
    lost: str = ""
    other: int | None = None

    def __post_init__(self) -> None:
        self.places = asyncio.Event()
        self.places.set()
        self.clock = FakeClock()
        self.board = Board(FACTORS, self.clock)
        self.answer: ContentsResult = {}
        self.contents = VolumeContents(
            self._ask, self.clock, self._place, receiving=self._receiving
        )
        self.watch = GrowthWatch(
            self.board, self.contents, self.broker_id, lambda: self.is_observer
        )

    async def _ask(self, broker_id: int) -> ContentsResult:
        self.asked.append(broker_id)
        return TIMED_OUT if self.lost == "answer" else self.answer

    async def _place(self, _: int, topics: Sequence[str]) -> Placement:
        await self.places.wait()
        arriving = None if self.lost == "arriving" else self.arriving
        sizes = {} if self.lost else self.sizes
        return Placement(LEADERS, arriving, dict.fromkeys(topics, "ID"), sizes)

    async def _receiving(self, broker_id: int) -> frozenset[int]:
        self.moves.append(broker_id)
        return frozenset({1} if self.arriving else ())

    async def read(self, *readings: tuple[int, Mapping[str, int]], left: int = 5 * MB) -> None:
        """Reads used bytes and topics, each a minute after the one before."""
        task = asyncio.create_task(self.contents.run())
        for used_bytes, topics in readings:
            free = {"/d": left} if self.other is None else {"/d": left, "/e": self.other}
            volumes = [reading(each, self.clock.now, free, total=100 * MB) for each in self.brokers]
            self.board.observe(whole(self.clock.now, volumes))
            self.answer = {"/d": contents_of(used_bytes, topics)}
            if self.other is not None:
                clicks = {"clicks": topics["clicks"]}
                orders = {name: size for name, size in topics.items() if name not in clicks}
                self.answer = {
                    "/d": contents_of(used_bytes, orders),
                    "/e": contents_of(used_bytes, clicks),
                }
            earlier = self.contents.known(1)
            await self.watch.ask()
            self.watch.look()
            for _ in range(200):
                await asyncio.sleep(0.001)
                known = self.contents.known(1)
                if known is not None and known is not earlier and (known.splits or self.lost):
                    break
            self.watch.name()
            self.clock.now += 60.0
        task.cancel()
