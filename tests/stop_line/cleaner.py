"""Frees a little space now and then, some time after the volume has reached the stop line.

Half of the times so little that the stop ends and the throttle does not, so that what leaks reaches
the line again; else so much that producers are released, and write at their whole rate.

Example: a line of 120 MB and a limit of 150 MB: 136 MB are available after one cleaning, 210 MB
after another; the seed and the duration say which, and after how long.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_lab.waiting import until

LITTLE_BYTES: Final = 4_000_000
"""Beyond the tenth that ends a stop."""
MUCH_BYTES: Final = 60_000_000
"""Above the limit."""
_AFTER_S: Final = (10.0, 40.0)
_FREED_S: Final = 30.0
_KEPT_SHARE: Final = 0.95
"""Of what is not to be available records have so much: the rest are indexes and whole segments."""


@dataclass(frozen=True, slots=True)
class Cleaning:
    """One cleaning.

    Attributes:
        after_s: how long after the volume has reached the line.
        available_bytes: what is to be available then.
    """

    after_s: float
    available_bytes: int


def cleanings(seed: int, duration_s: float, limit_bytes: int, line_bytes: int) -> list[Cleaning]:
    """Those of a seed, enough for the duration."""
    chance = random.Random(f"stop line {seed} {duration_s:g}")
    little, much = int(line_bytes * 1.1) + LITTLE_BYTES, limit_bytes + MUCH_BYTES
    return [
        Cleaning(round(chance.uniform(*_AFTER_S), 1), chance.choice((little, much)))
        for _ in range(int(duration_s / _AFTER_S[0]) + 1)
    ]


class Cleaner:
    """Cleans until cancelled."""

    def __init__(
        self,
        plan: Sequence[Cleaning],
        total_bytes: int,
        line_bytes: int,
        *,
        available: Callable[[], int],
        retain: Callable[[int], Awaitable[None]],
        note: Callable[[str], None],
    ) -> None:
        """Nothing is cleaned yet.

        Args:
            plan: the cleanings in turn.
            total_bytes: of the volume.
            line_bytes: see there.
            available: what the volume has left.
            retain: sets how many bytes the topic retains; -1 for all.
            note: called with what was done, in words.
        """
        self._plan = tuple(plan)
        self._total_bytes = total_bytes
        self._line_bytes = line_bytes
        self._available = available
        self._retain = retain
        self._note = note

    async def run(self) -> None:
        """One cleaning after another, each after the line was reached."""
        for cleaning in self._plan:
            await self._until(lambda available: available <= self._line_bytes)
            self._note("the volume is at the stop line")
            await asyncio.sleep(cleaning.after_s)
            await self._clean(cleaning.available_bytes)

    async def _clean(self, wanted: int) -> None:
        self._note(f"space is freed, until {wanted / 1e6:.0f} MB are available")
        await self._retain(int((self._total_bytes - wanted) * _KEPT_SHARE))
        try:
            async with asyncio.timeout(_FREED_S):
                await self._until(lambda available: available >= wanted)
        except TimeoutError:
            self._note(f"space was not free within {_FREED_S:.0f} s")
        await self._retain(-1)

    async def _until(self, holds: Callable[[int], bool]) -> None:
        await until(lambda: holds(self._available()))
