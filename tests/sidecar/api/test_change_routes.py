"""What overrides and forgetting do, who may, and that nothing else changes the board."""

import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from sidecar.control.board import Board, PersistedState, Snapshot
from sidecar.control.journal import log_publication
from sidecar.control.persistence import Persistence
from sidecar.throttle.decision import Source
from sidecar.throttle.memory import Memory, Override
from tests.sidecar.api.build import BEARER, FACTORS, TOKEN, FakeSidecar, assert_problem
from tests.sidecar.throttle.build import reading, whole

URL = "/v1/override"
GOOD = {"factor": 0.25, "reason": "a migration", "duration": "PT8H"}
BODY = b'{"factor": 0, "reason": "x", "duration": "PT1H"}'
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def sidecar() -> FakeSidecar:
    """A sidecar for all refusals of this module: after each it is as it was."""
    return overridden()


async def send(
    sidecar: FakeSidecar, method: str, url: str, **more: object
) -> tuple[httpx.Response, Snapshot]:
    """Sends one request with the token; also returns what was published before it."""
    before = sidecar.board.snapshot
    options = {"headers": BEARER, **more}
    async with sidecar.client() as client:
        response = await client.request(method, url, **options)  # type: ignore[arg-type] # any option
    return response, before


async def test_an_override_is_set_and_persisted() -> None:
    """It is in force when the answer comes, on disk, and says until when."""
    sidecar = FakeSidecar()
    sidecar.clock.now = 60.0
    response, _ = await send(sidecar, "PUT", URL, json=GOOD)
    shown = {
        "factor": 0.25,
        "reason": "a migration",
        "by": "the bearer token from 127.0.0.1",
        "set_at": "2023-11-14T22:14:20.000Z",
        "until": "2023-11-15T06:14:20.000Z",
    }
    assert response.status_code == 200
    assert response.json() == {"override": shown, "persisted": True, "state_file": "written"}
    assert sidecar.board.snapshot.decision.factor == 0.25
    assert [sidecar.board.snapshot] == sidecar.disk.written
    assert (await sidecar.get(URL)).json() == {"override": shown}


async def test_an_override_without_a_state_file() -> None:
    """It is in force, and the answer says that a restart forgets it."""
    sidecar = FakeSidecar()
    sidecar.disk.there = Persistence.NONE
    response, _ = await send(sidecar, "PUT", URL, json=GOOD)
    assert (response.json()["persisted"], response.json()["state_file"]) == (False, "none")


@pytest.mark.parametrize("stored", [Persistence.PENDING, Persistence.FAILED])
async def test_a_change_that_is_not_on_disk(stored: Persistence) -> None:
    """It applies all the same, and the answer states what the disk does."""
    sidecar = overridden()
    sidecar.disk.there = stored
    for method, url, body in (
        ("DELETE", "/v1/brokers/1", None),
        ("PUT", URL, GOOD),
        ("DELETE", URL, None),
    ):
        response, _ = await send(sidecar, method, url, json=body)
        answer = response.json()
        assert response.status_code == 200
        assert (answer["persisted"], answer["state_file"]) == (False, stored.value)
        factor = answer["override"]["factor"] if method == "PUT" else answer["factor"]
        assert factor == sidecar.board.snapshot.decision.factor


@pytest.mark.parametrize("duration", ["PT10S", "10s"])
async def test_an_override_ends_by_itself(duration: str) -> None:
    """After its duration the board decides without it, and the API has none."""
    sidecar = FakeSidecar()
    await send(sidecar, "PUT", URL, json={**GOOD, "duration": duration})
    sidecar.clock.now = 10.0
    sidecar.board.update(lambda memory: memory)
    assert sidecar.board.snapshot.decision.factor == 0.25
    sidecar.clock.now = 10.1
    sidecar.board.update(lambda memory: memory)
    assert sidecar.board.snapshot.decision.factor == 0.5
    assert (await sidecar.get(URL)).json() == {"override": None}
    response, _ = await send(sidecar, "DELETE", URL)
    assert response.json()["cleared"] is False
    assert sidecar.board.snapshot.memory.override is None


