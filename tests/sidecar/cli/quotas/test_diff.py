"""``quotas diff``: how today's quotas differ from a plan."""

import json
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from sidecar.quotas.entities import DEFAULT, Entity
from tests.sidecar.cli.quotas.conftest import Run
from tests.support.fake_configs import FakeConfigs
from tests.support.fake_quotas import FakeQuotas

KEY = "request_percentage"


def test_a_plan_that_is_not_is_exit_code_1(run: Run, quotas: FakeQuotas) -> None:
    """Each quota that would change is listed, and nothing is changed."""
    quotas.quotas = {Entity(DEFAULT): {KEY: 10.0}}
    result = run("diff", "--tenants", "120", "--json")
    assert 1 == result.exit_code
    expected = [{"entity": {"user": None}, "key": KEY, "before": 10.0, "after": 9.2}]
    assert expected == json.loads(result.stdout)["changes"]
    assert [] == quotas.requests


def test_against_a_file(run: Run, quotas: FakeQuotas, tmp_path: Path) -> None:
    """What it does not mention differs only with --exact."""
    quotas.quotas = {Entity("ann"): {KEY: 5.0}}
    file = tmp_path / "before.json"
    file.write_text(run("show", "--json").stdout)
    quotas.quotas[Entity("bob")] = {KEY: 6.0}
    assert 0 == run("diff", "--plan", str(file)).exit_code
    result = run("diff", "--plan", str(file), "--exact", "--json")
    assert 1 == result.exit_code
    expected = [{"entity": {"user": "bob"}, "key": KEY, "before": 6.0, "after": None}]
    assert expected == json.loads(result.stdout)["changes"]


def file_of(tmp_path: Path, document: object) -> str:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    return str(file)


def warnings(run: Run, *words: str) -> list[str]:
    """The warnings of its JSON."""
    documents: list[str] = json.loads(run("diff", *words, "--json").stdout)["warnings"]
    return documents


@pytest.mark.parametrize(
    "options",
    [
        ["--tenants", "120"],
        ["--tenants", "1500"],
        ["--tenants", "50", "--capacity", "6400"],
        ["--tenants", "50", "--reserve", "100", "--internal", "mirror"],
        ["--tenants-from", "quotas", "--default", "2"],
        ["--tenants-from", "quotas", "--as-default"],
    ],
)
def test_a_plan_from_a_file_is_warned_of_as_when_it_was_made(
    run: Run, quotas: FakeQuotas, tmp_path: Path, options: list[str]
) -> None:
    """The plan and what it printed have as many warnings of the same kinds."""
    quotas.quotas = {Entity("carol"): {KEY: 500.0}, Entity("dan", "etl"): {KEY: 700.0}}
    plan = json.loads(run("plan", *options, "--json").stdout)
    documents = warnings(run, "--plan", file_of(tmp_path, plan))
    assert documents
    # A plan names users "carol", the quotas of a file are those of "user 'carol'".
    assert plan["warnings"] == [
        each.replace("user 'carol': its", "carol: its") for each in documents
    ]


def test_brokers_that_differ_are_reported_of_a_file_too(
    run: Run, configs: FakeConfigs, tmp_path: Path
) -> None:
    """The smallest broker's capacity is what sums are compared with."""
    configs.configs[1]["num.io.threads"] = "2"
    entry = {"entity": {"user": None}, "quotas": {KEY: 5}}
    bob = {"entity": {"user": "bob"}, "quotas": {KEY: 505}}
    documents = warnings(run, "--plan", file_of(tmp_path, {"quotas": [entry, bob]}))
    assert "brokers are not alike: num.io.threads differs: 2 on 1; 8 on 0" == documents[0]
    assert documents[2].endswith(" 500 %")


def test_without_a_capacity_a_file_can_be_compared(
    run: Run, configs: FakeConfigs, tmp_path: Path
) -> None:
    """Whoever may not describe brokers reads that sums are not checked."""
    configs.refused = dict.fromkeys((0, 1), ErrorCode.cluster_authorization_failed)
    entry = {"entity": {"user": None}, "quotas": {KEY: 5}}
    (documents,) = warnings(run, "--plan", file_of(tmp_path, {"quotas": [entry]}))
    assert documents.startswith("sums are not compared with the brokers' capacity: ")


def test_quotas_of_other_kinds_need_no_capacity(
    run: Run, configs: FakeConfigs, tmp_path: Path
) -> None:
    """A file without request_percentage asks and reports nothing about threads."""
    configs.refused = dict.fromkeys((0, 1), ErrorCode.cluster_authorization_failed)
    entry = {"entity": {"user": "ann"}, "quotas": {"controller_mutation_rate": 5}}
    assert [] == warnings(run, "--plan", file_of(tmp_path, {"quotas": [entry]}))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tenants", "5", "--exact"], "--exact needs --plan"),
        (["--tenants", "5", "--plan", "x"], "leave out the options that plan"),
        (["--plan", "no-such-file"], "no-such-file can't be read"),
        ([], "give --tenants, --tenants-from or --plan"),
    ],
)
def test_options_that_do_not_go_together(run: Run, options: list[str], said: str) -> None:
    """The exit code is 2, not 1: whether quotas differ is not known."""
    result = run("diff", *options)
    assert (2, "") == (result.exit_code, result.stdout)
    assert said in " ".join(result.stderr.split())


def test_a_file_that_is_no_quotas(run: Run, tmp_path: Path) -> None:
    """The message names the file and the command that prints such files."""
    file = tmp_path / "plan.json"
    file.write_text("{")
    result = run("diff", "--plan", str(file))
    assert (2, "") == (result.exit_code, result.stdout)
    assert f"{file} is not what " in result.stderr
