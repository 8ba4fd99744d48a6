"""The memory of a process and of all that it started, while it runs.

What several processes share (forked Python workers) is counted once: proportional set sizes.

Example: ``with Resident(os.getpid()) as resident: work()``, then ``resident.peak_bytes``.
"""

from typing import Final

from benchmarks.pipeline.polled import Polled, processes, proportional_bytes

_CHECK_S: Final = 0.25


class Resident(Polled):
    """Polls four times a second, from entry to exit.

    Attributes:
        peak_bytes: the most seen.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(self._measure, _CHECK_S)
        self.peak_bytes = 0
        self._pid = pid

    def _measure(self) -> None:
        self.peak_bytes = max(self.peak_bytes, sum(map(proportional_bytes, _family(self._pid))))


def _family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process.pid)
    found, due = [], [pid]
    while due:
        one = due.pop()
        found.append(one)
        due += children.get(one, [])
    return found
