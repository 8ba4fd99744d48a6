"""Liveness and readiness."""

import pytest

from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.throttle.build import reading, whole


async def test_healthz() -> None:
    """The status is 200 while the loop turns, whatever the brokers do."""
    response = await FakeSidecar().get("/healthz")
    assert (200, {"status": "ok"}) == (response.status_code, response.json())


async def test_not_ready_before_an_observation() -> None:
    """503 says why."""
    response = await FakeSidecar().get("/readyz")
    assert response.status_code == 503
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["detail"] == "There is no valid observation: no observation yet."


async def test_ready_from_an_observation_on_until_it_is_not_valid() -> None:
    """An observation makes the sidecar ready; the fallback ends that."""
    sidecar = FakeSidecar(stuck_after_s=1000.0)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    assert (await sidecar.get("/readyz")).status_code == 200
    sidecar.clock.now = 300.1
    sidecar.board.update(lambda memory: memory)
    assert (await sidecar.get("/readyz")).status_code == 503


@pytest.mark.parametrize("polled_at", [None, 50.0])
async def test_stuck_polling_is_not_ready(polled_at: float | None) -> None:
    """The first poll never ends, or polls stop."""
    sidecar = FakeSidecar(stuck_after_s=100.0)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    sidecar.board.tally.polled_at = polled_at
    since = polled_at or 0.0
    sidecar.clock.now = since + 100.0
    assert (await sidecar.get("/readyz")).status_code == 200
    sidecar.clock.now = since + 101.0
    response = await sidecar.get("/readyz")
    assert response.status_code == 503
    assert response.json()["detail"] == "Polling is stuck: no poll has ended for 101 s."


async def test_disabled_is_ready() -> None:
    """There is nothing to wait for."""
    sidecar = FakeSidecar(factors=None)
    sidecar.clock.now = 1e6
    assert (await sidecar.get("/readyz")).status_code == 200
