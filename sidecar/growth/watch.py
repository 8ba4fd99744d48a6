"""Requests the contents of volumes near a limit, or of those to which replicas are moved.

With a broker's id in the settings, a sidecar reads only the broker beside it, so that N sidecars
cost each broker one read a minute. A sidecar without one reads ``MOST_BROKERS`` in a minute, unless
it follows observers. First come those of the worst volumes near a limit and those that a plan
overfills, and half of the places that are left are for the fullest of the others. All others are
read in turn, at least one in a minute. The status page of any sidecar reads the brokers that it
shows, as long as it is open. ``VolumeContents`` bounds all of these together.

The same sidecars ask one broker once a minute for all reassignments, so that a plan that overfills
a volume is named although the volume is far from its limit. Log-dir moves are in no such list. A
broker with several volumes is read for them as soon as one of these is a day from its limit.

Example: a volume of broker 3 is expected at its limit in 50 minutes. The sidecar of broker 3 reads
the broker now and a minute later, and then knows what grows. A reassignment begins that brings 9 GB
to a volume with room for 3 GB: the sidecar logs it within a minute, and when it is cancelled.
"""

import asyncio
import logging
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from sidecar.control.board import Board
from sidecar.control.volume_contents import EVERY_S, STALE_S, Contents, VolumeContents
from sidecar.growth.writers import Writers
from sidecar.throttle.arrivals import Arrivals
from sidecar.throttle.fill import seconds_to
from sidecar.throttle.growth import Split, grows, near_limit, unthrottled, with_reserve
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.sizes import size
from sidecar.volumes import Failure, LogDir, Volume

LOOK_S: Final = 5.0
"""How often the watch checks for volumes near a limit."""

MOST_BROKERS: Final = 5
"""The most brokers that a sidecar without a broker of its own reads in a minute."""

DAY_S: Final = 86_400.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Growing:
    """A volume near or past a limit, or one that a plan overfills, in parts.

    Attributes:
        state: the volume as last polled.
        split: its parts.
        answered_at: when its broker reported them, steady seconds.
        writers: topic -> user -> bytes a second that the user writes to it, the most first.
        unthrottled: why a throttle does not stop its growth; "" if it does, or is not known.
        arriving: what reassignments and log-dir moves still bring.
    """

    state: VolumeState
    split: Split
    answered_at: float
    writers: Mapping[str, Mapping[str, float]]
    unthrottled: str
    arriving: Arrivals

    @property
    def sentence(self) -> str:
        """What grows most; "" before a second reading."""
        return grows(self.split, {topic: tuple(users) for topic, users in self.writers.items()})

    @property
    def left_bytes(self) -> float:
        """What it has left above its limit when all has arrived; negative if not all fits.

        Both are of one reading of the broker, since what arrived later would count twice.
        """
        free = self.state.volume.total_bytes - self.split.used_bytes
        return free - self.state.verdict.threshold_bytes - self.arriving.total_bytes

    @property
    def seconds_left(self) -> float | None:
        """How long ``left_bytes`` last at the growth of everything else; 0.0 for none."""
        others = [part.growth_bytes for part in self.split.parts if not part.arrives]
        return seconds_to(self.left_bytes, self.split.rate(sum(each or 0 for each in others)))

    @property
    def overfilled(self) -> str:
        """That more arrives than fits; "" if that is not known."""
        brought, left = self.arriving.total_bytes, self.left_bytes
        if not brought or left >= 0:
            return ""
        before, volume = left + brought, self.state.volume
        has = f"has {size(before)} left above its limit" if before > 0 else "is at its limit"
        return f"{self.arriving} to {volume.log_dir} of broker {volume.broker_id}, which {has}"


