"""Producer ids over HTTP: throttled users, quotas in force, and reports to other sidecars."""

import asyncio
import dataclasses
from typing import Any

import httpx
import pytest

from sidecar.control.board import Board, PersistedState, Snapshot
from sidecar.producer_ids.retained import NAME
from sidecar.quotas.entities import DEFAULT as DEFAULT_USER
from sidecar.quotas.entities import LONGEST_USER
from sidecar.throttle.decision import Source
from sidecar.throttle.memory import Memory, Override
from tests.sidecar.api.build import BEARER, FACTORS, FakeSidecar, assert_problem
from tests.sidecar.producer_ids.build import CLICKS, REFUSED, SILENT, WatchScene
from tests.support.virtual_time import VIRTUAL_TIME

FIFTY = {"producer_ids_rate": 50}
ALICE = "/v1/quotas/producer-ids/users/alice"
DEFAULT = "/v1/quotas/producer-ids/default"


@pytest.fixture
def sidecar() -> FakeSidecar:
    return FakeSidecar()


async def change(
    sidecar: FakeSidecar, method: str, path: str, body: object = None
) -> httpx.Response:
    """Sends one change, with the token."""
    async with sidecar.client() as client:
        return await client.request(method, path, json=body, headers=BEARER)


def retained(snapshot: Snapshot) -> list[str | None]:
    """The users whose quotas a restart takes over."""
    part: Any = snapshot.memory.retained[NAME]
    return [quota["user"] for quota in part["quotas"]]


def opens(sidecar: FakeSidecar, user: str, count: int) -> None:
    for producer_id in range(count):
        sidecar.ids.watch.seen(user, producer_id)


async def test_nobody_is_known_at_first(sidecar: FakeSidecar) -> None:
    """The windows are the KIP's."""
    expected: dict[str, object] = {
        "window_num": 11,
        "window_size_seconds": 3600,
        "filter_bytes": 0,
        "dropped": 0,
        "counts": "allocated",
        "active": None,
        "request_log": None,
        "peers": [],
        "users": [],
    }
    assert expected == (await sidecar.get("/v1/producer-ids")).json()


async def test_a_user_over_the_quota_is_shown_and_has_a_factor(sidecar: FakeSidecar) -> None:
    """Rate, tokens and throttle time are shown; in the brokers' document the user's factor is 0."""
    assert 200 == (await change(sidecar, "PUT", ALICE, FIFTY)).status_code
    opens(sidecar, "alice", 552)
    sidecar.ids.watch.review()
    opens(sidecar, "bob", 1)
    alice, bob = (await sidecar.get("/v1/producer-ids")).json()["users"]
    assert ("alice", 50.0, -2.0, 144_000) == (
        alice["user"],
        alice["producer_ids_rate"],
        alice["tokens"],
        alice["throttle_time_ms"],
    )
    assert "2023-11-14T22:13:20.000Z" == alice["throttled_since"]
    assert "2023-11-14T22:15:44.000Z" == alice["throttled_until"]
    assert "2 new producer ids too many" in alice["reason"]
    assert ("bob", None, None, 0, None) == (
        bob["user"],
        bob["producer_ids_rate"],
        bob["tokens"],
        bob["throttle_time_ms"],
        bob["throttled_until"],
    )
    factors = (await sidecar.get("/v1/quota-factors")).json()
    assert {"alice": 0.0} == factors["users"]


async def test_quotas_show_where_they_were_set(sidecar: FakeSidecar) -> None:
    """What is put is the API's, and retained; the rest is the setting's."""
    done = (
        await change(sidecar, "PUT", ALICE, {**FIFTY, "throttled_request_percentage": 0.01})
    ).json()
    quota = {
        "user": "alice",
        "producer_ids_rate": 50.0,
        "throttled_request_percentage": 0.01,
        "origin": "api",
    }
    assert {"quota": quota, "persisted": True, "state_file": "written"} == done
    assert quota == (await sidecar.get("/v1/quotas/producer-ids")).json()["quotas"][1]
    assert ["alice"] == retained(sidecar.disk.written[-1])
    await change(sidecar, "PUT", DEFAULT, {"producer_ids_rate": "unlimited"})
    first = (await sidecar.get("/v1/quotas/producer-ids")).json()["quotas"][0]
    assert (None, None, "api") == (first["user"], first["producer_ids_rate"], first["origin"])


