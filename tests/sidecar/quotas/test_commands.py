"""kafka-configs.sh commands, as a person would type them."""

import shlex

import pytest

from sidecar.quotas.commands import kafka_configs, number
from sidecar.quotas.entities import DEFAULT, Entity

SERVER = ["--bootstrap-server", "localhost:19092"]


@pytest.mark.parametrize("kind", ["users", "clients"])
def test_the_articles_lines(kind: str) -> None:
    """The lines are the article's word for word, for the default user and the default client-id."""
    entity = Entity(DEFAULT) if kind == "users" else Entity(client_id=DEFAULT)
    expected = (
        "kafka-configs.sh --bootstrap-server localhost:19092 --alter "
        f"--add-config 'request_percentage=9.2' --entity-type {kind} --entity-default"
    )
    assert expected == kafka_configs(SERVER, entity, {"request_percentage": 9.2})


def test_names_are_quoted_for_a_shell() -> None:
    """What the shell makes of the line is the name again; both parts are named."""
    line = kafka_configs(SERVER, Entity("it's $HOME", "a b"), {"x": 1.0, "y": None})
    expected = [
        *("kafka-configs.sh", *SERVER, "--alter"),
        *("--add-config", "x=1", "--delete-config", "y"),
        *("--entity-type", "users", "--entity-name", "it's $HOME"),
        *("--entity-type", "clients", "--entity-name", "a b"),
    ]
    assert expected == shlex.split(line)


def test_what_is_removed_is_named() -> None:
    """Several quotas are removed at once, beside one that is set."""
    values = {"producer_byte_rate": None, "request_percentage": 5.0, "consumer_byte_rate": None}
    line = kafka_configs([], Entity("alice"), values)
    assert "--add-config 'request_percentage=5'" in line
    assert "--delete-config 'producer_byte_rate,consumer_byte_rate'" in line


def test_an_address_is_an_ip() -> None:
    """Its kind has a name of its own."""
    line = kafka_configs([], Entity(ip="192.0.2.1"), {"connection_creation_rate": 2.0})
    assert line.endswith(" --entity-type ips --entity-name 192.0.2.1")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (128.0, "128"),
        (9.2, "9.2"),
        (55.7, "55.7"),
        (1e6, "1000000"),
        (1e16, "10000000000000000"),
        (1.5e-5, "0.000015"),
    ],
)
def test_numbers_are_digits(value: float, expected: str) -> None:
    """They are written in full, and parsing them returns the same number."""
    assert expected == number(value)
    assert value == float(number(value))
