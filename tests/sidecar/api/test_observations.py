"""GET /v1/observations and /v1/zone: what other sidecars follow, in virtual time."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from sidecar.api.observation_routes import add_observations
from sidecar.control.board import Board
from sidecar.peers.observations import PATH, ObservationLog
from sidecar.volumes import Membership, Observation
from tests.sidecar.api.build import FACTORS

pytestmark = pytest.mark.looptime


class Served:
    """The route of a log, asked in the same process."""

    def __init__(self) -> None:
        clock = asyncio.get_running_loop().time
        self.board = Board(FACTORS, clock)
        self.log = ObservationLog("a1", clock)
        app = FastAPI()
        self.zone: str | None = None
        add_observations(app, self.board, self.log, lambda: self.zone)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://sidecar"
        )

    async def get(self, query: str = "", wait: int | None = None) -> httpx.Response:
        headers = {} if wait is None else {"Prefer": f"wait={wait}"}
        return await self.client.get(f"{PATH}{query}", headers=headers)

    def see(self) -> None:
        """One more whole observation."""
        at = asyncio.get_running_loop().time()
        self.log.add(Observation(at, "poll", Membership("A", {}), {}))


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Served]:
    """Nothing was seen yet."""
    made = Served()
    async with made.client:
        yield made


async def test_without_a_place_it_answers_at_once(served: Served) -> None:
    """With what there is, and so it does to a place of another start."""
    served.see()
    for query in ("", "?origin=b2&after=7", "?after=7"):
        answer = await served.get(query, wait=10)
        assert (200, "no-store") == (answer.status_code, answer.headers["cache-control"])
        document = answer.json()
        assert ("a1", 1, 1, 0) == (
            document["origin"],
            document["next"],
            len(document["observations"]),
            document["held_ms"],
        )


async def test_it_waits_for_the_next(served: Served) -> None:
    """And says for how long it did; without one it answers with none at the end."""
    served.see()
    loop = asyncio.get_running_loop()
    began = loop.time()
    loop.call_later(4.0, served.see)
    document = (await served.get("?origin=a1&after=1", wait=10)).json()
    assert (2, 1, 4000) == (
        document["next"],
        len(document["observations"]),
        document["held_ms"],
    )
    assert 4.0 == pytest.approx(loop.time() - began)
    document = (await served.get("?origin=a1&after=2", wait=10)).json()
    assert ([], 10_000) == (document["observations"], document["held_ms"])
    assert [] == (await served.get("?origin=a1&after=2")).json()["observations"], "at once"
    assert 14.0 == pytest.approx(loop.time() - began)


async def test_who_asks_makes_an_observer(served: Served) -> None:
    """The log says when somebody last did."""
    assert None is served.log.followed_at
    await asyncio.sleep(3.0)
    await served.get()
    assert asyncio.get_running_loop().time() == served.log.followed_at


async def test_the_zone_is_asked_for_without_following(served: Served) -> None:
    """Null before it is known; whoever asks for it makes no observer."""
    assert {"zone": None} == (await served.client.get("/v1/zone")).json()
    served.zone = "eu-1a"
    answer = await served.client.get("/v1/zone")
    assert ({"zone": "eu-1a"}, "no-store") == (answer.json(), answer.headers["cache-control"])
    assert None is served.log.followed_at


async def test_a_wait_ends_with_the_sidecar(served: Served) -> None:
    """Nobody is waited for when it stops."""
    served.see()
    loop = asyncio.get_running_loop()
    began = loop.time()
    loop.call_later(2.0, served.board.close)
    assert 200 == (await served.get("?origin=a1&after=1", wait=30)).status_code
    assert 2.0 == pytest.approx(loop.time() - began)


@pytest.mark.parametrize("query", ["?after=-1", "?after=x", f"?origin={'a' * 101}"])
async def test_a_place_that_is_none_is_refused(served: Served, query: str) -> None:
    """It says which."""
    assert 422 == (await served.get(query)).status_code
