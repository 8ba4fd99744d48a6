"""Which of several sidecars a callback asks next, as ``PollingOrder`` of the jar decides it.

Of those that have waited for long enough it is that of the one that waits for longest. One that
answered waits for a second, and one that failed for twice as long after each failure, up to 4 s.
"""

from typing import Final

EVERY_S: Final = 1.0
"""From the answer, or the failure, of one to the next one's request."""

_MOST_DOUBLINGS: Final = 2


class Turns:
    """The turns of so many; all are due at first, steady seconds."""

    def __init__(self, count: int, now: float) -> None:
        self._due = [now] * count
        self._failures = [0] * count
        self._free = now

    @property
    def next(self) -> int:
        """Whose turn is next, by its number from 0 on."""
        return self._due.index(min(self._due))

    @property
    def due_s(self) -> float:
        """When that is."""
        return max(min(self._due), self._free)

    def ended(self, number: int, *, failed: bool, now: float) -> None:
        """A turn has ended at ``now``."""
        before = self._failures[number]
        self._failures[number] = min(before + 1, _MOST_DOUBLINGS) if failed else 0
        self._due[number] = now + EVERY_S * 2 ** self._failures[number]
        self._free = now + EVERY_S
