"""Worlds whose brokers have two volumes: nothing is broken, and each mistake is seen."""

from typing import Any

import pytest

from sidecar.throttle import fold
from sidecar.volumes import Volume
from tests.simulation import world
from tests.simulation.faults import Fault, Kind
from tests.simulation.following import Following
from tests.simulation.volumes import Volume as SimulatedVolume
from tests.simulation.world import Plan, run

pytestmark = pytest.mark.rare

QUIET = Plan(6, 300.0, faults=())
"""The first volume of broker 1 violates."""

BLIND = Plan(6, 300.0, faults=[Fault(20.0, 270.0, Kind.CUT_FROM_CALLBACK, n) for n in range(3)])
"""Likewise, and no callback hears of its own sidecar."""

OFFLINE = Plan(6, 300.0, faults=[Fault(20.0, 270.0, Kind.LOG_DIR_OFFLINE, 1, 1.0)])
"""The second log dir of broker 1 is offline meanwhile."""


@pytest.fixture(autouse=True)
def _two_volumes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no soft limit, and no release margin."""
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: True)
    monkeypatch.setattr(world, "_asks_others", lambda _: False)
    monkeypatch.setattr(world, "_soft_limit", lambda *_: None)
    monkeypatch.setattr(world, "_margin_bytes", lambda *_: 0)


@pytest.mark.parametrize("plan", [QUIET, BLIND, OFFLINE], ids=["quiet", "blind", "offline"])
def test_with_two_volumes_nothing_is_broken(plan: Plan) -> None:
    """And one did violate: else the others would show nothing."""
    report = run(plan)
    assert () == tuple(report.violations)
    assert report.figures["releases"] > 0


def test_both_volumes_of_a_broker_violate(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the beginning: the recorded seeds never have both at once."""
    volumes = world._volumes

    def full(seed: int, broker: int, *more: Any) -> list[SimulatedVolume]:
        made = volumes(seed, broker, *more)
        for volume in made if broker == 1 else ():
            volume.used_bytes = volume.total_bytes - volume.limit_bytes
        return made

    monkeypatch.setattr(world, "_volumes", full)
    report = run(QUIET)
    assert () == tuple(report.violations)
    assert "two volumes of one broker violate at once" in report.reached


def test_a_broker_that_sees_only_its_second_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not see the first one violate."""
    see = Following.see

    def second(following: Following, available: int, total: int, log_dir: str) -> None:
        if log_dir == "/var/lib/kafka-1":
            see(following, available, total, log_dir)

    monkeypatch.setattr(Following, "see", second)
    assert "does not see that its own volume violates" in "\n".join(run(BLIND).violations)


def test_a_sidecar_that_sees_only_the_second_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    """It releases although the first one violates."""
    judge = fold._volume_state

    def second(volume: Volume, *more: Any) -> object:
        roomy = Volume(volume.broker_id, volume.log_dir, volume.total_bytes, volume.total_bytes)
        return judge(volume if volume.log_dir == "/var/lib/kafka-1" else roomy, *more)

    monkeypatch.setattr(fold, "_volume_state", second)
    assert "throttles nobody; a volume has violated" in "\n".join(run(QUIET).violations)
