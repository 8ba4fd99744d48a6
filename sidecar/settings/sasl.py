"""The credentials for SASL, from whichever settings have them.

Credentials without a SASL protocol are refused: whoever set them believes that they are used. User
and password are either two settings or in sasl.jaas.config; for OAUTHBEARER a setting of its own
wins over the same option in sasl.jaas.config, as in the Java client.

Example: mechanism PLAIN with a username and no password is one problem.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from sidecar.settings import jaas
from sidecar.settings.fields import RawSettings
from sidecar.settings.problem_list import Problems

_SASL = "kafka_admin_sasl_"
_MECHANISM = f"{_SASL}mechanism"
_JAAS = f"{_SASL}jaas_config"
_USERNAME, _PASSWORD = f"{_SASL}username", f"{_SASL}password"
_PASSWORD_FILE = f"{_SASL}password_file"
_TOKEN_URL = f"{_SASL}oauthbearer_token_endpoint_url"
_CLIENT_ID = f"{_SASL}oauthbearer_client_credentials_client_id"
_CLIENT_SECRET = f"{_SASL}oauthbearer_client_credentials_client_secret"
_SCOPE = f"{_SASL}oauthbearer_scope"

_FOR_USER = (_USERNAME, _PASSWORD, _PASSWORD_FILE)
_FOR_CLIENT = (_TOKEN_URL, _CLIENT_ID, _CLIENT_SECRET, _SCOPE)


@dataclass(frozen=True, slots=True)
class Sasl:
    """What ``KafkaAdmin`` has of SASL; all None without it."""

    username: str | None = None
    password: SecretStr | None = None
    token_url: str | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None
    scope: str | None = None
    setting_names: tuple[str, ...] = ()
    """The names of the settings of user and password."""


def resolve_sasl(raw: RawSettings, problems: Problems) -> Sasl:
    """The credentials that fit the protocol and the mechanism; what doesn't fit is a problem."""
    if not raw.kafka_admin_security_protocol.startswith("SASL_"):
        _refuse_without_protocol(raw, problems)
        return Sasl()
    mechanism = raw.kafka_admin_sasl_mechanism
    if mechanism is None:
        if not problems.is_set(_MECHANISM):
            problems.add(
                _MECHANISM,
                f"{raw.kafka_admin_security_protocol} needs one of PLAIN, SCRAM-SHA-256,"
                " SCRAM-SHA-512 and OAUTHBEARER",
            )
        return Sasl()
    if mechanism == "OAUTHBEARER":
        _refuse(_FOR_USER, "is for PLAIN and SCRAM, and the mechanism is OAUTHBEARER", problems)
        return _client(raw, _jaas_options(raw, jaas.OAUTHBEARER, problems), problems)
    _refuse(_FOR_CLIENT, f"is for OAUTHBEARER, and the mechanism is {mechanism}", problems)
    module = jaas.PLAIN if mechanism == "PLAIN" else jaas.SCRAM
    return _user(raw, _jaas_options(raw, module, problems), problems)


def _refuse_without_protocol(raw: RawSettings, problems: Problems) -> None:
    if problems.is_set("kafka_admin_security_protocol") and "kafka_admin_security_protocol" not in (
        raw.model_fields_set
    ):
        return  # a malformed protocol, which is a problem already
    protocol = raw.kafka_admin_security_protocol
    meant = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT or SASL_SSL"
    sentence = f"isn't used, since security.protocol is {protocol}: was {meant} meant?"
    _refuse((_MECHANISM, _JAAS, *_FOR_USER, *_FOR_CLIENT), sentence, problems)


def _refuse(fields: tuple[str, ...], sentence: str, problems: Problems) -> None:
    for field in fields:
        if problems.is_set(field):
            problems.add(field, sentence)


