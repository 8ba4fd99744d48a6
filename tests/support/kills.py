"""Processes killed with all that they have started, and the chance that draws when, from a seed.

A kill -9 of a machine's leaves nobody time to tidy up: not the command, nor Spark's JVM, nor its
Python workers, which have a process group of their own. So all of a session are killed.

Example: ``KILL_SEED=7 .venv/bin/pytest tests/integration/test_killed_runs.py`` draws the moments of
seed 7 again; a machine that is busier hits another place of the run with them.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.waiting import POLL_S

_ENDED_S = 30.0


def seeded() -> random.Random:
    """Returns a source of chance by KILL_SEED, else by a new seed; a red test prints it."""
    seed = int(os.environ.get("KILL_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"KILL_SEED={seed} draws these moments again")
    return random.Random(seed)


@contextmanager
def session_of(
    argv: Sequence[str], said: Path, environ: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a command in a session of its own, all of which is killed at the end.

    Args:
        argv: the command.
        said: the file that its output is appended to.
        environ: all of its variables; None: the test's.
    """
    with said.open("ab") as output:
        process = subprocess.Popen(
            argv, env=environ, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        kill(process)


def sidecar(*words: str) -> list[str]:
    """Returns the command ``throttle-sidecar WORDS``."""
    return [sys.executable, "-m", "sidecar", *words]


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a session with SIGKILL, and waits until nobody of it is left."""
    until = time.monotonic() + _ENDED_S
    while living := _living(process.pid):
        for pid in living:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # Else its first process stays as a zombie, and those of a killed JVM for a moment.
        process.poll()
        assert time.monotonic() < until, f"processes {living} are still there"
        time.sleep(POLL_S)
    process.wait()


def waited_for(
    process: subprocess.Popen[bytes], happened: Callable[[], bool], timeout_s: float
) -> bool:
    """Waits for something that a process does, to 10 ms.

    Returns:
        Whether it happened; False: the process has ended before.
    """
    until = time.monotonic() + timeout_s
    while not happened():
        if process.poll() is not None:
            return happened()
        if time.monotonic() > until:
            pytest.fail(f"not seen within {timeout_s:g} s")
        time.sleep(POLL_S / 2)
    return True


def _living(session: int) -> list[int]:
    """Those of a session, but for zombies."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        # One that has just ended has no file.
        with suppress(OSError):
            # Behind the name: state, parent, group, session; proc(5).
            state, _, _, its_session, *_ = (
                (folder / "stat").read_text().rpartition(")")[2].split(maxsplit=4)
            )
            if int(its_session) == session and state != "Z":
                found.append(int(folder.name))
    return found
