"""The memory of a run on a cluster of Spark's, by what its processes do, while it runs.

A JVM's is its resident set, the highest as the kernel has it. Python's workers are forked from one
process and share most of it; what they share is counted once, by proportional set sizes, twice a
second.

Example: ``with Roles(process.pid) as roles: process.wait()``, then ``roles.peak_bytes["driver's
JVM"]``.
"""

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks.pipeline.polled import (
    Polled,
    Process,
    memory_bytes,
    processes,
    proportional_bytes,
)

_CHECK_S: Final = 0.5
_EXECUTOR: Final = re.compile(r"CoarseGrainedExecutorBackend.*--executor-id\0(\d+)")
DRIVERS_JAVA: Final = "driver's JVM"
DRIVERS_PYTHON: Final = "driver's Python"


class Roles(Polled):
    """Polls twice a second, from entry to exit.

    Attributes:
        peak_bytes: the most seen of each role: the driver's, ``executor 3, JVM``, ``executor 3,
            Python`` and ``executor 3, both`` at the same time.
    """

    def __init__(self, pid: int) -> None:
        """Of the driver's Python."""
        super().__init__(self._measure, _CHECK_S)
        self.peak_bytes: Counter[str] = Counter()
        self._pid = pid

    def _measure(self) -> None:
        for role, size in self._sizes().items():
            self.peak_bytes[role] = max(self.peak_bytes[role], size)

    def _sizes(self) -> Counter[str]:
        there = {each.pid: each for each in processes()}
        commands = {pid: _command(pid) for pid in there}
        sizes: Counter[str] = Counter()
        for pid, process in there.items():
            if pid == self._pid:
                sizes[DRIVERS_PYTHON] += _highest(pid)
            elif process.parent == self._pid and "SparkSubmit" in commands[pid]:
                sizes[DRIVERS_JAVA] += _highest(pid)
            elif found := _EXECUTOR.search(commands[pid]):
                sizes[f"executor {found[1]}, JVM"] += _highest(pid)
                sizes[f"executor {found[1]}, both"] += memory_bytes(pid, "status", "VmRSS:")
            elif (executor := _executor_of(process, there, commands)) is not None:
                shared = proportional_bytes(pid)
                sizes[f"executor {executor}, Python"] += shared
                sizes[f"executor {executor}, both"] += shared
        return sizes


def _executor_of(
    process: Process, there: Mapping[int, Process], commands: Mapping[int, str]
) -> str | None:
    """Whose worker it is; None where it is nobody's."""
    above: Process | None = process
    while above is not None:
        if found := _EXECUTOR.search(commands[above.pid]):
            return found[1]
        above = there.get(above.parent)
    return None


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def _highest(pid: int) -> int:
    return memory_bytes(pid, "status", "VmHWM:")
