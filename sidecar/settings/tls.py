"""The material for TLS, as PEM files or PEM text.

The Java client's default form is JKS, which only Java reads: a JKS or PKCS12 store is refused with
the commands that convert it. Otherwise the Java client's own rules apply: file or text but not
both, a certificate only with its key, a password for the key alone.

Example: for ``ssl.truststore.location=/etc/kafka/trust.jks`` the problem has a keytool and an
openssl command that write ``/etc/kafka/trust.pem``.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from sidecar.settings import keys, pem
from sidecar.settings.fields import RawSettings
from sidecar.settings.problem_list import Problems

_SSL = "kafka_admin_ssl_"
_CERTIFICATES = f"{_SSL}truststore_certificates"
_CHAIN = f"{_SSL}keystore_certificate_chain"
_KEY = f"{_SSL}keystore_key"
_KEY_LOCATION = f"{_SSL}keystore_key_location"
_KEYSTORE = f"{_SSL}keystore_location"
_ALGORITHM = f"{_SSL}endpoint_identification_algorithm"
_FORMS = {
    ".jks": "JKS",
    ".keystore": "JKS",
    ".truststore": "JKS",
    ".p12": "PKCS12",
    ".pfx": "PKCS12",
}


@dataclass(frozen=True, slots=True)
class Tls:
    """What ``KafkaAdmin`` has of TLS."""

    ca_file: Path | None = None
    ca_pem: str | None = None
    certificate_file: Path | None = None
    certificate_pem: str | None = None
    key_file: Path | None = None
    key_pem: SecretStr | None = None
    key_password: SecretStr | None = None
    verify_hostname: bool = True


def resolve_tls(raw: RawSettings, problems: Problems) -> Tls:
    """The material, whether or not the protocol uses it; what can't be used is a problem."""
    chain = _text(
        _CHAIN, raw.kafka_admin_ssl_keystore_certificate_chain, pem.certificates, problems
    )
    secret_key = raw.kafka_admin_ssl_keystore_key
    key = _text(
        _KEY, secret_key.get_secret_value() if secret_key else None, pem.private_key, problems
    )
    if _store_is_pem("truststore", raw, problems):
        _one_of(_CERTIFICATES, f"{_SSL}truststore_location", problems)
    if _store_is_pem("keystore", raw, problems):
        _check_pairs(problems)
    location = raw.kafka_admin_ssl_keystore_location
    return Tls(
        ca_file=raw.kafka_admin_ssl_truststore_location,
        ca_pem=_text(
            _CERTIFICATES,
            raw.kafka_admin_ssl_truststore_certificates,
            pem.certificates,
            problems,
        ),
        certificate_file=location,
        certificate_pem=chain,
        key_file=raw.kafka_admin_ssl_keystore_key_location or location,
        key_pem=SecretStr(key) if key else None,
        key_password=raw.kafka_admin_ssl_key_password,
        verify_hostname=_verify_hostname(raw, problems),
    )


def unused_tls(raw: RawSettings, problems: Problems) -> tuple[str, ...]:
    """A notice when material is set that the protocol doesn't use."""
    if raw.kafka_admin_security_protocol.endswith("SSL"):
        return ()
    unused = [f for f in keys.FIELDS if f.startswith(_SSL) and problems.is_set(f)]
    if not unused:
        return ()
    names = ", ".join(map(problems.name, unused))
    return (f"{names}: no effect, since security.protocol is {raw.kafka_admin_security_protocol}",)


def _text(
    field: str, written: str | None, rewrite: Callable[[str], str], problems: Problems
) -> str | None:
    if written is None:
        return None
    try:
        return rewrite(written)
    except ValueError as error:
        problems.add(field, str(error))
        return None


def _store_is_pem(store: str, raw: RawSettings, problems: Problems) -> bool:
    """Whether a store is read as PEM; if not, the problem says how to make it PEM."""
    location: Path | None = getattr(raw, f"{_SSL}{store}_location")
    named: str | None = getattr(raw, f"{_SSL}{store}_type")
    form = named or (_FORMS.get(location.suffix.lower(), "PEM") if location else "PEM")
    if form != "PEM":
        field = f"{_SSL}{store}_{'location' if location else 'type'}"
        problems.add(
            field, _how_to_convert(store, form, location or Path(f"{store}.{form.lower()}"))
        )
        return False
    if problems.is_set(f"{_SSL}{store}_password"):
        other = ": a key's is ssl.key.password" if store == "keystore" else ""
        problems.add(f"{_SSL}{store}_password", f"a PEM {store} has no password{other}")
    return True


def _how_to_convert(store: str, form: str, location: Path) -> str:
    written, pkcs12, target = (
        shlex.quote(str(path))
        for path in (location, location.with_suffix(".p12"), location.with_suffix(".pem"))
    )
    commands = []
    if form == "JKS":
        commands.append(
            f"keytool -importkeystore -srckeystore {written} -destkeystore {pkcs12}"
            " -deststoretype PKCS12"
        )
    source = pkcs12 if form == "JKS" else written
    what = "-nokeys" if store == "truststore" else "-nodes"
    commands.append(f"openssl pkcs12 -in {source} {what} -out {target}")
    return (
        f"a {form} store can't be read here; convert it with: {' && '.join(commands)} and set"
        f" ssl.{store}.type=PEM and ssl.{store}.location={target}"
    )


def _one_of(text: str, file: str, problems: Problems) -> None:
    if problems.is_set(text) and problems.is_set(file):
        problems.add(text, f"is set besides {problems.name(file)}: set one of the two")


def _check_pairs(problems: Problems) -> None:
    """A certificate comes with its key, from files or from text."""
    _one_of(_CHAIN, _KEYSTORE, problems)
    _one_of(_KEY, _KEYSTORE, problems)
    _one_of(_KEY, _KEY_LOCATION, problems)
    if problems.is_set(_CHAIN) and not problems.is_set(_KEY):
        problems.add(_CHAIN, f"needs its key in {problems.name(_KEY)}")
    if problems.is_set(_KEY) and not problems.is_set(_CHAIN):
        problems.add(_KEY, f"needs its certificates in {problems.name(_CHAIN)}")
    if problems.is_set(_KEY_LOCATION) and not problems.is_set(_KEYSTORE):
        problems.add(_KEY_LOCATION, f"needs its certificates in {problems.name(_KEYSTORE)}")


def _verify_hostname(raw: RawSettings, problems: Problems) -> bool:
    algorithm = raw.kafka_admin_ssl_endpoint_identification_algorithm
    if algorithm.lower() not in {"https", ""}:
        problems.add(_ALGORITHM, f"{algorithm!r} is neither https nor empty")
    return algorithm != ""
