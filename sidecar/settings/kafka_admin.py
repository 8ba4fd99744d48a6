"""Checks that the settings ``kafka.admin.*`` fit together, by the Java client's rules.

- Credentials without a SASL protocol are refused, because they would not be used. User and password
  are either two settings or in sasl.jaas.config. For OAUTHBEARER, a separate setting takes
  precedence over the same option in sasl.jaas.config.
- TLS material is a file or its text. A certificate needs its key. Of PEM, only the key can have a
  password. A JKS or PKCS12 store has its key in it.

Example: mechanism PLAIN with a username and no password is one problem.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, get_args

from pydantic import SecretStr

from sidecar.formats import jaas
from sidecar.settings import convert, keys
from sidecar.settings.model import KafkaAdmin
from sidecar.settings.report import Problems
from sidecar.settings.values import SaslMechanism

_PREFIX: Final = "kafka_admin_"
_FOR_USER: Final = ("sasl_username", "sasl_password", "sasl_password_file")
_CLIENT: Final = "sasl_oauthbearer_client_credentials_client"
_TOKEN_URL, _SCOPE = "sasl_oauthbearer_token_endpoint_url", "sasl_oauthbearer_scope"
_ASSERTION = "sasl_oauthbearer_assertion_file"
_FOR_CLIENT: Final = (_TOKEN_URL, f"{_CLIENT}_id", f"{_CLIENT}_secret", _ASSERTION, _SCOPE)
_KEYTAB, _PRINCIPAL = "sasl_kerberos_keytab", "sasl_kerberos_principal"
_SERVICE, _REGION = "sasl_kerberos_service_name", "sasl_aws_region"
_USED_BY: Final = {
    "PLAIN and SCRAM": _FOR_USER,
    "OAUTHBEARER": _FOR_CLIENT,
    "GSSAPI": (_KEYTAB, _PRINCIPAL),
    "AWS_MSK_IAM": (_REGION,),
}
_MODULES: Final = {
    "PLAIN": jaas.PLAIN,
    "OAUTHBEARER": jaas.OAUTHBEARER,
    "GSSAPI": jaas.KERBEROS,
    "AWS_MSK_IAM": jaas.IAM,
}
_MSK_NAME: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.(?:amazonaws\.|api\.aws)")
_IN_SETTINGS: Final = (
    "sasl_password",
    "sasl_jaas_config",
    f"{_CLIENT}_secret",
    "ssl_truststore_certificates",
    "ssl_keystore_certificate_chain",
    "ssl_keystore_key",
    "ssl_key_password",
    "ssl_truststore_password",
    "ssl_keystore_password",
)
"""The secrets and certificates that a settings file may contain."""
_ONE_OF: Final = (
    ("ssl_truststore_certificates", "ssl_truststore_location"),
    ("ssl_keystore_certificate_chain", "ssl_keystore_location"),
    ("ssl_keystore_key", "ssl_keystore_location"),
    ("ssl_keystore_key", "ssl_keystore_key_location"),
)
_NEEDS: Final = (
    ("ssl_keystore_certificate_chain", "ssl_keystore_key", "key"),
    ("ssl_keystore_key", "ssl_keystore_certificate_chain", "certificates"),
    ("ssl_keystore_key_location", "ssl_keystore_location", "certificates"),
)


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
    check.stores()
    entries = [problems.entries.get(_PREFIX + name) for name in _IN_SETTINGS]
    files = dict.fromkeys(entry.file for entry in entries if entry and entry.file)
    for field, entry in problems.entries.items():
        if field.startswith(_PREFIX):
            files |= dict.fromkeys(entry.referenced)
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
                for names in (("sasl_mechanism", "sasl_jaas_config"), *_USED_BY.values()):
                    self.refuse(sentence, *names)
            return {}
        if mechanism is None:
            *words, last = get_args(SaslMechanism)
            self.require("sasl_mechanism", f"{protocol} needs one of {', '.join(words)} and {last}")
            return {}
        own = mechanism if mechanism in _USED_BY else "PLAIN and SCRAM"
        for other, names in _USED_BY.items():
            if other != own:
                self.refuse(f"is for {other}, and the mechanism is {mechanism}", *names)
        options = self._jaas_options(_MODULES.get(mechanism, jaas.SCRAM))
        if options is None:
            return {}
        by_mechanism = {
            "OAUTHBEARER": self._client,
            "GSSAPI": self._kerberos,
            "AWS_MSK_IAM": self._aws,
        }
        return by_mechanism.get(mechanism, self._user)(options)

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
        if _PREFIX + _TOKEN_URL in self._problems.wrong:
            return {}
        if convert.token_path(self.admin.sasl_oauthbearer_token_endpoint_url or ""):
            others = [name for name in _FOR_CLIENT if name != _TOKEN_URL]
            self.refuse(f"has no use: {self.name(_TOKEN_URL)} names the token's file", *others)
            return {}
        has_assertion = self.are_set(_ASSERTION)
        if has_assertion:
            self.one_of(_ASSERTION, f"{_CLIENT}_secret")
        elif not options.get("clientSecret"):
            what = f"a client secret, or a client assertion in {self.name(_ASSERTION)}"
            self._require_for_mechanism(f"{_CLIENT}_secret", what)
        # An assertion says itself whose it is.
        if not has_assertion and not options.get("clientId"):
            self._require_for_mechanism(f"{_CLIENT}_id", "a client id")
        secret = self.admin.sasl_oauthbearer_client_credentials_client_secret
        client_id = self.admin.sasl_oauthbearer_client_credentials_client_id
        return {
            f"{_CLIENT}_id": client_id or options.get("clientId"),
            f"{_CLIENT}_secret": secret or SecretStr(options.get("clientSecret", "")),
            _SCOPE: self.admin.sasl_oauthbearer_scope or options.get("scope"),
        }

    def _kerberos(self, options: Mapping[str, str]) -> Mapping[str, object]:
        keytab, principal = options.get("keyTab"), options.get("principal")
        if not keytab:
            self._require_for_mechanism(_KEYTAB, "a keytab")
        if not principal:
            self._require_for_mechanism(_PRINCIPAL, "a principal")
        update: dict[str, object] = {
            _KEYTAB: self.admin.sasl_kerberos_keytab or Path(keytab or ""),
            _PRINCIPAL: self.admin.sasl_kerberos_principal or principal,
        }
        if options.get("serviceName") and not self.are_set(_SERVICE):
            update[_SERVICE] = options["serviceName"]
        return update

    def _aws(self, _options: Mapping[str, str]) -> Mapping[str, object]:
        hosts = (server.host for server in self.admin.bootstrap_servers)
        regions = [found[1] for host in hosts if (found := _MSK_NAME.search(host))]
        if not regions:
            self._require_for_mechanism(_REGION, "the region, which the brokers' names do not have")
        return {_REGION: self.admin.sasl_aws_region or (regions or [None])[0]}

    def _require_for_mechanism(self, name: str, what: str) -> None:
        self.require(
            name, f"the mechanism {self.admin.sasl_mechanism} needs {what}, and none is set"
        )

    def stores(self) -> None:
        """Check that the parts of the truststore, and of the keystore, fit together."""
        for store in ("truststore", "keystore"):
            location: Path | None = getattr(self.admin, f"ssl_{store}_location")
            named: str | None = getattr(self.admin, f"ssl_{store}_type")
            if named in {"JKS", "PKCS12"}:
                self.require(f"ssl_{store}_location", f"is needed for a {named} {store}")
            elif named == "PEM" or location is None:
                other = ": a key's is ssl.key.password" if store == "keystore" else ""
                self.refuse(f"a PEM {store} has no password{other}", f"ssl_{store}_password")
        for pair in _ONE_OF:
            self.one_of(*pair)
        for name, needed, what in _NEEDS:
            if not self.are_set(needed):
                self.refuse(f"needs its {what} in {self.name(needed)}", name)
