"""What the simulation found: each plan broke a claim until its fault was mended."""

import pytest

from tests.simulation.faults import Fault, Kind
from tests.simulation.world import Plan, run

FOUND = {
    # Each poll's race for the list of brokers closed the connection over which the slow broker's
    # log dirs were to come, and the others released what its full volume forbids.
    "a slow broker that is never seen": Plan(
        2, 340.0, faults=[Fault(252.739, 85.3, Kind.BROKER_STAYS_SLOW, 2, 2.0)]
    ),
    # Broker 1 hears of sidecar 2 alone, whose override shut the eyes of broker 1, and ended
    # what its own one had said.
    "another sidecar's override": Plan(
        6,
        300.0,
        faults=[
            Fault(80.0, 100.0, Kind.CUT_FROM_CALLBACK, 1),
            Fault(80.1, 100.0, Kind.CUT_FROM_BROKER, 0, 1.0),
            Fault(82.0, 60.0, Kind.OVERRIDE, 2, 1.0),
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("found", FOUND)
def test_what_was_found_stays_mended(found: str) -> None:
    """No claim is broken."""
    assert [] == [*run(FOUND[found]).violations]
