"""``forget``: what it asks of each sidecar, and how their answers are told."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from tests.support.background import Canned, serving

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def canned() -> Iterator[Canned]:
    with serving(Canned()) as server:
        yield server


def run(*args: str) -> Result:
    environment = {"SIDECAR_TOKEN_FILE": None, "COLUMNS": "80"}
    return CliRunner().invoke(group, ["forget", *args], env=environment)


def test_it_tells_what_was_forgotten_and_what_holds_now(canned: Canned) -> None:
    """Exit code 0 only if all did it."""
    answer = {"broker_id": 3, "log_dirs": ["/d"], "persisted": True, "factor": 1.0}
    canned.answers["DELETE /v1/brokers/3"] = (200, JSON, json.dumps(answer).encode())
    result = run("3", "--sidecars", canned.address)
    assert 0 == result.exit_code
    output = " ".join(result.output.split())
    assert f"{canned.url} forgot 1 volume; the factor is 1.0; a restart retains it" in output


def test_one_that_remembers_nothing_of_it_is_exit_code_1(canned: Canned) -> None:
    """Most likely it is the wrong number."""
    detail = b'{"detail": "Nothing is remembered of this broker."}'
    canned.answers["DELETE /v1/brokers/4"] = (404, JSON, detail)
    result = run("4", "--sidecars", canned.address)
    assert 1 == result.exit_code
    assert "Nothing is remembered of this broker." in result.output


@pytest.mark.parametrize("broker_id", ["-1", "b1", "2147483648", "1_0x", ""])
def test_what_is_no_node_id_asks_nobody(canned: Canned, broker_id: str) -> None:
    """Exit code 2."""
    result = run("--sidecars", canned.address, "--", broker_id)
    assert 2 == result.exit_code
    assert [] == canned.asked


def test_json(canned: Canned) -> None:
    """The sidecar's own answer."""
    answer = {"broker_id": 3, "log_dirs": ["/d"], "persisted": True, "factor": 1.0}
    canned.answers["DELETE /v1/brokers/3"] = (200, JSON, json.dumps(answer).encode())
    result = run("3", "--sidecars", canned.address, "--json")
    assert answer == json.loads(result.stdout)["sidecars"][0]["answer"]
    assert 0 == result.exit_code


def test_help_has_examples() -> None:
    """Lines to copy."""
    assert "Examples:" in run("--help").output
