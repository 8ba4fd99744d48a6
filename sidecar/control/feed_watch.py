"""Reads which brokers the readers of this sidecar feed, while producers are throttled.

The sidecar reads each of its readers once a minute. So N sidecars beside N brokers cost each broker
one read. A broker that can't be read counts as feeding all brokers.

Example: broker 1 reads this sidecar. At most 5 s after a throttle began, its replicas are read,
before any decision depends on them. When broker 1 is killed, the next read fails, and it counts as
feeding all brokers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from sidecar.control.board import Board
from sidecar.volumes import Failure

EVERY_S: Final = 60.0
"""The longest time that a broker leads a new partition before its replicas are known."""

LOOK_S: Final = 5.0
"""Shorter than the time from the start of a throttle to the first smaller share."""

MOST: Final = 10
"""The most brokers that are read, since anybody can claim to be a broker."""

FetchFed = Callable[[int], Awaitable[frozenset[int] | Failure]]
"""Reads the brokers that a broker, by id, feeds, within its own deadline."""


@dataclass(slots=True)
class FeedWatch:
    """Reads brokers one after another, and publishes on a board which brokers they feed."""

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
                self._read_at = now
                await self._read(now)

    async def _read(self, now: float) -> None:
        readers = [each.report.broker_id for each in self.board.readers.recent(now)[:MOST]]
        found = {broker_id: await self.fetch(broker_id) for broker_id in readers}
        feeds = {key: fed for key, fed in found.items() if not isinstance(fed, Failure)}
        self.board.update(lambda memory: replace(memory, feeds=feeds))
