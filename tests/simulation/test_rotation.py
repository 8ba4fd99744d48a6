"""Worlds in which secrets are rotated in files: a sidecar that does not follow them is seen."""

import pytest

from sidecar.daemon.secret_files import SecretFiles
from tests.simulation import world
from tests.simulation.faults import Fault, Kind
from tests.simulation.world import Plan, run

pytestmark = pytest.mark.slow

ROTATED = Plan(
    6,
    200.0,
    faults=[
        Fault(20.0, 5.0, Kind.CREDENTIALS_TURNED, 0, 0.0),
        *(Fault(40.0, 2.0, Kind.BROKER_KILLED, number) for number in range(3)),
    ],
)
"""Sidecar 0 has to log in to all brokers once more, before broker 1's volume violates."""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker 0 hears of its own sidecar only, and that one of no other sidecar."""
    monkeypatch.setattr(world, "_WITH_PEERS", 0.0)
    monkeypatch.setattr(world, "_asks_others", lambda _: False)
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: False)
    monkeypatch.setattr(world, "_soft_limit", lambda *_: None)


def test_secrets_are_followed_without_a_reload() -> None:
    """Nobody sends a signal."""
    assert [] == [*run(ROTATED).violations]


def test_a_sidecar_that_does_not_follow_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """It logs in with the old password, and is blind."""

    async def look(*_: object, **__: object) -> None:
        pass

    monkeypatch.setattr(SecretFiles, "look", look)
    assert "broker 0" in "\n".join(run(ROTATED).violations)
