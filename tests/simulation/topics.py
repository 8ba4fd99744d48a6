"""Topics that sidecars make room in, and what must be true of each deletion, whatever fails.

A world with relief has "orders", which no class has, as its partition 0, and "logs" as the others,
with a floor by bytes, by time, or both. What clients append is in them. Brokers remove the segments
below a partition's first offset at each check, and their space is free some time later. What the
operator and brokers free besides is the oldest segments, too. "etl" reads "logs" with a lag, and
"late" joins at some time, commits some time after that, and is deleted later. A leader that had not
copied all lacks the newest records from then on, like after an unclean election.

Claims, at each DeleteRecords: it is for declared topics, and leaves floors and what groups have not
read. It is in that sidecar's journal. No broker of another cluster gets it. Some volume of it
lacked room lately, so what two delete at once is not deleted twice. At some of them the sidecar is
killed, before or after the deletion, or the answer is lost. At the end, no journal of a sidecar
that acts has an open step.

Example: sidecar 1 is killed when broker 0 has deleted logs 0 up to 500. Its next process finds the
begin of that step in its journal, and notes 500 as the first offset.
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from unittest.mock import patch

from kio.schema.errors import ErrorCode

from sidecar.kafka.partition_leaders import OFFSETS_TOPIC
from sidecar.kafka.relief_messages import HIGHEST
from sidecar.relief import journal as journals
from sidecar.relief.capability import ReliefCapability
from sidecar.relief.journal import Entry
from sidecar.throttle.growth import Partition
from sidecar.throttle.relief import ReliefClass
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.faults import Fault, Kind
from tests.simulation.sidecars import EPOCH_S, SimulatedSidecar
from tests.simulation.volumes import Volume
from tests.support.fake_broker import DESCRIBE_LOG_DIRS, FakeBroker, FakeCluster, FakeRequest
from tests.support.fake_configs import FakeConfigs
from tests.support.fake_topics import OK, FakeDir, FakePartition, FakeTopics
from tests.support.partition_log import Log

if TYPE_CHECKING:
    from tests.simulation.world import World

_TOPIC_CONFIG: Final = 2
_COUNTS_S: Final = 60.0
"""A group that committed for the first time may have been read before; it counts from then on."""
_LATELY: Final = 120
"""How long a deletion may be under way, seconds: its broker may be frozen."""
_DOWN_S: Final = 5.0
_IN_FLIGHT_S: Final = 30.0
"""The longest time from the begin of a step to its end, while all is well."""
_LOADS_S: Final = 2.0
_KILLED, _LOST = 0.1, 0.15

_Groups = dict[str, dict[int, int]]


class _News(NamedTuple):
    """What a broker knows of the cluster."""

    topics: Mapping[str, Sequence[FakePartition]]
    coordinator: int
    groups: _Groups


class SimulatedTopics(FakeTopics):
    """The topics and groups of a world.

    Attributes:
        of_class: the declared class.
        logs: the partitions' records, by the world's index.
        groups: group -> index -> its committed offset.
        figures: what was counted.
    """

    def __init__(self, world: "World", largest_bytes: int) -> None:
        self._world = world
        self._chance = chance = random.Random(f"relief {world.plan.seed}")
        self._segment_bytes = int(largest_bytes * chance.uniform(0.005, 0.02))
        self._step_bytes = int(self._segment_bytes * chance.uniform(1.0, 8.0))
        self._check_s, self._delay_s = chance.choice([5.0, 20.0]), chance.uniform(1.0, 10.0)
        floors = chance.randrange(1, 4)
        self.of_class = ReliefClass(
            ("logs",),
            int(largest_bytes * chance.uniform(0.01, 0.08)) if floors & 1 else None,
            float(chance.randrange(10, 60)) if floors & 2 else None,
            ignores_groups=chance.random() < 0.25,
        )
        count = world.plan.brokers
        self.logs = [Log(0.0, [], self._segment_bytes) for _ in range(count)]
        self._firsts = [[0] * count for _ in range(count)]
        self._moved_at = -_LOADS_S
        self.groups: _Groups = {"etl": dict.fromkeys(range(1, count), 0)}
        self._since: dict[str, float] = {"etl": -_COUNTS_S}
        self._sleeps_until = 0.0
        times = sorted(chance.uniform(0.0, world.plan.duration_s) for _ in range(3))
        self._joins_at, self._commits_at, self._leaves_at = times
        self._then: dict[int, _News] = {}
        self._freeing: Counter[Volume] = Counter()
        self._projected: dict[Volume, deque[float]] = {}
        self._dead: list[tuple[float, Fault]] = []
        self.figures: Counter[str] = Counter()
        self._append = journals._append
        settings: dict[str, str | None] = {
            "log.retention.check.interval.ms": str(round(1000 * self._check_s)),
            "log.segment.delete.delay.ms": str(round(1000 * self._delay_s)),
        }
        # Node ids grow with each broker that gets another one.
        self._configs = FakeConfigs(configs=dict.fromkeys(range(1000), settings))
        self.of(world.cluster)

    def of(self, cluster: FakeCluster) -> FakeCluster:
        self._configs.of(cluster)
        cluster.answerers[DESCRIBE_LOG_DIRS] = self.sizes
        return super().of(cluster)

    def environ(self, folder: Path) -> dict[str, str]:
        """The settings; the class is in a file of a folder."""
        of = self.of_class
        floors = [] if of.keep_bytes is None else [f'keep_bytes = "{of.keep_bytes}"']
        floors += [] if of.keep_s is None else [f'keep_time = "PT{of.keep_s:.0f}S"']
        ignores = f"ignore_groups = {str(of.ignores_groups).lower()}"
        file = folder / "relief.toml"
        file.write_text("\n".join(["[[class]]", 'topics = ["log*"]', *floors, ignores]))
        return {
            "SIDECAR_RELIEF_FILE": str(file),
            "SIDECAR_RELIEF_MODE": "delete",
            "SIDECAR_RELIEF_STEP": str(self._step_bytes),
        }

    def patched(self) -> "AbstractContextManager[object]":
        """Journals lie on the sidecars' disks, which may be full, or hang."""
        return patch.object(journals, "_append", self._append_to)

    def _append_to(self, path: Path, entry: Entry) -> None:
        disk = self._sidecar(f"sidecar {path.parent.parent.name}").disk
        try:
            disk.check()
        except OSError:
            with path.open("ab") as file:
                file.write(b'{"kind":"begin","st')
            raise
        self._append(path, entry)

    def _sidecar(self, name: str) -> SimulatedSidecar:
        return self._world.sidecars[int(name.rpartition(" ")[2])]

    # What happens to the topics.

    def wrote(self, index: int, count: int) -> None:
        """A client appended bytes."""
        records = max(1, round(count / 10 ** self._chance.uniform(2, 5)))
        self.logs[index].write(records, count, self._world.now())

    def retained(self, volume: Volume, count: int) -> None:
        """Space was freed on a volume: its oldest segments are gone."""
        number, freed = volume.broker, 0
        mine = [index for index, _ in enumerate(self.logs) if self._volume(number, index) is volume]
        while freed < count and mine:
            index = max(mine, key=lambda each: self._size(number, each))
            freed_now = self._remove(number, index, self.logs[index].end)
            if not freed_now:
                mine.remove(index)
            freed += freed_now
            if self._world.partitions[index].leader == number:
                self._start(index, self._firsts[index][number])

    def moved(self, index: int) -> None:
        """A partition has another leader; what that one had not copied is lost."""
        world, log = self._world, self.logs[index]
        partition = world.partitions[index]
        log.epoch += 1
        lost, away = 0, partition.behind.get(partition.leader, 0)
        while lost < away and (more := log.truncate(1)):
            lost += more
        for number in world.brokers if lost else ():
            missed = min(lost, partition.behind.get(number, 0))
            partition.behind[number] = partition.behind.get(number, 0) - missed
            self._volume(number, index).free(lost - missed, world.now())
        for offsets in self.groups.values():
            if index in offsets:
                offsets[index] = min(offsets[index], log.end)
        self._start(index, self._firsts[index][partition.leader])
        if index == 0:
            self._moved_at = world.now()

    def lags(self, broker: SimulatedBroker) -> None:
        """A broker gets no more news."""
        groups = {name: dict(offsets) for name, offsets in self.groups.items()}
        self._then[broker.number] = _News(self._topics(), self._world.partitions[0].leader, groups)

    def catches_up(self, broker: SimulatedBroker) -> None:
        """It gets them again."""
        self._then.pop(broker.number, None)

    async def run(self) -> None:
        """Reads, cleans, and starts sidecars again that were killed, until it is cancelled."""
        cleaned_at = 0.0
        while True:
            await asyncio.sleep(1.0)
            world, now = self._world, self._world.now()
            self._read(now)
            if now >= cleaned_at + self._check_s:
                cleaned_at = now
                self._clean()
            for volume in world.volumes():
                lately = self._projected.setdefault(volume, deque(maxlen=_LATELY))
                lately.append(self._room(volume))
            for each in [each for each in self._dead if each[0] <= now]:
                self._dead.remove(each)
                world.note(f"sidecar {each[1].target} starts again")
                world.sidecars[each[1].target].start(world.claims.watch)
                world.claims.undisturb(f"sidecar {each[1].target}")

    def _read(self, now: float) -> None:
        chance = self._chance
        if now >= self._sleeps_until and chance.random() < 0.003:
            self._sleeps_until = now + chance.uniform(10.0, 120.0)
        if self._joins_at <= now < self._leaves_at:
            late = self.groups.setdefault("late", {})
            if now >= self._commits_at and not late:
                late |= {index: log.start for index, log in enumerate(self.logs) if index}
                self._since["late"] = now
        elif self.groups.pop("late", None):
            del self._since["late"]
        for name, offsets in self.groups.items():
            lag = 0 if name == "etl" else int(5 * self._segment_bytes / 10**4)
            if now >= self._sleeps_until or name == "late":
                for index, offset in offsets.items():
                    log = self.logs[index]
                    offsets[index] = max(offset, log.start, log.end - chance.randrange(100) - lag)

    def _clean(self) -> None:
        for number, broker in self._world.brokers.items():
            for index, log in enumerate(self.logs):
                volume = self._volume(number, index)
                if not broker.is_running or volume.is_offline:
                    continue
                freed = 0
                while more := self._remove(number, index, log.start):
                    freed += more
                if freed:
                    self._freeing[volume] += freed
                    self._world.loop.call_later(self._delay_s, self._free, volume, freed)
        for log, firsts in zip(self.logs, self._firsts, strict=True):
            log.forget(min(firsts))

    def _free(self, volume: Volume, count: int) -> None:
        self._freeing[volume] -= count
        volume.free(count, self._world.now())

    def _remove(self, number: int, index: int, below: int) -> int:
        """Remove a replica's oldest segment if it is below an offset and not the last; its size."""
        first = self._firsts[index][number]
        kept = [each for each in self.logs[index].segments if each[0] >= first]
        if len(kept) < 2 or kept[1][0] > below:
            return 0
        self._firsts[index][number] = kept[1][0]
        return kept[0][1]

    def _start(self, index: int, offset: int) -> None:
        self.logs[index].start = max(self.logs[index].start, offset)

    def _volume(self, number: int, index: int) -> Volume:
        return self._world.brokers[number].volume_of(index)

    def _size(self, number: int, index: int) -> int:
        return self.logs[index].size_from(self._firsts[index][number])

    def _room(self, volume: Volume) -> float:
        """What is available on a volume, and will be once all that was deleted is free."""
        gone = 0.0
        for index, log in enumerate(self.logs):
            if self._volume(volume.broker, index) is volume:
                on_disk = self._size(volume.broker, index)
                gone += max(0.0, on_disk - log.bytes_from(log.start))
        return volume.available_bytes + self._freeing[volume] + gone

    # What brokers answer.

    def topics(self, broker: FakeBroker) -> Mapping[str, Sequence[FakePartition]]:
        return self._news(broker).topics

    def brokers(self, broker: FakeBroker) -> Iterator[FakeBroker]:
        then = broker.list_of_then
        for key, each in broker.cluster.brokers.items():
            if not (each.fenced if then is None else then.get(key, True)):
                yield each

    def offset(
        self, broker: FakeBroker, key: Partition, epoch: int, timestamp: int
    ) -> tuple[ErrorCode, int]:
        index, error = self._led(broker, key)
        if error is not OK:
            return error, -1
        log = self.logs[index]
        known = log.epoch
        if key[0] == OFFSETS_TOPIC:
            known = self._news(broker).topics[OFFSETS_TOPIC][0].epoch
        if epoch != known:
            is_old = epoch < known
            return ErrorCode.fenced_leader_epoch if is_old else ErrorCode.unknown_leader_epoch, -1
        if timestamp == HIGHEST:
            return OK, int(1000 * (log.times[-1] + EPOCH_S)) if log.times else -1
        if timestamp < 0:
            return OK, log.end if timestamp == -1 else log.start
        found = log.young_from(timestamp / 1000 - EPOCH_S)
        return OK, -1 if found == log.end else max(found, log.start)

    def log_dirs(
        self, broker: FakeBroker, asked: Sequence[tuple[str, Sequence[int]]] | None
    ) -> Iterator[FakeDir]:
        assert isinstance(broker, SimulatedBroker)
        keys = [_key(index) for index, _ in enumerate(self.logs)]
        wanted = keys if asked is None else [(name, each) for name, some in asked for each in some]
        for volume in broker.volumes:
            if volume.is_offline or volume.is_unreadable:
                yield FakeDir(56 if volume.is_offline else -1, volume.log_dir, -1, -1, ())
                continue
            sizes = [
                (key, self._size(broker.number, index), False)
                for index, key in enumerate(keys)
                if broker.volume_of(index) is volume and key in wanted
            ]
            room = volume.total_bytes, volume.available_bytes
            yield FakeDir(0, volume.log_dir, *room, sizes)

    def describe_configs(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        if int(request.decoded.resources[0].resource_type) != _TOPIC_CONFIG:
            return self._configs._describe(broker, request)
        return super().describe_configs(broker, request)

    def config(self, topic: str) -> tuple[ErrorCode, Mapping[str, str]]:
        return OK, {"cleanup.policy": "delete", "segment.bytes": str(self._segment_bytes)}

    def groups_of(
        self, broker: FakeBroker
    ) -> tuple[ErrorCode, Iterable[tuple[str, str, str, str]]]:
        assert isinstance(broker, SimulatedBroker)
        news = self._news(broker)
        if news.coordinator != broker.number:
            return OK, ()
        loads_s = self._world.now() - self._moved_at
        if broker.number not in self._then and loads_s < _LOADS_S:
            is_known = loads_s > _LOADS_S / 2
            return ErrorCode.coordinator_load_in_progress if is_known else OK, ()
        return OK, [(name, "consumer", "Stable", "Classic") for name in news.groups]

    def commits_of(
        self, broker: FakeBroker, group: str
    ) -> tuple[ErrorCode, Mapping[str, Mapping[int, int]]]:
        news = self._news(broker)
        assert isinstance(broker, SimulatedBroker)
        if news.coordinator != broker.number:
            return ErrorCode.not_coordinator, {}
        offsets = news.groups.get(group)
        of = {"logs": {index - 1: offset for index, offset in (offsets or {}).items()}}
        return OK, of if offsets else {}

    def _news(self, broker: FakeBroker) -> _News:
        assert isinstance(broker, SimulatedBroker)
        then = self._then.get(broker.number)
        return then or _News(self._topics(), self._world.partitions[0].leader, self.groups)

    def _topics(self) -> dict[str, list[FakePartition]]:
        ids = tuple(each.broker_id for each in self._world.brokers.values())
        of = [
            FakePartition(self._world.brokers[each.leader].broker_id, log.epoch, ids)
            for each, log in zip(self._world.partitions, self.logs, strict=True)
        ]
        return {"orders": of[:1], "logs": of[1:], OFFSETS_TOPIC: of[:1]}

    def _led(self, broker: FakeBroker, key: Partition) -> tuple[int, ErrorCode]:
        assert isinstance(broker, SimulatedBroker)
        if key[0] == OFFSETS_TOPIC:
            # A broker without the newest metadata does not know who leads it.
            coordinates = self._news(broker).coordinator == broker.number
            return 0, OK if coordinates else ErrorCode.not_leader_or_follower
        index = key[1] + 1 if key[0] == "logs" else 0
        is_there = not broker.volume_of(index).is_offline
        leads = self._world.partitions[index].leader == broker.number and is_there
        return index, OK if leads else ErrorCode.not_leader_or_follower

    # Deletions.

    def delete(
        self, broker: FakeBroker, offsets: Mapping[Partition, int]
    ) -> Mapping[Partition, tuple[ErrorCode, int]]:
        assert isinstance(broker, SimulatedBroker)
        sidecar = self._sidecar(broker.asking)
        fate = self._chance.random()
        self.figures["DeleteRecords"] += 1
        for key, offset in offsets.items():
            if wrong := self._wrong(sidecar, broker, key, offset):
                self._world.claims.broken(f"{sidecar.name} deletes {key} below {offset}: {wrong}")
        kills = fate < _KILLED and self._may_kill(sidecar)
        if kills:
            self._kill(sidecar)
        if kills or fate > 1.0 - _LOST:
            self.figures["answers to DeleteRecords lost"] += 1
            broker.twist = lambda *_: None
        if kills and fate < _KILLED / 2:
            return {}
        return {key: self._deleted(broker, key, offset) for key, offset in offsets.items()}

    def _deleted(
        self, broker: SimulatedBroker, key: Partition, offset: int
    ) -> tuple[ErrorCode, int]:
        index, error = self._led(broker, key)
        log = self.logs[index]
        if error is OK and offset > log.end:
            error = ErrorCode.offset_out_of_range
        if error is not OK:
            self.figures["refused deletions"] += 1
            return error, -1
        count = log.bytes_from(log.start) - log.bytes_from(max(offset, log.start))
        self._world.note(f"{broker.asking} deletes {key} below {offset}, {count:.0f} bytes")
        self.figures["deletions without effect"] += not count
        self.figures["deleted bytes"] += round(count)
        self._start(index, offset)
        return OK, log.start

    def _wrong(
        self, sidecar: SimulatedSidecar, broker: SimulatedBroker, key: Partition, offset: int
    ) -> str:
        world, now = self._world, self._world.now()
        if broker.cluster is not world.cluster:
            return "its broker is of another cluster"
        if key[0] != "logs":
            return "it is not declared"
        index = key[1] + 1
        log = self.logs[index]
        commits = {
            name: self.groups[name][index]
            for name, since in self._since.items()
            if now >= since + _COUNTS_S
        }
        # ``keep_time`` counts by the clock of the sidecar's machine, which may have been set ahead.
        by_clock = now + max(0.0, sidecar.step_s)
        if wrong := log.wrong(offset, self.of_class, by_clock, commits):
            return wrong
        of = (key[0], key[1], offset, broker.broker_id)
        lines = self._lines(sidecar)
        if not lines and not sidecar.process.is_alive:
            # It was replaced, and its disk emptied, while the request was on its way.
            return ""
        begun = [
            (each.topic, each.partition, each.to_offset, each.leader)
            for line in lines
            if line.kind == "begin"
            for each in line.deletions
        ]
        if of not in begun:
            return "its journal has no begin of it"
        return "" if self._is_needed(index) else "no volume of it lacked room"

    def _is_needed(self, index: int) -> bool:
        """Whether some volume of a partition lacked room when it was planned."""
        for number in self._world.brokers:
            volume = self._volume(number, index)
            threshold = max(volume.soft_bytes or 0, volume.limit_bytes)
            # No relief goes on above this; see ``Room.ends_at``.
            most = threshold + (volume.total_bytes - threshold) / 2
            lowest = min([self._room(volume), *self._projected.get(volume, ())])
            if lowest < most:
                return True
        return False

    def _may_kill(self, sidecar: SimulatedSidecar) -> bool:
        now = self._world.now()
        # After the last fault, a start would not have the time to close its steps.
        return (
            sidecar.process.runs
            and now < self._world.plan.duration_s
            and not any(
                fault.target == sidecar.number
                and fault.at_s - 2 * _DOWN_S < now < fault.ends_s + 1.0
                for fault in self._world.plan.schedule()
            )
        )

    def _kill(self, sidecar: SimulatedSidecar) -> None:
        fault = Fault(self._world.now(), _DOWN_S, Kind.SIDECAR_KILLED, sidecar.number)
        self._world.note(f"{sidecar.name} is killed at its deletion")
        self.figures["kills at a deletion"] += 1
        self._world.claims.begins(fault)
        self._dead.append((fault.ends_s, fault))
        sidecar.kill()

    def _lines(self, sidecar: SimulatedSidecar) -> list[Entry]:
        paths = sorted(sidecar.disk.journals.glob("relief-*.jsonl"))
        return [line for path in paths for line in journals._lines(path)]

    def ended(self) -> None:
        """All is well since a while: no step may be open, and each outcome is true."""
        for sidecar in self._world.sidecars.values():
            assert sidecar.parts is not None
            (relief,) = [
                each.relief
                for each in sidecar.parts.capabilities
                if isinstance(each, ReliefCapability)
            ]
            lines = self._lines(sidecar)
            ends = [line for line in lines if line.kind == "end"]
            begun = [line for line in lines if line.kind == "begin"]
            self.figures["steps"] += len(begun)
            self.figures["steps closed by a later start"] += sum(line.found for line in ends)
            # A step that has just begun waits for its answer.
            since_s = EPOCH_S + sidecar.step_s + self._world.now() - _IN_FLIGHT_S
            old = {line.step for line in begun if line.at < since_s}
            opened = old - {line.step for line in ends}
            self.figures["steps left open by who acts no more"] += len(opened)
            if relief is None or (opened and relief.is_first() and not sidecar.disk.is_cut):
                self._world.claims.broken(f"the journal of {sidecar.name} has open steps {opened}")
            for line in ends:
                for each in line.deletions if not line.found else ():
                    if not each.failure and (each.first_offset or 0) < each.to_offset:
                        self._world.claims.broken(f"{sidecar.name} notes what is not so: {line}")


def _key(index: int) -> Partition:
    return ("logs", index - 1) if index else ("orders", 0)
