"""A file of owners, the order of its rules, and what is wrong with one."""

from pathlib import Path

import pytest

from sidecar.formats.owners import CLIENT_ID, NOBODY, TOPIC, USER, Owners
from usage_pipeline.costs.inputs import CostsError
from usage_pipeline.costs.owners import read_owners


def owners(path: Path, text: str) -> Owners:
    path.joinpath("owners.toml").write_text(text)
    return read_owners(path / "owners.toml")


def test_the_most_exact_rule_decides(tmp_path: Path) -> None:
    """Users are before client-ids, names before prefixes, and longer prefixes before shorter."""
    rules = owners(
        tmp_path,
        """
        [b]
        topics = ["orders*", "orders.eu"]
        client_ids = ["etl"]
        [a]
        topics = ["*", "orders"]
        users = ["shop-*"]
        """,
    )
    assert ["b", "a", "b", "a"] == [
        rules.of_topic(topic) for topic in ("orders.eu", "orders", "orders.us", "order")
    ]
    assert [USER, CLIENT_ID, TOPIC, TOPIC, TOPIC, TOPIC] == [rule.column for rule in rules.rules]


def test_what_no_rule_matches_is_nobodys(tmp_path: Path) -> None:
    """A rule of users says nothing of topics."""
    assert NOBODY == owners(tmp_path, '[a]\nusers = ["*"]').of_topic("orders")


def test_a_wildcard_in_the_name_of_a_certificate_is_part_of_the_name(tmp_path: Path) -> None:
    """Topics have no * in their names, but principals and client-ids may."""
    name = "CN=*.mesh.example.com,O=Acme"
    rules = owners(tmp_path, f'[mesh]\nusers = ["{name}"]\nclient_ids = ["*-{name}"]').rules
    assert [name, f"*-{name}"] == [rule.text for rule in rules if not rule.is_prefix]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[", "is not TOML: "),
        ('a = "b"', "a must be a table of an owner"),
        ('["(nobody)"]\nusers = []', "(nobody) must be a table of an owner"),
        ("[a]\nuser = []", "a.user is not a key here; use users, client_ids, topics"),
        ('[a]\nusers = "alice"', "a.users must be a list of names"),
        ("[a]\nusers = [1]", "a.users must be a list of names"),
        ('[a]\ntopics = ["eu-*-orders"]', 'a.topics: "eu-*-orders" has a * before its end'),
        ('[a]\ntopics = ["*.orders*"]', 'a.topics: "*.orders*" has a * before its end'),
        (
            '[a]\nusers = ["x*"]\n[b]\nusers = ["x*"]',
            'b.users: "x*" belongs to a too; remove one',
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, problem: str) -> None:
    """The message has the file, the owner and the list."""
    with pytest.raises(CostsError) as raised:
        owners(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path}/owners.toml")
    assert problem in str(raised.value)