@dataclass(slots=True)
class GrowthWatch:
    """The volumes near a limit.

    Attributes:
        board: the board with the volumes.
        contents: reads brokers.
        broker_id: the broker beside this sidecar, if its id is known.
        is_observer: whether this sidecar polls all brokers.
        writers: who writes to the topics of the broker beside this sidecar.
    """

    board: Board
    contents: VolumeContents
    broker_id: int | None
    is_observer: Callable[[], bool]
    writers: Writers = field(default_factory=Writers)
    _asked_at: float | None = field(default=None, init=False)
    _receiving: frozenset[int] = field(default=frozenset(), init=False)
    _named: set[LogDir] = field(default_factory=set, init=False)
    # The minute, the brokers to read in it, and the last one that was chosen in turn.
    _minute: int | None = field(default=None, init=False)
    _chosen: list[int] = field(default_factory=list, init=False)
    _last: int = field(default=-1, init=False)

    async def run(self) -> NoReturn:
        """Request contents, until cancelled."""
        while True:
            await self.ask()
            self.look()
            self.name()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Request the contents that are wanted now."""
        near = {broker_id for broker_id, _ in self._near()}
        states = self._candidates()
        candidates = dict.fromkeys(state.volume.broker_id for state in states)
        if self.broker_id is not None:
            wanted = [self.broker_id] if self.broker_id in candidates else []
        else:
            named = {each.volume.broker_id for each in states if each.volume.place in self._named}
            wanted = self._in_turn([*candidates], near | named) if self.is_observer() else []
        for broker_id in wanted:
            self.contents.request(broker_id)
        self.writers.want(is_wanted=not near.isdisjoint(wanted), now=self.board.now())

    def _in_turn(self, candidates: list[int], lasting: set[int]) -> list[int]:
        """The brokers to read in this minute; none of them is replaced before the next one."""
        minute = int(self.board.now() // EVERY_S)
        if minute != self._minute:
            self._minute, self._chosen = minute, []
        order = sorted(candidates, key=lambda each: each not in lasting)
        first = order[: min(MOST_BROKERS - 1, (MOST_BROKERS + len(lasting)) // 2)]
        others = sorted(order[len(first) :])
        at = bisect(others, self._last)
        for each in (*first, *others[at:], *others[:at]):
            if each not in self._chosen and len(self._chosen) < MOST_BROKERS:
                self._chosen.append(each)
                self._last = self._last if each in first else each
        return [each for each in self._chosen if each in candidates]

    async def ask(self) -> None:
        """Ask once a minute where replicas arrive; the last answer stays if there is no new one."""
        now, broker_id = self.board.now(), self.broker_id
        if broker_id is None and self.is_observer():
            brokers = self.board.snapshot.memory.active_brokers()
            answering = (each.volumes for each in brokers if each.volumes and not each.failure)
            broker_id = next((volumes[0].volume.broker_id for volumes in answering), None)
        is_due = self._asked_at is None or now >= self._asked_at + EVERY_S
        if self.contents.receiving is None or broker_id is None or not is_due:
            return
        self._asked_at = now
        found = await self.contents.receiving(broker_id)
        if not isinstance(found, Failure):
            self._receiving = found

    def name(self) -> None:
        """Log once that a plan overfills a volume, and that it no longer does."""
        for each in self._known():
            volume, text = each.state.volume, each.overfilled
            log_dir = volume.place
            if text and log_dir not in self._named:
                self._named.add(log_dir)
                _log.warning("%s. The status page has the commands that slow or cancel it", text)
            elif not text and log_dir in self._named and each.arriving.unknown == 0:
                self._named.remove(log_dir)
                _log.info("what arrives at %s of broker %d fits now", volume.log_dir, log_dir[0])

    def growing(self) -> Iterator[Growing]:
        """Yield the volumes near a limit whose parts are known, overfilled and worst ones first."""
        near = self._near()
        found = [
            each for each in self._known() if each.overfilled or each.state.volume.place in near
        ]
        yield from sorted(found, key=lambda each: not each.overfilled)

    def _known(self) -> Iterator[Growing]:
        now = self.board.now()
        # The request log is that of the broker beside this sidecar: without its id, any of several.
        active = self.board.snapshot.memory.active
        own = {*active} if self.broker_id is None else {self.broker_id}
        for state in self._candidates():
            broker_id, log_dir = state.volume.place
            contents = self.contents.known(broker_id)
            answered_at = None if contents is None else contents.split_at
            if contents is None or answered_at is None or now > answered_at + STALE_S:
                continue
            split = contents.splits.get(log_dir)
            if split is None:
                continue
            if report := self.board.readers.report_of(broker_id):
                split = with_reserve(split, report.reserve_bytes(log_dir))
            ids = split.placement.topic_ids
            writers = {
                part.topic: users
                for part in split.parts
                if own == {broker_id}
                and part.topic
                and (users := self.writers.writers_to(part.topic, ids.get(part.topic), now))
            }
            before, beside = contents.before.get(log_dir), self._beside(state.volume, contents)
            why = unthrottled(split, before, state.volume.total_bytes, beside)
            arriving = contents.arrivals.get(log_dir, Arrivals(unknown=None))
            yield Growing(state, split, answered_at, writers, why, arriving)

    def _beside(self, volume: Volume, contents: Contents) -> list[Split]:
        """The broker's other log dirs that may be on the same file system."""
        others = self.board.snapshot.memory.brokers[volume.broker_id].volumes
        return [
            contents.splits[log_dir]
            for each in others
            if (log_dir := each.volume.log_dir) != volume.log_dir
            and log_dir in contents.splits
            and each.volume.may_share(volume)
        ]

    def _candidates(self) -> list[VolumeState]:
        """The volumes near a limit, then those to which something may arrive; the worst first."""
        near = self._near()
        others = [
            state
            for broker in self.board.snapshot.memory.active_brokers()
            for state in broker.volumes
            if state.volume.broker_id in self._receiving
            or state.volume.place in self._named
            or (len(broker.volumes) > 1 and (state.seconds_left or DAY_S) < DAY_S)
        ]
        others.sort(key=lambda state: state.volume.available_ratio)
        more = (each for each in others if each.online and each.volume.place not in near)
        return [*near.values(), *more]

    def _near(self) -> dict[LogDir, VolumeState]:
        # By place, since to compare thousands of states with one another takes seconds.
        snapshot = self.board.snapshot
        states = near_limit(snapshot.memory, snapshot.rules)
        return {state.volume.place: state for state in states}
