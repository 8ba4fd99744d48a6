"""The memory of a process and of all that it started, while it runs.

What several processes share (forked Python workers) is counted once: proportional set sizes.

Example: ``with Resident(os.getpid()) as resident: work()``, then ``resident.peak_bytes``.
"""

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_CHECK_S: Final = 0.25


class Resident:
    """Polls four times a second, from entry to exit.

    Attributes:
        peak_bytes: the most seen.
    """

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="resident", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(_CHECK_S):
            self.peak_bytes = max(self.peak_bytes, sum(map(_bytes, _family(self._pid))))


def _family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # One that has just ended has no file.
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    found, due = [], [pid]
    while due:
        one = due.pop()
        found.append(one)
        due += children.get(one, [])
    return found


def _bytes(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
