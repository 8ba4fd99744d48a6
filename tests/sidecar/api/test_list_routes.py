"""The listings: volumes, brokers, decisions, readers."""

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from sidecar.api.answers import PIECE
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.api.build import FACTORS, FakeSidecar, http_scope, read_until
from tests.sidecar.throttle.build import reading, whole, with_rules


async def test_a_volume_that_fills() -> None:
    """Every field of an online volume, with the seconds counted from now."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 60})]))
    sidecar.clock.now = 10.0
    sidecar.see(whole(10.0, [reading(1, 10.0, {"/d": 50})]))
    sidecar.clock.now = 12.0
    document = (await sidecar.get("/v1/volumes")).json()
    assert document == {
        "generation": 2,
        "volumes": [
            {
                "broker_id": 1,
                "broker_state": "active",
                "log_dir": "/d",
                "state": "online",
                "unread_reason": None,
                "total_bytes": 100,
                "used_bytes": 50,
                "available_bytes": 50,
                "available_ratio": 0.5,
                "limit_violated": False,
                "stop_line_violated": None,
                "read_at": "2023-11-14T22:13:30.000Z",
                "fill_bytes_per_second": 1.0,
                "seconds_to_limit": 38.0,
            }
        ],
    }


async def test_a_volume_that_violates_has_no_time_left() -> None:
    """It has 0 seconds, from its first reading on; a rate is not known yet."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 10})]))
    volume = (await sidecar.get("/v1/volumes")).json()["volumes"][0]
    shown = {"limit_violated": True, "seconds_to_limit": 0.0, "fill_bytes_per_second": None}
    assert shown.items() <= volume.items()


async def test_volumes_at_the_stop_line() -> None:
    """Each says whether it was at or below it; a log dir that was never read does not."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, stop_line=MinAvailableBytes(5)))
    free = {"/a": 5, "/b": 6, "/c": 50}
    sidecar.see(whole(0.0, [reading(1, 0.0, free, offline=["/never"])]))
    volumes = (await sidecar.get("/v1/volumes")).json()["volumes"]
    assert [("/a", True), ("/b", False), ("/c", False), ("/never", None)] == [
        (volume["log_dir"], volume["stop_line_violated"]) for volume in volumes
    ]


async def test_offline_log_dirs() -> None:
    """One that was read keeps its sizes and does not fill; one that never was has nulls."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/a": 50})]))
    sidecar.clock.now = 1.0
    sidecar.see(whole(1.0, [reading(1, 1.0, {"/a": 40})]))
    sidecar.see(whole(1.0, [reading(1, 1.0, offline=["/a", "/never"])]))
    known, never = (await sidecar.get("/v1/volumes")).json()["volumes"]
    offline = {"state": "offline", "unread_reason": "offline"}
    shown = {"log_dir": "/a", "available_bytes": 40, **offline}
    shown |= {"fill_bytes_per_second": None, "seconds_to_limit": None}
    assert shown.items() <= known.items()
    shown = {"broker_id": 1, "broker_state": "active", "log_dir": "/never", **offline}
    assert dict.fromkeys(known) | shown == never


async def test_log_dirs_without_sizes_that_are_not_offline() -> None:
    """They are unreadable, with or without earlier sizes: their broker may write there."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/a": 50})]))
    sidecar.see(whole(1.0, [reading(1, 1.0, unreadable=["/a", "/never"])]))
    volumes = (await sidecar.get("/v1/volumes")).json()["volumes"]
    assert [("/a", 50), ("/never", None)] == [
        (volume["log_dir"], volume["available_bytes"]) for volume in volumes
    ]
    assert {("unreadable", "error 999")} == {
        (volume["state"], volume["unread_reason"]) for volume in volumes
    }


async def test_states_of_brokers() -> None:
    """A fenced or departed broker is listed while its reading counts, and says which it is."""
    sidecar = FakeSidecar()
    brokers = [reading(broker_id, 0.0, {"/d": 5}) for broker_id in (1, 2)]
    sidecar.see(whole(0.0, brokers))
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})], fenced=[2, 7]))
    volumes = (await sidecar.get("/v1/volumes")).json()["volumes"]
    assert [(1, "active"), (2, "fenced")] == [
        (volume["broker_id"], volume["broker_state"]) for volume in volumes
    ]
    document = (await sidecar.get("/v1/brokers")).json()
    assert [(1, "active"), (2, "fenced"), (7, "fenced")] == [
        (broker["broker_id"], broker["state"]) for broker in document["brokers"]
    ]

    old = FakeSidecar()
    old.see(whole(0.0, brokers, fenced=None))
    old.see(whole(0.0, [reading(1, 0.0, {"/d": 5})], fenced=None))
    departed = (await old.get("/v1/brokers")).json()["brokers"][1]
    assert departed == {
        "broker_id": 2,
        "address": None,
        "state": "departed",
        "last_seen": "2023-11-14T22:13:20.000Z",
        "last_failure": None,
    }


async def test_a_broker_that_does_not_answer() -> None:
    """It has its last failure, since when it fails, and when it was last seen."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    sidecar.see(whole(60.0, silent=[1]))
    sidecar.see(whole(120.0, silent=[1]))
    document = (await sidecar.get("/v1/brokers")).json()
    assert document == {
        "cluster_id": "A",
        "listed_at": "2023-11-14T22:15:20.000Z",
        "failed_polls": 0,
        "last_failure": None,
        "brokers": [
            {
                "broker_id": 1,
                "address": "host1:9092",
                "state": "active",
                "last_seen": "2023-11-14T22:13:20.000Z",
                "last_failure": {
                    "kind": "timeout",
                    "message": "no answer within 2 s",
                    "since": "2023-11-14T22:14:20.000Z",
                },
            }
        ],
    }


