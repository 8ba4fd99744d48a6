"""How long the sidecar does not call a broker that failed.

The pause doubles with each consecutive failure, from 0.1 s to 10 s, and a success resets it. During
the pause, calls get the last failure without a request, so a dead broker costs nothing. There is no
jitter: a sidecar asks each broker once in a poll, so there is no herd of requests to spread.

Example: after a failure at 0 s, calls fail until 0.1 s. After a second one at 1 s, they fail until
1.2 s.
"""

from sidecar.volumes import Failure

INITIAL_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0


class Backoff:
    """The consecutive failures of one address; none at first."""

    __slots__ = ("_failure", "_pause_s", "_until")

    def __init__(self) -> None:
        self._failure: Failure | None = None
        self._pause_s = 0.0
        self._until = 0.0

    def failed(self, failure: Failure, now: float, longest_s: float = LONGEST_PAUSE_S) -> None:
        """Counts a failure at ``now``, steady seconds; the pause is at most ``longest_s``."""
        self._failure = failure
        self._pause_s = min(self._pause_s * 2 or INITIAL_PAUSE_S, longest_s)
        self._until = now + self._pause_s

    def succeeded(self) -> None:
        """Resets the failures."""
        self._failure = None
        self._pause_s = 0.0

    def refusal(self, now: float) -> Failure | None:
        """The failure of a call at ``now``, steady seconds; None if the call may be made."""
        return self._failure if now <= self._until else None
