"""Checks the files that the daemon needs at its start, for ``run`` and ``check``.

Example: a missing token file stops ``run`` and ``check`` with the same line, before any broker is
contacted.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sidecar.api.bearer_token import read_token
from sidecar.control.capability import Build
from sidecar.daemon.api_tls import ApiTls
from sidecar.daemon.capabilities import prepare_all
from sidecar.daemon.sources import Quotas, Source, factor_source, quota_source
from sidecar.errors import SettingsError
from sidecar.settings import Settings


@dataclass(frozen=True, slots=True)
class StartFiles:
    """The result of reading and checking the files.

    Attributes:
        token: the token for changes; None refuses them.
        capabilities: name -> the function that builds the capability.
        factor_source: returns the factor; None if the volumes decide.
        quota_source: returns the quotas to set in Kafka; None to set none.
        tls: the TLS material of the API.
    """

    token: str | None
    capabilities: Mapping[str, Build]
    factor_source: Source[float] | None
    quota_source: Source[Quotas] | None
    tls: ApiTls


def read_start_files(settings: Settings) -> StartFiles:
    """Read and check the files as the daemon does at its start, but for the state file.

    Raises:
        SettingsError: a file can't be read, or its content is not valid.
    """
    factor, quotas = settings.factor_source, settings.quota_source
    return StartFiles(
        token_of(settings),
        prepare_all(settings),
        None if factor is None else factor_source("SIDECAR_FACTOR_SOURCE", factor),
        None if quotas is None else quota_source("SIDECAR_QUOTA_SOURCE", quotas),
        ApiTls.of(settings),
    )


def token_of(settings: Settings) -> str | None:
    """Read the token for changes; None refuses them.

    Raises:
        SettingsError: the token file can't be read, or has no token.
    """
    return read_token(settings.token_file) if settings.token_file is not None else None


def check_state_folder(state_file: Path) -> None:
    """Raise SettingsError if the state file can't be one; its disk may hang.

    Its folder has to exist. A folder or a device, such as a log dir of Kafka by mistake, would
    otherwise be renamed as a damaged state file.
    """
    folder = state_file.parent
    if not folder.is_dir():
        raise SettingsError((f"SIDECAR_STATE_FILE: the folder {folder} does not exist: create it",))
    # Unlike Path.exists, os.access returns False if the folder may not be entered.
    if os.access(state_file, os.F_OK) and not state_file.is_file():
        raise SettingsError(
            (f"SIDECAR_STATE_FILE: {state_file} is a folder or a device: name a file",)
        )