async def test_an_override_replaces_another() -> None:
    """The newest rules."""
    sidecar = FakeSidecar()
    await send(sidecar, "PUT", URL, json=GOOD)
    await send(sidecar, "PUT", URL, json={**GOOD, "factor": 1, "reason": "done"})
    decision = sidecar.board.snapshot.decision
    assert (1.0, "set by an operator (the bearer token from 127.0.0.1): done") == (
        decision.factor,
        decision.reason,
    )


async def test_clearing_an_override() -> None:
    """The computed factor or the fallback is in force at once; a second time there is none."""
    sidecar = FakeSidecar()
    await send(sidecar, "PUT", URL, json=GOOD)
    first, _ = await send(sidecar, "DELETE", URL)
    second, before = await send(sidecar, "DELETE", URL)
    done = {"persisted": True, "state_file": "written", "factor": 0.5}
    assert first.json() == {"cleared": True, **done}
    assert second.json() == {"cleared": False, **done}
    assert sidecar.board.snapshot is before
    assert sidecar.disk.written[-1].decision.override is None


@pytest.mark.parametrize(
    ("factor", "expected"), [("0", 0.0), ("1", 1.0), ("0.0", 0.0), ("1e-3", 0.001), ("-0.0", 0.0)]
)
async def test_factors_at_the_edges(factor: str, expected: float) -> None:
    """0 and 1 belong to the range, and minus zero is zero."""
    sidecar = FakeSidecar()
    body = f'{{"factor": {factor}, "reason": "edge", "duration": "P30D"}}'
    response, _ = await send(sidecar, "PUT", URL, content=body, headers={**BEARER, **JSON})
    assert response.status_code == 200
    assert str(expected) == str(sidecar.board.snapshot.decision.factor)


async def test_months_are_asked_about(sidecar: FakeSidecar) -> None:
    """Whoever writes P5M means minutes."""
    response, _ = await send(sidecar, "PUT", URL, json={**GOOD, "duration": "P5M"})
    assert "P5M is five months, PT5M five minutes" in response.text


SECRET_INPUT = "hunter2"


def fields_of(response: httpx.Response) -> list[str]:
    """The fields that a refusal names."""
    errors = assert_problem(response, 422)["errors"]
    assert isinstance(errors, list)
    return [error["field"] for error in errors]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"factor": true, "reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"factor": "0.5", "reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"factor": null, "reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"factor": NaN, "reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"factor": Infinity, "reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"factor": -Infinity, "reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"factor": 1e400, "reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"factor": 1.001, "reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"factor": -0.001, "reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"reason": "hunter2", "duration": "PT1H"}', "body.factor"),
        ('{"factor": 1, "duration": "PT1H"}', "body.reason"),
        ('{"factor": 1, "reason": "", "duration": "PT1H"}', "body.reason"),
        ('{"factor": 1, "reason": "  ", "duration": "PT1H"}', "body.reason"),
        ('{"factor": 1, "reason": 7, "duration": "PT1H"}', "body.reason"),
        ('{"factor": 1, "reason": "hunter2\\n", "duration": "PT1H"}', "body.reason"),
        ('{"factor": 1, "reason": "a\\u001b[2Jhunter2", "duration": "PT1H"}', "body.reason"),
        ('{"factor": 1, "reason": "a\\u0085hunter2", "duration": "PT1H"}', "body.reason"),
        ('{"factor": 1, "reason": "a\\u2028hunter2", "duration": "PT1H"}', "body.reason"),
        ('{"factor": 1, "reason": "' + "hunter2" * 72 + '", "duration": "PT1H"}', "body.reason"),
        ('{"factor": 1, "reason": "hunter2"}', "body.duration"),
        ('{"factor": 1, "reason": "hunter2", "duration": 3600}', "body.duration"),
        ('{"factor": 1, "reason": "hunter2", "duration": "PT0S"}', "body.duration"),
        ('{"factor": 1, "reason": "hunter2", "duration": "P5M"}', "body.duration"),
        ('{"factor": 1, "reason": "x", "duration": "hunter2"}', "body.duration"),
        ('{"factor": 1, "reason": "hunter2", "duration": "PT1H\\n"}', "body.duration"),
        ('{"factor": 1, "reason": "hunter2", "duration": "-PT1H"}', "body.duration"),
        ('{"factor": 1, "reason": "hunter2", "duration": "P30DT1S"}', "body.duration"),
        ('{"factor": 1, "reason": "x", "duration": "PT1H", "hunter2": 1}', "body"),
        ("[1]", "body"),
        ('"hunter2"', "body"),
        ("", "body"),
        ("{hunter2}", "body"),
        ('{"factor": 1, "reason": "\\ud800", "duration": "PT1H"}', "body"),
        ("[" * 60_000, "body"),
    ],
)
async def test_input_that_is_refused(sidecar: FakeSidecar, body: str, field: str) -> None:
    """422 names the field, repeats nothing of the input, and changes nothing."""
    response, before = await send(sidecar, "PUT", URL, content=body, headers={**BEARER, **JSON})
    assert [field] == fields_of(response)
    assert SECRET_INPUT not in response.text
    assert sidecar.board.snapshot is before
    assert [] == sidecar.disk.written


