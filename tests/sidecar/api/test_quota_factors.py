"""GET /v1/quota-factors: what it says, in its headers too."""

import dataclasses
from dataclasses import replace

import pytest

from sidecar.api.documents import QuotaFactorsDocument
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Contents
from sidecar.throttle.slope import SlopeRules
from tests.sidecar.api.build import FACTORS, FakeSidecar
from tests.sidecar.throttle.build import FakeClock, reading, whole, with_rules

URL = "/v1/quota-factors"
LIMIT_IN = "throttle-limit-in-ms"
LEAK = ("throttle-leak-share", "throttle-pause-max-ms")


async def test_every_field_of_a_violation() -> None:
    """The document has exactly these fields, with the time until the volume is full."""
    sidecar = FakeSidecar()
    sidecar.see(whole(50.0, [reading(1, 50.0, {"/d": 15})]))
    sidecar.clock.now = 60.0
    sidecar.see(whole(60.0, [reading(1, 60.0, {"/d": 5})]))
    sidecar.clock.now = 61.5
    response = await sidecar.get(URL, accept="text/plain")
    assert response.json() == {
        "factor": 0.0,
        "source": "observation",
        "reason": sidecar.board.snapshot.decision.reason,
        "users": {},
        "slope": False,
        "stop": False,
        "valid_for_ms": 298_500,
        "generation": 3,
        "seconds_to_full": 3.5,
        "cluster_id": "A",
        "limit": {"type": "min_available_bytes", "value": 10.0},
        "stop_line": None,
        "release_margin": 0.0,
        "scope": "cluster",
        "topics": None,
        "budgets": [],
        "leaks": [],
    }
    assert list(response.json()) == [one.name for one in dataclasses.fields(QuotaFactorsDocument)]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["throttle-valid-for-ms"] == "298500"
    assert response.headers["throttle-observed-ms-ago"] == "1500"
    assert LIMIT_IN not in response.headers
    assert response.headers["etag"] == f'W/"{sidecar.board.start_id}-3"'
    assert "vary" not in response.headers


async def test_disabled() -> None:
    """Disabled is factor 1.0, for the validity."""
    response = await FakeSidecar(factors=None).get(URL)
    assert LIMIT_IN not in response.headers
    assert "throttle-observed-ms-ago" not in response.headers
    expected = {"factor": 1.0, "source": "disabled", "users": {}, "valid_for_ms": 300_000}
    assert (expected | {"seconds_to_full": None}).items() <= response.json().items()


async def test_a_factor_on_its_slope() -> None:
    """It moves in a header, a 304's too, without a change that anybody waits for."""
    rules = with_rules(FACTORS, slope=SlopeRules(MinAvailableBytes(60), horizon_s=1e6))
    sidecar = FakeSidecar(factors=rules)
    found = []
    etag = ""
    for number, available in enumerate((61, 56, 50, 45, 40, 9)):
        sidecar.clock.now = at = 10.0 * number
        sidecar.see(whole(at, [reading(1, at, {"/d": available})]))
        response = await sidecar.get(URL, if_none_match=etag)
        etag = response.headers["etag"]
        header = response.headers.get("throttle-factor")
        shown = (await sidecar.get("/v1/throttle-factor")).json()
        found.append((response.status_code, header, shown["slope"], shown["generation"]))
        assert header is None or float(header) == shown["factor"]
    assert [200, 200, 304, 304, 304, 200] == [each[0] for each in found]
    assert [2, 3, 3, 3, 3, 4] == [each[3] for each in found]
    assert [False, True, True, True, True, False] == [each[2] for each in found]
    factors = [float(each[1]) for each in found[1:5] if each[1]]
    assert len(set(factors)) > 1
    assert sorted(factors, reverse=True) == factors
    assert (None, None) == (found[0][1], found[5][1])


@pytest.mark.parametrize("url", [URL, "/v1/throttle-factor"])
async def test_whom_a_throttle_is_for(url: str) -> None:
    """The topics are known once they were read, which is a new generation."""
    sidecar = FakeSidecar(factors=replace(FACTORS, is_of_volumes=True))
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})]))
    first = await sidecar.get(url)
    topics = {(1, "/d"): Contents(frozenset({"b", "a"}), 0.0)}
    sidecar.board.update(lambda memory: replace(memory, contents=topics))
    second = await sidecar.get(url, if_none_match=first.headers["etag"])
    assert [None, ["a", "b"]] == [each.json()["topics"] for each in (first, second)]


