"""Logs once when this sidecar decides to throttle and no broker reads the decision.

A callback that reads another sidecar reports to that one, so this is a warning and no error. With
another SIDECAR_ENFORCEMENT than "callback", only throttles of single users need a reader.

Example: producers are to be throttled from 100 s on, and no callback reads this sidecar. There is
one warning at 160 s, and a line when broker 1 reads the decision at 400 s.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, NoReturn

from sidecar.control.board import Board

LOOK_S: Final = 5.0

PATIENCE_S: Final = 60.0
"""A callback connects again within seconds after a restart of the sidecar."""

_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class ReaderWatch:
    """Compares a board's decision with its readers."""

    board: Board

    async def run(self) -> NoReturn:
        """Look again and again, until cancelled."""
        since: float | None = None
        is_logged = False
        while True:
            now = self.board.now()
            decision = self.board.snapshot.decision
            readers = self.board.readers.recent(now)
            if readers and is_logged:
                _log.info("broker %d reads the throttle factor", readers[0].report.broker_id)
            if decision.factor < 1.0 or decision.budgets:
                needs_reader = self.board.readers.enforcement == "callback"
            else:
                needs_reader = bool(decision.users)
            if readers or not needs_reader:
                since, is_logged = None, False
            elif since is None:
                since = now
            elif now - since >= PATIENCE_S and not is_logged:
                is_logged = True
                _log.warning(
                    "this sidecar throttles nobody: no broker has read its factor, %s. Set"
                    " client.quota.callback.class on the brokers, and name this sidecar in"
                    " client.quota.callback.sidecar.url",
                    decision.factor,
                )
            await asyncio.sleep(LOOK_S)
