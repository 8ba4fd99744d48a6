"""The files without which the daemon does not start; ``check`` refuses what they are refused for.

Example: a token file that is not there stops ``run`` and ``check`` with the same line, before any
broker is asked.
"""

from dataclasses import dataclass
from pathlib import Path

from sidecar.api.bearer_token import read_token
from sidecar.errors import SettingsError
from sidecar.producer_ids.quota_file import IdQuotaFile
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuotas
from sidecar.settings import Settings


@dataclass(frozen=True, slots=True)
class StartFiles:
    """What they say.

    Attributes:
        token: what changes need; None refuses them.
        state_file: where the state is kept, in a folder that is there; None is nowhere.
        id_file: where users' producer id quotas are said; None is nowhere.
        id_quotas: what it says; None without it.
    """

    token: str | None
    state_file: Path | None
    id_file: IdQuotaFile | None
    id_quotas: ProducerIdQuotas | None


def read_start_files(settings: Settings) -> StartFiles:
    """Reads them as the daemon does at its start.

    Raises:
        SettingsError: one can't be read, or does not hold what it must.
    """
    token, state_file = token_of(settings), _state_file(settings)
    file = settings.producer_id_quota_file
    id_file = None if file is None else IdQuotaFile(file)
    return StartFiles(token, state_file, id_file, None if id_file is None else id_file.load())


def token_of(settings: Settings) -> str | None:
    """The token that changes need; None refuses them.

    Raises:
        SettingsError: its file can't be read, or holds no token.
    """
    return read_token(settings.token_file) if settings.token_file is not None else None


def _state_file(settings: Settings) -> Path | None:
    # Disabled, nothing is kept.
    if settings.state_file is None or settings.check_interval_s == 0.0:
        return None
    folder = settings.state_file.parent
    if not folder.is_dir():
        raise SettingsError((f"SIDECAR_STATE_FILE: the folder {folder} does not exist: create it",))
    return settings.state_file