async def test_a_fenced_broker_was_last_seen_and_failed_then() -> None:
    """A person asks this first of a dead broker, healthy or full, as long as it stays fenced."""
    for available in (50, 5):
        sidecar = FakeSidecar()
        sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50}), reading(2, 0.0, {"/d": available})]))
        sidecar.see(whole(60.0, [reading(1, 60.0, {"/d": 50})], silent=[2]))
        for at in (120.0, 180.0):
            sidecar.see(whole(at, [reading(1, at, {"/d": 50})], fenced=[2]))
        broker = (await sidecar.get("/v1/brokers")).json()["brokers"][1]
        assert ("fenced", "2023-11-14T22:13:20.000Z", "2023-11-14T22:14:20.000Z") == (
            broker["state"],
            broker["last_seen"],
            broker["last_failure"]["since"],
        )
        sidecar.see(whole(240.0, [reading(1, 240.0, {"/d": 50})], silent=[2]))
        broker = (await sidecar.get("/v1/brokers")).json()["brokers"][1]
        assert ("active", "2023-11-14T22:17:20.000Z") == (
            broker["state"],
            broker["last_failure"]["since"],
        )


async def test_a_poll_that_saw_nothing() -> None:
    """The answer says beside the brokers why none could be listed."""
    sidecar = FakeSidecar()
    failure = Failure(FailureKind.AUTHENTICATION, "the brokers refused the credentials")
    sidecar.board.fail(failure)
    document = (await sidecar.get("/v1/brokers")).json()
    assert (1, "authentication", []) == (
        document["failed_polls"],
        document["last_failure"]["kind"],
        document["brokers"],
    )


async def test_decisions_newest_first() -> None:
    """Each change has when it began, and the violations then."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    sidecar.clock.now = 60.0
    sidecar.see(whole(60.0, [reading(1, 60.0, {"/d": 5})]))
    document = (await sidecar.get("/v1/decisions")).json()["decisions"]
    assert [(3, 0.0), (2, 1.0), (1, 0.5)] == [
        (one["generation"], one["factor"]) for one in document
    ]
    newest = document[0]
    assert ("2023-11-14T22:14:20.000Z", 1, "/d") == (
        newest["changed_at"],
        newest["violation_count"],
        newest["violations"][0]["log_dir"],
    )
    oldest = {"source": "fallback", "computed_at": None, "valid_until": None}
    assert oldest.items() <= document[2].items()


async def test_decisions_with_a_stop() -> None:
    """A stop is a decision of its own, with at most 20 of the volumes because of which."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, stop_line=MinAvailableBytes(5)))
    for at, available in enumerate((6, 5)):
        dirs = {f"/d{number}": available for number in range(21)}
        sidecar.see(whole(at, [reading(1, at, dirs)]))
    document = (await sidecar.get("/v1/decisions")).json()["decisions"]
    assert [(3, True, 20), (2, False, 0), (1, False, 0)] == [
        (one["generation"], one["stop_line_reached"], len(one["stop_line_violations"]))
        for one in document
    ]
    limit = {"type": "min_available_bytes", "value": 5}
    assert limit == document[0]["stop_line_violations"][0]["limit"]


@pytest.mark.slow
async def test_the_last_thousand_decisions() -> None:
    """Of more changes the newest 1,000 are listed, and of each at most 20 violations."""
    sidecar = FakeSidecar(factors=VolumeLimit(Rules(MinAvailableBytes(10), 1e9), 0.5))
    for at in range(1100):
        dirs = {f"/d{number}": 5 + 45 * (at % 2) for number in range(21)}
        sidecar.see(whole(float(at), [reading(1, float(at), dirs)]))
    document = (await sidecar.get("/v1/decisions")).json()["decisions"]
    assert 1000 == len(document)
    assert [1101, 102] == [document[0]["generation"], document[-1]["generation"]]
    assert (21, 20) == (document[1]["violation_count"], len(document[1]["violations"]))