async def test_a_quota_that_is_taken_away_leaves_what_was_set_elsewhere(
    sidecar: FakeSidecar,
) -> None:
    """A second time there is nothing to take, which is no error."""
    await change(sidecar, "PUT", ALICE, FIFTY)
    await change(sidecar, "PUT", DEFAULT, {"producer_ids_rate": 7})
    done = (await change(sidecar, "DELETE", ALICE)).json()
    assert (True, 7.0, "api") == (
        done["cleared"],
        done["quota"]["producer_ids_rate"],
        done["quota"]["origin"],
    )
    assert not (await change(sidecar, "DELETE", ALICE)).json()["cleared"]
    done = (await change(sidecar, "DELETE", DEFAULT)).json()
    assert (True, None, "setting") == (
        done["cleared"],
        done["quota"]["producer_ids_rate"],
        done["quota"]["origin"],
    )


async def test_each_change_of_a_quota_has_who_and_what() -> None:
    """As a change of the override; a DELETE that removes nothing is none."""
    sidecar = FakeSidecar(user_header="X-Forwarded-User")
    by = httpx.Headers({**BEARER, "X-Forwarded-User": "Åsa"}, encoding="utf-8")
    async with sidecar.client() as client:
        await client.put(ALICE, json=FIFTY, headers=by)
        await client.put(DEFAULT, json={"producer_ids_rate": "unlimited"}, headers=by)
        await client.delete(ALICE, headers=by)
        await client.delete(ALICE, headers=by)
    listed = (await sidecar.get("/v1/decisions")).json()["decisions"]
    operations = [each["operation"] for each in listed if each["operation"]]
    assert {("user Åsa", "127.0.0.1")} == {(each["by"], each["address"]) for each in operations}
    assert [
        "removed the producer id quota of user 'alice'",
        "set the producer id quota of users without their own: producer_ids_rate='unlimited'"
        " throttled_request_percentage=None",
        "set the producer id quota of user 'alice': producer_ids_rate=50.0"
        " throttled_request_percentage=None",
    ] == [each["what"] for each in operations]


async def test_a_quota_in_a_state_that_is_read_late() -> None:
    """It applies once it is read, and until then no quota can be removed."""
    board = Board(FACTORS, lambda: 0.0, unread="the state file is not read yet")
    sidecar = FakeSidecar(board=board)
    await change(sidecar, "PUT", ALICE, FIFTY)
    refused = await change(sidecar, "DELETE", ALICE)
    assert_problem(refused, 409)
    assert "The state file is not read yet" in refused.json()["detail"]
    quota = {"user": "bob", "producer_ids_rate": 5.0, "throttled_request_percentage": None}
    record = {"quotas": [quota], "enforced_request_percentages": {}}
    past = Memory(retained={NAME: record})
    board.take_over(PersistedState(past, 1.0, Source.OBSERVATION, 0.0))
    sidecar.ids.watch.review()
    rates = {user: each.quota.producer_ids_rate for user, each in sidecar.ids.watch.quotas.items()}
    assert {DEFAULT_USER: None, "alice": 50.0, "bob": 5.0} == rates
    assert 200 == (await change(sidecar, "DELETE", ALICE)).status_code


async def test_a_name_may_have_any_characters(sidecar: FakeSidecar) -> None:
    """It may be a certificate's subject, slashes and all; one too long is refused."""
    await change(sidecar, "PUT", "/v1/quotas/producer-ids/users/CN%3Da%2Fb%20c%2CO%3D%C3%A9", FIFTY)
    assert ["CN=a/b c,O=é"] == retained(sidecar.board.snapshot)
    lines = "/v1/quotas/producer-ids/users/%0Aa%0Ab%0A"
    assert 200 == (await change(sidecar, "PUT", lines, FIFTY)).status_code
    assert "\na\nb\n" in retained(sidecar.board.snapshot)
    assert 200 == (await change(sidecar, "DELETE", lines)).status_code
    long = "/v1/quotas/producer-ids/users/" + "x" * (LONGEST_USER + 1)
    assert 422 == (await change(sidecar, "PUT", long, FIFTY)).status_code


async def test_a_principal_is_not_taken_for_a_users_name(sidecar: FakeSidecar) -> None:
    """Nobody has that name, and nobody would be throttled by that quota."""
    answer = await change(sidecar, "PUT", "/v1/quotas/producer-ids/users/User:alice", FIFTY)
    assert 422 == answer.status_code
    assert "path.user" == answer.json()["errors"][0]["field"]
    assert 'is a user\'s name without "User:"' == answer.json()["errors"][0]["problem"]
    assert not sidecar.board.snapshot.memory.retained


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"producer_ids_rate": 0}, "must be a number of 1e-06 to 1e+12, or"),
        ({"producer_ids_rate": "50"}, "must be a number of 1e-06 to 1e+12, or"),
        ({"producer_ids_rate": 10**400}, "must be a number of 1e-06 to 1e+12, or"),
        ({"producer_ids_rate": 1e308}, "must be a number of 1e-06 to 1e+12, or"),
        ({"producer_ids_rate": 5e-324}, "must be a number of 1e-06 to 1e+12, or"),
        ({"throttled_request_percentage": 1}, "Field required"),
        ({**FIFTY, "hunter2": 1}, "not one of producer_ids_rate and throttled_request_percentage"),
        ({**FIFTY, "throttled_request_percentage": -1}, "greater than or equal to 0.00001"),
        ([], "Input should be"),
    ],
)
async def test_a_wrong_quota_changes_nothing(
    sidecar: FakeSidecar, body: object, message: str
) -> None:
    """The answer says what is wrong, without the value that was sent."""
    answer = await change(sidecar, "PUT", ALICE, body)
    assert 422 == answer.status_code
    assert message in answer.text
    assert "hunter2" not in answer.text
    assert not sidecar.board.snapshot.memory.retained


