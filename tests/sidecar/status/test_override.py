"""The page's form that sets and ends an override: asked twice, with the token, from here alone."""

import re
import shlex
from html import unescape

import httpx
import pytest

from sidecar.cli.override import set_override
from sidecar.cli.sidecar_client import parse_address
from sidecar.control.board import Snapshot
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Override
from sidecar.throttle.readers import Refusals
from sidecar.throttle.slope import SlopeRules
from tests.sidecar.api.build import FACTORS, TOKEN, FakeSidecar
from tests.sidecar.throttle.build import reading, whole, with_rules

ASKED = {"factor": "1", "duration": "PT1H", "reason": "a migration"}
CONFIRMED = {**ASKED, "token": TOKEN}
SECRET = "hunter2"


def throttled() -> FakeSidecar:
    """A sidecar with a volume at its limit."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 5, "/d2": 50})]))
    sidecar.read_by(7)
    return sidecar


async def send(
    sidecar: FakeSidecar, path: str, fields: dict[str, str], **headers: str
) -> tuple[httpx.Response, Snapshot]:
    """Sends a form; also returns what was published before it."""
    before = sidecar.board.snapshot
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with sidecar.client() as client:
        return await client.post(path, data=fields, headers=named), before


async def test_asking_changes_nothing() -> None:
    """The second step says what it would do: its effect, its end, what it ignores."""
    sidecar = throttled()
    response, before = await send(sidecar, "/override/confirm", ASKED)
    text = unescape(response.text)
    assert 200 == response.status_code
    assert "For 60 min, until 23:13:20 UTC: nobody is throttled." in text
    assert "It ignores that /d1 of broker 1 has 5 B left, the limit is 10 B, " in text
    assert "while producers are throttled. Released producers will fill it." in text
    assert "It applies at once on broker 7, which reads this sidecar." in text
    assert "override set 1 --reason 'a migration' --for PT1H" in text
    assert before is sidecar.board.snapshot


async def test_a_volume_that_is_not_read_now() -> None:
    """Of a fenced broker nobody knows what it has left now."""
    sidecar = throttled()
    sidecar.see(whole(9.0, [reading(2, 9.0, {"/d1": 50})], fenced=[1]))
    text = unescape((await send(sidecar, "/override/confirm", ASKED))[0].text)
    was = "/d1 of broker 1 had 5 B left when last read, and the broker is fenced"
    assert f"It ignores that {was}, the limit is 10 B" in text


def with_peers(*urls: str) -> FakeSidecar:
    """A sidecar that knows others; without addresses, none."""
    return FakeSidecar(peers=urls)


@pytest.mark.parametrize(
    ("peers", "expected"),
    [
        (
            ("http://b2:7070", "https://b3/sidecar", "http://sidecar"),
            "--sidecars http://sidecar,http://b2:7070,https://b3/sidecar --token-file FILE",
        ),
        ((), "--sidecars HOST:PORT,HOST:PORT --token-file FILE"),
    ],
    ids=["peers", "none known"],
)
async def test_the_command_for_all_sidecars(peers: tuple[str, ...], expected: str) -> None:
    """It has this one as it was reached and its peers, or says what is to be filled in."""
    sidecar = with_peers(*peers)
    asked, _ = await send(sidecar, "/override/confirm", ASKED)
    for response in (asked, await sidecar.get("/override/end")):
        text = unescape(response.text)
        assert f"{expected}</code>" in text
        assert "the token's file for FILE:" in text
        assert ("their addresses for HOST:PORT" in text) == (not peers)


async def test_the_command_for_all_sidecars_is_one_that_the_command_line_takes() -> None:
    """It is read as a shell reads it."""
    response, _ = await send(with_peers("http://b2:7070"), "/override/confirm", ASKED)
    found = re.search("<code>throttle-sidecar (override set .*)</code>", response.text)
    assert found is not None
    words = shlex.split(unescape(found[1]))
    sidecars = words[words.index("--sidecars") + 1].split(",")
    assert ["http://sidecar:80", "http://b2:7070"] == [str(parse_address(it)) for it in sidecars]
    with set_override.make_context("set", words[2:]) as context:
        assert 1.0 == context.params["factor"]
        assert "a migration" == context.params["reason"]


async def test_confirming_sets_it() -> None:
    """It is in force and on disk, and the browser is sent back to the page."""
    sidecar = throttled()
    response, _ = await send(sidecar, "/override", CONFIRMED, Sec_Fetch_Site="same-origin")
    assert (303, "/") == (response.status_code, response.headers["location"])
    expected = Override(1.0, "a migration", 0.0, 3600.0, "the bearer token from 127.0.0.1")
    assert expected == sidecar.board.snapshot.decision.override
    assert [sidecar.board.snapshot] == sidecar.disk.written


async def test_ending_it() -> None:
    """What is in force then is shown first; then it has ended."""
    sidecar = throttled()
    await send(sidecar, "/override", CONFIRMED)
    asked = unescape((await sidecar.get("/override/end")).text)
    assert "/d1 of broker 1 has 5 B left" in asked
    response, _ = await send(sidecar, "/override/end", {"token": TOKEN})
    assert 303 == response.status_code
    assert sidecar.board.snapshot.decision.override is None


async def test_it_lifts_a_stop_which_is_in_force_again_after_its_end() -> None:
    """Both steps say so, and nothing of it where nothing is stopped."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, stop_line=MinAvailableBytes(5)))
    sidecar.read_by(1, Refusals())
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 5})]))
    asked, _ = await send(sidecar, "/override/confirm", {**ASKED, "factor": "0"})
    assert "Brokers no longer refuse producers, although the stop line is reached." in unescape(
        asked.text
    )
    sidecar.board.set_override(Override(0.0, "by hand", 0.0, 60.0))
    ending = unescape((await sidecar.get("/override/end")).text)
    assert "instead. Producers are refused: /d1 of broker 1 has 5 B left" in ending
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 6})]))
    asked, _ = await send(sidecar, "/override/confirm", {**ASKED, "factor": "0"})
    assert "Brokers no longer refuse producers, although the stop line is reached." not in unescape(
        asked.text
    )
    ending = unescape((await sidecar.get("/override/end")).text)
    assert "instead. Producers are throttled: /d1" in ending


