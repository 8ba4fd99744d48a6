"""What hangs: a disk, a name server, and a sidecar whose answers wait for them."""

import asyncio
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.control.persistence import Persistence
from sidecar.daemon import remembered
from sidecar.state.writer import StateWriter
from sidecar.threads import OwnThreads
from tests.simulation import world
from tests.simulation.disk import SimulatedDisk
from tests.simulation.faults import Fault, Kind
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.world import Plan, run

FILE = Path("/state")
HANGS = Plan(
    6,
    60.0,
    faults=[Fault(20.0, 20.0, Kind.DISK_HANGS, 1), Fault(25.0, 10.0, Kind.OVERRIDE, 1, 0.5)],
)
"""An operator overrides a factor while the state can't be written."""


STARTS = replace(
    HANGS,
    duration_s=120.0,
    faults=[
        Fault(20.0, 90.0, Kind.DISK_HANGS, 1),
        Fault(21.0, 1.0, Kind.SIDECAR_KILLED, 1),
        Fault(60.0, 10.0, Kind.OVERRIDE, 1, 0.5),
    ],
)
"""It starts while its state can't be read."""


def test_a_write_that_hangs_ends_later() -> None:
    """With the disk; other calls of the default executor wait for its threads, those of own don't.

    Six hang, of as many threads.
    """
    loop, disk, process = VirtualLoop(), SimulatedDisk(FILE.parent), Process("sidecar 0")
    own = OwnThreads("own")

    def begin(executor: Executor | None, content: bytes) -> asyncio.Future[None]:
        return loop.run_in_executor(executor, disk.replace, FILE, content)

    async def play() -> None:
        disk.hangs = True
        hanging = [begin(None, b"first") for _ in range(6)]
        elsewhere = [loop.run_in_executor(each, lambda: None) for each in (None, own)]
        await asyncio.sleep(5.0)
        assert [False] * 6 == [each.done() for each in hanging]
        assert [False, True] == [each.done() for each in elsewhere]
        disk.mend()
        await asyncio.gather(*hanging, *elsewhere)
        assert b"first" == disk.read(FILE)

    try:
        loop.run_until_complete(loop.create_task(play(), context=process.context))
    finally:
        loop.close()


@pytest.mark.rare
@pytest.mark.parametrize("waits", [False, True])
def test_an_operator_is_answered(*, waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within two seconds; not if the answer waits for the disk, however long that takes."""
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: False)

    async def wait(writer: StateWriter) -> Persistence:
        await writer.write()
        return Persistence.WRITTEN

    if waits:
        monkeypatch.setattr(StateWriter, "persist", wait)
    found = "\n".join(run(HANGS).violations)
    assert waits == ("to answer an operator" in found)
    assert waits or not found


@pytest.mark.rare
def test_an_operator_who_asks_a_frozen_sidecar(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers once it is continued, and breaks no claim by that."""
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: False)
    frozen = Fault(20.0, 20.0, Kind.SIDECAR_FROZEN, 1)
    report = run(replace(HANGS, faults=[frozen, Fault(25.0, 10.0, Kind.OVERRIDE, 1, 1.0)]))
    assert () == tuple(report.violations)


@pytest.mark.rare
@pytest.mark.parametrize("waits", [False, True])
def test_a_sidecar_starts_without_its_disk(*, waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers an operator; not if it waits for the disk, however long that takes."""
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: False)
    if waits:
        monkeypatch.setattr(remembered, "DEADLINE_S", 3600.0)
    found = "\n".join(run(STARTS).violations)
    assert waits == ("to answer an operator" in found)
    assert waits or not found
