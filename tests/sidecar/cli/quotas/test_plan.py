"""``quotas plan``: shares, what changes, the commands that do it, and what is warned of."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from sidecar.quotas.entities import DEFAULT, Entity
from tests.sidecar.cli.quotas.conftest import Run
from tests.support.fake_configs import FakeConfigs
from tests.support.fake_quotas import FakeQuotas

KEY = "request_percentage"
COMMAND = "kafka-configs.sh --bootstrap-server HOST:PORT --alter --add-config 'request_percentage="


def offline(*words: str) -> Result:
    """Runs the command without any brokers."""
    return CliRunner().invoke(group, ["quotas", "plan", *words], env={"COLUMNS": "100"})


def shares(result: Result) -> dict[str, float]:
    """The shares by user or client-id; the default is None's."""
    document = json.loads(result.stdout)
    return {
        str(next(iter(each["entity"].values()))): each["quotas"][KEY] for each in document["quotas"]
    }


class TestWithoutBrokers:
    def test_the_articles_lines(self) -> None:
        """They have the capacity, the share, and commands for the default user and client-id."""
        result = offline("--tenants", "115", "--capacity", "6400")
        assert (0, "") == (result.exit_code, result.stderr)
        assert "total capacity..............: 6400\n" in result.stdout
        assert "request_percentage, each....: 55.7\n" in result.stdout
        for kind in ("users", "clients"):
            assert f"  {COMMAND}55.7' --entity-type {kind} --entity-default\n" in result.stdout
        assert "Planned" not in result.stdout

    def test_weights_minimums_and_maximums_of_a_file(self, tmp_path: Path) -> None:
        """They make max-min fair shares by name, one command each, of one kind if so asked."""
        file = tmp_path / "tenants.toml"
        file.write_text(
            "[tenants]\nann = {}\nbob = { weight = 3, maximum = 200 }\njoe = { minimum = 50 }\n"
        )
        plan = ("--tenants-from", str(file), "--capacity", "400", "--entity-type", "clients")
        assert {"ann": 100.0, "bob": 200.0, "joe": 100.0} == shares(offline(*plan, "--json"))
        text = offline(*plan).stdout
        assert f"{COMMAND}200' --entity-type clients --entity-name bob\n" in text
        assert "users" not in text

    def test_a_number_sign_within_a_name_begins_no_comment(self, tmp_path: Path) -> None:
        """A certificate's subject has one for each attribute whose type Java does not know."""
        names = ["1.2.840.113549.1.9.1=#160d6f7073,CN=billing", "team#1"]
        file = tmp_path / "tenants"
        file.write_text(f"{names[0]}\n{names[1]}\t#the first\n #all\n")
        result = offline("--tenants-from", str(file), "--capacity", "400", "--json")
        assert dict.fromkeys(names, 200.0) == shares(result)

    @pytest.mark.parametrize("name", ["tenants", "tenants.toml"])
    def test_a_user_is_named_without_the_type_of_principal(self, tmp_path: Path, name: str) -> None:
        """No user has this name; a client-id may have it."""
        file = tmp_path / name
        file.write_text('[tenants]\n"User:ann" = {}' if file.suffix else "bob\nUser:ann\n")
        plan = ("--tenants-from", str(file), "--capacity", "400", "--json")
        result = offline(*plan)
        assert (2, "") == (result.exit_code, result.stdout)
        assert f'{file}: name each user without "User:": User:ann' in result.stderr
        assert "User:ann" in shares(offline(*plan, "--entity-type", "clients"))

    def test_a_share_under_1_percent_names_the_tenant(self, tmp_path: Path) -> None:
        """Standard error has it."""
        file = tmp_path / "tenants"
        file.write_text("# two of them\nann\nbob # the second\n\nann\n")
        result = offline("--tenants-from", str(file), "--capacity", "1.5")
        assert "Warning: ann: 0.8 % is under 1 %\n" in result.stderr
        assert "Warning: bob: 0.8 % is under 1 %\n" in result.stderr

    def test_a_sum_over_the_capacity_is_reported(self, tmp_path: Path) -> None:
        """No share can be under 0.1 %, so 20 tenants, by number or by name, exceed 0.5 %."""
        result = offline("--tenants", "20", "--capacity", "0.5")
        assert "Warning: each of 20 tenants: its 0.1 % " in result.stderr
        file = tmp_path / "tenants"
        file.write_text("\n".join(f"t{n:02}" for n in range(20)))
        result = offline("--tenants-from", str(file), "--capacity", "0.5", "--json")
        warnings = json.loads(result.stdout)["warnings"]
        assert 1 == sum(line.startswith("t00: its 0.1 % ") for line in warnings)
        assert "have no limit" not in result.stderr

    def test_what_is_printed_can_be_read_again(self) -> None:
        """JSON has the quotas, no changes since no broker was asked, the commands and warnings."""
        document = json.loads(offline("--tenants", "2000", "--capacity", "1100", "--json").stdout)
        assert [{"entity": {"user": None}, "quotas": {KEY: 0.6}}] == document["quotas"]
        assert document["changes"] is None
        assert ["each of 2,000 tenants: 0.6 % is under 1 %"] == document["warnings"]
        assert ["clients", "users"] == sorted(document["commands"])