@pytest.mark.parametrize(
    ("free", "seen", "expected"),
    [
        (50, True, "Nobody is throttled: every volume has more than "),
        (
            50,
            False,
            "Producers are slowed to 50 % of their quotas, by the fallback: no volume has ",
        ),
    ],
)
async def test_what_is_in_force_after_its_end(free: int, seen: bool, expected: str) -> None:
    """It is the computed factor, or the fallback."""
    sidecar = FakeSidecar()
    sidecar.read_by(7)
    if seen:
        sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": free})]))
    await send(sidecar, "/override", CONFIRMED)
    assert f"This applies at once instead. {expected}" in unescape(
        (await sidecar.get("/override/end")).text
    )


async def test_a_slope_is_in_force_after_its_end() -> None:
    """No volume violates the limit, and yet producers are slowed."""
    sidecar = FakeSidecar(factors=with_rules(FACTORS, slope=SlopeRules(MinAvailableBytes(40))))
    sidecar.read_by(7)
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 41})]))
    sidecar.see(whole(60.0, [reading(1, 60.0, {"/d1": 20})]))
    factor = sidecar.board.snapshot.decision.factor
    assert 0.0 < factor < 1.0
    await send(sidecar, "/override", CONFIRMED)
    ending = unescape((await sidecar.get("/override/end")).text)
    slowed = f"Producers are slowed to {100 * factor:.4g} % of their previous rate: broker 1 /d1"
    assert f"This applies at once instead. {slowed}" in ending
    await send(sidecar, "/override/end", {"token": TOKEN})
    assert factor == sidecar.board.snapshot.decision.factor


async def test_there_is_nothing_to_end() -> None:
    """The page says so; ending nothing is no error."""
    sidecar = throttled()
    assert "There is no override now." in (await sidecar.get("/override/end")).text
    response, before = await send(sidecar, "/override/end", {"token": TOKEN})
    assert 303 == response.status_code
    assert before.decision == sidecar.board.snapshot.decision


@pytest.mark.parametrize("token", ["", SECRET, TOKEN + "x", "ä"])
@pytest.mark.parametrize("path", ["/override", "/override/end"])
async def test_a_wrong_token(path: str, token: str) -> None:
    """Nothing is changed, the step can be repeated, and what was typed is not shown again."""
    sidecar = throttled()
    response, before = await send(sidecar, path, {**ASKED, "token": token})
    assert 401 == response.status_code
    assert "That is not the token" in response.text
    assert 'type="password"' in response.text
    assert SECRET not in response.text
    assert before is sidecar.board.snapshot


