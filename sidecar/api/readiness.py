"""Whether the sidecar's decision comes from a valid observation: ``/readyz``.

It must not be the readiness probe of a broker's pod. Otherwise a sidecar that can't read volumes
would take its broker out of service.

Example: the last poll ended 200 s ago, and polling counts as stuck after 140 s: not ready.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.control.board import Board
from sidecar.throttle.validity import is_valid


@dataclass(frozen=True, slots=True)
class Polling:
    """The expected times of polling.

    Attributes:
        enabled: False when the check interval is PT0S.
        stuck_after_s: the longest time without the end of a poll until polling counts as stuck,
            seconds.
        reaction_s: the longest time from when a volume reaches a line until brokers act, seconds.
    """

    enabled: bool
    stuck_after_s: float
    reaction_s: float


def why_not_ready(board: Board, polling: Polling) -> Callable[[], str | None]:
    """Return a function that returns why the sidecar is not ready now, or None.

    The time until the first poll counts from this call on.
    """
    started = board.now()

    def why() -> str | None:
        if not polling.enabled:
            return None
        polled_at = started if board.tally.polled_at is None else board.tally.polled_at
        now = board.now()
        if not is_valid(polled_at, polling.stuck_after_s, now):
            return f"Polling is stuck: no poll has ended for {now - polled_at:.0f} s."
        decision = board.snapshot.decision
        if decision.computed_at is None:
            return f"There is no valid observation: {decision.reason}."
        if board.withheld:
            return f"Readers get no answer that might end a throttle: {board.unread}."
        return None

    return why