async def test_every_bad_field_is_listed() -> None:
    """The first is not the only one."""
    response, _ = await send(FakeSidecar(), "PUT", URL, json={"factor": 2, "reason": ""})
    assert ["body.duration", "body.factor", "body.reason"] == fields_of(response)


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_another_media_type_is_refused(media_type: str) -> None:
    """A form that a browser sends across sites is not JSON, whatever is in it."""
    sidecar = FakeSidecar()
    headers = {**BEARER, "Content-Type": media_type}
    response, before = await send(sidecar, "PUT", URL, content=BODY, headers=headers)
    assert_problem(response, 415)
    assert sidecar.board.snapshot is before


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        pytest.param("Application/JSON; charset=utf-8", BODY, id="charset"),
        pytest.param("application/json", BODY.ljust(65_536), id="64 KiB"),
    ],
)
async def test_json_may_have_a_charset_and_64_kib(media_type: str, body: bytes) -> None:
    """A parameter of the media type changes nothing, and the limit itself may be reached."""
    headers = {**BEARER, "Content-Type": media_type}
    response, _ = await send(FakeSidecar(), "PUT", URL, content=body, headers=headers)
    assert response.status_code == 200


async def test_a_body_over_64_kib() -> None:
    """The answer is 413 before it is read."""
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1000):
            read += 1
            yield b" " * 1024

    sidecar = FakeSidecar()
    headers = {**BEARER, **JSON, "Content-Length": str(1000 * 1024)}
    response, before = await send(sidecar, "PUT", URL, content=body(), headers=headers)
    assert_problem(response, 413)
    assert sidecar.board.snapshot is before
    assert read == 0


@pytest.mark.parametrize(("digits", "expected"), [("0" * 5000, 401), ("9" * 5000, 413)])
async def test_a_length_of_thousands_of_digits(digits: str, expected: int) -> None:
    """Python's int() refuses them, and an exception would be a traceback in the log."""
    headers = {**JSON, "Content-Length": digits}
    response, _ = await send(FakeSidecar(), "PUT", URL, content=b"", headers=headers)
    assert_problem(response, expected)


CHANGES = [
    ("PUT", URL),
    ("DELETE", URL),
    ("DELETE", "/v1/brokers/1"),
    ("DELETE", "/v1/brokers/x"),
    ("DELETE", "/v1/brokers/1/log-dirs?path=/d"),
]


