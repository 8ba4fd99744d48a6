"""The memory of a run's processes, in a thread that looks every now and then while they run.

Python's workers are forked from one process and share most of it; what they share is counted once,
by proportional set sizes. A JVM's is its resident set, the highest as the kernel has it.

Example: ``with Resident(process.pid) as resident: process.wait()``, then ``resident.peak_bytes``.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

_EXECUTOR: Final = re.compile(r"CoarseGrainedExecutorBackend.*--executor-id\0(\d+)")
DRIVERS_JAVA: Final = "driver's JVM"
DRIVERS_PYTHON: Final = "driver's Python"


class Process(NamedTuple):
    """A process of this machine, and the process that started it."""

    pid: int
    parent: int


class _Polled:
    """Looks from entry to exit."""

    def __init__(self, look: Callable[[], None], every_s: float) -> None:
        self._look = look
        self._every_s = every_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="polled", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(self._every_s):
            self._look()


class Resident(_Polled):
    """A process and all that it started, four times a second.

    Attributes:
        peak_bytes: the most seen.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(self._measure, 0.25)
        self.peak_bytes = 0
        self._pid = pid

    def _measure(self) -> None:
        self.peak_bytes = max(self.peak_bytes, sum(map(_shared_bytes, _family(self._pid))))


class Roles(_Polled):
    """The processes of a run on a cluster of Spark's by what they do, twice a second.

    Attributes:
        peak_bytes: the most seen of each role: the driver's, ``executor 3, JVM``, ``executor 3,
            Python`` and ``executor 3, both`` at the same time.
    """

    def __init__(self, pid: int) -> None:
        """Of the driver's Python."""
        super().__init__(self._measure, 0.5)
        self.peak_bytes: Counter[str] = Counter()
        self._pid = pid

    def _measure(self) -> None:
        for role, size in self._sizes().items():
            self.peak_bytes[role] = max(self.peak_bytes[role], size)

    def _sizes(self) -> Counter[str]:
        there = {each.pid: each for each in _processes()}
        commands = {pid: _command(pid) for pid in there}
        sizes: Counter[str] = Counter()
        for pid, process in there.items():
            if pid == self._pid:
                sizes[DRIVERS_PYTHON] += _highest(pid)
            elif process.parent == self._pid and "SparkSubmit" in commands[pid]:
                sizes[DRIVERS_JAVA] += _highest(pid)
            elif found := _EXECUTOR.search(commands[pid]):
                sizes[f"executor {found[1]}, JVM"] += _highest(pid)
                sizes[f"executor {found[1]}, both"] += _memory_bytes(pid, "status", "VmRSS:")
            elif (executor := _executor_of(process, there, commands)) is not None:
                shared = _shared_bytes(pid)
                sizes[f"executor {executor}, Python"] += shared
                sizes[f"executor {executor}, both"] += shared
        return sizes


def _executor_of(
    process: Process, there: Mapping[int, Process], commands: Mapping[int, str]
) -> str | None:
    """The executor whose worker a process is; None where it is none."""
    above: Process | None = process
    while above is not None:
        if found := _EXECUTOR.search(commands[above.pid]):
            return found[1]
        above = there.get(above.parent)
    return None


def _processes() -> Iterator[Process]:
    """All that there are."""
    for folder in Path("/proc").glob("[0-9]*"):
        # One that has just ended has no file.
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            yield Process(int(folder.name), parent)


def _family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process.pid)
    found, due = [], [pid]
    while due:
        one = due.pop()
        found.append(one)
        due += children.get(one, [])
    return found


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def _shared_bytes(pid: int) -> int:
    return _memory_bytes(pid, "smaps_rollup", "Pss:")


def _highest(pid: int) -> int:
    return _memory_bytes(pid, "status", "VmHWM:")


def _memory_bytes(pid: int, file: str, name: str) -> int:
    """What a file of a process in /proc says, which is in kB; 0 once it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
