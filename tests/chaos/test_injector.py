"""Faults begin and end at their times, and what can't be done is said."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sidecar.errors import ClusterError
from tests.chaos.callbacks import CallbackWatch
from tests.chaos.injector import Injector
from tests.chaos.schedule import Action, Fault, Plan, Role
from tests.kafka_lab.clusters import FakeCluster

LISTENS = "throttle-sidecar 0.1.0 listens on http://127.0.0.1:7000\n"


def fault(begin_s: float, end_s: float, action: Action, role: Role, number: int = 0) -> Fault:
    return Fault(begin_s, end_s, action, role, number)


@dataclass
class Stage:
    """A cluster that says what is done to it, and when."""

    folder: Path
    start_s: float = 1.0
    starts: bool = True
    said: list[str] = field(default_factory=list)

    async def play(self, *faults: Fault) -> Injector:
        """All faults, in virtual time."""
        now = asyncio.get_running_loop().time
        began = now()

        def say(what: str) -> None:
            self.said.append(f"{now() - began:g} {what}")

        injector = Injector(
            Plan(faults, ()),
            SayingCluster(self, say),
            CallbackWatch(),
            {},
            now=lambda: now() - began,
            note=lambda words: say(f"- {words}"),
            failed=lambda words: say(f"! {words}"),
        )
        await injector.run()
        return injector


class SayingCluster(FakeCluster):
    """Of which nothing runs."""

    def __init__(self, stage: Stage, say: Callable[[str], None]) -> None:
        super().__init__(stage.folder, run=self._listen)
        self._stage = stage
        self._say = say

    def _listen(self, name: str, argv: Sequence[str], log: Path) -> None:
        self._say(f"run {name}")
        log.write_text(LISTENS)

    async def signal_beside(self, name: str, signal: signal.Signals) -> None:
        self._say(f"{signal.name} {name}")
        self.ends[name] = -signal

    async def kill_broker(
        self, broker_id: int, signal: signal.Signals = signal.SIGKILL, timeout_s: float = 30.0
    ) -> None:
        self._say(f"{signal.name} broker {broker_id}")

    async def start_broker(self, broker_id: int, timeout_s: float = 60.0) -> None:
        await asyncio.sleep(self._stage.start_s)
        if not self._stage.starts:
            raise ClusterError("broker 0 ended with 1 at its start:\nit is full")
        self._say(f"run broker {broker_id}")

    async def pause_broker(self, broker_id: int) -> None:
        self._say(f"SIGSTOP broker {broker_id}")

    async def resume_broker(self, broker_id: int) -> None:
        self._say(f"SIGCONT broker {broker_id}")


@pytest.mark.looptime
async def test_each_fault_begins_and_ends(tmp_path: Path) -> None:
    """A frozen process is resumed, one that ended is started again; both are told."""
    stage = Stage(tmp_path)
    injector = await stage.play(
        fault(1.0, 4.0, Action.KILL, Role.BROKER),
        fault(2.0, 7.0, Action.FREEZE, Role.SIDECAR, 1),
        fault(30.0, 34.0, Action.FREEZE, Role.BROKER, 2),
    )
    assert [
        "1 - broker 0: SIGKILL for 3.0 s",
        "1 SIGKILL broker 0",
        "2 - sidecar 1: SIGSTOP for 5.0 s",
        "2 SIGSTOP sidecar 1",
        "5 run broker 0",
        "5 - broker 0 is back",
        "7 SIGCONT sidecar 1",
        "7 - sidecar 1 is back",
        "30 - broker 2: SIGSTOP for 4.0 s",
        "30 SIGSTOP broker 2",
        "34 SIGCONT broker 2",
        "34 - broker 2 is back",
    ] == stage.said
    assert {"broker 0": 5.0, "broker 1": 0.0, "sidecar 1": 7.0} == {
        name: injector.since[name] for name in ("broker 0", "broker 1", "sidecar 1")
    }


@pytest.mark.looptime
async def test_a_sidecar_that_ended_is_started_again(tmp_path: Path) -> None:
    """At the fault's end, not at its own."""
    stage = Stage(tmp_path)
    await stage.play(fault(1.0, 4.0, Action.RESTART, Role.SIDECAR, 2))
    assert ["1 SIGTERM sidecar 2", "4 run sidecar 2"] == [
        line for line in stage.said if "-" not in line
    ]


@pytest.mark.looptime
async def test_a_second_broker_is_left_alone_while_one_starts(tmp_path: Path) -> None:
    """A slow machine does not make another schedule: what is left out is said."""
    stage = Stage(tmp_path, start_s=40.0)
    await stage.play(
        fault(1.0, 4.0, Action.KILL, Role.BROKER),
        fault(30.0, 34.0, Action.FREEZE, Role.BROKER, 1),
    )
    assert "30 - broker 1: SIGSTOP is left out: broker 0 is away still" in stage.said
    assert "SIGSTOP broker 1" not in "".join(stage.said).replace("- broker", "")


@pytest.mark.looptime
async def test_a_broker_that_does_not_come_back(tmp_path: Path) -> None:
    """It is told in one line, and stays away."""
    stage = Stage(tmp_path, starts=False)
    injector = await stage.play(fault(1.0, 4.0, Action.KILL, Role.BROKER))
    assert "5 ! broker 0 did not come back: broker 0 ended with 1 at its start:" == stage.said[-1]
    assert "broker 0" not in injector.since