async def test_a_disabled_sidecar_takes_no_quota() -> None:
    """Nobody would be throttled."""
    disabled = FakeSidecar(factors=None)
    assert 409 == (await change(disabled, "PUT", ALICE, FIFTY)).status_code


async def test_other_sidecars_get_what_this_broker_allocated(sidecar: FakeSidecar) -> None:
    """They get it from their position on."""
    path = "/v1/producer-ids/allocated"
    begin = (await sidecar.get(path)).json()
    assert (0, []) == (begin["lost"], begin["ids"])
    sidecar.ids.allocated.add("bob", 7)
    sidecar.ids.allocated.add(None, 8, wrote=True)
    page = (await sidecar.get(f"{path}?after={begin['next']}")).json()
    assert [
        {"user": "bob", "producer_id": 7, "wrote": False},
        {"user": None, "producer_id": 8, "wrote": True},
    ] == page["ids"]
    assert f"{sidecar.board.start_id}-2" == page["next"]
    assert page == (await sidecar.get(f"{path}?last_s=60")).json()
    for bad in ("after=" + "9" * 101, "last_s=-1", "last_s=nan", "last_s=inf"):
        assert 422 == (await sidecar.get(f"{path}?{bad}")).status_code


@VIRTUAL_TIME
async def test_who_prefers_to_wait_gets_the_next_id_when_it_comes(sidecar: FakeSidecar) -> None:
    """Or nothing after the wait, or when the factor changes; of what is there already, at once."""
    path, log = "/v1/producer-ids/allocated", sidecar.ids.allocated
    now = asyncio.get_running_loop().time

    async def waits(after: str) -> tuple[float, int]:
        began = now()
        async with sidecar.client() as client:
            page = await client.get(f"{path}?after={after}", headers={"Prefer": "wait=10"})
        return round(now() - began, 1), len(page.json()["ids"])

    begin = (await sidecar.get(path)).json()["next"]
    assert (10.0, 0) == await waits(begin)
    asyncio.get_running_loop().call_later(3.0, log.add, "bob", 7)
    assert (3.0, 1) == await waits(begin)
    assert (0.0, 1) == await waits(begin)
    override = Override(0.5, "a drill", sidecar.board.now(), sidecar.board.now() + 60.0)
    asyncio.get_running_loop().call_later(2.0, sidecar.board.set_override, override)
    assert (2.0, 0) == await waits(log.page(begin).next)


async def test_what_cannot_be_read_of_ids_that_write_is_reported(sidecar: FakeSidecar) -> None:
    """It is before the first scan, when all or a part is read, and when nobody can be asked."""
    scene = WatchScene()
    parts = dataclasses.replace(sidecar.ids, active=scene.watch, counts="active")
    shown = FakeSidecar(ids=parts)

    async def message() -> tuple[Any, ...]:
        document = (await shown.get("/v1/producer-ids")).json()
        assert "active" == document["counts"]
        active = document["active"]
        return tuple(
            active[name] for name in ("is_complete", "failure", "partitions", "partitions_not_read")
        )

    assert (False, None, 0, 0) == await message()
    await scene.see((7, 0))
    await scene.see((7, 1), (8, 0))
    assert (True, None, 1, 0) == await message()
    document = (await shown.get("/v1/producer-ids")).json()["active"]
    assert (2, 2, 0) == (document["producers"], document["active"], document["unknown_owner"])
    scene.source.failures = {CLICKS: REFUSED}
    scene.source.skipped = 3
    await scene.watch.scan()
    assert (False, REFUSED.message, 1, 4) == await message()
    scene.source.failure = SILENT
    await scene.watch.scan()
    assert (False, SILENT.message, 0, 0) == await message()
    scene.watch.is_scanning = False
    document = (await shown.get("/v1/producer-ids")).json()["active"]
    assert (False, True) == (document["is_scanning"], document["is_complete"])