class TestBesideToday:
    def test_capacity_changes_and_commands(self, run: Run, quotas: FakeQuotas) -> None:
        """The output has the brokers, each share and the one before, and the commands."""
        quotas.quotas = {Entity(DEFAULT): {KEY: 10.0}}
        result = run("plan", "--tenants", "120")
        assert (0, "") == (result.exit_code, result.stderr)
        assert "broker.id...................: 1\n" in result.stdout
        assert "request_percentage, each....: 9.2\n" in result.stdout
        (row,) = [line for line in result.stdout.splitlines() if line.startswith("user the def")]
        assert ["user", "the", "default", KEY, "10", "9.2"] == row.split()
        assert "--bootstrap-server 127.0.0.1:" in result.stdout

    def test_the_smallest_broker_is_planned_for(self, run: Run, configs: FakeConfigs) -> None:
        """A warning says that they differ."""
        configs.configs[0]["num.io.threads"] = "20"
        result = run("plan", "--tenants", "10")
        assert "request_percentage, each....: 110\n" in result.stdout
        assert "differs" in result.stderr

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("scram", {"ann": 550.0, "bob": 550.0}),
            ("acls", {"bob": 550.0, "eve": 550.0}),
            ("quotas", {"joe": 1100.0}),
        ],
    )
    def test_tenants_from_the_cluster(
        self, run: Run, quotas: FakeQuotas, source: str, expected: dict[str, float]
    ) -> None:
        """Tenants are users with a SCRAM credential, with an ACL, or with a quota of any kind."""
        quotas.scram = {"ann", "bob"}
        quotas.acls = {"User:bob", "User:eve", "User:*"}
        quotas.quotas = {Entity("joe", "etl"): {"producer_byte_rate": 1e6}}
        result = run("plan", "--tenants-from", source, "--json")
        assert 0 == result.exit_code, result.output
        assert expected == shares(result)

    def test_as_default_counts_only(self, run: Run, quotas: FakeQuotas) -> None:
        """The default is one share, of so many tenants as there are beside the internal ones."""
        quotas.scram = {"ann", "bob", "mirror"}
        result = run(
            *("plan", "--tenants-from", "scram", "--as-default", "--json"),
            *("--reserve", "100", "--internal", "mirror"),
        )
        assert {"None": 500.0, "mirror": 100.0} == shares(result)

    def test_every_warning_names_the_tenant(
        self, run: Run, quotas: FakeQuotas, tmp_path: Path
    ) -> None:
        """There are an unknown user, a quota outside the plan, and a sum over the capacity."""
        quotas.scram = {"ann"}
        quotas.quotas = {
            Entity("carol"): {KEY: 600.0},
            Entity("bob"): {"producer_byte_rate": 1e6},
        }
        file = tmp_path / "tenants"
        file.write_text("ann\nana\nbob\n")
        result = run("plan", "--tenants-from", str(file))
        assert 0 == result.exit_code
        expected = [
            "ana: no SCRAM credential, ACL or quota has this name",
            "users that are not named have no limit; a default gives them one",
        ]
        over, outside, *others = result.stderr.splitlines()
        assert [f"Warning: {line}" for line in expected] == others
        assert over.startswith("Warning: user 'carol': its 600 % ")
        assert outside.startswith("Warning: user 'carol': keeps 600 %")

    def test_a_capacity_from_an_option_is_beside_today_too(
        self, run: Run, quotas: FakeQuotas
    ) -> None:
        """Brokers that can be reached say what changes."""
        quotas.quotas = {Entity(DEFAULT): {KEY: 10.0}}
        document = json.loads(run("plan", "--tenants", "50", "--capacity", "6400", "--json").stdout)
        assert [(10.0, 128.0)] == [(c["before"], c["after"]) for c in document["changes"]]
        assert document["capacity"] is None

    @pytest.mark.slow
    def test_without_scram_and_acls_nobody_is_unknown(
        self, run: Run, quotas: FakeQuotas, tmp_path: Path
    ) -> None:
        """There is no authorizer, and users log in by other ways."""
        quotas.acls = None
        file = tmp_path / "tenants"
        file.write_text("ann\n")
        assert "ann" not in run("plan", "--tenants-from", str(file), "--default", "1").stderr


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ([], "give --tenants or --tenants-from"),
            (["--tenants", "5", "--tenants-from", "x"], "not both"),
            (
                ["--tenants", "5", "--default", "1"],
                "--default is the quota of tenants that are not named",
            ),
            (["--tenants", "5", "--internal", "a"], "share a --reserve"),
            (["--tenants", "5", "--reserve", "100"], "leaves nothing of 100 %"),
            (["--tenants", "0"], "--tenants"),
            (["--tenants", "5", "--capacity", "nan"], "--capacity"),
            (["--tenants", "5", "--capacity", "inf"], "--capacity"),
            (["--tenants-from", "no-such-file"], "nor a file"),
            (["--tenants-from", "scarm"], "scarm is none of scram, acls and quotas"),
        ],
    )
    def test_options_that_make_no_plan(self, words: list[str], said: str) -> None:
        """The exit code is 2, and one line says why."""
        result = offline("--capacity", "100", *words)
        assert (2, "") == (result.exit_code, result.stdout)
        assert said in result.stderr

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[tenants]\nann = 5\n", "ann: a table is expected"),
            ("[tenants]\nann = { wait = 5 }\n", "ann: wait is none of weight, minimum, maximum"),
            ("[tenants]\nann = { weight = true }\n", "ann: weight is True, not a number"),
            ("[tenants]\nann = { weight = 0 }\n", "ann: a weight of 0.0"),
            ("[tenant]\nann = {}\n", 'one table "tenants" is expected'),
            ("tenants\n", "can't be read"),
            ("[tenants]\n", "there is no tenant in {file}"),
        ],
    )
    def test_files_that_make_no_plan(self, tmp_path: Path, text: str, said: str) -> None:
        """The message says which tenant, and what is wrong with it."""
        file = tmp_path / "tenants.toml"
        file.write_text(text)
        result = offline("--capacity", "100", "--tenants-from", str(file))
        assert (2, "") == (result.exit_code, result.stdout)
        assert said.format(file=file) in result.stderr

    @pytest.mark.parametrize("source", ["scram", "acls", "quotas"])
    def test_a_cluster_without_tenants(self, run: Run, source: str) -> None:
        """The message says where they were searched."""
        result = run("plan", "--tenants-from", source)
        assert 2 == result.exit_code
        assert f"there is no tenant in {source}" in result.stderr

    def test_one_default_has_no_weights(self, tmp_path: Path) -> None:
        """A file with terms can't be one share for all."""
        file = tmp_path / "tenants.toml"
        file.write_text("[tenants]\nann = { weight = 2 }\n")
        result = offline("--capacity", "100", "--tenants-from", str(file), "--as-default")
        assert 2 == result.exit_code
        assert "can't have weights" in result.stderr

    def test_quotas_that_may_not_be_read(self, run: Run, quotas: FakeQuotas) -> None:
        """The message names the right that is missing, and there is no plan."""
        quotas.describe_error = type(quotas.describe_error).cluster_authorization_failed
        result = run("plan", "--tenants", "5")
        assert (2, "") == (result.exit_code, result.stdout)
        assert "--operation DescribeConfigs" in result.stderr