def _jaas_options(raw: RawSettings, module: str, problems: Problems) -> Mapping[str, str] | None:
    """The options of sasl.jaas.config; empty when it isn't set, None when it can't be used."""
    written = raw.kafka_admin_sasl_jaas_config
    if written is None:
        return None if problems.is_set(_JAAS) else {}
    try:
        login = jaas.parse_jaas(written.get_secret_value())
    except ValueError as error:
        problems.add(_JAAS, str(error))
        return None
    if login.name != module:
        mechanism = raw.kafka_admin_sasl_mechanism
        problems.add(_JAAS, f"is for another mechanism than {mechanism}, which needs {module}")
        return None
    return login.options


def _user(raw: RawSettings, options: Mapping[str, str] | None, problems: Problems) -> Sasl:
    if options is None:
        return Sasl()
    if problems.is_set(_JAAS):
        _refuse(_FOR_USER, f"is set besides {problems.name(_JAAS)}: set one of the two", problems)
        username, password = options.get("username"), options.get("password")
        if not username or not password:
            problems.add(_JAAS, "needs the options username and password")
        named = (problems.name(_JAAS),)
        return Sasl(username=username, password=SecretStr(password or ""), setting_names=named)
    if not problems.is_set(_USERNAME):
        problems.add(_USERNAME, _missing(raw, "a user"))
    password_field = _PASSWORD_FILE if problems.is_set(_PASSWORD_FILE) else _PASSWORD
    return Sasl(
        username=raw.kafka_admin_sasl_username,
        password=_password(raw, problems),
        setting_names=(problems.name(_USERNAME), problems.name(password_field)),
    )


def _password(raw: RawSettings, problems: Problems) -> SecretStr | None:
    if problems.is_set(_PASSWORD) and problems.is_set(_PASSWORD_FILE):
        problems.add(
            _PASSWORD, f"is set besides {problems.name(_PASSWORD_FILE)}: set one of the two"
        )
    elif raw.kafka_admin_sasl_password_file is not None:
        return _read_password(raw.kafka_admin_sasl_password_file, problems)
    elif not problems.is_set(_PASSWORD) and not problems.is_set(_PASSWORD_FILE):
        problems.add(_PASSWORD, _missing(raw, "a password"))
    return raw.kafka_admin_sasl_password


def _read_password(path: Path, problems: Problems) -> SecretStr | None:
    """The file's text without the line end that editors and ``echo`` add."""
    try:
        password = path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        problems.add(_PASSWORD_FILE, f"{str(path)!r} can't be read: {error.strerror}")
    except UnicodeDecodeError:
        # Without the exception, which has the file's bytes, and they are the secret.
        problems.add(_PASSWORD_FILE, f"{str(path)!r} is not UTF-8 text")
    else:
        if password:
            return SecretStr(password)
        problems.add(_PASSWORD_FILE, f"{str(path)!r} is empty")
    return None


def _client(raw: RawSettings, options: Mapping[str, str] | None, problems: Problems) -> Sasl:
    if options is None:
        return Sasl()
    if not problems.is_set(_TOKEN_URL):
        problems.add(_TOKEN_URL, _missing(raw, "the address of a token endpoint"))
    if not problems.is_set(_CLIENT_ID) and not options.get("clientId"):
        problems.add(_CLIENT_ID, _missing(raw, "a client id"))
    if not problems.is_set(_CLIENT_SECRET) and not options.get("clientSecret"):
        problems.add(_CLIENT_SECRET, _missing(raw, "a client secret"))
    return Sasl(
        token_url=raw.kafka_admin_sasl_oauthbearer_token_endpoint_url,
        client_id=raw.kafka_admin_sasl_oauthbearer_client_credentials_client_id
        or options.get("clientId"),
        client_secret=raw.kafka_admin_sasl_oauthbearer_client_credentials_client_secret
        or SecretStr(options.get("clientSecret", "")),
        scope=raw.kafka_admin_sasl_oauthbearer_scope or options.get("scope"),
    )


def _missing(raw: RawSettings, what: str) -> str:
    return f"the mechanism {raw.kafka_admin_sasl_mechanism} needs {what}, and none is set"
