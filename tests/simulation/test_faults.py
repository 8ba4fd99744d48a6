"""Schedules of faults, and how a failing one is reduced."""

import itertools
from collections.abc import Sequence

import pytest

from tests.simulation.faults import Fault, Kind, kinds_of, schedule, shrunk


def test_a_seed_has_one_schedule() -> None:
    """Another seed has another one."""
    assert schedule(1, 3600.0, 60.0, 3) == schedule(1, 3600.0, 60.0, 3)
    assert schedule(1, 3600.0, 60.0, 3) != schedule(2, 3600.0, 60.0, 3)


@pytest.mark.parametrize("seed", range(20))
def test_faults_of_one_target_do_not_overlap_and_all_end(seed: int) -> None:
    """Of a broker, and of a sidecar: the end of one is no end of another."""
    faults = schedule(seed, 3600.0, 20.0, 3)
    assert len(faults) > 50
    assert all(fault.ends_s <= 3600.0 for fault in faults)
    for concerned in {fault.concerns for fault in faults}:
        own = [fault for fault in faults if fault.concerns == concerned]
        assert all(one.ends_s < two.at_s for one, two in itertools.pairwise(own))


def test_every_kind_happens() -> None:
    """In a few hours, and in each seed none but those of its half."""
    seen = set()
    for seed in range(10):
        kinds = {fault.kind for fault in schedule(seed, 3600.0, 30.0, 3)}
        assert kinds <= set(kinds_of(seed))
        seen |= kinds
    assert set(Kind) == seen


def test_two_kinds_meet_in_a_quarter_of_the_seeds() -> None:
    """Each pair, so that none is left out by 200 seeds."""
    halves = [frozenset(kinds_of(seed)) for seed in range(200)]
    for one, two in itertools.combinations(Kind, 2):
        assert sum(one in half and two in half for half in halves) > 20


def test_what_does_not_matter_is_left_out() -> None:
    """Of 16 faults the two that fail together are left."""
    faults = [Fault(float(at), 1.0, Kind.RELOAD, 0) for at in range(16)]

    def fails(some: Sequence[Fault]) -> bool:
        return {3.0, 12.0} <= {fault.at_s for fault in some}

    assert [3.0, 12.0] == [fault.at_s for fault in shrunk(faults, fails)]
