"""Requests the contents of volumes near a limit, once a minute, and returns what is known of them.

With a broker's id in the settings, a sidecar reads only the broker beside it, so that N sidecars
cost each broker one read a minute. A sidecar without one reads the brokers of the worst
``MOST_BROKERS`` volumes, unless it follows observers. The status page of any sidecar reads the
brokers that it shows, as long as it is open. ``VolumeContents`` bounds all of these together.

Example: a volume of broker 3 is expected at its limit in 50 minutes. The sidecar of broker 3 reads
the broker now and a minute later, and then knows what grows.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from sidecar.control.board import Board
from sidecar.control.volume_contents import EVERY_S, VolumeContents
from sidecar.growth.writers import Writers
from sidecar.throttle.growth import Split, grows, near_limit, unthrottled, with_reserve
from sidecar.throttle.memory import VolumeState

LOOK_S: Final = 5.0
"""How often the watch checks for volumes near a limit."""

MOST_BROKERS: Final = 5
"""The most brokers that a sidecar without a broker of its own reads."""

STALE_S: Final = 3 * EVERY_S
"""A split that is older than this is no longer shown: its broker could not be read again."""


@dataclass(frozen=True, slots=True)
class Growing:
    """A volume near or past a limit, in parts.

    Attributes:
        state: the volume as last polled.
        split: its parts.
        answered_at: when its broker reported them, steady seconds.
        writers: topic -> user -> bytes a second that the user writes to it, the most first.
        unthrottled: why a throttle does not stop its growth; "" if it does, or is not known.
    """

    state: VolumeState
    split: Split
    answered_at: float
    writers: Mapping[str, Mapping[str, float]]
    unthrottled: str

    @property
    def sentence(self) -> str:
        """What grows most; "" before a second reading."""
        return grows(self.split, {topic: tuple(users) for topic, users in self.writers.items()})


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

    async def run(self) -> NoReturn:
        """Request contents, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Request the contents that are wanted now."""
        near = [state.volume.broker_id for state in self._near()]
        if self.broker_id is not None:
            wanted = [self.broker_id] if self.broker_id in near else []
        else:
            wanted = list(dict.fromkeys(near))[:MOST_BROKERS] if self.is_observer() else []
        for broker_id in wanted:
            self.contents.of(broker_id)
        self.writers.is_wanted = bool(wanted)

    def growing(self) -> Iterator[Growing]:
        """Yield the volumes near a limit whose parts are known, the worst first."""
        now = self.board.now()
        for state in self._near():
            broker_id, log_dir = state.volume.broker_id, state.volume.log_dir
            contents = self.contents.known(broker_id)
            if contents is None or now > contents.answered_at + STALE_S:
                continue
            split = contents.splits.get(log_dir)
            if split is None:
                continue
            if report := self.board.readers.report_of(broker_id):
                split = with_reserve(split, report.reserve_bytes(log_dir))
            ids = split.placement.topic_ids
            # The request log is that of the broker beside this sidecar.
            is_own = self.broker_id in {None, broker_id}
            writers = {
                part.topic: users
                for part in split.parts
                if is_own
                and part.topic
                and (users := self.writers.of(part.topic, ids.get(part.topic), now))
            }
            why = unthrottled(split, contents.before.get(log_dir), state.volume.total_bytes)
            yield Growing(state, split, contents.answered_at, writers, why)

    def _near(self) -> list[VolumeState]:
        snapshot = self.board.snapshot
        return near_limit(snapshot.memory, snapshot.rules)
