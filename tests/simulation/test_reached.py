"""Situations that the recorded seeds do not reach: one world is made so that it does."""

import pytest

from tests.simulation import world
from tests.simulation.faults import Fault, Kind
from tests.simulation.world import Plan, run

NAMES = (
    "a stop begins without a controller",
    "a stop begins while zones are cut",
    "no sidecar runs in a throttle",
    "two sidecars have different overrides",
)
FULL_S = 177.0
"""From then on a volume of this seed's world violates, for ten seconds or so."""

MADE = Plan(
    16,
    300.0,
    faults=[
        Fault(FULL_S - 60.0, 90.0, Kind.CONTROLLER_LOST, 0),
        Fault(FULL_S - 60.0, 90.0, Kind.ZONES_CUT, 0, 1.0),
        *(Fault(FULL_S + 4.0, 5.0, Kind.SIDECAR_KILLED, number) for number in range(3)),
        Fault(250.0, 20.0, Kind.OVERRIDE, 0, 0.5),
        Fault(250.0, 20.0, Kind.OVERRIDE, 1, 1.0),
    ],
)


@pytest.mark.slow
def test_they_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each volume that violates is at the stop line too, so that a stop begins."""
    monkeypatch.setattr(world, "_soft_limit", lambda *_: None)
    monkeypatch.setattr(world, "_margin_bytes", lambda *_: 0)
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: False)
    monkeypatch.setattr(world, "_stop_bytes", lambda _, limit_bytes: int(0.999 * limit_bytes))
    report = run(MADE)
    assert [] == [*report.violations]
    assert [] == [name for name in NAMES if name not in report.reached]
