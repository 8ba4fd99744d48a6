"""Worlds with a soft limit or a release margin: nothing is broken, and each mistake is seen."""

from typing import Any

import pytest

from sidecar.control import poller
from sidecar.throttle import decision, slope
from sidecar.throttle.limits import Limit, MinAvailableBytes
from sidecar.throttle.schedule import NextPoll, next_poll
from tests.simulation import world
from tests.simulation.world import Plan, run

pytestmark = pytest.mark.rare

SLOPED = Plan(8, 300.0, faults=())
"""Volumes come below the soft limit again and again, with a horizon of half an hour."""

HELD = Plan(17, 300.0, faults=())
"""Retention leaves a volume that violated with less than the release margin."""


@pytest.fixture(autouse=True)
def _one_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each broker has one."""
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: False)


@pytest.fixture
def limit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No soft limit."""
    monkeypatch.setattr(world, "_soft_limit", lambda *_: None)


def test_with_a_soft_limit_nothing_is_broken() -> None:
    """And producers were slowed: else the others would show nothing."""
    report = run(SLOPED)
    assert () == tuple(report.violations)
    assert report.figures["slopes"] > 0


def test_a_factor_that_does_not_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays where it fell to, though every volume has more than the soft limit again."""
    monkeypatch.setattr(slope, "TURN_S", float("inf"))
    assert "throttles; no volume has violated" in "\n".join(run(SLOPED).violations)


def test_a_soft_limit_that_slows_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """No claim is broken, since the limit is obeyed; but it is counted."""
    monkeypatch.setattr(decision, "next_slope", lambda *_: None)
    assert 0 == run(SLOPED).figures["slopes"]


def test_polls_come_sooner_near_the_soft_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each daemon's schedule has it; what it does with it is ``throttle/test_schedule``'s."""
    known: set[Limit | None] = set()

    def noted(*args: Any, soft_limit: Limit | None, **more: Any) -> NextPoll:
        known.add(soft_limit)
        return next_poll(*args, soft_limit=soft_limit, **more)

    monkeypatch.setattr(poller, "next_poll", noted)
    monkeypatch.setattr(world, "_soft_limit", lambda _, __, most_bytes: (most_bytes, 1800.0))
    run(Plan(8, 5.0, faults=()))
    (soft_limit,) = known
    assert isinstance(soft_limit, MinAvailableBytes)


def test_with_a_release_margin_nothing_is_broken(limit_alone: None) -> None:
    """It throttles and releases."""
    report = run(HELD)
    assert () == tuple(report.violations)
    assert report.figures["releases"] > 0


def test_a_release_without_the_margin(limit_alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit itself."""
    bound = Limit.bound
    monkeypatch.setattr(Limit, "bound", lambda limit, **_: bound(limit, did_violate=False))
    assert "a release margin of" in "\n".join(run(HELD).violations)