async def test_a_long_listing_is_one_snapshot() -> None:
    """News that come while a long answer is written change nothing of it, and others get turns."""
    sidecar = FakeSidecar()
    dirs = {f"/d{number:04}": 50 for number in range(10 * PIECE)}
    sidecar.see(whole(0.0, [reading(1, 0.0, dirs)]))
    pieces: list[bytes] = []
    turns = 0

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError("nothing is sent")

    async def send(message: MutableMapping[str, Any]) -> None:
        pieces.append(message.get("body", b""))
        sidecar.see(whole(0.0, [reading(1, float(len(pieces)), {"/other": 50})]))

    listing = asyncio.ensure_future(sidecar.app(http_scope("/v1/volumes"), receive, send))
    while not listing.done():
        turns += 1
        await asyncio.sleep(0)
    await listing
    document = json.loads(b"".join(pieces))["volumes"]
    assert list(dirs) == [volume["log_dir"] for volume in document]
    assert turns > 10
    assert max(map(len, pieces)) < sum(map(len, pieces)) / 9


async def test_an_empty_board() -> None:
    """Before the first observation there is nothing to list."""
    sidecar = FakeSidecar(factors=FACTORS)
    assert (await sidecar.get("/v1/volumes")).json() == {"generation": 1, "volumes": []}
    assert (await sidecar.get("/v1/brokers")).json()["brokers"] == []


REPORT = {
    "throttle_reader": "broker=3; emergency=true; throttled_clients=12",
    "throttle_refused": "new_connection=30; stop_line=1; release=3; clients=etl/:34; logged=true",
    "throttle_scope": "clients=etl/a%20b:7",
    "throttle_kafka": "4.3.1",
    "throttle_jar": "0.1.0",
    "throttle_reserve": "%2Fd%3A0:8,%2Fe:0",
}


@pytest.mark.parametrize("path", ["/v1/quota-factors", "/v1/throttle-factor"])
async def test_a_broker_that_reads(path: str) -> None:
    """It has what its callback says, when it was heard, and its last known generation."""
    sidecar = FakeSidecar()
    assert (await sidecar.get("/v1/readers")).json() == {"generation": 1, "readers": []}
    sidecar.clock.now = 60.0
    etag = (await sidecar.get(path, **REPORT)).headers["etag"]
    reader = {
        "broker_id": 3,
        "last_seen": "2023-11-14T22:14:20.000Z",
        "waiting": False,
        "generation": None,
        "emergency": True,
        "throttled_clients": 12,
        "fault": None,
        "refused": {
            "total": 34,
            "by_reason": {"new_connection": 30, "stop_line": 1, "release": 3},
            "per_second": {"new_connection": 0.0, "stop_line": 0.0, "release": 0.0},
            "clients": [{"principal": "etl", "client_id": "", "requests": 34, "per_second": 0.0}],
            "logged": True,
        },
        "in_scope": [
            {
                "principal": "etl",
                "client_id": "a b",
                "landed_bytes": 7,
                "bytes_per_second": 0.0,
            }
        ],
        "kafka_version": "4.3.1",
        "jar_version": "0.1.0",
        "reserves": [{"log_dir": "/d:0", "bytes": 8}, {"log_dir": "/e", "bytes": 0}],
    }
    assert (await sidecar.get("/v1/readers")).json() == {"generation": 1, "readers": [reader]}
    await sidecar.get(path, if_none_match=etag, **REPORT)
    sidecar.see(whole(60.0, [reading(1, 60.0, {"/d": 5})]))
    reader["generation"] = 1
    assert (await sidecar.get("/v1/readers")).json() == {"generation": 2, "readers": [reader]}
    sidecar.clock.now = 660.5
    assert (await sidecar.get("/v1/readers")).json()["readers"] == []


@pytest.mark.parametrize(
    "headers",
    [
        [(b"throttle-reader", b"broker=3; emergency=maybe; throttled_clients=12")],
        [(b"throttle-reader", b"broker=3; emergency=true; throttled_clients=12")] * 2,
        [(b"throttle-reader", b"broker=3; emergency=true; throttled_clients=\xff")],
        [],
    ],
)
async def test_a_reader_that_says_nothing_of_use(headers: list[tuple[bytes, bytes]]) -> None:
    """It is answered like any other, and not listed."""
    sidecar = FakeSidecar()
    async with sidecar.client() as client:
        response = await client.get("/v1/quota-factors", headers=headers)
    assert 200 == response.status_code
    assert (await sidecar.get("/v1/readers")).json()["readers"] == []


@pytest.mark.looptime
async def test_a_broker_that_waits() -> None:
    """It is said to wait until it is answered, also when the connection ends before that."""
    sidecar = FakeSidecar(clock=asyncio.get_running_loop().time)

    async def waits() -> bool:
        waiting: bool = (await sidecar.get("/v1/readers")).json()["readers"][0]["waiting"]
        return waiting

    headers = {"if_none_match": f'"{sidecar.board.etag}"', "prefer": "wait=60", **REPORT}
    answered = asyncio.create_task(sidecar.get("/v1/quota-factors", **headers))
    await asyncio.sleep(1)
    assert await waits()
    await answered
    assert not await waits()

    gone = asyncio.Event()
    raw = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    dropped = asyncio.create_task(read_until(gone, sidecar, "/v1/quota-factors", *raw))
    await asyncio.sleep(1)
    assert await waits()
    gone.set()
    await dropped
    assert not await waits()