def overridden() -> FakeSidecar:
    """A sidecar with something to lose: a fenced broker keeps the throttle on."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5}), reading(2, 0.0, {"/d": 50})]))
    sidecar.see(whole(0.0, [reading(2, 0.0, {"/d": 50})], fenced=[1]))
    return sidecar


WRONG = [
    "",
    "Bearer",
    "Bearer ",
    "Bearer wrong-secret",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN}x",
    f"Basic {TOKEN}",
    TOKEN,
]


@pytest.mark.parametrize(
    ("method", "url", "authorization"),
    [*((*change, None) for change in CHANGES), *(("PUT", URL, each) for each in WRONG)],
)
async def test_without_the_token(
    sidecar: FakeSidecar, method: str, url: str, authorization: str | None
) -> None:
    """It is 401 with the challenge; nothing is repeated or changed, whatever else is wrong."""
    headers = {} if authorization is None else {"Authorization": authorization}
    response, before = await send(sidecar, method, url, content=b"\xff", headers=headers)
    assert_problem(response, 401)
    assert response.headers["www-authenticate"].startswith("Bearer ")
    assert TOKEN[:-1] not in response.text
    assert "wrong-secret" not in response.text
    assert sidecar.board.snapshot is before
    assert [] == sidecar.disk.written


async def test_a_token_that_is_not_ascii() -> None:
    """A header's bytes that are no ASCII are a wrong token, not a failure."""
    headers = {"Authorization": b"Bearer t\xc3\xb6ken"}
    sidecar = overridden()
    response, _ = await send(sidecar, "DELETE", URL, headers=headers)
    assert_problem(response, 401)
    sidecar.takes("töken")
    response, _ = await send(sidecar, "DELETE", URL, headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "A change needs the token: Authorization: Bearer TOKEN."),
        (
            {"Authorization": "Bearer another"},
            "is not the one in the file that the sidecar's SIDEC",
        ),
    ],
)
async def test_no_token_and_a_wrong_one_differ(headers: dict[str, str], message: str) -> None:
    """The message says how it is sent, or which one is meant."""
    response, _ = await send(overridden(), "DELETE", URL, headers=headers)
    assert message in str(assert_problem(response, 401)["detail"])


async def test_where_no_token_is_configured() -> None:
    """403 says how to enable changes; tests/docs/test_security.py has it of every change."""
    sidecar = overridden()
    sidecar.takes(None)
    response, _ = await send(sidecar, "DELETE", URL)
    assert "SIDECAR_TOKEN_FILE" in str(assert_problem(response, 403)["detail"])


async def test_a_disabled_sidecar_takes_no_override() -> None:
    """The answer is 409: nothing is throttled, so an override would lie."""
    sidecar = FakeSidecar(factors=None)
    response, before = await send(sidecar, "PUT", URL, json=GOOD)
    message = assert_problem(response, 409)
    assert "PT0S" in str(message["detail"])
    assert sidecar.board.snapshot is before
    assert_problem((await send(sidecar, "DELETE", "/v1/brokers/1"))[0], 404)


async def test_a_sidecar_that_only_observes_takes_no_override() -> None:
    """Likewise, and it says how it would."""
    sidecar = FakeSidecar(factors=replace(FACTORS, is_enforced=False))
    response, before = await send(sidecar, "PUT", URL, json=GOOD)
    message = assert_problem(response, 409)
    assert "SIDECAR_MODE=enforce" in str(message["detail"])
    assert sidecar.board.snapshot is before


async def test_forgetting_a_fenced_broker_releases_its_throttle() -> None:
    """The factor is decided anew in the same step, and is persisted."""
    sidecar = overridden()
    assert sidecar.board.snapshot.decision.factor == 0.0
    response, _ = await send(sidecar, "DELETE", "/v1/brokers/1")
    assert response.json() == {
        "broker_id": 1,
        "log_dirs": ["/d"],
        "persisted": True,
        "state_file": "written",
        "factor": 1.0,
    }
    assert sidecar.board.snapshot.decision.factor == 1.0
    assert [sidecar.board.snapshot] == sidecar.disk.written
    again, before = await send(sidecar, "DELETE", "/v1/brokers/1")
    assert_problem(again, 404)
    assert sidecar.board.snapshot is before


