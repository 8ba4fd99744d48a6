"""GET /v1/throttle-factor: what it says, and how it is waited for."""

import asyncio
import dataclasses
from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any

import httpx
import pytest

from sidecar.api.documents import FactorDocument
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableRatio
from sidecar.throttle.memory import Override
from tests.api.build import FACTORS, FakeSidecar, http_scope
from tests.throttle.build import reading, whole

URL = "/v1/throttle-factor"


def in_loop_time(**more: Any) -> FakeSidecar:
    """A sidecar whose clock is the running loop's, for virtual time."""
    return FakeSidecar(clock=asyncio.get_running_loop().time, **more)


async def test_every_field_of_a_violation() -> None:
    """The answer has exactly the documented fields, with the numbers of the violating volume."""
    sidecar = FakeSidecar()
    sidecar.clock.now = 60.0
    sidecar.see(whole(60.0, [reading(1, 60.0, {"/d1": 10, "/d2": 50})]))
    sidecar.clock.now = 61.5
    response = await sidecar.get(URL)
    assert response.json() == {
        "factor": 0.0,
        "source": "observation",
        "reason": "broker 1 /d1 has 10 B of 100 B available (10.0%), at or below the limit of 10 B",
        "violations": [
            {
                "broker_id": 1,
                "log_dir": "/d1",
                "total_bytes": 100,
                "available_bytes": 10,
                "available_ratio": 0.1,
                "limit": {"type": "min_available_bytes", "value": 10},
            }
        ],
        "computed_at": "2023-11-14T22:14:20.000Z",
        "valid_until": "2023-11-14T22:19:20.000Z",
        "valid_for_ms": 298_500,
        "since": "2023-11-14T22:14:20.000Z",
        "generation": 2,
        "seconds_to_limit": 0.0,
        "cluster_id": "A",
    }
    assert list(response.json()) == [one.name for one in dataclasses.fields(FactorDocument)]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["throttle-valid-for-ms"] == "298500"
    assert response.headers["etag"] == f'"{sidecar.board.start_id}-2"'


async def test_a_ratio_as_the_limit() -> None:
    """The other type of limit has its own name."""
    sidecar = FakeSidecar(factors=VolumeLimit(MinAvailableRatio(0.25), 300.0, 0.5))
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 25})]))
    violations = (await sidecar.get(URL)).json()["violations"]
    assert violations[0]["limit"] == {"type": "min_available_ratio", "value": 0.25}


async def test_before_the_first_observation() -> None:
    """The fallback, with null where nothing is known and the validity as its term."""
    told = (await FakeSidecar().get(URL)).json()
    assert (told["factor"], told["source"]) == (0.5, "fallback")
    absent = ("computed_at", "valid_until", "seconds_to_limit", "cluster_id")
    assert [None] * 4 == [told[name] for name in absent]
    assert (told["violations"], told["valid_for_ms"], told["generation"]) == ([], 300_000, 1)


async def test_disabled() -> None:
    """Disabled is factor 1.0 and says so."""
    told = (await FakeSidecar(factors=None).get(URL)).json()
    assert (told["factor"], told["source"]) == (1.0, "disabled")
    assert "PT0S" in told["reason"]


async def test_an_override_is_believed_for_the_validity_at_most() -> None:
    """An override of 8 h may be used for the validity, and for its last minute a minute."""
    sidecar = FakeSidecar()
    override = Override(0.25, "because", 0.0, 8 * 3600.0)
    sidecar.board.update(lambda memory: replace(memory, override=override))
    told = (await sidecar.get(URL)).json()
    assert (told["factor"], told["source"]) == (0.25, "override")
    assert told["reason"] == "set by hand: because"
    assert told["valid_for_ms"] == 300_000
    assert told["valid_until"] == "2023-11-15T06:13:20.000Z"
    sidecar.clock.now = 8 * 3600.0 - 60
    assert (await sidecar.get(URL)).json()["valid_for_ms"] == 60_000


async def test_an_expired_decision_may_not_be_used() -> None:
    """Should the expiry not be published yet, the term is 0 and never negative."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    sidecar.clock.now = 300.5
    assert (await sidecar.get(URL)).headers["throttle-valid-for-ms"] == "0"


async def test_seconds_to_limit_count_down() -> None:
    """The nearest volume's time runs on between polls, to 0 and not below."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 60, "/d2": 60})]))
    sidecar.clock.now = 10.0
    sidecar.see(whole(10.0, [reading(1, 10.0, {"/d1": 50, "/d2": 40})]))
    left = []
    for now in (10.0, 12.5, 30.0):
        sidecar.clock.now = now
        left.append((await sidecar.get(URL)).json()["seconds_to_limit"])
    # /d1 loses 1 byte a second and has 40 to its limit; /d2 loses 2 and has 30.
    assert [15.0, 12.5, 0.0] == left


