"""Pairs of kinds of faults, by schedules alone."""

import pytest

from tests.simulation.faults import Fault, Kind, schedule
from tests.simulation.pairs import IMPOSSIBLE, POSSIBLE, never, pairs

KILLED = Fault(10.0, 5.0, Kind.BROKER_KILLED, 0)


@pytest.mark.parametrize(
    ("fault", "together"),
    [
        (Fault(15.0, 1.0, Kind.SIDECAR_KILLED, 0), True),
        (Fault(15.1, 1.0, Kind.SIDECAR_KILLED, 0), False),
        (Fault(12.0, 0.0, Kind.RELOAD, 0), True),
    ],
)
def test_two_kinds_are_together_while_both_are_under_way(fault: Fault, together: bool) -> None:
    """A fault is under way to the end of its last moment."""
    assert together is bool(pairs([KILLED, fault]))


@pytest.mark.parametrize(("at_s", "together"), [(14.9, True), (15.1, False)])
def test_a_moment_counts_until_the_next_poll(at_s: float, together: bool) -> None:
    """A reload lasts no time, and what it changes is met 5 s later."""
    reload, killed = Fault(10.0, 0.0, Kind.RELOAD, 0), Fault(at_s, 1.0, Kind.BROKER_KILLED, 1)
    assert together is bool(pairs([reload, killed]))


def test_a_pair_has_one_order() -> None:
    """Whichever kind began first."""
    cut = Fault(11.0, 1.0, Kind.CUT_FROM_PEER, 0)
    swapped = Fault(10.0, 5.0, Kind.CUT_FROM_PEER, 0), Fault(11.0, 1.0, Kind.BROKER_KILLED, 0)
    assert pairs([KILLED, cut]) == pairs(swapped)


@pytest.mark.slow
def test_two_hundred_seeds_have_every_pair() -> None:
    """An hour each, with the spacing of ``make simulate``."""
    seen = {pair for seed in range(1, 201) for pair in pairs(schedule(seed, 3600.0, 30.0, 3))}
    assert [] == never(seen)
    assert set() == seen & set(IMPOSSIBLE)
    assert len(POSSIBLE) + len(IMPOSSIBLE) == len(Kind) * (len(Kind) + 1) // 2
