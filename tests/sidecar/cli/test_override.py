"""``override``: what it asks of each sidecar, and how it reports their answers."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from tests.support.background import Canned, Reply, reply

TOKEN = "s3cr3t-t0k3n"
UNTIL = "2026-11-21T04:00:00.000Z"


def state(
    factor: float = 1.0, source: str = "observation", override: object = None
) -> dict[str, Reply]:
    """The document that a sidecar in this state shows."""
    return {
        "GET /v1/throttle-factor": reply({"factor": factor, "source": source}),
        "GET /v1/override": reply({"override": override}),
    }


def by_hand(factor: float, reason: str, until: str = UNTIL) -> dict[str, object]:
    return {"factor": factor, "reason": reason, "set_at": UNTIL, "until": until}


@pytest.fixture
def one(canned: Canned) -> Canned:
    return canned


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


def run(*args: object, env: dict[str, str] | None = None) -> Result:
    result = CliRunner().invoke(group, ["override", *map(str, args)], env=env)
    assert TOKEN not in result.output
    return result


SET = ("set", "0.5", "--reason", "a migration", "--for", "30m")


class TestSet:
    def test_every_sidecar_is_asked_and_its_answer_reported(
        self, one: Canned, other: Canned, token_file: Path
    ) -> None:
        """It sends factor, reason and the duration as ISO 8601, and the token."""
        for server, persisted in ((one, True), (other, False)):
            answer = {"override": by_hand(0.5, "a migration"), "persisted": persisted}
            server.answers["PUT /v1/override"] = reply(answer)
        urls = f"{one.address},{other.address}"
        result = run(*SET, "--sidecars", urls, "--token-file", token_file)
        assert 0 == result.exit_code
        message = " ".join(result.output.split())
        assert f"{one.url} factor 0.5 until {UNTIL}: a migration; a restart retains it" in message
        assert f"{other.url} factor 0.5 until {UNTIL}: a migration; a restart forgets it" in message
        for server in (one, other):
            asked, _ = server.asked
            body = {"factor": 0.5, "reason": "a migration", "duration": "PT30M"}
            assert body == json.loads(asked.body)
            assert f"Bearer {TOKEN}" == asked.headers["Authorization"]

    def test_what_of_the_token_is_wrong(self, one: Canned, token_file: Path) -> None:
        """No token or another one is sent: the message is in this command's words."""
        one.answers["PUT /v1/override"] = reply({"detail": "Authorization: Bearer TOKEN."}, 401)
        asked = (*SET, "--sidecars", one.address)
        expected = (
            "a change needs the sidecar's token: name its file by --token-file FILE "
            "or SIDECAR_TOKEN_FILE"
        )
        assert expected in " ".join(run(*asked).output.split())
        expected = (
            "the sidecar has another token than the file of --token-file, or of SIDECAR_TOKEN_FILE"
        )
        message = " ".join(run(*asked, "--token-file", token_file).output.split())
        assert expected in message
        assert "Bearer" not in message

    def test_the_token_file_of_the_environment_is_used(self, one: Canned, token_file: Path) -> None:
        """The sidecar itself has the same one."""
        run(*SET, "--sidecars", one.address, env={"SIDECAR_TOKEN_FILE": str(token_file)})
        assert f"Bearer {TOKEN}" == one.asked[0].headers["Authorization"]

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (("set", "1.1", "--reason", "x", "--for", "PT1M"), "range"),
            (("set", "nan", "--reason", "x", "--for", "PT1M"), "range"),
            (("set", "half", "--reason", "x", "--for", "PT1M"), "not a valid float"),
            (("set", "1", "--reason", " ", "--for", "PT1M"), "text on one line"),
            (("set", "1", "--reason", "a\nb", "--for", "PT1M"), "text on one line"),
            (("set", "1", "--reason", "x", "--for", "P5M"), "was PT5M meant?"),
            (("set", "1", "--reason", "x", "--for", "PT0S"), "longer than 0 s"),
            (("set", "1", "--reason", "x", "--for", "10M"), "may mean minutes or months"),
            (("set", "1", "--reason", "x", "--for", "30"), "write 30s, 30m or 30h"),
            (("set", "1", "--reason", "x"), "Missing option '--for'"),
            (("set", "1", "--for", "PT1M"), "Missing option '--reason'"),
            ((*SET, "--sidecars", ","), "no sidecar is named"),
            ((*SET, "--sidecars", "ftp://b1"), "not host:port"),
        ],
    )
    def test_wrong_use_asks_nobody(self, one: Canned, args: tuple[str, ...], message: str) -> None:
        """The exit code is 2, before any sidecar has changed anything."""
        sidecars = () if "--sidecars" in args else ("--sidecars", one.address)
        result = run(*args, *sidecars)
        assert 2 == result.exit_code
        assert message in " ".join(result.output.split())
        assert [] == one.asked

    def test_a_token_file_that_is_not_there_asks_nobody(self, one: Canned, tmp_path: Path) -> None:
        """The exit code is 2, with one line."""
        result = run(*SET, "--sidecars", one.address, "--token-file", tmp_path / "none")
        assert 2 == result.exit_code
        assert f"the token file {tmp_path / 'none'} can't be read" in result.output
        assert [] == one.asked

    def test_a_token_over_plain_http_to_another_machine_is_warned_of(
        self, token_file: Path
    ) -> None:
        """The warning is on standard error; loopback and https have none."""
        urls = "http://sidecar.invalid:1,https://sidecar.invalid:1,http://127.0.0.1:1"
        result = run(*SET, "--sidecars", urls, "--token-file", token_file)
        warnings = [line for line in result.stderr.splitlines() if "unencrypted" in line]
        assert 1 == len(warnings)
        assert warnings[0].startswith("Warning: the token is sent to http://sidecar.invalid:1 ")

    def test_json(self, one: Canned) -> None:
        """A script reads who, whether, and the sidecar's own answer."""
        answer = {"override": by_hand(0.5, "a migration"), "persisted": True}
        one.answers["PUT /v1/override"] = reply(answer)
        result = run(*SET, "--sidecars", f"{one.address},127.0.0.1:1", "--json")
        assert 1 == result.exit_code
        done, refused = json.loads(result.stdout)["sidecars"]
        assert {"sidecar": one.url, "ok": True, "problem": None, "answer": answer} == done
        assert refused.pop("problem")
        assert {"sidecar": "http://127.0.0.1:1", "ok": False, "answer": None} == refused