async def test_a_release_margin() -> None:
    """Brokers hold their own volumes against it as well; a volume is released with so much more."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, limit=MinAvailableBytes(10, 5)))
    found = []
    for at, available in enumerate((15, 10, 15, 16)):
        sidecar.see(whole(at, [reading(1, at, {"/d": available})]))
        document = (await sidecar.get(URL)).json()
        found.append((document["factor"], document["release_margin"]))
    assert [(1.0, 5.0), (0.0, 5.0), (0.0, 5.0), (1.0, 5.0)] == found


async def test_a_sidecar_that_only_observes() -> None:
    """Callbacks get 1.0 and nothing to look at by themselves; who waits hears what is decided."""
    clock = FakeClock()
    rules = replace(with_rules(FACTORS, stop_line=MinAvailableBytes(5)), is_enforced=False)
    sidecar = FakeSidecar(factors=rules, clock=clock)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})]))
    sidecar.board.throttle_users("producer_ids", {"bob": (60.0, "too many")})
    document = (await sidecar.get(URL)).json()
    expected = {"factor": 1.0, "source": "shadow", "users": {}, "stop": False, "limit": None}
    assert (expected | {"stop_line": None, "generation": 3}).items() <= document.items()
    shown = (await sidecar.get("/v1/throttle-factor")).json()
    would = {"factor": 0.0, "source": "observation", "stop_line_reached": True, "users": 1}
    assert ({"factor": 1.0, "stop_line_reached": False, "shadow": would}).items() <= shown.items()
    assert 1 == len(shown["violations"])
    sidecar.see(whole(1.0, [reading(1, 1.0, {"/d": 50})]))
    shown = (await sidecar.get("/v1/throttle-factor")).json()
    assert (4, 1.0, False) == (shown["generation"], *list(shown["shadow"].values())[::2])


async def test_a_stop_is_a_change() -> None:
    """Whoever waits is told, although the factor stays 0.0; so when it ends."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, stop_line=MinAvailableBytes(5)))
    found = []
    for at, available in enumerate((6, 5, 6)):
        sidecar.see(whole(at, [reading(1, at, {"/d": available})]))
        document = (await sidecar.get(URL)).json()
        found.append((document["generation"], document["factor"], document["stop"]))
    assert [(2, 0.0, False), (3, 0.0, True), (4, 0.0, False)] == found


async def test_an_answer_is_as_old_as_its_observation() -> None:
    """A 304 too, and a failed poll makes none younger."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, stop_line=MinAvailableBytes(5)))
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 60})]))
    sidecar.clock.now = 10.0
    first = await sidecar.get(URL)
    assert {"type": "min_available_bytes", "value": 5.0} == first.json()["stop_line"]
    sidecar.clock.now = 12.0
    sidecar.see(whole(12.0, [], silent=[1]))
    again = await sidecar.get(URL, if_none_match=first.headers["etag"])
    assert 304 == again.status_code
    assert ("10000", "12000") == tuple(
        each.headers["throttle-observed-ms-ago"] for each in (first, again)
    )


async def test_a_304_says_how_soon_the_first_volume_is_at_its_limit() -> None:
    """From a minute before; it runs down between polls to 0, and follows each poll."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 91})]))
    sidecar.clock.now = 10.0
    sidecar.see(whole(10.0, [reading(1, 10.0, {"/d": 81})]))
    assert LIMIT_IN not in (await sidecar.get(URL)).headers
    sidecar.clock.now = 41.0
    sidecar.see(whole(41.0, [reading(1, 41.0, {"/d": 50})]))
    etag = (await sidecar.get(URL)).headers["etag"]
    left = []
    for now in (43.5, 82.0):
        sidecar.clock.now = now
        left.append((await sidecar.get(URL, if_none_match=etag)).headers[LIMIT_IN])
    sidecar.see(whole(82.0, [reading(1, 82.0, {"/d": 50})]))
    slower = await sidecar.get(URL, if_none_match=etag)
    assert ["37500", "0"] == left
    assert (304, None) == (slower.status_code, slower.headers.get(LIMIT_IN))


@pytest.mark.slow
async def test_a_broker_hears_its_own_leak() -> None:
    """In headers, with a document or without; who does not say which broker it is hears of all."""
    sidecar = FakeSidecar()
    for second in range(30):
        sidecar.clock.now = float(second)
        left = {1: 9 - second // 5, 2: 90}
        answers = [reading(broker, sidecar.clock.now, {"/d": left[broker]}) for broker in (1, 2)]
        sidecar.see(whole(sidecar.clock.now, answers))
    reader = "broker={}; emergency=false; throttled_clients=0"
    first = await sidecar.get(URL, throttle_reader=reader.format(1))
    again = await sidecar.get(
        URL, throttle_reader=reader.format(1), if_none_match=first.headers["etag"]
    )
    assert 304 == again.status_code
    follows_another = await sidecar.get(URL, throttle_broker="1")
    assert [1] == [each.report.broker_id for each in sidecar.board.readers.recent(29.0)]
    for answer in (first, again, follows_another):
        assert ("0.100000", "40000") == tuple(map(answer.headers.get, LEAK))
    leaks = [{"broker": broker, "share": 0.1, "pause_max_ms": 40_000} for broker in (1, 2)]
    assert leaks == first.json()["leaks"]
    for nobody in ({}, {"throttle_reader": reader.format(7)}, {"throttle_broker": "01"}):
        answer = await sidecar.get(URL, **nobody)
        assert (None, None) == tuple(map(answer.headers.get, LEAK))
        assert leaks == answer.json()["leaks"]
    # Over 5 s it would be a spike or nothing: two pauses of 40 s are more than was seen.
    assert pytest.approx(4 / (5 / 29), abs=1.0) == first.json()["seconds_to_full"]


async def test_a_reading_that_is_too_old_says_nothing() -> None:
    """When a broker was silent for the validity, nothing is foreseen any more."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 60})]))
    sidecar.see(whole(10.0, [reading(1, 10.0, {"/d": 50})]))
    for now, expected in ((310.0, "0"), (311.0, None)):
        sidecar.clock.now = now
        sidecar.see(whole(now, silent=[1]))
        assert expected == (await sidecar.get(URL)).headers.get(LIMIT_IN)


async def test_factors_of_single_users() -> None:
    """They have the users' names."""
    sidecar = FakeSidecar(factors=VolumeLimit(FACTORS.rules, 1.0))
    sidecar.board.throttle_users("ids", dict.fromkeys(("etl", 'ö"'), (60.0, "too many")))
    document = (await sidecar.get(URL)).json()
    assert (1.0, {"etl": 0.0, 'ö"': 0.0}) == (document["factor"], document["users"])
