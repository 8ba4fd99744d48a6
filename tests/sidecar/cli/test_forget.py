"""``forget``: what it asks of each sidecar, and how it reports their answers."""

import json

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from tests.support.background import Canned, reply

FORGOTTEN = {"broker_id": 3, "log_dirs": ["/d"], "persisted": True, "factor": 1.0}


def run(*args: str) -> Result:
    return CliRunner().invoke(group, ["forget", *args])


def test_it_reports_what_was_forgotten_and_what_is_in_force(canned: Canned) -> None:
    """The exit code is 0 only if all did it; JSON has the sidecar's own answer."""
    canned.answers["DELETE /v1/brokers/3"] = reply(FORGOTTEN)
    result = run("3", "--sidecars", canned.address)
    assert 0 == result.exit_code
    output = " ".join(result.output.split())
    assert f"{canned.url} forgot 1 volume; the factor is 1.0; " in output
    result = run("3", "--sidecars", canned.address, "--json")
    assert FORGOTTEN == json.loads(result.stdout)["sidecars"][0]["answer"]
    assert 0 == result.exit_code


def test_a_log_dir_alone(canned: Canned) -> None:
    """Its path is sent whole, whatever characters it has."""
    canned.answers["DELETE /v1/brokers/3/log-dirs?path=%2Fdata%2Fd%201%26x"] = reply(FORGOTTEN)
    result = run("3", "--log-dir", "/data/d 1&x", "--sidecars", canned.address)
    assert 0 == result.exit_code
    assert "forgot 1 volume; the factor is 1.0; " in " ".join(result.output.split())


def test_one_that_remembers_nothing_of_it_is_exit_code_1(canned: Canned) -> None:
    """Most likely it is the wrong number."""
    canned.answers["DELETE /v1/brokers/4"] = reply({"detail": "Nothing."}, 404)
    result = run("4", "--sidecars", canned.address)
    assert 1 == result.exit_code
    assert "Nothing." in result.output


@pytest.mark.parametrize("broker_id", ["-1", "b1", "2147483648", "1_0x", ""])
def test_what_is_no_node_id_asks_nobody(canned: Canned, broker_id: str) -> None:
    """The exit code is 2."""
    result = run("--sidecars", canned.address, "--", broker_id)
    assert 2 == result.exit_code
    assert [] == canned.asked


def test_the_reason_is_sent(canned: Canned) -> None:
    """Each sidecar logs it."""
    canned.answers["DELETE /v1/brokers/3?reason=disk%20is%20gone"] = reply(FORGOTTEN)
    result = run("3", "--reason", "disk is gone", "--sidecars", canned.address)
    assert 0 == result.exit_code