def volume(broker_id: int, log_dir: str, left: int, total: int = 100 * 10**6) -> dict[str, object]:
    """A volume at or below the limit, as far as it matters here."""
    return {
        "broker_id": broker_id,
        "log_dir": log_dir,
        "total_bytes": total,
        "available_bytes": left,
        "available_ratio": left / total,
        "limit": None,
    }


def released(
    server: Canned, *violations: object, factor: float = 1.0, cluster_id: str | None = "A"
) -> None:
    """The server takes the override, and has these volumes at or below the limit."""
    answer = {"override": by_hand(factor, "a migration"), "persisted": True}
    server.answers["PUT /v1/override"] = reply(answer)
    document = {"factor": factor, "violations": violations, "cluster_id": cluster_id}
    server.answers["GET /v1/throttle-factor"] = reply(document)


class TestFull:
    """An override that releases producers although volumes are at or below the limit."""

    @pytest.mark.parametrize(
        ("volumes", "expected"),
        [
            (
                [volume(1, "/d\x1b[2J", 0)],
                "1 volume violates the limit: broker 1 /d\\x1b[2J has 0 B left; producers fill it",
            ),
            (
                [volume(2, "/data/d2", 40 * 10**6), volume(1, "/d", 11_100_000)],
                "2 volumes violate the limit: broker 1 /d has 11.1 MB left, broker 2 "
                "/data/d2 has 40.0 MB left; producers fill them",
            ),
            (
                [volume(n, "/d", n * 10**6) for n in range(1, 6)],
                "5 volumes violate the limit: broker 1 /d has 1.0 MB left, broker 2 /d has "
                "2.0 MB left, broker 3 /d has 3.0 MB left and 2 more; producers fill them",
            ),
        ],
    )
    def test_the_volumes_that_fill_on_are_reported(
        self, one: Canned, volumes: list[object], expected: str
    ) -> None:
        """Standard error names the three fullest volumes; the exit code stays 0.

        The name of a log dir drives no terminal.
        """
        released(one, *volumes)
        result = run(*SET, "--sidecars", one.address, "--json")
        assert (0, f"{expected} until {UNTIL}.\n") == (result.exit_code, result.stderr)

    def test_the_sidecars_of_a_cluster_are_one_line(self, one: Canned, other: Canned) -> None:
        """The one that sees most counts, since they do not read at the same moment."""
        released(one, volume(1, "/d", 11_100_000))
        released(other, volume(1, "/d", 11_000_000), volume(2, "/d", 12_000_000))
        message = run(*SET, "--sidecars", f"{one.address},{other.address}").stderr
        assert 1 == len(message.splitlines())
        assert message.startswith("2 volumes violate ")

    def test_another_cluster_has_its_own_line(self, one: Canned, other: Canned) -> None:
        """It has the cluster's id, since both have a broker 1."""
        released(one, volume(1, "/d", 11_100_000))
        released(other, volume(1, "/d", 11_100_000), cluster_id="B")
        message = run(*SET, "--sidecars", f"{one.address},{other.address}").stderr.splitlines()
        assert ["Cluster A: 1 volume", "Cluster B: 1 volume"] == [line[:19] for line in message]

    @pytest.mark.parametrize("violations", [[], None, [{}], [{"broker_id": 1}], "x"])
    def test_nothing_is_reported_of_nothing(self, one: Canned, violations: object) -> None:
        """No volume is that full, or an answer that makes no sense: the override is set."""
        released(one)
        document = {"factor": 1.0, "violations": violations, "cluster_id": "A"}
        one.answers["GET /v1/throttle-factor"] = reply(document)
        result = run(*SET, "--sidecars", one.address)
        assert (0, "") == (result.exit_code, result.stderr)

    def test_factor_0_fills_nothing(self, one: Canned) -> None:
        """The volumes are not even asked for."""
        released(one, volume(1, "/d", 11_100_000), factor=0.0)
        arguments = ("set", "0", "--reason", "stop", "--for", "PT30M", "--sidecars", one.address)
        assert (0, "") == (run(*arguments).exit_code, run(*arguments).stderr)
        assert {"PUT"} == {asked.method for asked in one.asked}

    def test_one_that_refused_is_not_asked(self, one: Canned) -> None:
        """It set nothing."""
        released(one, volume(1, "/d", 11_100_000))
        one.answers["PUT /v1/override"] = reply({"detail": "No."}, 403)
        assert "" == run(*SET, "--sidecars", one.address).stderr
        assert ["PUT"] == [asked.method for asked in one.asked]


