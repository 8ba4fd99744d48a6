"""Liveness and readiness."""

import pytest

from sidecar import __version__
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.throttle.build import reading, whole


async def test_healthz() -> None:
    """The status is 200 while the loop turns, whatever the brokers do."""
    response = await FakeSidecar().get("/healthz")
    expected = {"status": "ok", "version": __version__}
    assert (200, expected) == (response.status_code, response.json())


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


async def test_an_unread_state_is_not_ready_while_readers_get_no_answer() -> None:
    """Broker 2 is fenced, and may be full by the state; the page and readers learn of it too."""
    sidecar = FakeSidecar(stuck_after_s=1000.0)
    sidecar.board.unread = "the state file /s is not read yet: its disk does not answer"
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})], fenced=[2]))
    for path in ("/readyz", "/v1/quota-factors", "/v1/throttle-factor"):
        response = await sidecar.get(path)
        assert response.status_code == 503
        assert "the state file /s is not read yet" in response.json()["detail"]
    assert "The state file /s is not read yet" in (await sidecar.get("/")).text
    sidecar.board.take_over(None)
    for path in ("/readyz", "/v1/quota-factors", "/v1/throttle-factor"):
        assert (await sidecar.get(path)).status_code == 200
    assert "is not read yet" not in (await sidecar.get("/")).text


async def test_disabled_is_ready() -> None:
    """There is nothing to wait for."""
    sidecar = FakeSidecar(factors=None)
    sidecar.clock.now = 1e6
    assert (await sidecar.get("/readyz")).status_code == 200
