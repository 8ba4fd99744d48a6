"""Knows which topics lie on volumes that throttle, where the scope of a throttle is the volume.

A broker is read while one of its volumes throttles or soon will, again at each check interval. What
can't be read is known for the validity, and then all clients are throttled.

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
"""How often is looked what is to be read, besides at each change."""

MOST: Final = 20
"""So many brokers are read at each look; where more volumes are full, all clients are throttled."""

_AT_ONCE: Final = 5
_SPACING_S: Final = 0.01

FetchTopics = Callable[[int], Awaitable[Mapping[str, frozenset[str]] | Failure]]
"""Broker id -> log dir -> topics, within a deadline of its own."""


@dataclass(slots=True)
class ContentsWatch:
    """Reads brokers, and publishes what lies on their volumes on a board.

    Attributes:
        board: where volumes are seen, and contents published.
        fetch: reads one broker.
        interval_s: from one reading of a broker to the next, seconds.
    """

    board: Board
    fetch: FetchTopics
    interval_s: float
    _asked_at: dict[int, float] = field(default_factory=dict, init=False)

    async def run(self) -> NoReturn:
        """Reads what is due, until cancelled."""
        generation = -1
        while True:
            await self.board.wait_for_change(generation, LOOK_S)
            generation = self.board.snapshot.generation
            await self.look()
            # A board that is closed no longer lets anybody wait.
            await asyncio.sleep(_SPACING_S)

    async def look(self) -> None:
        """Reads what is due now."""
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

        async def one(broker_id: int) -> Mapping[str, frozenset[str]] | Failure:
            async with limit:
                return await self.fetch(broker_id)

        answers = await asyncio.gather(*map(one, due))
        read = {
            broker_id: answer
            for broker_id, answer in zip(due, answers, strict=True)
            if not isinstance(answer, Failure)
        }
        if read:
            self.board.update(
                lambda memory: replace(
                    memory,
                    contents=with_contents(memory.contents, read, wanted | _retained(memory), now),
                )
            )


def _retained(memory: Memory) -> set[int]:
    """The brokers that can't be read, and whose volumes count all the same."""
    return {broker_id for broker_id, state in memory.brokers.items() if state.retained}
