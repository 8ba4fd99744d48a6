"""Publishes the factor of a factor source, in place of polls of the volumes.

The source is called once in the check interval, and after a failure sooner: after 1 s, 2 s, 4 s and
so on. A factor is as old as its call, so it is valid for the validity after that.

Example: interval 60 s, validity 5 min. The source returns 0.5 at 0 s and hangs from then on. The
calls at 60 s, 71 s and so on fail. From 5 min on, the fallback applies.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from sidecar.control.board import Board
from sidecar.daemon.sources import Source
from sidecar.throttle.schedule import Timing
from sidecar.volumes import Failure


@dataclass(frozen=True, slots=True)
class FactorPoller:
    """Calls a factor source and publishes its factor on a board.

    Attributes:
        source: the factor source.
        board: publishes the decisions.
        timing: how often to call, and the deadline.
        polled: called with the duration of each call, seconds.
    """

    source: Source[float]
    board: Board
    timing: Timing
    polled: Callable[[float], None]

    async def run(self) -> NoReturn:
        """Call until cancelled."""
        while True:
            failures = await self.poll()
            # The exponent is bounded, because a float is.
            delay_s = 2.0 ** min(failures - 1, 60) if failures else self.timing.interval_s
            await asyncio.sleep(min(delay_s, self.timing.interval_s))

    async def poll(self) -> int:
        """Call once, and return the number of failed calls in a row."""
        board, began = self.board, self.board.now()
        factor = await self.source.ask(self.timing.deadline_s)
        if isinstance(factor, Failure):
            board.fail(factor)
        else:
            board.take_factor(factor, began)
        self.polled(board.now() - began)
        return board.snapshot.memory.failed_polls
