"""The group ``quotas``: its help, and what it imports."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from sidecar.cli import group
from sidecar.cli.quotas import SUBCOMMANDS


def test_help_imports_no_subcommand() -> None:
    """Each is listed with its short help; neither their modules nor a client are imported."""
    code = (
        "import sys\nfrom sidecar.cli import group\n"
        "group.main(['quotas', '--help'], 'throttle-sidecar', standalone_mode=False)\n"
        "print(sorted(m for m in sys.modules if m.startswith(('sidecar.', 'pydantic', 'rich'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    for name, summary in SUBCOMMANDS.items():
        assert f"  {name} " in done.stdout
        assert summary in done.stdout
    expected = "['sidecar.cli', 'sidecar.cli.quotas', 'sidecar.errors']"
    assert expected == done.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_examples(name: str) -> None:
    """Lines to copy, at the end of its help."""
    result = CliRunner().invoke(group, ["quotas", name, "--help"])
    assert 0 == result.exit_code
    _, _, examples = result.output.partition("Examples:")
    assert f"  throttle-sidecar quotas {name} " in examples


def test_an_unknown_subcommand_is_a_usage_error() -> None:
    """Exit code 2, as for every wrong use."""
    result = CliRunner().invoke(group, ["quotas", "nope"])
    assert 2 == result.exit_code
    assert "No such command 'nope'" in result.stderr
