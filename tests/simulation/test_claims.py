"""Each claim is broken once, by a world in which something is wrong, and is seen to be."""

from dataclasses import replace

import pytest

from sidecar.throttle.decision import Decision, Source, VolumeLimit
from sidecar.throttle.memory import Memory
from tests.simulation.callback import Callback
from tests.simulation.faults import Fault, Kind
from tests.simulation.sidecars import SimulatedSidecar
from tests.simulation.world import Plan, World, run

pytestmark = pytest.mark.slow

QUIET = Plan(6, 300.0, faults=())
"""A volume is full within 300 s, and no fault happens."""


def broken(plan: Plan = QUIET) -> str:
    """What the claims say of a plan's run."""
    return "\n".join(run(plan).violations)


def test_without_faults_and_mistakes_nothing_is_broken() -> None:
    """And a volume did violate: else the others would show nothing."""
    report = run(QUIET)
    assert () == tuple(report.violations)
    assert report.figures["releases"] > 0


def test_a_callback_that_does_not_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    """It throttles nobody, and more lands than may."""

    async def nobody(*_: object) -> None:
        pass

    monkeypatch.setattr(World, "_ask", nobody)
    assert "throttles nobody; a volume has violated" in broken()


def test_a_pause_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client is told to wait for longer than 4 s."""
    monkeypatch.setattr(Callback, "charge", lambda *_: 4_500.0)
    assert "was told to wait for 4.500 s" in broken()


def test_a_release_that_nobody_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every seventh second a decision is made without its violations."""
    decide = VolumeLimit.decide

    def careless(limit: VolumeLimit, memory: Memory, now: float) -> Decision:
        decision = decide(limit, memory, now)
        if decision.source is Source.OBSERVATION and int(now) % 7 == 0:
            return replace(decision, factor=1.0, violations=())
        return decision

    monkeypatch.setattr(VolumeLimit, "decide", careless)
    assert "released though" in broken()


def test_a_daemon_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends by itself when it is to be reloaded."""

    def reload(sidecar: SimulatedSidecar) -> None:
        sidecar.ended = "RuntimeError: a bug"

    monkeypatch.setattr(SimulatedSidecar, "reload", reload)
    plan = Plan(6, 60.0, faults=[Fault(30.0, 0.0, Kind.RELOAD, 1)])
    assert "sidecar 1 ended: RuntimeError: a bug" in broken(plan)


def test_traffic_that_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second phase finds a client that is throttled for nothing."""
    charge = Callback.charge

    def slow(callback: Callback, user: str, client: str, *more: float) -> float:
        return max(1_500.0, charge(callback, user, client, *more))  # type: ignore[arg-type]

    monkeypatch.setattr(Callback, "charge", slow)
    assert "writes" in broken()