class TestWhere:
    """The sidecars that are asked when nobody named them."""

    def test_nobody_there_names_the_option_with_an_example(self) -> None:
        """The sidecar may be on another machine."""
        result = run("show", env={"SIDECAR_HTTP_LISTEN": "127.0.0.1:1"})
        assert 1 == result.exit_code
        expected = (
            "No sidecar answers at http://127.0.0.1:1. Name their addresses: "
            "--sidecars b1:7070,b2:7070,b3:7070\n"
        )
        assert expected == result.stderr

    def test_whoever_named_them_does_not_read_of_the_option(self) -> None:
        """The row says why one does not answer."""
        result = run("show", "--sidecars", "127.0.0.1:1")
        assert (1, "") == (result.exit_code, result.stderr)

    def test_one_that_refuses_is_there(self, one: Canned) -> None:
        """No other is searched for."""
        one.answers["DELETE /v1/override"] = reply({"detail": "No."}, 403)
        result = run("clear", env={"SIDECAR_HTTP_LISTEN": one.address})
        assert (1, "") == (result.exit_code, result.stderr)


@pytest.mark.parametrize(
    ("state_file", "expected"),
    [
        ("pending", "applies; not written to the state file yet"),
        ("failed", "applies; the state file can't be written, so a restart undoes it"),
    ],
)
def test_a_change_that_is_not_on_disk_is_in_force(
    one: Canned, state_file: str, expected: str
) -> None:
    """The exit code is 0, because the sidecar did as requested."""
    stored = {"persisted": False, "state_file": state_file}
    one.answers["PUT /v1/override"] = reply({"override": by_hand(0.5, "a migration"), **stored})
    one.answers["DELETE /v1/override"] = reply({"cleared": True, "factor": 0.0, **stored})
    for asked, done in ((SET, "a migration"), (("clear",), "cleared; the factor is 0.0")):
        result = run(*asked, "--sidecars", one.address)
        assert 0 == result.exit_code
        assert f"{done}; {expected}" in " ".join(result.output.split())


