"""Reads the topics on volumes that throttle, if the scope of a throttle is the volume.

A broker is read while one of its volumes throttles or soon will, again at each check interval. If a
broker can't be read, its last contents count for the validity. After that, all clients are
throttled.

Example: a volume of broker 1 is expected at its limit in 100 s: broker 1 is read now, and a minute
later again, so that its topics are known when the throttle begins.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from sidecar.control.board import Board
from sidecar.throttle.memory import Memory
from sidecar.throttle.scope import brokers_to_read, with_contents
from sidecar.volumes import Failure

LOOK_S: Final = 0.5
"""How often the watch checks for due reads, besides at each change."""

MOST: Final = 20
"""The most brokers read at each check; with more full brokers, all clients are throttled."""

_AT_ONCE: Final = 5
_SPACING_S: Final = 0.01

FetchTopics = Callable[[int], Awaitable[Mapping[str, frozenset[str]] | Failure]]
"""Reads a broker, by id, within its own deadline: log dir -> topics."""


@dataclass(slots=True)
class ContentsWatch:
    """Reads brokers, and publishes the contents of their volumes on a board.

    Attributes:
        board: the board with the volumes, which also gets the contents.
        fetch: reads one broker.
        interval_s: the time between two readings of a broker, seconds.
    """

    board: Board
    fetch: FetchTopics
    interval_s: float
    _asked_at: dict[int, float] = field(default_factory=dict, init=False)

    async def run(self) -> NoReturn:
        """Read due brokers, until cancelled."""
        generation = -1
        while True:
            await self.board.wait_for_change(generation, LOOK_S)
            generation = self.board.snapshot.generation
            await self.look()
            # A closed board lets nobody wait.
            await asyncio.sleep(_SPACING_S)

    async def look(self) -> None:
        """Read the brokers that are due now."""
        now, memory = self.board.now(), self.board.snapshot.memory
        wanted = brokers_to_read(memory, now)
        self._asked_at = {key: at for key, at in self._asked_at.items() if key in wanted}
        due = [
            broker_id
            for broker_id in sorted(wanted)
            if now - self._asked_at.get(broker_id, -self.interval_s) >= self.interval_s
        ][:MOST]
        if not due:
            return
        self._asked_at |= dict.fromkeys(due, now)
        limit = asyncio.Semaphore(_AT_ONCE)
        read: dict[int, Mapping[str, frozenset[str]]] = {}

        async def fetch(broker_id: int) -> None:
            async with limit:
                answer = await self.fetch(broker_id)
            if not isinstance(answer, Failure):
                read[broker_id] = answer

        await asyncio.gather(*map(fetch, due))
        if read:
            self.board.update(
                lambda memory: replace(
                    memory,
                    contents=with_contents(memory, read, wanted | _retained(memory), now),
                )
            )


def _retained(memory: Memory) -> set[int]:
    """Return the brokers that can't be read but whose volumes still count."""
    return {broker_id for broker_id, state in memory.brokers.items() if state.retained}
