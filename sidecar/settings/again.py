"""The part of the settings that a running daemon reads again, and the part that needs a restart.

A running daemon uses new TLS material, a new password and a new token. All files but the token's
are read here, so that later no connection reads a file. A settings file with a secret in it is read
again too, and only its credentials and certificates are used.

Example: the file in ``kafka_admin.sasl_password_file`` has a new password: ``read_again`` returns
the same settings with that password, and ``with_former`` adds the one before.
"""

import errno
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from sidecar.errors import SettingsError
from sidecar.settings import keys
from sidecar.settings.model import KafkaAdmin, PemFiles, Settings
from sidecar.settings.sources import read_password
from sidecar.settings.values import Place

_READ_AGAIN: Final = frozenset(
    {"kafka_admin", "token_file", "webhook_secret_file", "webhook_url_file"}
)
_CREDENTIALS: Final = tuple(
    name
    for name in KafkaAdmin.model_fields
    if name.startswith(("sasl_", "ssl_keystore_", "ssl_key_")) and name != "sasl_mechanism"
)


_FROM_SETTINGS: Final = (
    *_CREDENTIALS,
    "ssl_truststore_location",
    "ssl_truststore_certificates",
    "ssl_truststore_password",
    "settings_files",
)
"""What is used of a settings file that has changed."""


def secret_files(settings: Settings) -> tuple[Path, ...]:
    """Return the files with secrets, certificates and keys.

    The machine's CA certificates are among them if they are in one file (``SSL_CERT_FILE``), and
    brokers or the token endpoint are trusted because of them.
    """
    admin = settings.kafka_admin
    files = [
        settings.token_file,
        settings.http_ssl_certificate_file,
        settings.http_ssl_key_file,
        settings.http_ssl_client_ca_file,
        settings.http_ssl_ca_file,
        settings.webhook_secret_file,
        settings.webhook_url_file,
    ]
    if admin is not None:
        # It is None if there is no such file, which typeshed does not know.
        if admin.trusts_system and (system := ssl.get_default_verify_paths().cafile):
            files.append(Path(system))
        files += [
            admin.sasl_password_file,
            admin.ssl_truststore_location,
            admin.ssl_keystore_location,
            admin.ssl_keystore_key_location,
            *admin.settings_files,
        ]
    return tuple(dict.fromkeys(file for file in files if file is not None))


def read_again(settings: Settings, load: Callable[[], Settings] | None = None) -> Settings:
    """Return the settings with the contents that the files have now.

    Args:
        settings: the settings.
        load: loads them again, if there is a secret in a settings file; None if they are new.

    Raises:
        SettingsError: the file with the password can't be read, or has no password. The settings
            file has a mistake, or another way to log in.
    """
    admin = settings.kafka_admin
    if admin is None:
        return settings
    if load is not None and admin.settings_files:
        admin = _with_secrets(admin, load())
        settings = settings.model_copy(update={"kafka_admin": admin})
    trusted, keystore, key = locations = (
        admin.ssl_truststore_location,
        admin.ssl_keystore_location,
        admin.ssl_keystore_key_location,
    )
    update: dict[str, object] = {}
    if locations != (None, None, None):
        update["files"] = PemFiles(
            _contents(trusted, ca_certificates), _contents(keystore), _contents(key)
        )
    if admin.sasl_password_file is not None:
        try:
            update["sasl_password"] = SecretStr(read_password(str(admin.sasl_password_file)))
        except ValueError as error:
            name = keys.name_in(admin.settings_source, "kafka_admin_sasl_password_file")
            raise SettingsError((f"{name}: {error}",)) from None
    if not update:
        return settings
    return settings.model_copy(update={"kafka_admin": admin.model_copy(update=update)})


def _with_secrets(admin: KafkaAdmin, loaded: Settings) -> KafkaAdmin:
    new = loaded.kafka_admin
    if new is None or _way_of(new) != _way_of(admin):
        files = ", ".join(map(str, admin.settings_files))
        raise SettingsError((f"{files}: SIGHUP or a restart changes how the sidecar logs in",))
    return admin.model_copy(update={name: getattr(new, name) for name in _FROM_SETTINGS})


def ca_certificates(place: Path) -> bytes:
    """Return the content of a file, or that of all files ``*.crt`` in a folder.

    Strimzi keeps the certificates of a replaced CA as ``ca-DATE.crt`` beside ``ca.crt``.

    Raises:
        OSError: a file can't be read, or the folder has no such file.
    """
    if not place.is_dir():
        return place.read_bytes()
    # Unlike glob, iterdir fails if the folder may not be listed.
    if not (files := sorted(each for each in place.iterdir() if each.suffix == ".crt")):
        raise FileNotFoundError(errno.ENOENT, "the folder has no file *.crt", str(place))
    return b"\n".join(file.read_bytes() for file in files)


def _contents(file: Path | None, read: Callable[[Path], bytes] = Path.read_bytes) -> bytes | None:
    try:
        return None if file is None else read(file)
    except OSError:
        # Whoever loads the certificates says why.
        return None


def with_former(admin: KafkaAdmin, before: KafkaAdmin, *, is_refused: bool) -> KafkaAdmin:
    """Return connection settings that also have the former password, certificate and key.

    The former CA certificates are not among them: a CA that leaves the file is no longer trusted.

    Args:
        admin: the new settings.
        before: those that they replace.
        is_refused: whether brokers refused the credentials of ``before``. Then the former ones
            are those before them.
    """
    admin = admin.model_copy(update={"former": None})
    for each in (None if is_refused else before, before.former):
        if each is None or _way_of(each) != _way_of(admin):
            continue
        update = {name: getattr(each, name) for name in _CREDENTIALS}
        if admin.files is not None and each.files is not None:
            keystore, key = each.files.keystore, each.files.key
            update["files"] = replace(admin.files, keystore=keystore, key=key)
        former = admin.model_copy(update=update)
        if former != admin:
            return admin.model_copy(update={"former": former})
    return admin


def _way_of(admin: KafkaAdmin) -> tuple[str, str | None]:
    return admin.security_protocol, admin.sasl_mechanism


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