class TestClear:
    def test_it_says_whether_there_was_one_and_what_is_in_force(
        self, one: Canned, other: Canned
    ) -> None:
        """If there was none, it is done too."""
        for server, cleared in ((one, True), (other, False)):
            answer = {"cleared": cleared, "persisted": True, "factor": 0.0}
            server.answers["DELETE /v1/override"] = reply(answer)
        result = run("clear", "--sidecars", f"{one.address},{other.address}")
        assert 0 == result.exit_code
        assert f"{one.url}  cleared; the factor is 0.0" in result.output
        assert f"{other.url}  there was none; the factor is 0.0" in result.output


class TestShow:
    def test_each_one_s_factor_source_and_override(self, one: Canned, token_file: Path) -> None:
        """No token is needed, so none is sent."""
        one.answers |= state(0.5, "override", by_hand(0.5, "a migration"))
        environment = {"SIDECAR_TOKEN_FILE": str(token_file)}
        result = run("show", "--sidecars", one.address, env=environment)
        assert 0 == result.exit_code
        message = " ".join(result.output.split())
        assert f"{one.url} 0.5 override until {UNTIL}: a migration" in message
        assert {False} == {"Authorization" in asked.headers for asked in one.asked}

    def test_that_they_disagree_is_said(self, one: Canned, other: Canned) -> None:
        """An override was set on one of them only."""
        one.answers |= state(0.5, "override", by_hand(0.5, "a migration"))
        other.answers |= state(1.0, "observation")
        result = run("show", "--sidecars", f"{one.address},{other.address}")
        assert 0 == result.exit_code
        expected = "The sidecars disagree: 1 publish 0.5 (override), 1 publish 1.0 (observation)\n"
        assert expected == result.stderr

    def test_that_they_disagree_on_the_reason_only_is_said_too(
        self, one: Canned, other: Canned
    ) -> None:
        """Two operators may have set it."""
        one.answers |= state(0.5, "override", by_hand(0.5, "a migration"))
        other.answers |= state(0.5, "override", by_hand(0.5, "a repair"))
        result = run("show", "--sidecars", f"{one.address},{other.address}")
        assert "The sidecars disagree: on the override\n" == result.stderr

    def test_ends_some_milliseconds_apart_are_no_disagreement(
        self, one: Canned, other: Canned
    ) -> None:
        """One command set them on both, each by its own clock."""
        one.answers |= state(0.5, "override", by_hand(0.5, "x", "2026-11-21T04:00:00.000Z"))
        other.answers |= state(0.5, "override", by_hand(0.5, "x", "2026-11-21T04:00:00.007Z"))
        result = run("show", "--sidecars", f"{one.address},{other.address}", "--json")
        assert "" == result.stderr
        assert json.loads(result.stdout)["agree"] is True

    def test_one_that_does_not_answer_is_exit_code_1(self, one: Canned) -> None:
        """Those that answered are shown."""
        one.answers |= state()
        result = run("show", "--sidecars", f"{one.address},127.0.0.1:1")
        assert 1 == result.exit_code
        assert "Connection refused" in result.output
        assert "observation" in result.output
        assert "disagree" not in result.output

    def test_what_a_sidecar_says_drives_no_terminal(self, one: Canned) -> None:
        """Neither its escapes nor the table's own markup have an effect."""
        one.answers |= state(0.5, "override", by_hand(0.5, "[red]a\x1b[2Jb"))
        output = run("show", "--sidecars", one.address).output
        assert "\x1b" not in output
        assert "[red]a\\x1b[2Jb" in "".join(output.split())

    def test_it_is_readable_at_80_columns(self, one: Canned) -> None:
        """No line is longer, also in a pipe."""
        one.answers |= state(0.5, "override", by_hand(0.5, "a migration of everything " * 5))
        output = run("show", "--sidecars", one.address).output
        assert max(map(len, output.splitlines())) <= 80
