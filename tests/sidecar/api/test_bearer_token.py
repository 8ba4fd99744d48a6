"""The token's file is one line, and no error shows anything of it."""

from pathlib import Path

import pytest

from sidecar.api.bearer_token import read_token
from sidecar.errors import SettingsError

TOKEN = "hunter2"


def test_a_token_is_a_line(tmp_path: Path) -> None:
    """The line feed at its end is not a part of it, nor is a byte order mark."""
    path = tmp_path / "token"
    for text in (f"{TOKEN}\n", f"\ufeff{TOKEN}\r\n"):
        path.write_text(text, encoding="utf-8")
        assert TOKEN == read_token(path)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"hunter2 x", b"hunter2\nx", b"\xff", "ü".encode()]
)
def test_what_can_be_no_token_is_refused_and_not_repeated(tmp_path: Path, content: bytes) -> None:
    """It could not be sent in a header, and the error of that would show it."""
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=str(path)) as refusal:
        read_token(path)
    reported = str(refusal.value).replace(str(path), "")
    assert "hunter2" not in reported
    assert "ü" not in reported


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """The message has its name."""
    with pytest.raises(SettingsError, match="No such file"):
        read_token(tmp_path / "token")
