"""The file of storage budgets, its JSON schema and its example."""

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from sidecar.budgets.file import BudgetFile
from sidecar.errors import SettingsError
from sidecar.throttle.budgets import Budget
from tools.pages import BUDGETS_SCHEMA, budgets_schema

PAGE = Path(__file__).parents[3] / "docs" / "budgets.md"
"""Has the example."""


def example() -> str:
    """The first TOML block of the page."""
    return PAGE.read_text("utf-8").partition("```toml\n")[2].partition("```")[0]


def test_the_example_is_read_as_its_page_says(tmp_path: Path) -> None:
    """Sizes in both kinds of units, a budget without a soft size, and one that counts replicas."""
    path = tmp_path / "budgets.toml"
    path.write_text(example())
    etl, web = BudgetFile(path).load()
    gb = 1_000_000_000
    assert Budget("etl", 200 * gb, 160 * gb, prefixes=frozenset({"etl."})) == etl
    names = frozenset({"clicks", "orders"})
    assert Budget("web", 1 << 40, 1 << 40, names, frozenset(), counts_replicas=True) == web


def test_principals_are_users_by_name(tmp_path: Path) -> None:
    """Each once, as in the page's second example."""
    path = tmp_path / "budgets.toml"
    path.write_text(PAGE.read_text("utf-8").split("```toml\n")[2].partition("```")[0])
    assert ("etl-loader", "etl-stream") == BudgetFile(path).load()[0].principals


def test_the_schema_is_that_of_the_forms() -> None:
    """And accepts the example, but no key that is wrong; `make docs` writes it."""
    assert budgets_schema() == BUDGETS_SCHEMA.read_text("utf-8")
    schema = json.loads(budgets_schema())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    validator.validate(tomllib.loads(example()))
    assert not validator.is_valid(tomllib.loads(example().replace("hard", "most")))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("owners = 3", "owners: Input should be a valid dictionary"),
        ("", "owners: Field required"),
        ("[owners.a]\ntopics = ['t']", "owners.a.hard: Field required"),
        ("[owners.a]\nhard = '1GB'", "owners.a: has neither topics nor prefixes"),
        ("[owners.a]\ntopics = ['t']\nhard = '10G'", "owners.a.hard: '10G' may mean 10GB or 10Gi"),
        ("[owners.a]\ntopics = ['t']\nhard = true", "owners.a.hard: must be a size such as"),
        ("[owners.a]\ntopics = ['t']\nhard = 0", "owners.a.hard: must be > 0"),
        ("[owners.a]\nprefixes = ['']\nhard = 1", "owners.a.prefixes.0: String should have at"),
        (
            "[owners.a]\ntopics = ['t']\nhard = 5\nsoft = 6",
            "owners.a: soft is larger than hard",
        ),
        (
            "[owners.a]\nprefixes = ['t']\nhard = 5\n[owners.b]\nprefixes = ['t']\nhard = 5",
            "owners.b: the prefix t is also of a",
        ),
        (
            "[owners.a]\ntopic = ['t']\nhard = 5",
            "owners.a.topic: is not a key here; there are topics, prefixes, soft, hard, replicas",
        ),
        (
            "[owners.a]\ntopics = ['t']\nhard = 5\nprincipals = ['User:a']",
            'owners.a.principals.0: is a user\'s name without "User:"',
        ),
    ],
)
def test_a_file_with_a_mistake_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """The message names the file and the place."""
    path = tmp_path / "budgets.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as refused:
        BudgetFile(path).load()
    assert f"{path}: {problem}" in str(refused.value)


def test_it_is_followed_through_symlinks_of_kubernetes(tmp_path: Path) -> None:
    """A ConfigMap's ..data is swapped; a mistake changes nothing."""
    for name, hard in (("1", "1GB"), ("2", "2GB"), ("3", "3")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "budgets.toml").write_text(
            f"[owners.a]\ntopics = ['t']\nhard = '{hard}'\nsoft = 9"
        )
    data, path = tmp_path / "..data", tmp_path / "budgets.toml"
    data.symlink_to("1")
    path.symlink_to("..data/budgets.toml")
    file = BudgetFile(path)
    assert [10**9] == [each.hard_bytes for each in file.load()]
    seen = []
    for name in ("2", "3"):
        data.unlink()
        data.symlink_to(name)
        seen += [file.read_change() for _ in range(3)]
    found = [[each.hard_bytes for each in budgets or ()] for budgets in seen]
    assert [[], [2 * 10**9], [], [], [], []] == found
