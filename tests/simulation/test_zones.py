"""Worlds with observers of which some see a part of the cluster: whoever sees is heard."""

from typing import Any

import pytest

from sidecar.control.poller import Poller
from sidecar.daemon import composition
from sidecar.peers.observers import Observers
from tests.simulation import world
from tests.simulation.faults import Fault, Kind, zone_of
from tests.simulation.world import Plan, run

pytestmark = pytest.mark.rare

ONLY_ITS_OWN = Plan(
    16, 300.0, faults=[Fault(20.0, 270.0, Kind.CUT_FROM_SOME, number, 0b100) for number in (0, 1)]
)
"""Broker 2's volume violates, which only sidecar 2 sees; sidecar 1 is the observer."""


@pytest.fixture(autouse=True)
def _one_observer(monkeypatch: pytest.MonkeyPatch) -> None:
    """And callbacks ask all sidecars."""
    monkeypatch.setattr(world, "_WITH_PEERS", 1.0)
    monkeypatch.setattr(world, "_observers", lambda *_: 1)
    monkeypatch.setattr(world, "_asks_others", lambda _: True)
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: False)
    monkeypatch.setattr(world, "_soft_limit", lambda *_: None)


def test_a_follower_sees_what_its_observer_does_not() -> None:
    """Its own broker."""
    assert [] == [*run(ONLY_ITS_OWN).violations]


def test_a_follower_that_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as blind as its observer, and no callback hears of the volume from it.

    Callbacks throttle by the last forecast; the stop line they don't hear of.
    """

    async def nobody(_: Poller) -> None:
        pass

    monkeypatch.setattr(Poller, "_poll_unseen", nobody)
    assert "admits; a volume is at the stop line" in "\n".join(run(ONLY_ITS_OWN).violations)


@pytest.mark.parametrize("knows", [True, False])
def test_observers_are_in_different_zones(*, knows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of six; if all sidecars name the same zone, two of them are in one."""
    monkeypatch.setattr(world, "_observers", lambda *_: 3)
    if not knows:
        monkeypatch.setattr(world, "zone_of", lambda _: "anywhere")
    of: list[Observers] = []

    def observers(*args: Any, **named: Any) -> Observers:
        of.append(Observers(*args, **named))
        return of[-1]

    monkeypatch.setattr(composition, "Observers", observers)
    assert [] == [*run(Plan(16, 40.0, brokers=6, faults=(), calms=False)).violations]
    zones = [zone_of(number) for number, each in enumerate(of) if each.is_observer]
    assert (3, 3 if knows else 2) == (len(zones), len({*zones}))


def test_a_broker_without_the_controller_is_fenced() -> None:
    """All ways from zone 1 are cut, and its broker's list of brokers gets out of date."""
    ways = 0b001100
    plan = Plan(6, 60.0, faults=[Fault(10.0, 40.0, Kind.ZONES_CUT, 0, ways)])
    report = run(plan)
    assert [] == [*report.violations]
    assert any("broker 1 is fenced" in event for event in report.events)
