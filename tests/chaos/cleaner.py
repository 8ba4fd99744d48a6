"""Frees space some time after a volume has reached its limit or its line, as an operator would.

It lets topics retain less until enough space is free, and then everything again. Retention runs on
each broker by itself, so a broker that is frozen frees nothing; one that was away frees what its
leaders no longer have.

Example: cleanings after 8.4 s and 12.2 s: the first crossing at 30.0 s is cleaned at 38.4 s, the
next one, at 70.0 s, at 82.2 s.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kafka_lab.admin import Admin
from kafka_lab.waiting import until
from sidecar.errors import ClusterError

_ADMIN_TIMEOUT_S: Final = 5.0
_FREED_S: Final = 30.0
"""A broker that frees nothing for so long is left to the next cleaning."""
_RETRY_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Cleaning:
    """One cleaning.

    Attributes:
        after_s: how long after the crossing.
        retained: bytes that each topic retains.
        available: bytes that are to be available then; 0: until no volume is full enough to clean.
    """

    after_s: float
    retained: int
    available: int = 0


class Cleaner:
    """Cleans until cancelled."""

    def __init__(
        self,
        plan: Sequence[Cleaning],
        *,
        is_full: Callable[[], bool],
        is_free: Callable[[Cleaning], bool],
        retain: Callable[[int], Awaitable[None]],
        note: Callable[[str], None],
        where: str,
    ) -> None:
        """Nothing is cleaned yet.

        Args:
            plan: one for each crossing, in turn.
            is_full: whether a volume of a broker that runs is to be cleaned.
            is_free: whether a cleaning has freed enough.
            retain: sets how many bytes each topic retains; -1 for all.
            note: called with what was done, in words.
            where: what a volume has reached, in words.
        """
        self.plan = tuple(plan)
        self._is_full = is_full
        self._is_free = is_free
        self._retain = retain
        self._note = note
        self._where = where

    async def run(self) -> None:
        """One crossing after another."""
        for cleaning in self.plan:
            await until(self._is_full)
            self._note(f"a volume is at its {self._where}")
            await asyncio.sleep(cleaning.after_s)
            wanted = f", until {cleaning.available / 1e6:.0f} MB are available"
            words = f"space is freed, {cleaning.after_s:.1f} s after the crossing"
            self._note(words + (wanted if cleaning.available else ""))
            await self._retain(cleaning.retained)
            try:
                async with asyncio.timeout(_FREED_S):
                    await until(partial(self._is_free, cleaning))
            except TimeoutError:
                self._note(f"space was not free within {_FREED_S:.0f} s")
            else:
                self._note(f"no volume is at its {self._where} any more")
            await self._retain(-1)


def retaining(bootstrap: str, topics: Sequence[str]) -> Callable[[int], Awaitable[None]]:
    """Sets retention.bytes, until it is done: any broker that is asked may be frozen, or gone."""

    async def retain(count: int) -> None:
        left = list(topics)
        while left:
            try:
                async with Admin(bootstrap, _ADMIN_TIMEOUT_S) as admin:
                    while left:
                        await admin.set_topic_config(left[-1], {"retention.bytes": str(count)})
                        left.pop()
            except ClusterError:
                await asyncio.sleep(_RETRY_S)

    return retain
