"""``callback``: its help, and what it refuses. ``test_callback_jar.py`` has the copying."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidecar.cli import group
from sidecar.cli.callback import SUBCOMMANDS


def test_help_imports_no_subcommand() -> None:
    """Each is listed with its short help."""
    code = (
        "import sys\nfrom sidecar.cli import group\n"
        "group.main(['callback', '--help'], 'throttle-sidecar', standalone_mode=False)\n"
        "print(sorted(m for m in sys.modules if m.startswith(('sidecar.', 'pydantic', 'rich'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    for name, summary in SUBCOMMANDS.items():
        assert f"  {name} " in done.stdout
        assert summary in done.stdout
    expected = "['sidecar.cli', 'sidecar.cli.callback', 'sidecar.errors']"
    assert expected == done.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_examples(name: str) -> None:
    """Lines to copy, at the end of its help."""
    result = CliRunner().invoke(group, ["callback", name, "--help"])
    assert 0 == result.exit_code
    _, _, examples = result.output.partition("Examples:")
    assert f"  throttle-sidecar callback {name} " in examples


def test_it_is_refused_in_a_line(tmp_path: Path) -> None:
    """No folder, or no jar where none was built: exit code 2, no traceback."""
    result = CliRunner().invoke(group, ["callback", "copy", str(tmp_path / "nowhere")])
    assert (2, "") == (result.exit_code, result.stdout)
    assert 1 == len(result.stderr.splitlines())
    assert "callback's jar" in result.stderr
