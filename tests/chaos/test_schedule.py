"""The schedule is a value of seed and duration; each fault ends, and none meets another."""

from itertools import pairwise

import pytest

from tests.chaos.schedule import (
    BROKER_REST_S,
    FIRST_S,
    QUIET_S,
    SIDECAR_REST_S,
    USUAL,
    Action,
    Fault,
    Role,
    Spans,
    clock,
    plan,
)

SEEDS = range(50)


def test_the_same_seed_has_the_same_schedule() -> None:
    """Also the same times of cleaning; another seed or duration has another schedule."""
    assert plan(1, 600.0) == plan(1, 600.0)
    assert plan(1, 600.0).faults != plan(2, 600.0).faults
    assert plan(1, 600.0).faults != plan(1, 601.0).faults


def test_a_known_schedule() -> None:
    """No version of Python changes it and no order of a set: a report goes by its seed."""
    assert KNOWN == [str(each) for each in plan(1, 90.0).faults]


@pytest.mark.slow
@pytest.mark.parametrize("spans", [USUAL, Spans((2.0, 6.0), (1.0, 2.0))])
@pytest.mark.parametrize("duration_s", [60.0, 600.0, 3600.0])
def test_each_fault_ends_before_the_quiet_part(duration_s: float, spans: Spans) -> None:
    """It lasts as long as asked for, and does not begin before the producers are at their rate."""
    shortest_s, longest_s = spans.fault
    for seed in SEEDS:
        for fault in plan(seed, duration_s, spans=spans).faults:
            assert FIRST_S <= fault.begin_s
            assert shortest_s - 0.1 <= fault.end_s - fault.begin_s <= longest_s + 0.1
            assert fault.end_s <= duration_s - min(QUIET_S, duration_s / 3) + 0.1


def test_no_two_faults_are_on_one_process_at_once() -> None:
    """A sidecar has its rest between two; of the brokers one is away at a time."""
    for seed in SEEDS:
        faults = plan(seed, 1200.0).faults
        assert list(faults) == sorted(faults, key=lambda fault: fault.begin_s)
        for number in range(3):
            mine = [each for each in faults if (Role.SIDECAR, number) == (each.role, each.number)]
            assert _rests(mine) >= SIDECAR_REST_S - 0.1
        assert _rests([each for each in faults if each.role is Role.BROKER]) >= BROKER_REST_S - 0.1


def test_every_kind_comes_on_every_process() -> None:
    """Within a few seeds: none is left out by the way they are drawn."""
    seen = {
        (fault.action, fault.role, fault.number)
        for seed in SEEDS
        for fault in plan(seed, 600.0).faults
    }
    assert seen == {
        (action, role, number) for action in Action for role in Role for number in range(3)
    }


def test_all_sidecars_are_taken_at_once() -> None:
    """By the same signal and for as long, in each run of ten minutes, and in each way of some."""
    seen: set[Action] = set()
    for seed in SEEDS:
        together: dict[tuple[float, float, Action], set[int]] = {}
        for fault in plan(seed, 600.0).faults:
            if fault.role is Role.SIDECAR:
                key = fault.begin_s, fault.end_s, fault.action
                together.setdefault(key, set()).add(fault.number)
        whole = [key for key, numbers in together.items() if numbers == {0, 1, 2}]
        assert len(whole) >= 2
        assert {1, 3} == {len(numbers) for numbers in together.values()}
        seen |= {action for _, _, action in whole}
    assert set(Action) == seen


def test_ten_minutes_have_dozens_of_faults() -> None:
    """A run that does nothing would hold every claim."""
    assert min(len(plan(seed, 600.0).faults) for seed in SEEDS) >= 25


def test_a_run_too_short_for_a_fault_has_none() -> None:
    """It still has a time for a cleaning."""
    short = plan(1, 20.0)
    assert () == short.faults
    assert short.cleaning_s


def test_a_fault_in_words() -> None:
    """As it is printed."""
    fault = Fault(83.4, 92.7, Action.KILL, Role.BROKER, 2)
    assert "1:23  broker 2: SIGKILL for 9.3 s" == str(fault)
    assert "broker 2" == fault.process
    assert "61:01" == clock(3661.9)


def _rests(faults: list[Fault]) -> float:
    return min((after.begin_s - before.end_s for before, after in pairwise(faults)), default=99.0)


KNOWN = [
    "0:10  sidecar 1: SIGSTOP for 5.6 s",
    "0:23  sidecar 0: SIGSTOP for 3.3 s",
    "0:23  sidecar 1: SIGSTOP for 3.3 s",
    "0:23  sidecar 2: SIGSTOP for 3.3 s",
    "0:41  broker 0: SIGSTOP for 3.2 s",
]
