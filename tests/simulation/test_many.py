"""Scenarios of ``many`` with few brokers or few sidecars; the program runs more of both."""

import math
from functools import partial

import pytest

from tests.simulation.many import (
    Load,
    Outcome,
    cut_of_a_zone,
    load_of_a_throttle,
    reaction_to_a_full_volume,
    run,
)


@pytest.mark.rare
@pytest.mark.parametrize(
    ("seed", "scenario"),
    [
        (2, "zone 2 cut both ways, dropped, not fenced, volume inside, with broker ids"),
        (10, "zone 0 cut incoming, dropped, not fenced, volume inside, with broker ids"),
        (26, "zone 1 cut incoming, dropped, not fenced, volume outside, with broker ids"),
    ],
)
def test_each_sidecar_that_sees_a_full_volume_throttles(seed: int, scenario: str) -> None:
    """Within two intervals, however the zone of one side is cut off."""
    outcome: Outcome = run(partial(cut_of_a_zone, seed, 10, 5))
    assert (scenario, []) == (outcome.scenario, outcome.faults)
    assert 0.0 < outcome.reaction_s <= 120.0


@pytest.mark.slow
def test_observers_spare_a_full_broker() -> None:
    """Three of all sidecars, and the one beside it, ask it during a throttle."""
    load: Load = run(partial(load_of_a_throttle, 30, 6, 3, 60.0))
    assert 1.0 <= load.log_dirs_per_s <= 3.0


@pytest.mark.rare
@pytest.mark.parametrize(
    ("late_s", "cost_s"),
    [pytest.param(2.7, 2.1, id="late"), pytest.param(math.inf, 4.2, id="never")],
)
def test_a_missed_deadline_near_the_limit_costs_seconds(late_s: float, cost_s: float) -> None:
    """With 1,000 brokers, and the last request before the limit answered late or never.

    A request without an answer stays open for 3 s, since a slow broker may answer so late.
    """
    in_time: float = run(partial(reaction_to_a_full_volume, 1000, 300.0))
    missed: float = run(partial(reaction_to_a_full_volume, 1000, 300.0, 0.3, late_s))
    assert in_time <= 2.0
    assert in_time + 1.0 < missed <= in_time + cost_s
