"""What the settings ``kafka.admin.*`` have to be together, by the Java client's rules.

- Credentials without a SASL protocol are refused: whoever set them believes that they are used. User
  and password are either two settings or in sasl.jaas.config; for OAUTHBEARER a setting of its own
  wins over the same option in sasl.jaas.config.
- TLS material is a file or its text, a certificate comes with its key, and a password is for the
  key alone. The Java client's default form of stores is JKS, which only Java reads: a JKS or PKCS12
  store is refused with the commands that convert it.

Example: mechanism PLAIN with a username and no password is one problem.
"""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from sidecar.settings import jaas, keys
from sidecar.settings.model import KafkaAdmin
from sidecar.settings.problems import Problems

_SASL: Final = "kafka_admin_sasl_"
_MECHANISM, _JAAS = f"{_SASL}mechanism", f"{_SASL}jaas_config"
_USERNAME, _PASSWORD = f"{_SASL}username", f"{_SASL}password"
_PASSWORD_FILE: Final = f"{_SASL}password_file"
_TOKEN_URL: Final = f"{_SASL}oauthbearer_token_endpoint_url"
_CLIENT_ID: Final = f"{_SASL}oauthbearer_client_credentials_client_id"
_CLIENT_SECRET: Final = f"{_SASL}oauthbearer_client_credentials_client_secret"
_FOR_USER: Final = (_USERNAME, _PASSWORD, _PASSWORD_FILE)
_FOR_CLIENT: Final = (_TOKEN_URL, _CLIENT_ID, _CLIENT_SECRET, f"{_SASL}oauthbearer_scope")

_SSL: Final = "kafka_admin_ssl_"
_CHAIN, _KEY = f"{_SSL}keystore_certificate_chain", f"{_SSL}keystore_key"
_KEYSTORE, _KEY_LOCATION = f"{_SSL}keystore_location", f"{_SSL}keystore_key_location"
_FORMS: Final = {
    ".jks": "JKS",
    ".keystore": "JKS",
    ".truststore": "JKS",
    ".p12": "PKCS12",
    ".pfx": "PKCS12",
}


def check_admin(
    admin: KafkaAdmin | None, problems: Problems, *, is_required: bool
) -> KafkaAdmin | None:
    """How to reach the brokers, with the credentials of sasl.jaas.config in their own fields.

    Args:
        admin: the values, each good by itself; None when none is set.
        problems: gets what doesn't fit together.
        is_required: False when the sidecar is disabled.

    Returns:
        None when no servers are set, which is a problem only if they are required.
    """
    servers = "kafka_admin_bootstrap_servers"
    if not problems.is_set(servers):
        if not is_required:
            return None
        problems.add(servers, "is required: the brokers to dial first, as host:port,host:port")
    admin = admin or KafkaAdmin()
    credentials = _check_sasl(admin, problems)
    for store in ("truststore", "keystore"):
        _check_store(store, admin, problems)
    return admin.model_copy(update={**credentials, "settings_source": problems.place})


def unused_tls(admin: KafkaAdmin | None, problems: Problems) -> Iterator[str]:
    """A notice when TLS material is set that the protocol doesn't use."""
    unused = [field for field in keys.FIELDS if field.startswith(_SSL) and problems.is_set(field)]
    if admin is not None and unused and not admin.security_protocol.endswith("SSL"):
        names = ", ".join(map(problems.name, unused))
        yield f"{names}: no effect, since security.protocol is {admin.security_protocol}"


def _check_sasl(admin: KafkaAdmin, problems: Problems) -> Mapping[str, object]:
    """The credentials that fit protocol and mechanism, by their fields."""
    protocol, mechanism = admin.security_protocol, admin.sasl_mechanism
    if not protocol.startswith("SASL_"):
        if "kafka_admin_security_protocol" not in problems.wrong:
            meant = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT or SASL_SSL"
            sentence = f"isn't used, since security.protocol is {protocol}: was {meant} meant?"
            _refuse((_MECHANISM, _JAAS, *_FOR_USER, *_FOR_CLIENT), sentence, problems)
        return {}
    if mechanism is None:
        if not problems.is_set(_MECHANISM):
            words = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER"
            problems.add(_MECHANISM, f"{protocol} needs one of {words}")
        return {}
    if mechanism == "OAUTHBEARER":
        _refuse(_FOR_USER, "is for PLAIN and SCRAM, and the mechanism is OAUTHBEARER", problems)
        return _client(admin, _jaas_options(admin, jaas.OAUTHBEARER, problems), problems)
    _refuse(_FOR_CLIENT, f"is for OAUTHBEARER, and the mechanism is {mechanism}", problems)
    module = jaas.PLAIN if mechanism == "PLAIN" else jaas.SCRAM
    return _user(admin, _jaas_options(admin, module, problems), problems)


def _refuse(fields: tuple[str, ...], sentence: str, problems: Problems) -> None:
    for field in fields:
        if problems.is_set(field):
            problems.add(field, sentence)


