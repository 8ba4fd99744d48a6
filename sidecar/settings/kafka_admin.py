"""Checks that the settings ``kafka.admin.*`` fit together, by the Java client's rules.

- Credentials without a SASL protocol are refused, because they would not be used. User and password
  are either two settings or in sasl.jaas.config. For OAUTHBEARER, a separate setting takes
  precedence over the same option in sasl.jaas.config.
- TLS material is a file or its text. A certificate needs its key, and only the key can have a
  password. The Java client's default format of stores is JKS, which only Java reads. So a JKS or
  PKCS12 store is refused with the commands that convert it.

Example: mechanism PLAIN with a username and no password is one problem.
"""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from sidecar.formats import jaas
from sidecar.settings import keys
from sidecar.settings.model import KafkaAdmin
from sidecar.settings.report import Problems

_PREFIX: Final = "kafka_admin_"
_FOR_USER: Final = ("sasl_username", "sasl_password", "sasl_password_file")
_CLIENT: Final = "sasl_oauthbearer_client_credentials_client"
_TOKEN_URL, _SCOPE = "sasl_oauthbearer_token_endpoint_url", "sasl_oauthbearer_scope"
_FOR_CLIENT: Final = (_TOKEN_URL, f"{_CLIENT}_id", f"{_CLIENT}_secret", _SCOPE)
_IN_SETTINGS: Final = (
    "sasl_password",
    "sasl_jaas_config",
    f"{_CLIENT}_secret",
    "ssl_truststore_certificates",
    "ssl_keystore_certificate_chain",
    "ssl_keystore_key",
    "ssl_key_password",
)
"""The secrets and certificates that a settings file may contain."""
_ONE_OF: Final = (
    ("ssl_keystore_certificate_chain", "ssl_keystore_location"),
    ("ssl_keystore_key", "ssl_keystore_location"),
    ("ssl_keystore_key", "ssl_keystore_key_location"),
)
_NEEDS: Final = (
    ("ssl_keystore_certificate_chain", "ssl_keystore_key", "key"),
    ("ssl_keystore_key", "ssl_keystore_certificate_chain", "certificates"),
    ("ssl_keystore_key_location", "ssl_keystore_location", "certificates"),
)
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
    """Return the connection settings, with the credentials of sasl.jaas.config in their own fields.

    Args:
        admin: the values, each valid by itself; None when none is set.
        problems: gets each conflict between settings.
        is_required: False when the sidecar is disabled.

    Returns:
        None when no servers are set, which is a problem only if they are required.
    """
    check = _Check(admin or KafkaAdmin(), problems)
    if not is_required and not check.are_set("bootstrap_servers"):
        return None
    missing = "is required: the brokers to contact first, as host:port,host:port"
    check.require("bootstrap_servers", missing)
    credentials = check.sasl()
    check.store("truststore", (("ssl_truststore_certificates", "ssl_truststore_location"),), ())
    check.store("keystore", _ONE_OF, _NEEDS)
    entries = (problems.entries.get(_PREFIX + name) for name in _IN_SETTINGS)
    files = dict.fromkeys(entry.file for entry in entries if entry and entry.file)
    places = {"settings_source": problems.place, "settings_files": tuple(files)}
    return check.admin.model_copy(update={**credentials, **places})


def unused_tls(admin: KafkaAdmin | None, problems: Problems) -> Iterator[str]:
    """Yield a notice for TLS material that the protocol doesn't use."""
    fields = [name for name in keys.FIELDS if name.startswith(f"{_PREFIX}ssl_")]
    names = ", ".join(problems.name(field) for field in fields if problems.are_set(field))
    if admin is not None and names and not admin.security_protocol.endswith("SSL"):
        yield f"{names}: no effect, since security.protocol is {admin.security_protocol}"


