"""The steady clock over steps and drift of the machine's."""

import time
from dataclasses import dataclass

import pytest

from sidecar.clock import SteadyClock


@dataclass
class Machine:
    """The machine's two clocks: seconds since boot, and what the wall shows."""

    boot: float = 500.0
    wall: float = 1000.0

    def passes(self, seconds: float) -> None:
        """Lets time pass on both."""
        self.boot += seconds
        self.wall += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose clocks the test moves."""
    machine = Machine()
    monkeypatch.setattr(time, "time", lambda: machine.wall)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: machine.boot)
    return machine


def test_reads_like_the_epoch(machine: Machine) -> None:
    """At the start both clocks say the same, and they go on together."""
    clock = SteadyClock()
    assert (1000.0, 1000.0) == (clock.now(), clock.wall(clock.now()))
    machine.passes(60.0)
    assert (1060.0, 1060.0) == (clock.now(), clock.wall(1060.0))


@pytest.mark.parametrize("step_s", [300.0, -300.0, 0.75])
def test_steady_time_does_not_follow_a_step_and_wall_time_does(
    machine: Machine, step_s: float
) -> None:
    """60 s later the wall is stepped by +300: now() is 1,060 and wall(1060) is 1,360."""
    clock = SteadyClock()
    machine.passes(60.0)
    machine.wall += step_s
    assert 1060.0 == clock.now()
    assert 1060.0 + step_s == clock.wall(1060.0)
    assert 1180.0 + step_s == clock.wall(1180.0)


def test_drift_does_not_make_times_flicker(machine: Machine) -> None:
    """A difference of less than half a second is not followed."""
    clock = SteadyClock()
    for _ in range(4):
        machine.wall += 0.125
        assert 1060.0 == clock.wall(1060.0)
    machine.wall += 0.125
    assert 1060.625 == clock.wall(1060.0)
    machine.wall += 0.25
    assert 1060.625 == clock.wall(1060.0)


def test_step_back_is_followed_again(machine: Machine) -> None:
    """A clock that is set right again is followed both times."""
    clock = SteadyClock()
    machine.wall += 300.0
    assert 1360.0 == clock.wall(1060.0)
    machine.wall -= 300.0
    assert 1060.0 == clock.wall(1060.0)


def test_real_clocks() -> None:
    """On this machine steady time is the epoch's, and never goes back."""
    clock = SteadyClock()
    first, second = clock.now(), clock.now()
    assert first <= second
    assert time.time() == pytest.approx(clock.wall(clock.now()), abs=5.0)


def test_time_asleep_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The boot clock is asked, which goes on while the machine is suspended."""
    asked: list[int] = []

    def clock_gettime(clock: int) -> float:
        asked.append(clock)
        return 0.0

    monkeypatch.setattr(time, "clock_gettime", clock_gettime)
    SteadyClock().now()
    assert {time.CLOCK_BOOTTIME} == set(asked)