@pytest.mark.parametrize("path", ["/override", "/override/end"])
async def test_no_token_is_configured(path: str) -> None:
    """Nobody may set one, not even with an empty token."""
    sidecar = throttled()
    sidecar.takes(None)
    response, before = await send(sidecar, path, {**ASKED, "token": ""})
    assert 403 == response.status_code
    assert "SIDECAR_TOKEN_FILE" in response.text
    assert before is sidecar.board.snapshot


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/override", {"Sec_Fetch_Site": "cross-site"}),
        ("/override/confirm", {"Sec_Fetch_Site": "cross-site"}),
        ("/override/end", {"Sec_Fetch_Site": "cross-site"}),
        ("/override", {"Sec_Fetch_Site": "same-site"}),
        ("/override", {"Sec_Fetch_Site": "cross-site", "Origin": "http://sidecar"}),
        ("/override", {"Origin": "http://elsewhere"}),
        ("/override", {"Origin": "http://sidecar:81"}),
        ("/override", {"Origin": "http://sidecar.elsewhere"}),
        ("/override", {"Origin": "null"}),
        ("/override/confirm", {"Origin": "http://[::1"}),
    ],
)
async def test_another_sites_form(path: str, headers: dict[str, str]) -> None:
    """It is refused, even with the right token."""
    sidecar = throttled()
    response, before = await send(sidecar, path, CONFIRMED, **headers)
    assert 403 == response.status_code
    assert "another site" in response.text
    assert before is sidecar.board.snapshot


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec_Fetch_Site": "none"},
        {"Origin": "http://sidecar"},
        {"Origin": "https://sidecar"},
    ],
)
async def test_the_sidecars_own_form(headers: dict[str, str]) -> None:
    """It works behind a proxy that speaks TLS, and from who is no browser."""
    response, _ = await send(throttled(), "/override", CONFIRMED, **headers)
    assert 303 == response.status_code


@pytest.mark.parametrize(
    ("path", "wrong", "said"),
    [
        ("/override", {"factor": "2"}, "Factor: "),
        ("/override", {"factor": "one"}, "The factor must be"),
        ("/override", {"duration": "P5M"}, "Duration: "),
        ("/override", {"reason": " "}, "Reason: "),
        ("/override/confirm", {"factor": "nan"}, "Factor: "),
        ("/override/confirm", {"duration": "P40D"}, "Duration: "),
        ("/override/confirm", {"reason": "a\nb"}, "Reason: "),
        ("/override/confirm", {"reason": "x" * 501}, "Reason: "),
    ],
)
async def test_what_is_typed_wrong(path: str, wrong: dict[str, str], said: str) -> None:
    """The form comes again and says which field; the API's own rules apply."""
    sidecar = throttled()
    response, before = await send(sidecar, path, {**CONFIRMED, **wrong})
    assert 422 == response.status_code
    assert said in unescape(response.text)
    assert TOKEN not in response.text
    assert before is sidecar.board.snapshot


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"{}", "application/json", 415),
        (b"factor=%ff", "application/x-www-form-urlencoded", 422),
        (b"factor=\xff", "application/x-www-form-urlencoded", 422),
        (b"&".join(b"a=1" for _ in range(11)), "application/x-www-form-urlencoded", 422),
        (b"", "application/x-www-form-urlencoded", 422),
    ],
)
async def test_what_is_no_form(body: bytes, media_type: str, status: int) -> None:
    """It is refused as such."""
    sidecar = throttled()
    async with sidecar.client() as client:
        headers = {"Content-Type": media_type}
        response = await client.post("/override", content=body, headers=headers)
    assert status == response.status_code


async def test_while_disabled() -> None:
    """Nothing is throttled then, so nothing is set: 409, as the API says."""
    response, _ = await send(FakeSidecar(factors=None), "/override", CONFIRMED)
    assert 409 == response.status_code
    assert "PT0S" in response.text


async def test_an_override_that_slows() -> None:
    """It says the part of the quotas, what that means without one, and names the one before."""
    sidecar = throttled()
    await send(sidecar, "/override", CONFIRMED)
    response, _ = await send(sidecar, "/override/confirm", {**ASKED, "factor": "0.25"})
    text = unescape(response.text)
    assert "slowed to 25 %" in text
    assert "It replaces the current override: nobody is throttled, “a migration”." in text


async def test_one_who_follows_is_named() -> None:
    """The page says on which brokers it is in force."""
    sidecar = FakeSidecar()
    await sidecar.get(
        "/v1/quota-factors", Throttle_Reader="broker=7; emergency=false; throttled_clients=0"
    )
    response, _ = await send(sidecar, "/override/confirm", {**ASKED, "factor": "0"})
    text = unescape(response.text)
    assert "It applies at once on broker 7, which reads this sidecar." in text
    assert "Every producer waits, however full the volumes are" in text
