"""The group ``quotas``: what it refuses. ``test_groups.py`` has its help."""

from click.testing import CliRunner

from sidecar.cli import group


def test_an_unknown_subcommand_is_a_usage_error() -> None:
    """Exit code 2, as for every wrong use."""
    result = CliRunner().invoke(group, ["quotas", "nope"])
    assert 2 == result.exit_code
    assert "No such command 'nope'" in result.stderr
