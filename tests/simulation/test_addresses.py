"""Worlds in which an address leads to another broker than the one that is meant."""

import pytest

from tests.simulation import world
from tests.simulation.faults import Fault, Kind
from tests.simulation.world import Plan, run

pytestmark = pytest.mark.rare

OFTEN = Plan(6, 90.0)
"""Its sidecars poll often enough to meet each of the faults."""


@pytest.fixture(autouse=True)
def _one_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each broker has one."""
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: False)


def violations(*faults: Fault) -> str:
    """What the claims say of a world with these faults."""
    return "\n".join(run(Plan(OFTEN.seed, OFTEN.duration_s, faults=faults)).violations)


def test_two_brokers_behind_one_address() -> None:
    """No answer from there counts for the other one."""
    assert "" == violations(Fault(20.0, 40.0, Kind.BROKER_SHARES_ADDRESS, 0, 1.0))


def test_a_fenced_broker_whose_address_is_taken() -> None:
    """By a broker of another cluster, which lists other brokers to whoever asks."""
    assert "" == violations(
        Fault(20.0, 60.0, Kind.BROKER_OF_ANOTHER_CLUSTER, 1, 1.0),
        Fault(40.0, 5.0, Kind.SIDECAR_KILLED, 2),
    )


def test_an_active_broker_whose_address_is_taken() -> None:
    """It is still active in lists, so it is asked for its log dirs, and another one answers."""
    assert "" == violations(Fault(20.0, 30.0, Kind.BROKER_OF_ANOTHER_CLUSTER, 1, 0.0))
