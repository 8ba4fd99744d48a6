"""``health``: whom it asks, and its exit code."""

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from tests.support.background import Canned, reply
from tests.support.command import python

LIVES = reply({"status": "ok"})


def run(*args: str, listen: str | None = None) -> Result:
    return CliRunner().invoke(group, ["health", *args], env={"SIDECAR_HTTP_LISTEN": listen})


def test_a_sidecar_that_lives_is_exit_code_0(canned: Canned) -> None:
    """/healthz is asked, not /readyz: one that can't see lives, and restarting it helps nobody."""
    canned.answers["GET /healthz"] = LIVES
    result = run("--sidecar", canned.address)
    assert (0, f"{canned.url} is alive\n") == (result.exit_code, result.output)
    assert [("GET", "/healthz")] == [(asked.method, asked.path) for asked in canned.asked]


def test_the_one_of_this_environment_is_asked(canned: Canned) -> None:
    """One that listens everywhere is asked on the loopback."""
    canned.answers["GET /healthz"] = LIVES
    result = run(listen=canned.address.replace("127.0.0.1", "0.0.0.0"))
    assert (0, f"{canned.url} is alive\n") == (result.exit_code, result.output)


def test_any_other_answer_is_exit_code_1(canned: Canned) -> None:
    """The output says why, as test_sidecar_client.py shows; no answer is one of them."""
    canned.answers["GET /healthz"] = reply({"detail": "No."}, 503)
    result = run("--sidecar", canned.address)
    assert (1, f"{canned.url} No.\n") == (result.exit_code, result.output)
    assert 1 == run("--sidecar", "127.0.0.1:1").exit_code


@pytest.mark.parametrize("sidecar", ["", "b1:0", "ftp://b1"])
def test_what_is_no_address_is_exit_code_2(sidecar: str) -> None:
    """Nobody is asked."""
    assert 2 == run("--sidecar", sidecar).exit_code


def test_it_imports_little() -> None:
    """It is started every half minute: no settings, no tables, no web framework, no Kafka."""
    code = (
        "import sys\nfrom sidecar.cli import group\n"
        "group.main(['health', '--sidecar', '127.0.0.1:1'], standalone_mode=False)\n"
        "heavy = ('pydantic', 'rich', 'fastapi', 'aiokafka', 'asyncio', 'prometheus_client')\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in heavy))"
    )
    assert "[]" == python("-c", code).splitlines()[-1]