class _Check:
    """The rules; settings are called by their names after ``kafka_admin_``."""

    def __init__(self, admin: KafkaAdmin, problems: Problems) -> None:
        self.admin = admin
        self._problems = problems

    def are_set(self, *names: str) -> int:
        return self._problems.are_set(*(_PREFIX + name for name in names))

    def name(self, name: str) -> str:
        return self._problems.name(_PREFIX + name)

    def add(self, name: str, sentence: str) -> None:
        self._problems.add(_PREFIX + name, sentence)

    def require(self, name: str, sentence: str) -> None:
        if not self.are_set(name):
            self.add(name, sentence)

    def refuse(self, sentence: str, *names: str) -> None:
        for name in names:
            if self.are_set(name):
                self.add(name, sentence)

    def one_of(self, name: str, other: str) -> None:
        if self.are_set(other):
            self.refuse(f"is set besides {self.name(other)}: set one of the two", name)

    def sasl(self) -> Mapping[str, object]:
        """Return the credentials that fit protocol and mechanism, by field."""
        protocol, mechanism = self.admin.security_protocol, self.admin.sasl_mechanism
        if not protocol.startswith("SASL_"):
            if f"{_PREFIX}security_protocol" not in self._problems.wrong:
                meant = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT or SASL_SSL"
                sentence = f"isn't used, since security.protocol is {protocol}: was {meant} meant?"
                given = ("sasl_mechanism", "sasl_jaas_config", *_FOR_USER, *_FOR_CLIENT)
                self.refuse(sentence, *given)
            return {}
        if mechanism is None:
            words = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER"
            self.require("sasl_mechanism", f"{protocol} needs one of {words}")
            return {}
        if mechanism == "OAUTHBEARER":
            self.refuse("is for PLAIN and SCRAM, and the mechanism is OAUTHBEARER", *_FOR_USER)
            options = self._jaas_options(jaas.OAUTHBEARER)
            return {} if options is None else self._client(options)
        self.refuse(f"is for OAUTHBEARER, and the mechanism is {mechanism}", *_FOR_CLIENT)
        options = self._jaas_options(jaas.PLAIN if mechanism == "PLAIN" else jaas.SCRAM)
        return {} if options is None else self._user(options)

    def _jaas_options(self, module: str) -> Mapping[str, str] | None:
        """Return the options of sasl.jaas.config; empty if not set, None if it can't be used."""
        if self.admin.sasl_jaas_config is None:
            return None if self.are_set("sasl_jaas_config") else {}
        try:
            name, options = jaas.parse_jaas(self.admin.sasl_jaas_config.get_secret_value())
        except ValueError as error:
            self.add("sasl_jaas_config", str(error))
            return None
        if name != module:
            other = f"is for another mechanism than {self.admin.sasl_mechanism}"
            self.add("sasl_jaas_config", f"{other}, which needs {module}")
            return None
        return options

    def _user(self, options: Mapping[str, str]) -> Mapping[str, object]:
        if self.are_set("sasl_jaas_config"):
            for name in _FOR_USER:
                self.one_of(name, "sasl_jaas_config")
            username, password = options.get("username"), options.get("password")
            if not username or not password:
                self.add("sasl_jaas_config", "needs the options username and password")
            named = (self.name("sasl_jaas_config"),)
            secret = SecretStr(password or "")
            return {
                "sasl_username": username,
                "sasl_password": secret,
                "sasl_setting_names": named,
            }
        self._require_for_mechanism("sasl_username", "a user")
        self.one_of("sasl_password", "sasl_password_file")
        by = "sasl_password_file" if self.are_set("sasl_password_file") else "sasl_password"
        self._require_for_mechanism(by, "a password")
        return {"sasl_setting_names": (self.name("sasl_username"), self.name(by))}

    def _client(self, options: Mapping[str, str]) -> Mapping[str, object]:
        self._require_for_mechanism(_TOKEN_URL, "the address of a token endpoint")
        if not options.get("clientId"):
            self._require_for_mechanism(f"{_CLIENT}_id", "a client id")
        if not options.get("clientSecret"):
            self._require_for_mechanism(f"{_CLIENT}_secret", "a client secret")
        secret = self.admin.sasl_oauthbearer_client_credentials_client_secret
        client_id = self.admin.sasl_oauthbearer_client_credentials_client_id
        return {
            f"{_CLIENT}_id": client_id or options.get("clientId"),
            f"{_CLIENT}_secret": secret or SecretStr(options.get("clientSecret", "")),
            _SCOPE: self.admin.sasl_oauthbearer_scope or options.get("scope"),
        }

    def _require_for_mechanism(self, name: str, what: str) -> None:
        self.require(
            name, f"the mechanism {self.admin.sasl_mechanism} needs {what}, and none is set"
        )

    def store(
        self,
        store: str,
        one_of: tuple[tuple[str, str], ...],
        needs: tuple[tuple[str, str, str], ...],
    ) -> None:
        """Check that a store is PEM and that its parts fit together."""
        location: Path | None = getattr(self.admin, f"ssl_{store}_location")
        named: str | None = getattr(self.admin, f"ssl_{store}_type")
        form = named or (_FORMS.get(location.suffix.lower(), "PEM") if location else "PEM")
        if form != "PEM":
            target = location or Path(f"{store}.{form.lower()}")
            name = f"ssl_{store}_{'location' if location else 'type'}"
            self.add(name, _how_to_convert(store, form, target))
            return
        other = ": a key's is ssl.key.password" if store == "keystore" else ""
        self.refuse(f"a PEM {store} has no password{other}", f"ssl_{store}_password")
        for pair in one_of:
            self.one_of(*pair)
        for name, needed, what in needs:
            if not self.are_set(needed):
                self.refuse(f"needs its {what} in {self.name(needed)}", name)


def _how_to_convert(store: str, form: str, location: Path) -> str:
    written, pkcs12, target = (
        shlex.quote(str(path))
        for path in (location, location.with_suffix(".p12"), location.with_suffix(".pem"))
    )
    what = "-nokeys" if store == "truststore" else "-nodes"
    commands = f"openssl pkcs12 -in {written} {what} -out {target}"
    if form == "JKS":
        commands = (
            f"keytool -importkeystore -srckeystore {written} -destkeystore {pkcs12}"
            f" -deststoretype PKCS12 && openssl pkcs12 -in {pkcs12} {what} -out {target}"
        )
    return (
        f"a {form} store can't be read here; convert it with: {commands} and set"
        f" ssl.{store}.type=PEM and ssl.{store}.location={target}"
    )
