"""``quotas diff``: how today's quotas differ from a plan."""

import json
from pathlib import Path

import pytest

from sidecar.quotas.entities import DEFAULT, Entity
from tests.cli.quotas.conftest import Run
from tests.support.fake_quotas import FakeQuotas

KEY = "request_percentage"


def test_a_plan_in_force_is_exit_code_0(run: Run, quotas: FakeQuotas) -> None:
    """And says so."""
    quotas.quotas = {Entity(DEFAULT): {KEY: 9.2}}
    result = run("diff", "--tenants", "120")
    assert (0, "Nothing changes.\n") == (result.exit_code, result.stdout)


def test_a_plan_that_is_not_is_exit_code_1(run: Run, quotas: FakeQuotas) -> None:
    """With each quota that would change, and nothing is changed."""
    quotas.quotas = {Entity(DEFAULT): {KEY: 10.0}}
    result = run("diff", "--tenants", "120", "--json")
    assert 1 == result.exit_code
    expected = [{"entity": {"user": None}, "key": KEY, "before": 10.0, "after": 9.2}]
    assert expected == json.loads(result.stdout)["changes"]
    assert [] == quotas.requests


def test_against_a_file(run: Run, quotas: FakeQuotas, tmp_path: Path) -> None:
    """What it does not mention differs only when it is to be exact."""
    quotas.quotas = {Entity("ann"): {KEY: 5.0}}
    file = tmp_path / "before.json"
    file.write_text(run("show", "--json").stdout)
    quotas.quotas[Entity("bob")] = {KEY: 6.0}
    assert 0 == run("diff", "--plan", str(file)).exit_code
    result = run("diff", "--plan", str(file), "--exact", "--json")
    assert 1 == result.exit_code
    expected = [{"entity": {"user": "bob"}, "key": KEY, "before": 6.0, "after": None}]
    assert expected == json.loads(result.stdout)["changes"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tenants", "5", "--exact"], "--exact goes with --plan"),
        (["--tenants", "5", "--plan", "x"], "nothing else is planned with it"),
        (["--plan", "no-such-file"], "no-such-file can't be read"),
        ([], "give --tenants, --tenants-from or --plan"),
    ],
)
def test_options_that_do_not_go_together(run: Run, options: list[str], said: str) -> None:
    """Exit code 2, not 1: it can't be told."""
    result = run("diff", *options)
    assert (2, "") == (result.exit_code, result.stdout)
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"quotas": {}, "x": 1}x',
        '{"quotas": [{"entity": {"tenant": "a"}, "quotas": {}}]}',
        '{"quotas": [{"entity": {"user": "a"}, "quotas": {"x": null}}]}',
        '{"quotas": [{"entity": {"user": "a"}, "quotas": {"x": NaN}}]}',
        '{"quotas": [{"entity": {"user": 5}, "quotas": {"x": 1}}]}',
        '{"quotas": [{"entity": {"user": "a"}, "quotas": {"x": 1}},'
        ' {"entity": {"user": "a"}, "quotas": {"y": 1}}]}',
    ],
)
def test_files_that_are_no_quotas(run: Run, tmp_path: Path, text: str) -> None:
    """Told by the file's name and what prints such files."""
    file = tmp_path / "plan.json"
    file.write_text(text)
    result = run("diff", "--plan", str(file))
    assert (2, "") == (result.exit_code, result.stdout)
    assert f"{file} is not what " in result.stderr
