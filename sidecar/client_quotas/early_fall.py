"""Whether client quotas have to fall before a limit, and when they may be as they were.

Only volumes that were seen within the validity count. While an override or the fallback decides,
none does, and quotas follow the factor alone.
"""

import logging
import math
from dataclasses import dataclass, field
from typing import Final

from sidecar.control.board import Board
from sidecar.throttle.approach import LEAD_BY_FILL_S, LEAD_S, Approach, approach
from sidecar.throttle.decision import Source
from sidecar.throttle.fill_rates import FillRates
from sidecar.throttle.quota_steps import RISE

_log = logging.getLogger(__name__)

_FAR_S: Final = 20.0
"""Longer than Kafka's quota window: brokers' metrics tell what clients write after that."""
_WARN_S: Final = 900.0
"""Between two warnings that quotas fall before a limit."""


@dataclass(slots=True)
class EarlyFall:
    """How near volumes are to their limits, as far as client quotas depend on it.

    Attributes:
        fills: how fast volumes fill.
        nearest: the volume that allows quotas least, as last judged; none if only a limit counts.
        is_near: whether a volume was so near that it matters what clients write. That may be known
            only once it is asked for, or once there is a quota.
        is_on: whether quotas are lowered before a limit: from their fall until all rise freely.
    """

    fills: FillRates = field(default_factory=FillRates)
    nearest: Approach = field(default_factory=Approach)
    is_near: bool = False
    is_on: bool = False
    _near_at: float = -math.inf
    _warned_at: float = -math.inf

    def judge(self, board: Board, *, has_scope: bool, is_known: bool) -> None:
        """Judge the volumes that are remembered.

        Args:
            board: has the memory and the decision.
            has_scope: whether quotas fall for the users alone that write to these volumes.
            is_known: whether it is known of each broker what clients write to it.
        """
        now, snapshot = board.now(), board.snapshot
        self.nearest, self.is_near = Approach(), False
        if snapshot.decision.decided.source is not Source.OBSERVATION:
            return
        states = [
            each
            for each in snapshot.memory.valid_volumes(board.rules.validity_s, now)
            # Without its topics it is not known whose quotas have to fall.
            if not has_scope or each.volume.place in snapshot.memory.contents
        ]
        nearest = approach(states, self.fills, now, LEAD_BY_FILL_S)
        self.is_near = nearest.falls
        if self.is_near:
            self._near_at = now
        self.nearest = approach(states, self.fills, now, LEAD_S) if is_known else nearest

    def note(self, now: float, *, is_lowered: bool) -> None:
        """Note whether a quota is lowered now, and warn when quotas fall."""
        goes_on = self.nearest.falls or (self.is_on and self.nearest.rise < RISE)
        self.is_on = goes_on and is_lowered
        is_before = self.nearest.falls and self.nearest.headroom > 0.0
        if self.is_on and is_before and now >= self._warned_at + _WARN_S:
            self._warned_at = now
            _log.warning("client quotas fall before the limit is reached: %s", self.nearest)

    def is_far(self, now: float) -> bool:
        """Whether quotas may be as they were: sooner, they would fall again at once."""
        return now >= self._near_at + _FAR_S

    def topics(self, board: Board) -> tuple[str, ...] | None:
        """The topics on the volumes for which quotas fall; None if they are not known."""
        contents = board.snapshot.memory.contents
        known = [contents[each].topics for each in self.nearest.falling if each in contents]
        return tuple(sorted(frozenset[str]().union(*known))) if known else None
