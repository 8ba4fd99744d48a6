"""The memory of a run on a cluster of Spark's, by what its processes do, while it runs.

A JVM's is its resident set, the highest as the kernel has it. Python's workers are forked from one
process and share most of it; what they share is counted once, by proportional set sizes, twice a
second.

Example: ``with Roles(process.pid) as roles: process.wait()``, then ``roles.peak_bytes["driver's
JVM"]``.
"""

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_CHECK_S: Final = 0.5
_EXECUTOR: Final = re.compile(r"CoarseGrainedExecutorBackend.*--executor-id\0(\d+)")
DRIVERS_JAVA: Final = "driver's JVM"
DRIVERS_PYTHON: Final = "driver's Python"


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    command: str


class Roles:
    """Polls twice a second, from entry to exit.

    Attributes:
        peak_bytes: the most seen of each role: the driver's, ``executor 3, JVM``, ``executor 3,
            Python`` and ``executor 3, both`` at the same time.
    """

    def __init__(self, pid: int) -> None:
        """Of the driver's Python."""
        self.peak_bytes: Counter[str] = Counter()
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="roles", daemon=True)

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
            for role, size in self._sizes().items():
                self.peak_bytes[role] = max(self.peak_bytes[role], size)

    def _sizes(self) -> Counter[str]:
        there = {each.pid: each for each in _processes()}
        sizes: Counter[str] = Counter()
        for process in there.values():
            if process.pid == self._pid:
                sizes[DRIVERS_PYTHON] += _highest(process.pid)
            elif process.parent == self._pid and "SparkSubmit" in process.command:
                sizes[DRIVERS_JAVA] += _highest(process.pid)
            elif found := _EXECUTOR.search(process.command):
                sizes[f"executor {found[1]}, JVM"] += _highest(process.pid)
                sizes[f"executor {found[1]}, both"] += _resident(process.pid)
            elif (executor := _executor_of(process, there)) is not None:
                shared = _proportional(process.pid)
                sizes[f"executor {executor}, Python"] += shared
                sizes[f"executor {executor}, both"] += shared
        return sizes


def _executor_of(process: _Process, there: dict[int, _Process]) -> str | None:
    """Whose worker it is; None where it is nobody's."""
    above: _Process | None = process
    while above is not None:
        if found := _EXECUTOR.search(above.command):
            return found[1]
        above = there.get(above.parent)
    return None


def _processes() -> Iterator[_Process]:
    for folder in Path("/proc").glob("[0-9]*"):
        # One that has just ended has no file.
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
            yield _Process(int(folder.name), parent, command)


def _highest(pid: int) -> int:
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmHWM:")


def _resident(pid: int) -> int:
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmRSS:")


def _proportional(pid: int) -> int:
    return _kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")


def _kilobytes(file: Path, name: str) -> int:
    with suppress(OSError):
        for line in file.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
