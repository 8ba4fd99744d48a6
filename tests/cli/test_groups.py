"""Groups of commands: their help, and what they import."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from sidecar.cli import callback, group, quotas

GROUPS = {"callback": callback.SUBCOMMANDS, "quotas": quotas.SUBCOMMANDS}


@pytest.mark.parametrize("of", GROUPS)
def test_help_imports_no_subcommand(of: str) -> None:
    """Each is listed with its short help; neither their modules nor a client are imported."""
    code = (
        "import sys\nfrom sidecar.cli import group\n"
        f"group.main(['{of}', '--help'], 'throttle-sidecar', standalone_mode=False)\n"
        "print(sorted(m for m in sys.modules if m.startswith(('sidecar.', 'pydantic', 'rich'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    for name, summary in GROUPS[of].items():
        assert f"  {name} " in done.stdout
        assert summary in done.stdout
    expected = f"['sidecar.cli', 'sidecar.cli.{of}', 'sidecar.errors']"
    assert expected == done.stdout.splitlines()[-1]


@pytest.mark.parametrize(("of", "name"), [(of, name) for of in GROUPS for name in GROUPS[of]])
def test_every_subcommand_has_examples(of: str, name: str) -> None:
    """Lines to copy, at the end of its help."""
    result = CliRunner().invoke(group, [of, name, "--help"])
    assert 0 == result.exit_code
    _, _, examples = result.output.partition("Examples:")
    assert f"  throttle-sidecar {of} {name} " in examples
