"""``callback``: what it refuses.

``test_groups.py`` has its help, ``test_callback_jar.py`` the copying.
"""

from pathlib import Path

from click.testing import CliRunner

from sidecar.cli import group


def test_it_is_refused_in_a_line(tmp_path: Path) -> None:
    """No folder, or no jar where none was built: exit code 2, no traceback."""
    result = CliRunner().invoke(group, ["callback", "copy", str(tmp_path / "nowhere")])
    assert (2, "") == (result.exit_code, result.stdout)
    assert 1 == len(result.stderr.splitlines())
    assert "callback's jar" in result.stderr
