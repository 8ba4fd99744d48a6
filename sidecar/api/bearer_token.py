"""The bearer token for changes: one line in a file, never repeated, not even in part."""

from pathlib import Path

from sidecar.errors import SettingsError


def read_token(path: Path) -> str:
    """The token in a file.

    Raises:
        SettingsError: it can't be read, or has no token in it.
    """
    try:
        token = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError((f"the token file {path} can't be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise SettingsError((f"the token file {path} is not text",)) from error
    # What a request's header can't carry would be refused at each request, without a reason.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError((f"the token file {path} is not one line with a token",))
    return token