def _jaas_options(admin: KafkaAdmin, module: str, problems: Problems) -> Mapping[str, str] | None:
    """The options of sasl.jaas.config; empty when it isn't set, None when it can't be used."""
    if admin.sasl_jaas_config is None:
        return None if problems.is_set(_JAAS) else {}
    try:
        name, options = jaas.parse_jaas(admin.sasl_jaas_config.get_secret_value())
    except ValueError as error:
        problems.add(_JAAS, str(error))
        return None
    if name != module:
        mechanism = admin.sasl_mechanism
        problems.add(_JAAS, f"is for another mechanism than {mechanism}, which needs {module}")
        return None
    return options


def _user(
    admin: KafkaAdmin, options: Mapping[str, str] | None, problems: Problems
) -> Mapping[str, object]:
    if options is None:
        return {}
    if problems.is_set(_JAAS):
        _refuse(_FOR_USER, f"is set besides {problems.name(_JAAS)}: set one of the two", problems)
        username, password = options.get("username"), options.get("password")
        if not username or not password:
            problems.add(_JAAS, "needs the options username and password")
        return {
            "sasl_username": username,
            "sasl_password": SecretStr(password or ""),
            "sasl_setting_names": (problems.name(_JAAS),),
        }
    _require(_USERNAME, admin, "a user", problems)
    if problems.is_set(_PASSWORD_FILE):
        _one_of(_PASSWORD, _PASSWORD_FILE, problems)
    else:
        _require(_PASSWORD, admin, "a password", problems)
    password_field = _PASSWORD_FILE if problems.is_set(_PASSWORD_FILE) else _PASSWORD
    return {"sasl_setting_names": (problems.name(_USERNAME), problems.name(password_field))}


def _client(
    admin: KafkaAdmin, options: Mapping[str, str] | None, problems: Problems
) -> Mapping[str, object]:
    if options is None:
        return {}
    _require(_TOKEN_URL, admin, "the address of a token endpoint", problems)
    if not options.get("clientId"):
        _require(_CLIENT_ID, admin, "a client id", problems)
    if not options.get("clientSecret"):
        _require(_CLIENT_SECRET, admin, "a client secret", problems)
    client_id = admin.sasl_oauthbearer_client_credentials_client_id
    secret = admin.sasl_oauthbearer_client_credentials_client_secret
    return {
        "sasl_oauthbearer_client_credentials_client_id": client_id or options.get("clientId"),
        "sasl_oauthbearer_client_credentials_client_secret": secret
        or SecretStr(options.get("clientSecret", "")),
        "sasl_oauthbearer_scope": admin.sasl_oauthbearer_scope or options.get("scope"),
    }


def _require(field: str, admin: KafkaAdmin, what: str, problems: Problems) -> None:
    if not problems.is_set(field):
        problems.add(field, f"the mechanism {admin.sasl_mechanism} needs {what}, and none is set")


def _check_store(store: str, admin: KafkaAdmin, problems: Problems) -> None:
    """A store is PEM and its parts fit together; if it is not, how to make it PEM."""
    location: Path | None = getattr(admin, f"ssl_{store}_location")
    named: str | None = getattr(admin, f"ssl_{store}_type")
    form = named or (_FORMS.get(location.suffix.lower(), "PEM") if location else "PEM")
    if form != "PEM":
        field = f"{_SSL}{store}_{'location' if location else 'type'}"
        target = location or Path(f"{store}.{form.lower()}")
        problems.add(field, _how_to_convert(store, form, target))
        return
    if problems.is_set(f"{_SSL}{store}_password"):
        other = ": a key's is ssl.key.password" if store == "keystore" else ""
        problems.add(f"{_SSL}{store}_password", f"a PEM {store} has no password{other}")
    if store == "truststore":
        _one_of(f"{_SSL}truststore_certificates", f"{_SSL}truststore_location", problems)
        return
    _one_of(_CHAIN, _KEYSTORE, problems)
    _one_of(_KEY, _KEYSTORE, problems)
    _one_of(_KEY, _KEY_LOCATION, problems)
    for field, other, what in (
        (_CHAIN, _KEY, "key"),
        (_KEY, _CHAIN, "certificates"),
        (_KEY_LOCATION, _KEYSTORE, "certificates"),
    ):
        if problems.is_set(field) and not problems.is_set(other):
            problems.add(field, f"needs its {what} in {problems.name(other)}")


def _how_to_convert(store: str, form: str, location: Path) -> str:
    written, pkcs12, target = (
        shlex.quote(str(path))
        for path in (location, location.with_suffix(".p12"), location.with_suffix(".pem"))
    )
    commands = ""
    if form == "JKS":
        commands = (
            f"keytool -importkeystore -srckeystore {written} -destkeystore {pkcs12}"
            " -deststoretype PKCS12 && "
        )
    source = pkcs12 if form == "JKS" else written
    what = "-nokeys" if store == "truststore" else "-nodes"
    return (
        f"a {form} store can't be read here; convert it with: {commands}openssl pkcs12 -in {source}"
        f" {what} -out {target} and set ssl.{store}.type=PEM and ssl.{store}.location={target}"
    )


def _one_of(field: str, other: str, problems: Problems) -> None:
    if problems.is_set(field) and problems.is_set(other):
        problems.add(field, f"is set besides {problems.name(other)}: set one of the two")
