"""Reads which brokers the readers of this sidecar feed, while producers are throttled.

The sidecar reads each of its readers once a minute. So N sidecars beside N brokers cost each broker
one read. A broker that can't be read counts as feeding all brokers. Anybody can claim to be a
broker, so only active brokers of the cluster are read.

Example: broker 1 reads this sidecar. At most 5 s after a throttle began, its replicas are read,
before any decision depends on them. When broker 1 is killed, the next read fails, and it counts as
feeding all brokers.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from sidecar.control.board import Board
from sidecar.volumes import Failure

EVERY_S: Final = 60.0
"""The time from the end of a round to the next. With the round, it is the longest time that a
broker leads a new partition before its replicas are known."""

ROUND_S: Final = 60.0
"""The longest time for a round. A broker that was not read by then counts as feeding all brokers.
"""

LOOK_S: Final = 5.0
"""Shorter than the time from the start of a throttle to the first smaller share."""

AT_ONCE: Final = 8
"""The most brokers that are read at once, since each answer grows with the broker's partitions."""

MOST: Final = 50
"""The most brokers that are read in a round, since anybody can claim to be a broker of the cluster,
and decoding 20,000 partitions takes 0.15 s. Others count as feeding all brokers."""

FetchFed = Callable[[int], Awaitable[frozenset[int] | Failure]]
"""Reads the brokers that a broker, by id, feeds, within its own deadline."""


@dataclass(slots=True)
class FeedWatch:
    """Reads brokers, a few at once, and publishes on a board which brokers they feed."""

    board: Board
    fetch: FetchFed
    _read_at: float | None = field(default=None, init=False)

    async def run(self) -> NoReturn:
        """Read due brokers, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            snapshot, now = self.board.snapshot, self.board.now()
            if snapshot.leaks.throttled_at is None:
                self._read_at = None
            elif self._read_at is None or now >= self._read_at + EVERY_S:
                await self._read(now)
                self._read_at = self.board.now()

    async def _read(self, now: float) -> None:
        memory = self.board.snapshot.memory
        readers = [each.report.broker_id for each in self.board.readers.recent(now)]
        answering = {key for key, broker in memory.brokers.items() if broker.failure is None}
        feeds: dict[int, frozenset[int]] = {}
        limit = asyncio.Semaphore(AT_ONCE)

        async def read(broker_id: int) -> None:
            async with limit:
                fed = await self.fetch(broker_id)
            if not isinstance(fed, Failure):
                feeds[broker_id] = fed

        # Brokers that did not answer the last poll come last, so that they delay no other.
        due = sorted(memory.active.keys() & readers, key=lambda each: (each not in answering, each))
        due = due[:MOST]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ROUND_S):
                await asyncio.gather(*map(read, due))
        self.board.update(lambda memory: replace(memory, feeds=feeds))
