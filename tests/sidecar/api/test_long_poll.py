"""Reading what changes with the decision, and waiting for it: the same for every page."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.sidecar.api.build import FACTORS, FakeSidecar, read_until
from tests.sidecar.throttle.build import reading, whole, with_rules

CALM = "emergency=false; throttled_clients=0"


@pytest.fixture(params=["/v1/throttle-factor", "/v1/quota-factors"])
def url(request: pytest.FixtureRequest) -> str:
    """Each of the paths that are followed."""
    path: str = request.param
    return path


def in_loop_time(**more: Any) -> FakeSidecar:
    """A sidecar whose clock is the running loop's, for virtual time."""
    return FakeSidecar(clock=asyncio.get_running_loop().time, **more)


async def test_304_while_nothing_has_changed(url: str) -> None:
    """A reader that has the generation gets 304 and how long it may use what it has."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    etag = (await sidecar.get(url)).headers["etag"]
    sidecar.clock.now = 100.0
    stale = await sidecar.get(url, if_none_match=etag)
    assert (stale.status_code, stale.content) == (304, b"")
    assert stale.headers["throttle-valid-for-ms"] == "200000"
    assert stale.headers["etag"] == etag
    assert "content-type" not in stale.headers
    sidecar.see(whole(100.0, [reading(1, 100.0, {"/d": 49})]))
    renewed = await sidecar.get(url, if_none_match=etag)
    assert (renewed.status_code, renewed.headers["throttle-valid-for-ms"]) == (304, "300000")


async def test_a_change_is_no_304(url: str) -> None:
    """Whoever has another generation, or another start's, gets the decision."""
    sidecar = FakeSidecar()
    etag = (await sidecar.get(url)).headers["etag"]
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})]))
    changed = await sidecar.get(url, if_none_match=etag, prefer="wait=100")
    assert (changed.status_code, changed.json()["factor"]) == (200, 0.0)
    assert "preference-applied" not in changed.headers
    assert (await sidecar.get(url, if_none_match='"0123abcd-2"')).status_code == 200


async def test_several_headers_are_one_list(url: str) -> None:
    """If-None-Match and Prefer may be repeated."""
    sidecar = FakeSidecar()
    headers = [
        ("if-none-match", '"other"'),
        ("if-none-match", f'W/"{sidecar.board.etag}"'),
        ("prefer", "respond-async"),
        ("prefer", "wait=0"),
    ]
    async with sidecar.client() as client:
        response = await client.get(url, headers=headers)
    assert (response.status_code, response.headers["preference-applied"]) == (304, "wait=0")


async def test_without_if_none_match_nobody_waits(url: str) -> None:
    """A preference to wait alone is answered at once."""
    response = await FakeSidecar().get(url, prefer="wait=100")
    assert response.status_code == 200
    assert "preference-applied" not in response.headers


@pytest.mark.looptime
async def test_waiting_ends_with_a_change(url: str) -> None:
    """A waiting reader gets the change when it happens."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    loop.call_later(7, lambda: sidecar.see(whole(7.0, [reading(1, 7.0, {"/d": 5})])))
    started = loop.time()
    response = await sidecar.get(url, if_none_match=f'"{sidecar.board.etag}"', prefer="wait=60")
    assert pytest.approx(7, abs=0.1) == loop.time() - started
    assert (response.status_code, response.json()["factor"]) == (200, 0.0)
    assert response.headers["preference-applied"] == "wait=60"


@pytest.mark.looptime
async def test_waiting_is_not_ended_by_news_that_changes_nothing(url: str) -> None:
    """Moving bytes wake nobody, and the 304 in the end states the renewed validity."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    loop.call_later(50, lambda: sidecar.see(whole(50.0, [reading(1, 50.0, {"/d": 40})])))
    response = await sidecar.get(url, if_none_match="*", prefer="wait=60")
    assert pytest.approx(60, abs=0.1) == loop.time()
    assert response.status_code == 304
    assert 290_000 == pytest.approx(int(response.headers["throttle-valid-for-ms"]), abs=200)


