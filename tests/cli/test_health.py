"""``health``: whom it asks, and its exit code."""

import subprocess
import sys
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


def run(*args: str, listen: str | None = None) -> Result:
    return CliRunner().invoke(group, ["health", *args], env={"SIDECAR_HTTP_LISTEN": listen})


def test_a_sidecar_that_lives_is_exit_code_0(canned: Canned) -> None:
    """/healthz is asked, not /readyz: one that can't see lives, and restarting it helps nobody."""
    canned.answers["GET /healthz"] = (200, JSON, b'{"status": "ok"}')
    result = run("--sidecar", canned.address)
    assert (0, f"{canned.url} lives\n") == (result.exit_code, result.output)
    assert [("GET", "/healthz")] == [(asked.method, asked.path) for asked in canned.asked]


def test_the_one_of_this_environment_is_asked(canned: Canned) -> None:
    """One that listens everywhere on loopback."""
    canned.answers["GET /healthz"] = (200, JSON, b'{"status": "ok"}')
    assert 0 == run(listen=canned.address.replace("127.0.0.1", "0.0.0.0")).exit_code
    assert 1 == len(canned.asked)


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (503, b'{"detail": "No."}', "No."),
        (404, b"{}", "it answered 404"),
        (200, b"<html>", "what answers there is no sidecar"),
    ],
)
def test_any_other_answer_is_exit_code_1(
    canned: Canned, status: int, body: bytes, why: str
) -> None:
    """With why."""
    canned.answers["GET /healthz"] = (status, JSON, body)
    result = run("--sidecar", canned.address)
    assert (1, f"{canned.url} {why}\n") == (result.exit_code, result.output)


def test_no_answer_is_exit_code_1() -> None:
    """Nothing listens on port 1."""
    result = run("--sidecar", "127.0.0.1:1")
    expected = "http://127.0.0.1:1 Connection refused: nothing listens there; a sidecar's API "
    assert (1, True) == (result.exit_code, result.output.startswith(expected))


@pytest.mark.parametrize("sidecar", ["", "b1:0", "ftp://b1"])
def test_what_is_no_address_is_exit_code_2(sidecar: str) -> None:
    """Nobody is asked."""
    assert 2 == run("--sidecar", sidecar).exit_code


def test_help_has_examples() -> None:
    """Lines to copy."""
    assert "Examples:" in run("--help").output


def test_it_imports_little() -> None:
    """It is started every half minute: no settings, no tables, no web framework, no Kafka."""
    code = (
        "import sys\nfrom sidecar.cli import group\n"
        "group.main(['health', '--sidecar', '127.0.0.1:1'], standalone_mode=False)\n"
        "heavy = ('pydantic', 'rich', 'fastapi', 'aiokafka', 'asyncio', 'prometheus_client')\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert "[]" == done.stdout.splitlines()[-1]
