"""GET /v1/throttle-factor: what it says; how it is waited for is in test_long_poll."""

import dataclasses
from dataclasses import replace

import pytest

from sidecar.api.documents import FactorDocument
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Override
from sidecar.throttle.rules import Rules
from tests.sidecar.api.build import FACTORS, FakeSidecar
from tests.sidecar.throttle.build import reading, whole, with_rules

URL = "/v1/throttle-factor"


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
        "reason": sidecar.board.snapshot.decision.reason,
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
        "slope": False,
        "stop_line_reached": False,
        "stop_line_violations": [],
        "computed_at": "2023-11-14T22:14:20.000Z",
        "valid_until": "2023-11-14T22:19:20.000Z",
        "valid_for_ms": 298_500,
        "since": "2023-11-14T22:14:20.000Z",
        "generation": 2,
        "seconds_to_limit": 0.0,
        "cluster_id": "A",
        "topics": None,
        "readers": 0,
        "enforcement": "callback",
        "lowered_quotas": 0,
        "shadow": None,
    }
    assert list(response.json()) == [one.name for one in dataclasses.fields(FactorDocument)]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["throttle-valid-for-ms"] == "298500"
    assert response.headers["etag"] == f'W/"{sidecar.board.start_id}-2"'


async def test_a_ratio_as_the_limit() -> None:
    """The other type of limit has its own name."""
    sidecar = FakeSidecar(factors=VolumeLimit(Rules(MinAvailableRatio(0.25), 300.0), 0.5))
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 25})]))
    violations = (await sidecar.get(URL)).json()["violations"]
    assert violations[0]["limit"] == {"type": "min_available_ratio", "value": 0.25}


STOPPING = with_rules(FACTORS, stop_line=MinAvailableBytes(5))


async def test_a_stop_and_its_volumes() -> None:
    """The volumes at or below the stop line are named with it; an override lifts it alone."""
    sidecar = FakeSidecar(factors=STOPPING)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 6, "/d2": 8})]))
    assert [False, []] == [
        (await sidecar.get(URL)).json()[name]
        for name in ("stop_line_reached", "stop_line_violations")
    ]
    sidecar.see(whole(1.0, [reading(1, 1.0, {"/d1": 5, "/d2": 8})]))
    document = (await sidecar.get(URL)).json()
    stopping = {
        "broker_id": 1,
        "log_dir": "/d1",
        "total_bytes": 100,
        "available_bytes": 5,
        "available_ratio": 0.05,
        "limit": {"type": "min_available_bytes", "value": 5},
    }
    assert (True, [stopping], 2) == (
        document["stop_line_reached"],
        document["stop_line_violations"],
        len(document["violations"]),
    )
    sidecar.board.set_override(Override(1.0, "by hand", 0.0, 60.0))
    document = (await sidecar.get(URL)).json()
    assert (False, [stopping]) == (document["stop_line_reached"], document["stop_line_violations"])


async def test_before_the_first_observation() -> None:
    """It is the fallback, with null where nothing is known and the validity as its term."""
    document = (await FakeSidecar().get(URL)).json()
    assert (document["factor"], document["source"]) == (0.5, "fallback")
    absent = ("computed_at", "valid_until", "seconds_to_limit", "cluster_id")
    assert [None] * 4 == [document[name] for name in absent]
    assert (document["violations"], document["valid_for_ms"], document["generation"]) == (
        [],
        300_000,
        1,
    )


async def test_disabled() -> None:
    """Disabled is factor 1.0 and says so."""
    document = (await FakeSidecar(factors=None).get(URL)).json()
    assert (document["factor"], document["source"]) == (1.0, "disabled")
    assert "PT0S" in document["reason"]


async def test_an_override_is_believed_for_the_validity_at_most() -> None:
    """An override of 8 h may be used for the validity, and for its last minute a minute."""
    sidecar = FakeSidecar()
    sidecar.board.set_override(Override(0.25, "because", 0.0, 8 * 3600.0))
    document = (await sidecar.get(URL)).json()
    assert (document["factor"], document["source"]) == (0.25, "override")
    assert document["reason"] == "set by an operator: because"
    assert document["valid_for_ms"] == 300_000
    assert document["valid_until"] == "2023-11-15T06:13:20.000Z"
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
    for sidecar.clock.now, left in ((0.0, (60, 60, 60)), (10.0, (59, 20, 20))):
        now = sidecar.clock.now
        brokers = [reading(each, now, {"/d": free}) for each, free in enumerate(left, start=1)]
        sidecar.see(whole(now, brokers))
    sidecar.clock.now = 11.0
    brokers = [reading(1, 11.0, {"/d": 59}), reading(2, 11.0, offline=["/d"])]
    sidecar.see(whole(11.0, brokers, fenced=[3]))
    document = (await sidecar.get(URL)).json()
    assert document["seconds_to_limit"] == pytest.approx(490 * 1.1, rel=0.01)


async def test_times_follow_a_step_of_the_machines_clock() -> None:
    """What is written once per snapshot is written anew when the wall's clock is set."""
    sidecar = FakeSidecar()
    before = (await sidecar.get(URL)).json()["since"]
    sidecar.wall_offset_s += 3600
    after = (await sidecar.get(URL)).json()["since"]
    assert ("2023-11-14T22:13:20.000Z", "2023-11-14T23:13:20.000Z") == (before, after)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0])
async def test_the_bare_number(factor: float) -> None:
    """The answer to text/plain is the number alone, with the same headers."""
    sidecar = FakeSidecar(factors=replace(FACTORS, fallback=factor))
    response = await sidecar.get(URL, accept="text/plain")
    assert str(factor) == response.text
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["vary"] == "Accept"
    assert response.headers["throttle-valid-for-ms"] == "300000"
    assert response.headers["etag"] == f'W/"{sidecar.board.etag}"'


async def test_head_has_the_headers_and_no_body() -> None:
    """HEAD is GET without the body."""
    sidecar = FakeSidecar()
    async with sidecar.client() as client:
        head = await client.head(URL)
    assert head.status_code == 200
    assert head.headers["etag"] == f'W/"{sidecar.board.etag}"'
