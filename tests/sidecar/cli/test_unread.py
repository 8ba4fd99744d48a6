"""``unread``: what is wrong with a file of owners is told before any broker is asked."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sidecar.cli import group


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "can't be read: No such file or directory"),
        (b"[", "is not TOML: "),
        (b"\xff", "is not TOML: "),
        (b"[shop]\ntopic = []", "shop.topic is not a key here; use users, client_ids, topics"),
    ],
)
def test_what_is_wrong_with_the_owners(tmp_path: Path, content: bytes | None, problem: str) -> None:
    """The message names the file."""
    path = tmp_path / "owners.toml"
    if content is not None:
        path.write_bytes(content)
    words = ["unread", "--owners", str(path), "--bootstrap-server", "127.0.0.1:1"]
    result = CliRunner().invoke(group, words)
    assert 2 == result.exit_code
    assert str(path) in result.stderr
    assert problem in result.stderr
