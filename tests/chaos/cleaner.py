"""Frees space some time after a volume has reached its limit, as an operator or a job would.

It lets topics retain little until no volume of a broker that runs violates any more, and then
everything again. Retention runs on each broker by itself, so a broker that is frozen frees nothing;
one that was away frees what its leaders have no longer.

Example: cleanings after 8.4 s and 12.2 s: the first crossing at 30.0 s is cleaned at 38.4 s, the
next one, at 70.0 s, at 82.2 s.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kafka_lab.admin import Admin
from kafka_lab.waiting import until
from sidecar.errors import ClusterError

_RETAINED: Final = {"retention.bytes": str(4 << 20)}
_ENDLESS: Final = {"retention.bytes": "-1"}
_ADMIN_TIMEOUT_S: Final = 5.0
_FREED_S: Final = 30.0
"""A broker that frees nothing for so long is left to the next cleaning."""
_RETRY_S: Final = 0.5


class Cleaner:
    """Cleans until cancelled.

    Attributes:
        after_s: how long after each crossing it cleans, in turn, seconds.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[str],
        after_s: Sequence[float],
        *,
        violates: Callable[[], bool],
        note: Callable[[str], None],
    ) -> None:
        """Nothing is cleaned yet.

        Args:
            bootstrap: host:port list.
            topics: that retain less.
            after_s: see there.
            violates: whether a volume of a broker that runs is at its limit.
            note: called with what was done, in words.
        """
        self.after_s = tuple(after_s)
        self._bootstrap = bootstrap
        self._topics = tuple(topics)
        self._violates = violates
        self._note = note

    async def run(self) -> None:
        """One crossing after another."""
        for after_s in self.after_s:
            await until(self._violates)
            self._note("a volume is at its limit")
            await asyncio.sleep(after_s)
            self._note(f"space is freed, {after_s:.1f} s after the crossing")
            await self._retain(_RETAINED)
            try:
                async with asyncio.timeout(_FREED_S):
                    await until(lambda: not self._violates())
            except TimeoutError:
                self._note(f"space was not free within {_FREED_S:.0f} s")
            else:
                self._note("no volume is at its limit any more")
            await self._retain(_ENDLESS)

    async def _retain(self, config: Mapping[str, str]) -> None:
        """Until it is done: whichever broker is asked may be frozen, or gone."""
        left = list(self._topics)
        while left:
            try:
                async with Admin(self._bootstrap, _ADMIN_TIMEOUT_S) as admin:
                    while left:
                        await admin.set_topic_config(left[-1], config)
                        left.pop()
            except ClusterError:
                await asyncio.sleep(_RETRY_S)
