"""The part of the settings that a running daemon reads again, and the part that needs a restart.

A running daemon uses new TLS material, a new password and a new token. The password file is read
here; whoever uses the other files reads them.

Example: the file in ``kafka_admin.sasl_password_file`` has a new password: ``read_again`` returns
the same settings with that password.
"""

from pathlib import Path
from typing import Final

from pydantic import SecretStr

from sidecar.errors import SettingsError
from sidecar.settings import keys
from sidecar.settings.model import Settings
from sidecar.settings.sources import read_password
from sidecar.settings.values import Place

_READ_AGAIN: Final = frozenset({"kafka_admin", "token_file"})


def secret_files(settings: Settings) -> tuple[Path, ...]:
    """Return the files with secrets, certificates and keys."""
    admin = settings.kafka_admin
    files = [settings.token_file]
    if admin is not None:
        files += [
            admin.sasl_password_file,
            admin.ssl_truststore_location,
            admin.ssl_keystore_location,
            admin.ssl_keystore_key_location,
        ]
    return tuple(dict.fromkeys(file for file in files if file is not None))


def read_again(settings: Settings) -> Settings:
    """Return the settings with the password that is in its file now.

    Raises:
        SettingsError: the file can't be read, or has no password.
    """
    admin = settings.kafka_admin
    if admin is None or admin.sasl_password_file is None:
        return settings
    try:
        password = read_password(str(admin.sasl_password_file))
    except ValueError as error:
        name = keys.name_in(admin.settings_source, "kafka_admin_sasl_password_file")
        raise SettingsError((f"{name}: {error}",)) from None
    admin = admin.model_copy(update={"sasl_password": SecretStr(password)})
    return settings.model_copy(update={"kafka_admin": admin})


def need_restart(running: Settings, loaded: Settings) -> tuple[str, ...]:
    """Return the names of the settings that differ and are not read again.

    Args:
        running: the settings that the daemon started with.
        loaded: the settings as they are now.
    """
    place: Place = (
        "environment" if loaded.kafka_admin is None else loaded.kafka_admin.settings_source
    )
    names = [
        info.alias or name
        for name, info in Settings.model_fields.items()
        if name not in _READ_AGAIN and getattr(running, name) != getattr(loaded, name)
    ]
    if (running.kafka_admin is None) != (loaded.kafka_admin is None):
        names.append("kafka_admin_bootstrap_servers")
    return tuple(keys.name_in(place, name) for name in names)
