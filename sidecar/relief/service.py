"""Makes room every 10 s: reads partitions, plans (``sidecar.throttle.relief``), and deletes.

While a volume is near, partitions are also read every second. Between two readings, what is deleted
hides what is written, so readings that are far apart would see too little being written.

One sidecar acts: the first of SIDECAR_PEERS that answers (``sidecar.peers.rendezvous``). Two that
act for a moment do no harm, since each sees what the other deleted.

A step is on disk in the journal before it is sent, and its outcome is after it. After a kill, the
outcome of an open step is read from the first offsets of its partitions before anything else is
deleted. A sidecar that has just begun to watch deletes nothing for as long as freeing takes: bytes
that another sidecar has deleted may not be free yet.

It refuses to act unless the last poll saw every active broker lately, on another cluster than that
of its journal, and while the file with the classes is not the one that was read: a topic that an
operator has just removed from it is not touched. Since writing a line may take seconds, all this is
checked again after it.

What was deleted counts as free until volumes were read after the time that freeing takes, whatever
becomes of the partition meanwhile. Otherwise the same room would be made again.

Example: a kill -9 between the request and the journal's line. The next start finds the step open,
reads 200 as the first offset of logs 0, and writes that line with ``found``.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn, Protocol

import msgspec

from sidecar.control.board import Board
from sidecar.kafka.expendable import Examined, Look, Seen
from sidecar.kafka.partition_leaders import Offsets as Outcomes
from sidecar.relief.classes_file import ClassesFile
from sidecar.relief.journal import Deleted, Entry, Journal
from sidecar.settings import KafkaAdmin
from sidecar.settings.values import ReliefMode
from sidecar.threads import OwnThreads
from sidecar.throttle.growth import Partition
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.partition_track import Track, next_track
from sidecar.throttle.peak import Peak, growth_of
from sidecar.throttle.relief import (
    AGAIN_S,
    BEYOND,
    MOST_IN_VAIN,
    ROUND_S,
    Deletion,
    Expendable,
    Plan,
    ReliefClass,
    Room,
    View,
    plan,
)
from sidecar.throttle.sizes import size
from sidecar.volumes import Failure, FailureKind, LogDir

_log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
_READ_S: Final = 20.0
_WRITE_S: Final = 10.0
_STALE_S: Final = 10.0
"""How much later than two check intervals a reading may be used."""
_FAILED_S: Final = 60.0
"""How long a topic is left out after a deletion of it failed."""
_SETTLED_AGAIN_S: Final = 600.0
_THREADS: Final = OwnThreads("relief files")

_GONE: Final = Failure(
    FailureKind.BROKER, "the topic no longer exists, was made again, or is not read any more"
)
_NOT_YET: Final = Plan(None, (), "nothing was read yet")


class Topics(Protocol):
    """Reads and deletes; see ``sidecar.kafka.expendable.ExpendableTopics``."""

    async def look(self, classes: Sequence[ReliefClass], timeout_s: float) -> Look | Failure:
        """Read the partitions of declared classes."""

    async def examine(
        self,
        partitions: Mapping[Partition, Seen],
        classes: Sequence[ReliefClass],
        now_ms: int,
        timeout_s: float,
    ) -> Examined | Failure:
        """Read what limits deletions."""

    async def changed(self, partitions: Collection[Partition]) -> Mapping[Partition, Failure]:
        """Those of partitions that are no longer as ``look`` read them."""

    async def delete(
        self, offsets: Mapping[Partition, int], leaders: Mapping[Partition, int]
    ) -> Outcomes:
        """Delete records below offsets."""

    def reload(self, admin: KafkaAdmin, *, redial: bool = True) -> Callable[[], None]:
        """Read new credentials."""

    async def close(self) -> None:
        """Close all connections."""


@dataclass(slots=True)
class Relief:
    """Makes room on volumes.

    Attributes:
        board: the volumes.
        wall: steady seconds -> epoch seconds.
        topics: the cluster.
        file: the file with the classes.
        mode: whether to delete, or only to plan.
        step_bytes: the most bytes of a step, by estimate.
        interval_s: the check interval, seconds.
        is_first: whether this sidecar acts.
        read_settle: returns how long freeing takes, seconds.
        journal: the deletions.
        planned: the last plan.
        left_out: topic -> why it is left out.
        failure: why nothing can be read or noted; "" if it can.
        deletions: how many partitions records were deleted from.
        deleted_bytes: about how much that was.
    """

    board: Board
    wall: Callable[[float], float]
    topics: Topics
    file: ClassesFile
    mode: ReliefMode
    step_bytes: int
    interval_s: float
    is_first: Callable[[], bool]
    read_settle: Callable[[], Awaitable[float]]
    journal: Journal
    planned: Plan = field(default=_NOT_YET, init=False)
    left_out: Mapping[str, str] = field(default_factory=dict, init=False)
    failure: str = field(default="", init=False)
    deletions: int = field(default=0, init=False)
    deleted_bytes: int = field(default=0, init=False)
    _tracks: dict[Partition, Track] = field(default_factory=dict, init=False)
    _peaks: dict[LogDir, Peak] = field(default_factory=dict, init=False)
    _failed: dict[str, tuple[float, str]] = field(default_factory=dict, init=False)
    _watched_since: float | None = field(default=None, init=False)
    _is_loaded: bool = field(default=False, init=False)
    _settle_s: float = field(default=0.0, init=False)
    _settle_read_at: float = field(default=-math.inf, init=False)
    _logged: set[tuple[LogDir, bool]] = field(default_factory=set, init=False)
    _logged_beyond: bool = field(default=False, init=False)
    _homes: dict[Partition, frozenset[LogDir]] = field(default_factory=dict, init=False)
    # Volume -> what was written to declared topics before its first step since the last gain.
    _written: dict[LogDir, int] = field(default_factory=dict, init=False)
    # Volumes from which less went than was needed since the last gain.
    _held: set[LogDir] = field(default_factory=set, init=False)
    _steps: int = field(default=0, init=False)

    @property
    def deletes(self) -> bool:
        """Whether plans are carried out."""
        return self.mode == "delete"

    def observe(self) -> None:
        """Note how fast volumes fill."""
        now = self.board.now()
        memory = self.board.snapshot.memory
        present: set[LogDir] = set()
        for state in memory.volumes():
            log_dir = state.volume.place
            present.add(log_dir)
            self._peaks.setdefault(log_dir, Peak()).add(growth_of(state.fill), now)
        for gone in self._peaks.keys() - present:
            del self._peaks[gone]

    def change(self, _classes: object) -> None:
        """Forget what was written to the topics of other classes."""
        self._written.clear()

    async def run(self) -> NoReturn:
        """Act until cancelled."""
        while True:
            # Not interrupted by a cancellation: what was deleted must be noted.
            await asyncio.shield(asyncio.create_task(self.act(), name="relief"))
            until = self.board.now() + ROUND_S
            while self.board.now() < until:
                await asyncio.sleep(_LOOK_S)
                if self.is_first() and self._is_near():
                    await self._look()

    async def act(self) -> None:
        """Read, plan, and make at most one step."""
        if not self.is_first():
            self._tracks, self._watched_since = {}, None
            self.left_out, self.failure = {}, ""
            self.planned = Plan(None, (), "another sidecar acts")
            return
        try:
            classes = self.file.contents
            planned = await self._plan(classes)
            if isinstance(planned, Failure):
                self._stop(planned.message)
                return
            self.planned = planned
            if planned.is_short and planned.room is not None:
                self._held.add(planned.room.log_dir)
            if planned.deletions and planned.room and self.deletes and self.is_first():
                await self._step(planned, planned.room, classes)
            self._note("")
            self._log(planned)
        except (OSError, TimeoutError) as error:
            self._stop(f"the journal can't be used: {str(error) or 'its disk did not answer'}")

    def _stop(self, failure: str) -> None:
        self._note(failure)
        needs = (room.available < room.begins_at(self._settle_s) for room in self._rooms())
        self.planned = Plan(None, (), failure, is_short=any(needs))

    async def _plan(self, classes: Sequence[ReliefClass]) -> Plan | Failure:
        now = self.board.now()
        if not self._is_loaded:
            await _THREADS.call(self.journal.load, self.wall(now))
            self._is_loaded = True
        if now >= self._settle_read_at + _SETTLED_AGAIN_S:
            self._settle_read_at, self._settle_s = now, await self.read_settle()
        look = await self._look()
        if isinstance(look, Failure):
            return look
        seen = look.partitions
        self._log_beyond(look)
        refusal = self.file.problem or self._refusal() or await self._close_steps(look)
        rooms = list(self._rooms())
        if not refusal:
            await self._note_gains(rooms)
        self._failed = {key: each for key, each in self._failed.items() if each[0] > now}
        failed = {key: text for key, (_, text) in self._failed.items()}
        self.left_out = {**look.left_out, **look.unsuitable, **failed}
        view = View(
            rooms,
            [self._expendable(key, each, 0, None) for key, each in seen.items()],
            classes,
            self._settle_s,
            self.step_bytes,
            refusal,
            pending=self._pending(),
            relieving=self._relieving(),
            in_vain=frozenset(room.log_dir for room in rooms if self._is_in_vain(room.log_dir)),
            left_out=self.left_out,
        )
        if refusal or not seen or plan(view).room is None:
            return plan(view)
        examined = await self.topics.examine(seen, classes, int(1000 * self.wall(now)), _READ_S)
        if isinstance(examined, Failure):
            return examined
        # Reading took a while, in which a broker may have become silent.
        if refusal := await self._has_changed(classes):
            return plan(replace(view, refusal=refusal))
        return plan(
            replace(
                view,
                partitions=[
                    self._expendable(key, each, look.segment_bytes[key[0]], examined)
                    for key, each in seen.items()
                    if key[0] not in self.left_out and key[0] in look.segment_bytes
                ],
                groups_unknown=examined.groups_unknown,
            )
        )

    async def _has_changed(self, classes: Sequence[ReliefClass]) -> str:
        """Why a plan by these classes may no longer be carried out; "" if it may."""
        if not await self._is_current() or self.file.contents is not classes:
            return f"{self.file.path} has just changed"
        if not self.is_first():
            return "another sidecar acts"
        return self._refusal()

    async def _is_current(self) -> bool:
        try:
            async with asyncio.timeout(_READ_S):
                return await _THREADS.call(self.file.is_current)
        except TimeoutError:
            # Its disk hangs.
            return False

    async def _look(self) -> Look | Failure:
        now, pending_s = self.board.now(), self._pending_s()
        look = await self.topics.look(self.file.contents, _READ_S)
        if isinstance(look, Failure):
            return look
        if self._watched_since is None:
            self._watched_since = now
        before = self._tracks
        lacking = {
            key: each.interrupted(now, pending_s)
            for key, each in before.items()
            if key not in look.partitions
        }
        self._tracks = {key: each for key, each in lacking.items() if each.moves}
        self._homes = {key: self._homes[key] for key in self._tracks}
        for key, seen in look.partitions.items():
            track = next_track(before.get(key), seen.sight, pending_s)
            if key[0] in look.unsuitable:
                # Compaction removes records in the middle, so earlier sizes tell nothing.
                track = track.interrupted(now, pending_s)
            self._tracks[key], self._homes[key] = track, seen.homes
        return look

    async def _step(self, planned: Plan, room: Room, classes: Sequence[ReliefClass]) -> None:
        self._steps += 1
        self._written.setdefault(room.log_dir, self._increases(room.log_dir))
        begin = Entry(
            "begin",
            f"{self.board.start_id}-{self._steps}",
            self.wall(self.board.now()),
            self.board.snapshot.memory.cluster_id or "",
            *room.log_dir,
            room.available,
            planned.why,
            tuple(
                _deleted(each, self._tracks[each.topic, each.index]) for each in planned.deletions
            ),
        )
        async with asyncio.timeout(_WRITE_S):
            await self.journal.append(begin)
        offsets = {(each.topic, each.index): each.to for each in planned.deletions}
        changed = await self.topics.changed(offsets)
        # Writing and reading took a while. Nothing may come between this and the request.
        if refusal := await self._has_changed(classes):
            stopped = Failure(FailureKind.BROKER, refusal)
            await self._end(begin, dict.fromkeys(offsets, stopped), found=False)
            return
        deleted = await self.topics.delete(
            {key: to for key, to in offsets.items() if key not in changed},
            {(each.topic, each.index): each.leader for each in planned.deletions},
        )
        outcomes = {**deleted, **changed}
        for each in planned.deletions:
            outcome = outcomes[each.topic, each.index]
            if isinstance(outcome, Failure):
                until = self.board.now() + _FAILED_S
                self._failed[each.topic] = (until, outcome.message)
                _log.warning("records of %s could not be deleted: %s", each.topic, outcome.message)
            else:
                self.deletions += 1
                self.deleted_bytes += each.about_bytes
                self._moved((each.topic, each.index), outcome)
        await self._end(begin, outcomes, found=False)

    def _moved(self, key: Partition, start: int) -> None:
        """Note a deletion at once: the next reading may lack the partition."""
        track = self._tracks[key]
        start = max(start, track.last.start)
        sight = replace(track.last, at=self.board.now(), start=start)
        self._tracks[key] = next_track(track, sight, self._pending_s())

    async def _end(self, begin: Entry, outcomes: Outcomes, *, found: bool) -> None:
        ended = [_ended(each, outcomes[each.topic, each.partition]) for each in begin.deletions]
        end = Entry(
            "end",
            begin.step,
            self.wall(self.board.now()),
            begin.cluster_id,
            *begin.volume,
            self._available(begin.volume) or begin.available_bytes,
            "",
            tuple(ended),
            found,
        )
        async with asyncio.timeout(_WRITE_S):
            await self.journal.append(end)

    async def _close_steps(self, look: Look) -> str:
        """Note the outcome of steps that a kill interrupted; return why that can't be done."""
        for begin in self.journal.open:
            outcomes: dict[Partition, int | Failure] = {}
            for each in begin.deletions:
                seen = look.partitions.get((each.topic, each.partition))
                if seen is None and each.topic in look.left_out:
                    return (
                        f"the outcome of an earlier step is not known: {look.left_out[each.topic]}"
                    )
                if seen is None or each.topic_id not in {"", seen.sight.topic_id}:
                    outcomes[each.topic, each.partition] = _GONE
                else:
                    outcomes[each.topic, each.partition] = seen.sight.start
            await self._end(begin, outcomes, found=True)
            _log.warning("step %s had no outcome in the journal; it was read now", begin.step)
        return ""

    async def _note_gains(self, rooms: Sequence[Room]) -> None:
        """Note whether a volume has gained what it would without the writes to declared topics."""
        now_s, read_s = self.wall(self.board.now()), self.wall(self._read_at())
        for room in rooms:
            gains = self.journal.about(room.log_dir, "gain", now_s)
            since = max((each.at for each in gains), default=0.0)
            begun = self.journal.about(room.log_dir, "begin", now_s)
            steps = [each for each in begun if each.at > since]
            if not steps or read_s <= steps[0].at + self._settle_s:
                continue
            first = steps[0]
            written = self._written.pop(room.log_dir, None)
            is_known = written is not None and room.log_dir not in self._held
            self._held.discard(room.log_dir)
            gain = room.available - first.available_bytes
            gain += 0 if written is None else self._increases(room.log_dir) - written
            entry = Entry(
                "gain",
                steps[-1].step,
                now_s,
                first.cluster_id,
                *room.log_dir,
                room.available,
                f"it had {size(first.available_bytes)} available before",
                gained=gain > 0 if is_known else None,
            )
            async with asyncio.timeout(_WRITE_S):
                await self.journal.append(entry)

    def _increases(self, log_dir: LogDir) -> int:
        """What was written to declared topics on a volume since the sidecar watches."""
        keys = (key for key, homes in self._homes.items() if log_dir in homes)
        return sum(self._tracks[key].increases for key in keys)

    def _refusal(self) -> str:
        """Why nothing may be deleted now; "" if it may."""
        board, now = self.board, self.board.now()
        memory = board.snapshot.memory
        known = self.journal.cluster_id
        watched = self._read_at() - (now if self._watched_since is None else self._watched_since)
        if board.unread or memory.membership is None:
            return board.unread or "the cluster was not polled yet"
        if memory.failure is not None:
            return f"the last poll failed: {memory.failure.message}"
        if unseen := self._unseen(now):
            return unseen
        if known is not None and known != (memory.cluster_id or ""):
            return (
                f"the journal is of cluster {known}, and this is {memory.cluster_id}: move the "
                'folder "relief" beside the state file away if that is right'
            )
        if watched < self._settle_s:
            text = f"this sidecar watches since {max(0.0, watched):.0f} s"
            return f"{text}, and freeing takes {self._settle_s:.0f} s"
        return ""

    def _unseen(self, now: float) -> str:
        memory = self.board.snapshot.memory
        for broker_id in memory.active:
            broker = memory.brokers.get(broker_id)
            if broker is None or broker.read_at is None or broker.failure is not None:
                return f"broker {broker_id} did not report its volumes"
            ago = now - broker.read_at
            if ago > 2 * self.interval_s + _STALE_S:
                return f"the volumes of broker {broker_id} were last read {ago:.0f} s ago"
        return ""

    def _volumes(self) -> Iterator[VolumeState]:
        for broker in self.board.snapshot.memory.active_brokers():
            yield from (state for state in broker.volumes if state.online)

    def _read_at(self) -> float:
        """When the volume that was read first was read last."""
        return min((state.read_at for state in self._volumes()), default=self.board.now())

    def _pending_s(self) -> float:
        """How long what was deleted counts as free, seconds.

        Volumes that were read some time ago do not show what was freed since then.
        """
        return self._settle_s + self.board.now() - self._read_at()

    def _pending(self) -> dict[LogDir, float]:
        pending: dict[LogDir, float] = {}
        for key, track in self._tracks.items():
            for log_dir in self._homes[key]:
                pending[log_dir] = pending.get(log_dir, 0.0) + track.pending_bytes
        return pending

    def _rooms(self) -> Iterator[Room]:
        soft = self.board.snapshot.rules.soft_limit
        for state in self._volumes():
            volume = state.volume
            log_dir = volume.place
            threshold = state.verdict.threshold_bytes
            if soft is not None:
                threshold = max(threshold, soft.judge(volume).threshold_bytes)
            # Between two reliefs the volume grows by what is written; in a relief it shrinks.
            peak = self._peaks.get(log_dir)
            growth = (peak and peak.highest(self.board.now())) or 0.0
            yield Room(log_dir, volume.total_bytes, volume.available_bytes, threshold, growth)

    def _is_near(self) -> bool:
        return any(room.available < room.ends_at(self._settle_s) for room in self._rooms())

    def _available(self, log_dir: LogDir) -> int | None:
        found = (each for each in self._rooms() if each.log_dir == log_dir)
        return next((room.available for room in found), None)

    def _relieving(self) -> frozenset[LogDir]:
        now_s = self.wall(self.board.now())
        return frozenset(
            each.volume
            for each in self.journal.until(now_s)
            if each.kind == "begin" and each.at >= now_s - self._settle_s
        )

    def _is_in_vain(self, log_dir: LogDir) -> bool:
        now_s = self.wall(self.board.now())
        gains = self.journal.about(log_dir, "gain", now_s)[-MOST_IN_VAIN:]
        in_vain = len(gains) == MOST_IN_VAIN and all(each.gained is False for each in gains)
        return in_vain and gains[-1].at + AGAIN_S > now_s

    def _expendable(
        self, key: Partition, seen: Seen, segment_bytes: int, examined: Examined | None
    ) -> Expendable:
        topic, index = key
        track = self._tracks[key]
        found = Expendable(topic, index, seen.leader, seen.homes, track, segment_bytes)
        if examined is None:
            return found
        return replace(
            found,
            young_from=examined.young_from.get(key),
            commits=examined.commits[key],
        )

    def _note(self, failure: str) -> None:
        if failure and failure != self.failure:
            _log.warning("no room can be made: %s", failure)
        elif self.failure and not failure:
            _log.info("room can be made again")
        self.failure = failure

    def _log_beyond(self, look: Look) -> None:
        beyond = [topic for topic, why in look.unsuitable.items() if why == BEYOND]
        if beyond and not self._logged_beyond:
            text = "nothing is deleted from %d declared topics, such as %s: %s"
            _log.warning(text, len(beyond), beyond[0], BEYOND)
        self._logged_beyond = bool(beyond)

    def _log(self, planned: Plan) -> None:
        if planned.room is None:
            self._logged.clear()
            return
        # A dry run repeats its plan, and floors hold for a moment between two steps.
        what = (planned.room.log_dir, bool(planned.deletions))
        is_new = what not in self._logged
        self._logged.add(what)
        if planned.deletions and (is_new or self.deletes):
            does = "deleting" if self.deletes else "would delete"
            _log.warning("%s %s: %s", does, amount(planned), planned.why)
        elif is_new and planned.is_short:
            _log.warning("no room can be made: %s", planned.why)


def amount(planned: Plan) -> str:
    """What a plan deletes, in words."""
    total = size(sum(each.about_bytes for each in planned.deletions))
    topics = ", ".join(sorted({each.topic for each in planned.deletions})[:3])
    count = len(planned.deletions)
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    return f"about {total} of the oldest records in {partitions} ({topics})"


def _deleted(each: Deletion, track: Track) -> Deleted:
    return Deleted(
        each.topic,
        each.index,
        each.leader,
        each.start,
        each.to,
        each.about_bytes,
        topic_id=track.last.topic_id,
    )


def _ended(each: Deleted, outcome: int | Failure) -> Deleted:
    if isinstance(outcome, Failure):
        return msgspec.structs.replace(each, failure=outcome.message)
    return msgspec.structs.replace(each, first_offset=outcome)
