"""``python -m tests.chaos`` ends cleanly when it is interrupted in the middle of a fault."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.support.waiting import seen

PLAN = ("--seed", "9", "--minutes", "1")
"""The first of its faults freezes a broker."""


async def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    """Every process gets it, as from a terminal; the table has what was seen until then."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.chaos", *PLAN, "--out", str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stderr is not None
    said = b""
    try:
        async with asyncio.timeout(150):
            while b"SIGSTOP" not in said:
                said = await process.stderr.readline()
                assert said, "it ended"
        below = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        table, _ = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
    assert 130 == process.returncode
    assert b"of 1:00 minutes" in table
    # Four nodes, three sidecars, two JVMs of ours, and the process above the nodes.
    assert len(below) >= 10
    await seen("the end of all", lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))


def descendants(pid: int) -> set[int]:
    """The processes below one, by their parents' ids."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # "pid (name) state parent": a name may have spaces and brackets.
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found: set[int] = set()
    while more := {each for each, parent in parents.items() if parent in found | {pid}} - found:
        found |= more
    return found
