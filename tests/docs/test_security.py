"""The promises of docs/security.md: what listens, what needs the token, where secrets show."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from sidecar.cli import group
from sidecar.settings import describe, keys
from tests.docs.markdown import plain, tables
from tests.sidecar.api.build import BEARER, TOKEN, FakeSidecar
from tests.sidecar.settings.support import GOOD
from tests.sidecar.throttle.build import reading, whole
from tests.support.daemon import Daemon, started
from tests.support.examples import mostly_slow

PAGE = "security"
LISTENING, _, CHANGES, _, SECRETS = tables(PAGE)
SECRET = "hunter2-never-shown"
DISABLED = {"SIDECAR_STORAGE_CHECK_INTERVAL": "PT0S"}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/override": {"factor": 0.0, "reason": "stolen", "duration": "PT1H"},
    "/v1/quotas/producer-ids/default": {"producer_ids_rate": 1},
    "/v1/quotas/producer-ids/users/{user}": {"producer_ids_rate": 1},
}


def listening(daemon: Daemon) -> set[str]:
    """The TCP addresses, host:port, on which a process listens."""
    pid = daemon.pid
    found = set()
    sockets = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        # What was open a moment ago may be closed.
        with contextlib.suppress(FileNotFoundError):
            sockets.add(str(path.readlink()))
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
            local, state, inode = (line.split()[number] for number in (1, 3, 9))
            if state == "0A" and f"socket:[{inode}]" in sockets:
                address, _, port = local.partition(":")
                host = ".".join(map(str, reversed(bytes.fromhex(address)[:4])))
                found.add(f"{host}:{int(port, 16)}")
    return found


def test_the_defaults_are_as_documented() -> None:
    """The sidecar listens on one address, the loopback's."""
    defaults = {row.environment: row.default for row in describe()}
    reported = {row["setting"]: row["default"] for row in LISTENING.rows}
    assert {name: defaults[name] for name in defaults if name.endswith("_LISTEN")} == reported


@pytest.mark.slow
async def test_nothing_else_listens(tmp_path: Path) -> None:
    """A running daemon listens on the address that it says, and on no other."""
    async with started(tmp_path, DISABLED) as daemon:
        assert {daemon.address} == listening(daemon)


@pytest.mark.slow
async def test_the_metrics_address_serves_nothing_else(tmp_path: Path) -> None:
    """No factor can be read there and no change made, and the API has no metrics then."""
    async with started(tmp_path, DISABLED | {"SIDECAR_METRICS_LISTEN": "127.0.0.1:0"}) as daemon:
        api, metrics = daemon.urls
        assert {each.removeprefix("http://") for each in daemon.urls} == listening(daemon)
        assert [200, 404] == [
            (await daemon.ask(api + each)).status_code for each in ("/v1/volumes", "/metrics")
        ]
        served = ["/metrics", "/healthz", "/readyz"]
        for path in [*served, "/", "/v1/throttle-factor", "/v1/override", "/docs", "/openapi.json"]:
            assert (200 if path in served else 404) == (
                await daemon.ask(metrics + path)
            ).status_code, path
        shown = (await daemon.ask(f"{metrics}/metrics")).text
        assert "\nkafka_throttle_factor 1.0\n" in shown


def changing() -> dict[str, list[str]]:
    """What is no GET by the API's own document: request -> what security that states."""
    app = FakeSidecar(registry=CollectorRegistry()).app
    return {
        f"{method.upper()} {plain(path)}": [
            key for each in said.get("security", []) for key in each
        ]
        for path, operations in app.openapi()["paths"].items()
        for method, said in operations.items()
        if method != "get"
    }


@pytest.mark.slow
def test_every_request_that_changes_is_reported() -> None:
    """The report says whether it needs the token."""
    reported = {row["request"].strip("`"): row["token"] for row in CHANGES.rows}
    assert {request: "yes" if needs else "no" for request, needs in changing().items()} == reported


GUARDED = [row["request"].strip("`") for row in CHANGES.rows if row["token"] == "yes"]


@pytest.mark.parametrize("request_line", mostly_slow(GUARDED, 3))
@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        (None, BEARER, 403),
        (TOKEN, {}, 401),
        (TOKEN, {"Authorization": f"Bearer {TOKEN}x"}, 401),
        (TOKEN, {"Authorization": f"Basic {TOKEN}"}, 401),
    ],
)
async def test_a_change_without_the_token(
    request_line: str, token: str | None, headers: dict[str, str], status: int
) -> None:
    """It is refused, and nothing is other than before; with the token it is not refused so."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 5})], silent=[2]))
    method, path = request_line.split()
    url = path.replace("{id}", "2").replace("{user}", "bob")
    body = BODIES.get(path) if method == "PUT" else None
    before = sidecar.board.snapshot
    sidecar.takes(token)
    async with sidecar.client() as client:
        answer = await client.request(method, url, json=body, headers=headers)
        assert (status, before) == (answer.status_code, sidecar.board.snapshot)
        sidecar.takes(TOKEN)
        answer = await client.request(method, url, json=body, headers=BEARER)
        assert answer.status_code not in {401, 403}


@pytest.mark.slow
async def test_no_answer_allows_another_origin() -> None:
    """No answer has a CORS header, also to who asks for one, or the token."""
    sidecar = FakeSidecar(registry=CollectorRegistry())
    paths = [path for path, known in sidecar.app.openapi()["paths"].items() if "get" in known]
    assert 10 < len(paths)
    asking = {**BEARER, "Origin": "https://elsewhere", "Access-Control-Request-Method": "PUT"}
    async with sidecar.client() as client:
        for path in [*paths, "/docs", "/openapi.json"]:
            for method in ("GET", "OPTIONS"):
                answer = await client.request(method, path, headers=asking)
                reported = f"{answer.headers} {answer.text}".lower()
                assert "access-control" not in reported
                assert TOKEN not in reported


def test_the_secrets_are_as_documented() -> None:
    """The page names the settings' secrets; whatever is named instead of one exists."""
    secret = {
        keys.environment_key(name) for name, about in keys.FIELDS.items() if about.form.is_secret
    }
    assert secret == {row["setting"] for row in SECRETS.rows}
    instead = {row["instead, a file"] for row in SECRETS.rows} - {""}
    assert instead <= {row.environment for row in describe()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [row["setting"] for row in SECRETS.rows])
@pytest.mark.parametrize("args", [(), ("--json",)])
def test_a_secret_is_never_printed(name: str, args: tuple[str, ...]) -> None:
    """The settings command prints none, whether it can be used or is refused."""
    result = CliRunner().invoke(group, ["settings", *args], env=GOOD | {name: SECRET})
    assert "" != result.output
    assert SECRET not in result.output