@pytest.mark.slow
@pytest.mark.looptime
@pytest.mark.parametrize(
    ("age_s", "asked_s", "expected_s"),
    [(0, 10, 10), (0, 1000, 150), (200, 1000, 50), (290, 1000, 5), (299.9, 1000, 0.1)],
)
async def test_waiting_takes_half_of_the_validity_at_most(
    url: str, age_s: float, asked_s: int, expected_s: float
) -> None:
    """A 304 always comes before what the reader has runs out; near the end nobody spins."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    await asyncio.sleep(age_s)
    started = loop.time()
    response = await sidecar.get(url, if_none_match="*", prefer=f"wait={asked_s}")
    assert pytest.approx(expected_s, abs=0.06) == loop.time() - started
    assert f"wait={int(expected_s)}" == response.headers["preference-applied"]


@pytest.mark.looptime
async def test_waiting_takes_300_s_at_most(url: str) -> None:
    """It ends then however long the validity is."""
    sidecar = in_loop_time(factors=with_rules(FACTORS, validity_s=86_400.0))
    response = await sidecar.get(url, if_none_match="*", prefer="wait=100000")
    assert pytest.approx(300, abs=0.1) == asyncio.get_running_loop().time()
    assert response.headers["preference-applied"] == "wait=300"


@pytest.mark.looptime
async def test_a_closed_board_lets_nobody_wait(url: str) -> None:
    """When the sidecar stops, waiting readers are answered."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    loop.call_later(3, sidecar.board.close)
    response = await sidecar.get(url, if_none_match="*", prefer="wait=60")
    assert pytest.approx(3, abs=0.1) == loop.time()
    assert response.status_code == 304


@pytest.mark.looptime
async def test_a_reader_that_goes_away_leaves_nothing(url: str) -> None:
    """When the connection ends, the wait ends with it, and no task stays."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks()
    gone = asyncio.Event()
    loop.call_later(5, gone.set)
    await read_until(gone, sidecar, url, (b"if-none-match", b"*"), (b"prefer", b"wait=100"))
    assert pytest.approx(5, abs=0.1) == loop.time()
    assert tasks == asyncio.all_tasks()


@pytest.mark.looptime
@pytest.mark.slow
async def test_readers_beyond_a_thousand_do_not_wait(url: str) -> None:
    """The 1,001st reader is answered at once; when others leave, there is room again."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    headers = {"if-none-match": "*", "prefer": "wait=100"}
    async with sidecar.client() as client:
        waiting = [asyncio.create_task(client.get(url, headers=headers)) for _ in range(1000)]
        await asyncio.sleep(1)
        refused = await client.get(url, headers=headers)
        assert pytest.approx(1, abs=0.5) == loop.time()
        assert refused.status_code == 304
        assert "preference-applied" not in refused.headers
        assert 1000 == len(asyncio.all_tasks() & set(waiting))
        sidecar.see(whole(loop.time(), [reading(1, loop.time(), {"/d": 5})]))
        answers: list[httpx.Response] = await asyncio.gather(*waiting)
        assert {200} == {response.status_code for response in answers}
        room = await client.get(url, headers=headers)
    assert room.headers["preference-applied"] == "wait=100"


async def test_a_broker_that_cant_throttle_by_volume_is_told_of_once(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is as soon as it follows, with what to do; and again once it has lost its authorizer.

    Whoever poses as a broker that has one in turns gets no line each time, and none for a broker
    that the cluster does not have.
    """
    sidecar = FakeSidecar(factors=replace(FACTORS, is_of_volumes=True))
    sees = {"throttle-refused": "new_connection=0; stop_line=0; release=0"}
    # Before the first poll, nobody is known to be a broker.
    await sidecar.get(url, throttle_reader=f"broker=1; {CALM}")
    assert [] == caplog.messages
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50}), reading(2, 0.0, {"/d": 50})]))
    caplog.clear()
    for broker, more in ((1, {}), (1, {}), (2, sees), (2, {}), (2, sees), (2, {}), (3, {})):
        await sidecar.get(url, throttle_reader=f"broker={broker}; {CALM}", **more)
    refused = "no authorizer, so SIDECAR_THROTTLE_SCOPE=volume is refused there"
    assert ["broker 1 has", "broker 2 has"] == [
        message.partition(f" {refused}")[0] for message in caplog.messages if refused in message
    ]
    assert all("authorizer.class.name=throttle" in message for message in caplog.messages)
    caplog.clear()
    sidecar.clock.now = 60.0
    for more in (sees, {}):
        await sidecar.get(url, throttle_reader=f"broker=2; {CALM}", **more)
    assert [True] == [refused in message for message in caplog.messages]
    caplog.clear()
    await FakeSidecar().get(url, throttle_reader=f"broker=1; {CALM}")
    assert [] == caplog.messages
