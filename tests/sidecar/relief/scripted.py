"""A cluster in memory that fills, and sidecars that make room there; a test moves the clock.

Records differ in size by a factor of a thousand. Segments are removed at each check; their space is
free later. Each deletion is checked against the records themselves.
"""

import random
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sidecar.control.board import Board
from sidecar.kafka.expendable import Examined, Look, Seen
from sidecar.relief import journal as journals
from sidecar.relief.classes_file import ClassesFile
from sidecar.relief.journal import Entry, Journal
from sidecar.relief.service import Relief
from sidecar.settings import KafkaAdmin
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.growth import Partition
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.partition_track import Sight
from sidecar.throttle.relief import NOTHING, ReliefClass, class_of
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.throttle.build import FakeClock, reading, whole
from tests.support.partition_log import MB, Log

TOTAL = 4000 * MB
LIMIT = 300 * MB
SEGMENT = 20 * MB
CHECK_S, DELAY_S = 20.0, 10.0
SETTLE_S = CHECK_S + DELAY_S + 10.0
STEP = 400 * MB
DOWN = Failure(FailureKind.TIMEOUT, "no answer")
DECLARED = """
[[class]]
topics = ["debug"]
keep_time = "2m"
ignore_groups = true
[[class]]
topics = ["logs*"]
keep_bytes = "200MB"
"""
CLASSES = ClassesFile(Path()).parse(tomllib.loads(DECLARED))


class Killed(BaseException):
    """The sidecar is killed."""