async def test_seconds_to_limit_pass_over_offline_and_inactive() -> None:
    """Only online volumes of active brokers fill."""
    sidecar = FakeSidecar()
    brokers = [
        reading(1, 0.0, {"/d": 60}),
        reading(2, 0.0, {"/d": 60}),
        reading(3, 0.0, {"/d": 60}),
    ]
    sidecar.see(whole(0.0, brokers))
    sidecar.clock.now = 10.0
    brokers = [
        reading(1, 10.0, {"/d": 59}),
        reading(2, 10.0, {"/d": 20}),
        reading(3, 10.0, {"/d": 20}),
    ]
    sidecar.see(whole(10.0, brokers))
    sidecar.clock.now = 11.0
    brokers = [reading(1, 11.0, {"/d": 59}), reading(2, 11.0, offline=["/d"])]
    sidecar.see(whole(11.0, brokers, fenced=[3]))
    told = (await sidecar.get(URL)).json()
    assert told["seconds_to_limit"] == pytest.approx(490 * 1.1, rel=0.01)


async def test_times_follow_a_step_of_the_machines_clock() -> None:
    """What is written once per snapshot is written anew when the wall's clock is set."""
    sidecar = FakeSidecar()
    before = (await sidecar.get(URL)).json()["since"]
    sidecar.wall_offset_s += 3600
    after = (await sidecar.get(URL)).json()["since"]
    assert ("2023-11-14T22:13:20.000Z", "2023-11-14T23:13:20.000Z") == (before, after)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0])
async def test_the_bare_number(factor: float) -> None:
    """For text/plain the number alone, with the same headers."""
    sidecar = FakeSidecar(factors=replace(FACTORS, fallback=factor))
    response = await sidecar.get(URL, accept="text/plain")
    assert str(factor) == response.text
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["throttle-valid-for-ms"] == "300000"
    assert response.headers["etag"] == f'"{sidecar.board.etag}"'


async def test_head_has_the_headers_and_no_body() -> None:
    """HEAD is GET without the body."""
    sidecar = FakeSidecar()
    async with sidecar.client() as client:
        head = await client.head(URL)
    assert head.status_code == 200
    assert head.headers["etag"] == f'"{sidecar.board.etag}"'


async def test_304_while_nothing_has_changed() -> None:
    """A reader that has the generation hears 304 and how long it may use what it has."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    etag = (await sidecar.get(URL)).headers["etag"]
    sidecar.clock.now = 100.0
    stale = await sidecar.get(URL, if_none_match=etag)
    assert (stale.status_code, stale.content) == (304, b"")
    assert stale.headers["throttle-valid-for-ms"] == "200000"
    assert stale.headers["etag"] == etag
    assert "content-type" not in stale.headers
    sidecar.see(whole(100.0, [reading(1, 100.0, {"/d": 49})]))
    renewed = await sidecar.get(URL, if_none_match=etag)
    assert (renewed.status_code, renewed.headers["throttle-valid-for-ms"]) == (304, "300000")


async def test_a_change_is_no_304() -> None:
    """Whoever has another generation, or another start's, hears the decision."""
    sidecar = FakeSidecar()
    etag = (await sidecar.get(URL)).headers["etag"]
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})]))
    changed = await sidecar.get(URL, if_none_match=etag, prefer="wait=100")
    assert (changed.status_code, changed.json()["factor"]) == (200, 0.0)
    assert "preference-applied" not in changed.headers
    assert (await sidecar.get(URL, if_none_match='"0123abcd-2"')).status_code == 200


async def test_several_headers_are_one_list() -> None:
    """If-None-Match and Prefer may be repeated."""
    sidecar = FakeSidecar()
    headers = [
        ("if-none-match", '"other"'),
        ("if-none-match", f'W/"{sidecar.board.etag}"'),
        ("prefer", "respond-async"),
        ("prefer", "wait=0"),
    ]
    async with sidecar.client() as client:
        response = await client.get(URL, headers=headers)
    assert (response.status_code, response.headers["preference-applied"]) == (304, "wait=0")


async def test_without_if_none_match_nobody_waits() -> None:
    """A preference to wait alone is answered at once."""
    response = await FakeSidecar().get(URL, prefer="wait=100")
    assert response.status_code == 200
    assert "preference-applied" not in response.headers


