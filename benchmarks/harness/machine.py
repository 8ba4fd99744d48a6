"""The machine that was measured on, and which of its cores are quiet.

A figure "on one core" is worth something only where nothing else wants that core, so the measured
process is pinned to the idlest core and what it talks to is pinned to the next.
"""

import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

_CHECK_S = 0.3
_STEAL = 7
"""user, nice, system, idle, iowait, irq, softirq, steal: the columns of /proc/stat, proc(5)."""
_PACKAGES = ("aiokafka", "fastapi", "uvicorn", "httptools", "pydantic")


def quiet_cores(count: int) -> list[int]:
    """The idlest cores that this process may use, the idlest first; repeated where there are fewer.

    They were measured for 0.3 s.
    """
    before = _idle_ticks()
    time.sleep(_CHECK_S)
    after = _idle_ticks()
    allowed = sorted(os.sched_getaffinity(0), key=lambda core: before[core] - after[core])
    return (allowed * count)[:count]


def describe() -> list[str]:
    """What a reader of the figures has to know, one line each."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    busy = os.getloadavg()[0]
    return [
        f"{len(os.sched_getaffinity(0))} cores ({_model()}), {_memory_gb():.0f} GB, "
        f"{platform.system()} {platform.release()}",
        f"{platform.python_implementation()} {platform.python_version()}, {packages}",
        f"load when it began: {busy:.1f} (the average of the minute before)",
    ]


def process_cpu_s(pid: int) -> float:
    """The CPU time that a process has used so far, seconds."""
    # Linux's clock of another process: clock_getcpuclockid(3), to the nanosecond.
    return time.clock_gettime((~pid << 3) | 2)


def threads_cpu_s(pid: int, names: tuple[str, ...]) -> float:
    """The CPU time so far of a process's threads whose names begin so, seconds.

    A name has 15 characters; the time is the first figure of schedstat, proc(5).
    """
    return sum(
        int((thread / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
        for thread in Path(f"/proc/{pid}/task").iterdir()
        if (thread / "comm").read_text(encoding="ascii").startswith(names)
    )


class Stolen:
    """The CPU time that a virtual machine wanted and did not get since this was made.

    A figure that was measured meanwhile is of fewer cores than the machine says it has.

    Example: "12 % of the CPU time was stolen by others on the host".
    """

    def __init__(self, file: Path = Path("/proc/stat")) -> None:
        self._file = file
        self._before = self._ticks()

    def __str__(self) -> str:
        ticks = [now - then for now, then in zip(self._ticks(), self._before, strict=True)]
        share = ticks[_STEAL] / max(1, sum(ticks))
        return f"{share:.0%} of the CPU time was stolen by others on the host".replace("%", " %", 1)

    def _ticks(self) -> list[int]:
        # Those of guests, the last two, are counted in the first two already.
        _, *counts = self._file.read_text(encoding="ascii").splitlines()[0].split()
        return [int(count) for count in counts[: _STEAL + 1]]


def _idle_ticks() -> dict[int, int]:
    """Core -> the ticks that it has been idle since the start."""
    ticks = {}
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *counts = line.split()
        if name.startswith("cpu") and name != "cpu":
            ticks[int(name[3:])] = int(counts[3])
    return ticks


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