async def test_changes_apply_to_a_state_that_is_read_late() -> None:
    """An override and a reading in it are unknown here until then, and are ended all the same."""
    sidecar = FakeSidecar(board=Board(FACTORS, lambda: 0.0, unread="the disk hangs"))
    sidecar.disk.there = Persistence.PENDING
    sidecar.see(whole(0.0, [reading(2, 0.0, {"/d": 50})], fenced=[1]))
    page = (await sidecar.get("/override/end")).text
    assert "An override in the state file, which is not read yet, ends too." in page
    cleared, _ = await send(sidecar, "DELETE", URL)
    forgotten, _ = await send(sidecar, "DELETE", "/v1/brokers/1")
    log_dir, _ = await send(sidecar, "DELETE", "/v1/brokers/2/log-dirs", params={"path": "/gone"})
    assert (True, "pending") == (cleared.json()["cleared"], cleared.json()["state_file"])
    assert (200, []) == (forgotten.status_code, forgotten.json()["log_dirs"])
    assert (200, []) == (log_dir.status_code, log_dir.json()["log_dirs"])
    full = FACTORS.fold(Memory(), whole(-1.0, [reading(1, -1.0, {"/d": 5})]))
    old = replace(full, override=Override(1.0, "a migration", -9.0, 9e9))
    sidecar.board.take_over(PersistedState(old, 1.0, Source.OVERRIDE, -9.0))
    assert (await sidecar.get(URL)).json() == {"override": None}
    assert [2] == list(sidecar.board.snapshot.memory.brokers)
    operations = [each.operation for each in sidecar.board.changes if each.operation]
    assert "ended the override" == operations[0].what


async def test_an_active_broker_that_answers_is_not_forgotten() -> None:
    """The answer is 409: the next poll would read it again."""
    sidecar = overridden()
    response, before = await send(sidecar, "DELETE", "/v1/brokers/2")
    assert_problem(response, 409)
    assert sidecar.board.snapshot is before


async def test_an_active_broker_that_does_not_answer_is_forgotten() -> None:
    """Its reading is all there is, so the fallback is in force from then on."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})]))
    sidecar.see(whole(0.0, silent=[1]))
    response, _ = await send(sidecar, "DELETE", "/v1/brokers/1")
    assert response.status_code == 200
    assert response.json()["factor"] == 0.5


async def test_an_offline_log_dir_of_a_live_broker_is_forgotten() -> None:
    """Only that; 409 for one that is read, 404 for one of which nothing is remembered."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d 0": 5, "/d1": 50})]))
    url = "/v1/brokers/1/log-dirs"
    response, before = await send(sidecar, "DELETE", url, params={"path": "/d 0"})
    assert_problem(response, 409)
    sidecar.see(whole(1.0, [reading(1, 1.0, {"/d1": 50}, offline=["/d 0"])]))
    assert_problem((await send(sidecar, "DELETE", "/v1/brokers/1"))[0], 409)
    for path, status in (("/d1", 409), ("/d2", 404), ("", 422)):
        response, before = await send(sidecar, "DELETE", url, params={"path": path})
        assert_problem(response, status)
        assert sidecar.board.snapshot is before
    assert_problem((await send(sidecar, "DELETE", url))[0], 422)
    assert_problem((await send(sidecar, "DELETE", "/v1/brokers/2/log-dirs?path=%2Fd"))[0], 404)
    response, _ = await send(sidecar, "DELETE", url, params={"path": "/d 0"})
    assert response.json() == {
        "broker_id": 1,
        "log_dirs": ["/d 0"],
        "persisted": True,
        "state_file": "written",
        "factor": 1.0,
    }
    assert [sidecar.board.snapshot] == sidecar.disk.written