@pytest.mark.looptime
async def test_waiting_ends_with_a_change() -> None:
    """A waiting reader hears the change when it happens."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    loop.call_later(7, lambda: sidecar.see(whole(7.0, [reading(1, 7.0, {"/d": 5})])))
    started = loop.time()
    response = await sidecar.get(URL, if_none_match=f'"{sidecar.board.etag}"', prefer="wait=60")
    assert pytest.approx(7, abs=0.1) == loop.time() - started
    assert (response.status_code, response.json()["factor"]) == (200, 0.0)
    assert response.headers["preference-applied"] == "wait=60"


@pytest.mark.looptime
async def test_waiting_is_not_ended_by_news_that_changes_nothing() -> None:
    """Moving bytes wake nobody, and the 304 in the end tells of the renewed validity."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    loop.call_later(50, lambda: sidecar.see(whole(50.0, [reading(1, 50.0, {"/d": 40})])))
    response = await sidecar.get(URL, if_none_match="*", prefer="wait=60")
    assert pytest.approx(60, abs=0.1) == loop.time()
    assert response.status_code == 304
    assert 290_000 == pytest.approx(int(response.headers["throttle-valid-for-ms"]), abs=200)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("age_s", "asked_s", "expected_s"),
    [(0, 10, 10), (0, 1000, 150), (200, 1000, 50), (290, 1000, 5), (299.9, 1000, 0.1)],
)
async def test_waiting_takes_half_of_the_validity_at_most(
    age_s: float, asked_s: int, expected_s: float
) -> None:
    """A 304 always comes before what the reader has runs out; near the end nobody spins."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    await asyncio.sleep(age_s)
    started = loop.time()
    response = await sidecar.get(URL, if_none_match="*", prefer=f"wait={asked_s}")
    assert pytest.approx(expected_s, abs=0.06) == loop.time() - started
    assert f"wait={int(expected_s)}" == response.headers["preference-applied"]


@pytest.mark.looptime
async def test_waiting_takes_300_s_at_most() -> None:
    """However long the validity is."""
    sidecar = in_loop_time(validity_s=86_400.0)
    response = await sidecar.get(URL, if_none_match="*", prefer="wait=100000")
    assert pytest.approx(300, abs=0.1) == asyncio.get_running_loop().time()
    assert response.headers["preference-applied"] == "wait=300"


@pytest.mark.looptime
async def test_a_closed_board_keeps_nobody() -> None:
    """When the sidecar stops, waiting readers are answered."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    loop.call_later(3, sidecar.board.close)
    response = await sidecar.get(URL, if_none_match="*", prefer="wait=60")
    assert pytest.approx(3, abs=0.1) == loop.time()
    assert response.status_code == 304


@pytest.mark.looptime
async def test_a_reader_that_goes_away_leaves_nothing() -> None:
    """When the connection ends, the wait ends with it, and no task stays."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks()
    gone = asyncio.Event()
    loop.call_later(5, gone.set)

    async def receive() -> dict[str, Any]:
        if not gone.is_set():
            await gone.wait()
        return {"type": "http.disconnect"}

    async def send(_message: MutableMapping[str, Any]) -> None: ...

    scope = http_scope(URL, (b"if-none-match", b"*"), (b"prefer", b"wait=100"))
    await sidecar.app(scope, receive, send)
    assert pytest.approx(5, abs=0.1) == loop.time()
    assert tasks == asyncio.all_tasks()


@pytest.mark.looptime
async def test_readers_beyond_a_thousand_do_not_wait() -> None:
    """The 1,001st reader is answered at once; when others leave, there is room again."""
    sidecar = in_loop_time()
    loop = asyncio.get_running_loop()
    headers = {"if-none-match": "*", "prefer": "wait=100"}
    async with sidecar.client() as client:
        waiting = [asyncio.create_task(client.get(URL, headers=headers)) for _ in range(1000)]
        await asyncio.sleep(1)
        refused = await client.get(URL, headers=headers)
        assert pytest.approx(1, abs=0.5) == loop.time()
        assert refused.status_code == 304
        assert "preference-applied" not in refused.headers
        assert 1000 == len(asyncio.all_tasks() & set(waiting))
        sidecar.see(whole(loop.time(), [reading(1, loop.time(), {"/d": 5})]))
        answers: list[httpx.Response] = await asyncio.gather(*waiting)
        assert {200} == {response.status_code for response in answers}
        room = await client.get(URL, headers=headers)
    assert room.headers["preference-applied"] == "wait=100"
