"""The systemd unit, by systemd's own tools, which need no running systemd."""

import subprocess
from pathlib import Path

import pytest

from sidecar.settings import describe

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "throttle-sidecar.service"
EXPOSED = 11
"""The most that its exposure may be, of 100: a program in the network has 8 at least."""


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=30
    )


def directives(name: str) -> list[str]:
    """The values of a key, in the order of the file."""
    lines = UNIT.read_text().splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith(f"{name}=")]


def verified(unit: Path) -> subprocess.CompletedProcess[str]:
    return analyze("verify", "--man=no", str(unit))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The unit as it is on a machine that has the program."""
    (command,) = directives("ExecStart")
    program = tmp_path / "throttle-sidecar"
    program.touch(0o755)
    text = UNIT.read_text().replace(command.split()[0], str(program))
    (tmp_path / UNIT.name).write_text(text)
    return tmp_path / UNIT.name


def test_systemd_knows_each_key_and_value(here: Path) -> None:
    """It says nothing; of a key that it doesn't know it would."""
    done = verified(here)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    here.write_text(here.read_text().replace("ProtectHome=", "ProtectHouse="))
    assert "'ProtectHouse'" in verified(here).stderr


def test_it_is_shut_in() -> None:
    """Nearly all that systemd can take from a program that needs the network is taken."""
    done = analyze("security", "--offline=yes", f"--threshold={EXPOSED}", str(UNIT))
    assert 0 == done.returncode, done.stdout


def test_what_it_sets_are_settings() -> None:
    """Their names are those that the program knows."""
    named = {value.partition("=")[0] for value in directives("Environment")}
    assert {"SIDECAR_STATE_FILE", "SIDECAR_TOKEN_FILE"} == named
    assert named <= {row.environment for row in describe()}
