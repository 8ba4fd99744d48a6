"""What is measured while something runs, in a thread that looks every now and then.

Example: ``with Polled(look, 0.5): work()`` calls ``look`` twice a second, until ``work`` has ended.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self


class Process(NamedTuple):
    """A process of this machine, and who started it."""

    pid: int
    parent: int


class Polled:
    """Looks from entry to exit."""

    def __init__(self, look: Callable[[], None], every_s: float) -> None:
        """Nothing is looked at yet."""
        self._look = look
        self._every_s = every_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="polled", daemon=True)

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
        while not self._end.wait(self._every_s):
            self._look()


def processes() -> Iterator[Process]:
    """All that there are."""
    for folder in Path("/proc").glob("[0-9]*"):
        # One that has just ended has no file.
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            yield Process(int(folder.name), parent)


def proportional_bytes(pid: int) -> int:
    """A process's memory, what it shares with others in parts; 0 once it has ended."""
    return memory_bytes(pid, "smaps_rollup", "Pss:")


def memory_bytes(pid: int, file: str, name: str) -> int:
    """What a file of a process in /proc says, which is in kB; 0 once it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
