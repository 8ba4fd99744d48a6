"""Reads a token or another secret: one line in a file, which no message ever quotes."""

from pathlib import Path

from sidecar.errors import SettingsError


def read_token(path: Path, what: str = "token") -> str:
    """Read the token in a file.

    Args:
        path: the file.
        what: what messages call the token.

    Raises:
        SettingsError: the file can't be read, or contains no token.
    """
    try:
        token = path.read_text(encoding="utf-8-sig").strip()
    except OSError as error:
        raise SettingsError((f"the {what} file {path} can't be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise SettingsError((f"the {what} file {path} is not text",)) from error
    # A token that a header can't contain would be refused at each request, without a reason.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError((f"the {what} file {path} is not one line with a {what}",))
    return token
