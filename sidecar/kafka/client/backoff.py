"""How long a broker that failed is left alone.

The pause doubles with each failure in a row, from 0.1 s to 10 s, and ends with a success. During
it the failure stands for the next ones, so that a dead broker costs nothing and has one message.
Without jitter: a sidecar asks each broker once a poll, so there is no herd to spread.

Example: a failure at 0 s refuses calls until 0.1 s, the next one, at 1 s, until 1.2 s.
"""

from sidecar.volumes import Failure

INITIAL_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0


class Backoff:
    """The failures in a row of one address; none at first."""

    __slots__ = ("_failure", "_pause_s", "_until")

    def __init__(self) -> None:
        self._failure: Failure | None = None
        self._pause_s = 0.0
        self._until = 0.0

    def __repr__(self) -> str:
        return f"Backoff(pause_s={self._pause_s}, failure={self._failure})"

    def failed(self, failure: Failure, now: float) -> None:
        """Count one more failure, seen at ``now`` seconds."""
        self._failure = failure
        self._pause_s = min(self._pause_s * 2 or INITIAL_PAUSE_S, LONGEST_PAUSE_S)
        self._until = now + self._pause_s

    def succeeded(self) -> None:
        """Forget all failures."""
        self._failure = None
        self._pause_s = 0.0

    def refusal(self, now: float) -> Failure | None:
        """The failure that stands for a call at ``now`` seconds; None when it may be made."""
        return self._failure if now <= self._until else None
