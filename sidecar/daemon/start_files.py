"""What the daemon needs before it starts; ``check`` refuses what it is refused for.

Example: a token file that is not there stops ``run`` and ``check`` with the same line, before any
broker is contacted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sidecar.api.bearer_token import read_token
from sidecar.control.capability import Build
from sidecar.daemon.capabilities import prepare_all
from sidecar.errors import SettingsError
from sidecar.settings import Settings


@dataclass(frozen=True, slots=True)
class StartFiles:
    """What was read and checked.

    Attributes:
        token: what changes need; None refuses them.
        state_file: where the state is stored, in a folder that is there; None is nowhere.
        capabilities: what builds each capability, by name.
    """

    token: str | None
    state_file: Path | None
    capabilities: Mapping[str, Build]


def read_start_files(settings: Settings) -> StartFiles:
    """Reads and checks as the daemon does at its start.

    Raises:
        SettingsError: a file can't be read, or does not have what it must.
    """
    return StartFiles(token_of(settings), _state_file(settings), prepare_all(settings))


def token_of(settings: Settings) -> str | None:
    """The token that changes need; None refuses them.

    Raises:
        SettingsError: its file can't be read, or has no token.
    """
    return read_token(settings.token_file) if settings.token_file is not None else None


def _state_file(settings: Settings) -> Path | None:
    # Disabled, nothing is stored.
    if settings.state_file is None or settings.check_interval_s == 0.0:
        return None
    folder = settings.state_file.parent
    if not folder.is_dir():
        raise SettingsError((f"SIDECAR_STATE_FILE: the folder {folder} does not exist: create it",))
    return settings.state_file