async def test_a_broker_that_answers_without_all_sizes_is_not_forgotten() -> None:
    """It is read again; the log dir without sizes can be forgotten by its path."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50, "/e": 5})]))
    sidecar.see(whole(1.0, [reading(1, 1.0, {"/e": 5}, unreadable=["/d"])]))
    assert_problem((await send(sidecar, "DELETE", "/v1/brokers/1"))[0], 409)
    url = "/v1/brokers/1/log-dirs"
    assert_problem((await send(sidecar, "DELETE", url, params={"path": "/e"}))[0], 409)
    assert 200 == (await send(sidecar, "DELETE", url, params={"path": "/d"}))[0].status_code


@pytest.mark.parametrize("broker_id", ["-1", "2147483648", "x", "1.5", "1_0", "%00", "٣"])
async def test_ids_that_no_broker_can_have(sidecar: FakeSidecar, broker_id: str) -> None:
    """The answer is 422, and the path is not repeated."""
    response, before = await send(sidecar, "DELETE", f"/v1/brokers/{broker_id}")
    assert_problem(response, 422)
    assert "2147483648" not in response.text
    assert sidecar.board.snapshot is before


async def test_each_change_has_who_and_why(caplog: pytest.LogCaptureFixture) -> None:
    """The log, /v1/decisions and the page have them; a forget that releases is visible."""
    sidecar = FakeSidecar(listeners=(log_publication,), user_header="X-Forwarded-User")
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5}), reading(2, 0.0, {"/d": 50})]))
    sidecar.see(whole(1.0, [reading(2, 1.0, {"/d": 50})], fenced=[1]))
    caplog.set_level(logging.WARNING)
    caplog.clear()
    alice = {**BEARER, "X-Forwarded-User": "alice"}
    url = "/v1/brokers/1"
    await send(sidecar, "DELETE", url, params={"reason": "disk is gone"}, headers=alice)
    await send(sidecar, "PUT", URL, json=GOOD)
    await send(sidecar, "DELETE", URL, headers={**BEARER, "X-Forwarded-User": "a\x1bb"})
    by = "the bearer token from 127.0.0.1"
    forgot = "user alice from 127.0.0.1 forgot broker 1 (disk is gone)"
    assert [text for text in caplog.messages if text.startswith("operator: ")] == [
        f"operator: {forgot}; the throttle factor was 0.0 and is 1.0",
        f"operator: {by} set an override to 0.25 for PT8H (a migration);"
        " the throttle factor was 1.0 and is 0.25",
        f"operator: {by} ended the override; the throttle factor was 0.25 and is 1.0",
    ]
    listed = (await sidecar.get("/v1/decisions")).json()
    (changes,) = [each for each in listed.values() if isinstance(each, list)]
    operations = [each["operation"] for each in changes if each["operation"]]
    assert {
        "what": "forgot broker 1",
        "by": "user alice",
        "address": "127.0.0.1",
        "reason": "disk is gone",
    } in operations
    assert len(operations) == 3
    assert f"Operator: {forgot}." in (await sidecar.get("/")).text


@pytest.mark.parametrize("sent", ["Åsa".encode(), "Åsa".encode("latin-1"), "Nicolà".encode()])
async def test_the_name_of_a_user_and_the_factor_are_exact(sent: bytes) -> None:
    """A proxy sends a name in UTF-8 or Latin-1; no digit of a factor is lost.

    The last byte of "à" in UTF-8 is a space in Latin-1.
    """
    sidecar = FakeSidecar(user_header="X-Forwarded-User")
    headers = {**BEARER, "X-Forwarded-User": sent}
    await send(sidecar, "PUT", URL, json={**GOOD, "factor": 0.9999999}, headers=headers)
    (operation,) = [each.operation for each in sidecar.board.changes if each.operation]
    assert operation.by == ("user Nicolà" if sent.startswith(b"N") else "user Åsa")
    assert "set an override to 0.9999999 for PT8H" == operation.what


async def test_the_name_of_a_user_is_cut() -> None:
    """Somebody else writes the header, so its length has a bound."""
    sidecar = FakeSidecar(user_header="X-Forwarded-User")
    await send(sidecar, "PUT", URL, json=GOOD, headers={**BEARER, "X-Forwarded-User": "u" * 5000})
    (operation,) = [each.operation for each in sidecar.board.changes if each.operation]
    assert f"user {'u' * 200}" == operation.by


async def test_a_reason_to_forget_is_one_line() -> None:
    """Otherwise nothing is forgotten."""
    sidecar = overridden()
    for reason in (" ", "a\nb", "x" * 501):
        response, before = await send(sidecar, "DELETE", "/v1/brokers/1", params={"reason": reason})
        assert_problem(response, 422)
        assert sidecar.board.snapshot is before
