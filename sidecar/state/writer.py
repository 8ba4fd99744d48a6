"""Keeps the board's state on disk: at once after a change, otherwise every ten seconds at most.

A throttle that gets longer by more than a second is on disk a second later. While the state of an
earlier run is not read, nothing is written.

A thread of its own writes, one write at a time. A disk that hangs never blocks the loop, and a
hanging name server never delays a write. A failed write is logged once, and so is a write that has
not ended after ten seconds. One more line follows when writing works again.

Example: polls every 100 ms in which only free bytes move are written 6 times a minute. A volume
that reaches its limit is on disk some milliseconds later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from sidecar.control.board import Board, PersistedState, Snapshot
from sidecar.control.persistence import Persistence
from sidecar.state import StateFile
from sidecar.threads import OwnThreads
from sidecar.throttle.user_throttles import UserThrottles

_log = logging.getLogger(__name__)

_SPACING_S: Final = 10.0
"""The time between writes. Sizes that are 10 s older after a restart change no decision."""

_VALIDITY_SHARE: Final = 0.25
"""The share of a short validity between writes, so that a kill -9 leaves a valid state."""


_THROTTLE_CHECK_S: Final = 1.0
_LONGER_S: Final = 1.0
"""A throttle that got longer by this time is written, so that a kill -9 does not end it early."""

_PERSIST_S: Final = 1.0
"""How long the answer to a change waits for the disk."""

_HUNG_S: Final = 10.0
"""After this time, the log has a warning about a write that has not ended."""


@dataclass(slots=True)
class StateWriter:
    """Writes what a board publishes to a state file.

    Attributes:
        board: publishes the state.
        file: the state file.
        wall: steady to epoch seconds.
        unread: returns the state of an earlier run once its disk answers; None if it was read.
    """

    board: Board
    file: StateFile
    wall: Callable[[float], float]
    unread: Callable[[], Awaitable[PersistedState | None]] | None = None
    _spacing_s: float = field(init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _threads: OwnThreads = field(default_factory=lambda: OwnThreads("state file"), init=False)
    _next: asyncio.Task[bool] | None = field(default=None, init=False)
    _written: Snapshot | None = field(default=None, init=False)
    _failing: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._spacing_s = min(_SPACING_S, _VALIDITY_SHARE * self.board.rules.validity_s)

    async def run(self) -> None:
        """Write the state until the board is closed; read it before, if that has not ended."""
        if self.unread is not None:
            self.board.take_over(await self.unread())
            _log.info("the state file %s is read", self.file.path)
            self.unread = None
        while not self.board.closed:
            snapshot = self.board.snapshot
            await self.write()
            await self._wait(snapshot)

    async def _wait(self, state: Snapshot) -> None:
        """Return when it is time to write again."""
        now = asyncio.get_running_loop().time
        until = now() + self._spacing_s
        while now() < until:
            # A throttle that begins is a change of the decision. A throttle that gets longer is
            # not.
            look_s = _THROTTLE_CHECK_S if state.memory.user_throttles else self._spacing_s
            snapshot = await self.board.wait_for_change(
                state.generation, min(look_s, until - now())
            )
            changed = snapshot.generation != state.generation or self.board.closed
            if changed or _longer(state.memory.user_throttles, snapshot.memory.user_throttles):
                return

    async def write(self) -> bool:
        """Write the published state, unless it is written already.

        Returns:
            Whether the state is on disk.
        """
        if self.unread is not None:
            return False
        # A write in its thread can't be cancelled, so neither is the task with its lock: the
        # last write of a stopping daemon comes after it, not beside it. All who ask while a write
        # is under way share the next one, so a hanging disk collects no tasks.
        if self._next is None:
            self._next = asyncio.create_task(self._write(), name="keep")
        return await asyncio.shield(self._next)

    async def persist(self) -> Persistence:
        """Write the published state, and wait a second at most for the disk."""
        if self.unread is not None:
            return Persistence.PENDING
        try:
            async with asyncio.timeout(_PERSIST_S):
                written = await self.write()
        except TimeoutError:
            return Persistence.PENDING
        return Persistence.WRITTEN if written else Persistence.FAILED

    async def _write(self) -> bool:
        async with self._lock:
            self._next = None
            snapshot = self.board.snapshot
            if snapshot is self._written:
                return True
            decision = snapshot.decision
            state = PersistedState(
                snapshot.memory,
                decision.factor,
                decision.source,
                snapshot.since,
                snapshot.leaks.shares,
            )
            loop = asyncio.get_running_loop()
            hung = loop.call_later(_HUNG_S, self._warn_of_hung_disk)
            try:
                await loop.run_in_executor(self._threads, self.file.save, state, self.wall)
            except OSError as error:
                if not self._failing:
                    _log.warning(
                        "the state can't be written to %s: %s; a restart would forget it",
                        self.file.path,
                        error.strerror,
                    )
                self._failing = True
                return False
            finally:
                hung.cancel()
            if self._failing:
                _log.info("the state is written to %s again", self.file.path)
            self._failing = False
            self._written = snapshot
            return True

    def _warn_of_hung_disk(self) -> None:
        if not self._failing:
            _log.warning(
                "writing the state to %s has not ended after %g s: its disk does not answer; a"
                " restart would forget what is newer than the file",
                self.file.path,
                _HUNG_S,
            )
        self._failing = True


def _longer(before: UserThrottles, after: UserThrottles) -> bool:
    if after is before:
        return False
    return any(
        key not in before or each.ends_at > before[key].ends_at + _LONGER_S
        for key, each in after.items()
    )