@dataclass
class World:
    """Three brokers with a volume each.

    Attributes:
        chance: what draws everything.
        faults: whether anything fails.
        committed: group -> partition -> its offset; "etl" reads logs-a and logs-b.
        left_out: topic -> why it can't be read.
        unsuitable: topic -> why its configuration rules a deletion out.
        kill_in: so many more moments until the sidecar that acts is killed; None: never.
        deleted: partition -> the highest offset that a deletion asked for.
        topic_id: the id of all topics.
    """

    chance: random.Random
    clock: FakeClock
    faults: bool = False
    foreign: dict[int, int] = field(default_factory=lambda: dict.fromkeys((1, 2, 3), 0))
    committed: dict[str, dict[Partition, int]] = field(default_factory=lambda: {"etl": {}})
    left_out: dict[str, str] = field(default_factory=dict)
    unsuitable: dict[str, str] = field(default_factory=dict)
    kill_in: int | None = None
    silent: frozenset[int] = frozenset()
    groups_unknown: str = ""
    group_sleeps_until: float = 0.0
    deleted: dict[Partition, int] = field(default_factory=dict)
    topic_id: bytes = b"id"
    deletions: int = 0
    lowest: int = TOTAL
    _freeing: list[tuple[float, int, int]] = field(default_factory=list)
    _epochs: dict[Partition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.logs: dict[Partition, Log] = {
            ("orders", 0): Log(0.5 * MB, [1, 2, 3]),
            ("debug", 0): Log(3 * MB, [2]),
            ("logs-a", 0): Log(9 * MB, [1, 2]),
            ("logs-b", 0): Log(9 * MB, [3, 1]),
        }

    def moment(self) -> None:
        """A moment at which a kill -9 may come."""
        if self.kill_in is not None:
            self.kill_in -= 1
            if self.kill_in < 0:
                self.kill_in = None
                raise Killed

    def tick(self, seconds: float = 1.0) -> None:
        """Time passes: records are written, read, and removed."""
        before, now = self.clock.now, self.clock.now + seconds
        self.clock.now = now
        for key, log in self.logs.items():
            record = 10 ** self.chance.uniform(2, 5)
            nbytes = round(log.rate * seconds * self.chance.uniform(0.5, 1.5))
            log.write(max(1, round(nbytes / record)), nbytes, now)
            if key[0].startswith("logs") and now >= self.group_sleeps_until:
                self.committed["etl"][key] = max(self.committed["etl"].get(key, 0), log.end - 50)
            if now // CHECK_S != before // CHECK_S and (freed := log.removed()):
                self._freeing += [(now + DELAY_S, broker, freed) for broker in log.replicas]
        self._freeing = [each for each in self._freeing if each[0] > now]
        self.lowest = min(self.lowest, *map(self.available, self.foreign))
        if self.faults:
            self._fail()

    def _fail(self) -> None:
        draw = self.chance.random
        if draw() < 0.01:
            self.silent = frozenset({2}) if not self.silent else frozenset()
        if draw() < 0.01:
            self.groups_unknown = "" if self.groups_unknown else "a coordinator is gone"
        if draw() < 0.005:
            self.group_sleeps_until = self.clock.now + 60.0
        if draw() < 0.01:
            log = self.chance.choice(list(self.logs.values()))
            log.replicas.append(log.replicas.pop(0))
            log.epoch += 1
            if draw() < 0.5:
                log.truncate(3)
        if draw() < 0.005:
            # Retention by the topic's own settings.
            log = self.chance.choice(list(self.logs.values()))
            log.start = max(log.start, log.segments[-1][0])
        if draw() < 0.01 and self.kill_in is None:
            self.kill_in = self.chance.randrange(12)

    def available(self, broker: int) -> int:
        used = sum(log.size for log in self.logs.values() if broker in log.replicas)
        used += sum(nbytes for _, each, nbytes in self._freeing if each == broker)
        return max(0, TOTAL - used - self.foreign[broker])

    def poll(self, board: Board) -> None:
        now = self.clock.now
        answers = [
            reading(broker, now, {"/d": self.available(broker)}, total=TOTAL)
            for broker in self.foreign
            if broker not in self.silent
        ]
        board.observe(whole(now, answers, silent=self.silent))

    # What a sidecar can do.

    def reload(self, admin: KafkaAdmin, *, redial: bool = True) -> Callable[[], None]:
        return lambda: None

    async def close(self) -> None:
        pass

    def _is_down(self) -> bool:
        self.moment()
        return self.faults and self.chance.random() < 0.02

    async def look(self, classes: Sequence[ReliefClass], timeout_s: float) -> Look | Failure:
        if self._is_down():
            return DOWN
        declared = {key: log for key, log in self.logs.items() if class_of(key[0], classes)}
        ends = {key: log.end for key, log in declared.items()}
        self._epochs = {key: log.epoch for key, log in declared.items()}
        if self.faults and self.chance.random() < 0.3:
            self.tick(0.2)
        now = self.clock.now
        return Look(
            {
                key: Seen(
                    Sight(now, self._lineage(log), log.start, ends[key], log.size),
                    log.replicas[0],
                    frozenset((broker, "/d") for broker in log.replicas),
                )
                for key, log in declared.items()
                if key[0] not in self.left_out
            },
            self.left_out,
            {topic: SEGMENT for topic, _ in declared if topic not in self.unsuitable},
            self.unsuitable,
        )

    def _lineage(self, log: Log) -> tuple[bytes, int, int]:
        return self.topic_id, log.replicas[0], log.epoch

    async def examine(
        self,
        partitions: Mapping[Partition, Seen],
        classes: Sequence[ReliefClass],
        now_ms: int,
        timeout_s: float,
    ) -> Examined | Failure:
        if self._is_down():
            return DOWN
        assert partitions
        return Examined(
            {
                key: self.logs[key].young_from(now_ms / 1000 - of.keep_s)
                for key in partitions
                if (of := class_of(key[0], classes)) and of.keep_s is not None
            },
            {
                key: {
                    group: offsets.get(key, NOTHING)
                    for group, offsets in self.committed.items()
                    if key[0] in {topic for topic, _ in offsets}
                }
                for key in partitions
            },
            self.groups_unknown,
        )

    async def changed(self, partitions: Collection[Partition]) -> Mapping[Partition, Failure]:
        return {key: DOWN for key in partitions if self.logs[key].epoch != self._epochs.get(key)}

    async def delete(
        self, offsets: Mapping[Partition, int], leaders: Mapping[Partition, int]
    ) -> Mapping[Partition, int | Failure]:
        self.moment()
        results: dict[Partition, int | Failure] = {}
        for key, offset in offsets.items():
            if self._is_down():
                results[key] = DOWN
                continue
            self._check(key, offset)
            log = self.logs[key]
            self.deletions += offset > log.start
            log.start = max(log.start, offset)
            self.deleted[key] = max(self.deleted.get(key, 0), offset)
            results[key] = log.start
            if self.faults and self.chance.random() < 0.1:
                # It was deleted, but the answer is lost.
                results[key] = DOWN
        self.moment()
        return results

    def _check(self, key: Partition, offset: int) -> None:
        """What must be true of every deletion, whatever fails."""
        log, of = self.logs[key], class_of(key[0], CLASSES)
        assert offset <= log.end
        counts = of is not None and not of.ignores_groups
        commits = {group: read[key] for group, read in self.committed.items() if counts}
        assert "" == log.wrong(offset, of, self.clock.now, commits), key


class KilledJournal(Journal):
    """A journal whose sidecar may be killed before, in and after a line."""

    world: World

    async def append(self, entry: Entry) -> None:
        self.world.moment()
        try:
            self.world.moment()
        except Killed:
            assert self._folder is not None
            path = self._folder / journals._name(entry.at)
            with path.open("ab") as file:
                file.write(b'{"kind":"begin","st')
            raise
        await super().append(entry)
        self.world.moment()


class Sidecar:
    """A sidecar with its disk; each start reads that."""

    def __init__(self, world: World, folder: Path, *, step: int = STEP) -> None:
        self.world, self.folder, self.step = world, folder, step
        self.is_first = True
        self.kills = 0
        self.start()

    def start(self) -> None:
        world = self.world
        self.board = Board(VolumeLimit(Rules(MinAvailableBytes(LIMIT), 300.0), 1.0), world.clock)
        journal = KilledJournal(self.folder)
        journal.world = world

        file = ClassesFile(self.folder.with_suffix(".toml"))
        file.path.write_text(DECLARED)
        file.load()

        async def settle() -> float:
            return SETTLE_S

        self.relief = Relief(
            self.board,
            lambda steady: steady,
            world,
            file,
            "delete",
            self.step,
            1.0,
            lambda: self.is_first,
            settle,
            journal,
        )
        self.turn = 0

    async def second(self) -> None:
        """What it does in a second."""
        self.world.poll(self.board)
        self.relief.observe()
        self.turn += 1
        try:
            if self.turn % 10 == 1:
                await self.relief.act()
            elif self.is_first and self.relief._is_near():
                await self.relief._look()
        except Killed:
            self.kills += 1
            self.start()

    def lines(self) -> Iterator[Entry]:
        """All lines on its disk."""
        for path in sorted(self.folder.glob("relief-*.jsonl")):
            yield from journals._lines(path)


async def run(world: World, seconds: float, *sidecars: Sidecar) -> None:
    """Let time pass."""
    until = world.clock.now + seconds
    while world.clock.now < until:
        world.tick()
        for each in sidecars:
            await each.second()


def started(seed: int, folder: Path, **more: object) -> tuple[World, Sidecar]:
    """A world whose fullest volume reaches its limit in about two minutes, and a sidecar."""
    world = replace(World(random.Random(seed), FakeClock(1000.0)), **more)  # type: ignore[arg-type]
    world.foreign = {1: TOTAL - LIMIT - 2500 * MB, 2: TOTAL // 4, 3: 0}
    return world, Sidecar(world, folder)
