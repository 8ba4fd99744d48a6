"""Reads which brokers the readers of this sidecar feed, while producers are throttled.

A broker whose callback asks this sidecar is read itself, once a minute, so N sidecars cost each of
N brokers one read. What can't be read is not known, and then the broker counts as feeding all.

Example: broker 1 reads this sidecar. At most 5 s after a throttle began, its replicas are read,
before anything depends on them. When broker 1 is killed, the next read fails: it may feed all.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from sidecar.control.board import Board
from sidecar.volumes import Failure

EVERY_S: Final = 60.0
"""For so long a broker may lead a partition without counting as feeding its replicas."""

LOOK_S: Final = 5.0
"""Less than passes from the begin of a throttle to the first smaller share."""

MOST: Final = 10
"""Anybody may claim to be a broker, so this is bounded."""

FetchFed = Callable[[int], Awaitable[frozenset[int] | Failure]]
"""Broker id -> the brokers that it feeds, within a deadline of its own."""


@dataclass(slots=True)
class FeedWatch:
    """Reads brokers one after another, and publishes what they feed on a board."""

    board: Board
    fetch: FetchFed
    _read_at: float | None = field(default=None, init=False)

    async def run(self) -> NoReturn:
        """Reads what is due, until cancelled."""
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
