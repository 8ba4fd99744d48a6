"""Encryption and login of connections, from the settings.

Certificates and keys are PEM, from files or as text in the settings, or in a key store of Java's
(``sidecar.kafka.client.java_stores``). Text is never written to a disk. ``load_security`` reads
everything at once, so a reload with unreadable files fails before anything is replaced. A daemon
has read the files before (``KafkaAdmin.files``), and reads none here. The broker's certificate must
always be trusted. The check of its name can be switched off.
"""

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from sidecar.errors import SettingsError
from sidecar.kafka.client.failures import Names
from sidecar.kafka.client.java_stores import with_pem
from sidecar.kafka.client.oauth_tokens import ClientCredentials, SharedTokens, TokenFile
from sidecar.settings import KafkaAdmin, PemFiles, ca_certificates, token_path
from sidecar.tls import reason_of, why_no_ca

if TYPE_CHECKING:
    from sidecar.kafka.client.kerberos import Kerberos

_NOTHING_READ: Final = PemFiles(None, None, None)


@dataclass(frozen=True, slots=True)
class Security:
    """The encryption and login of a connection; its text contains no secret.

    Attributes:
        protocol: the security protocol of the settings.
        ssl_context: the TLS context; None without TLS.
        sasl_mechanism: the SASL mechanism as brokers know it; None without SASL.
        username: the user name for PLAIN and SCRAM.
        password: the password for PLAIN and SCRAM.
        tokens: the source of tokens for OAUTHBEARER.
        kerberos: the keytab and principal for GSSAPI.
        names: the names of the settings in messages.
    """

    protocol: str
    ssl_context: ssl.SSLContext | None = None
    sasl_mechanism: str | None = None
    username: str | None = None
    password: SecretStr | None = None
    tokens: SharedTokens | TokenFile | None = field(default=None, repr=False)
    kerberos: "Kerberos | None" = field(default=None, repr=False)
    names: Names = field(default_factory=Names)


def load_security(admin: KafkaAdmin, clock: Callable[[], float]) -> Security:
    """Reads the certificates and credentials of the settings.

    Args:
        admin: the settings.
        clock: steady seconds, for the age of tokens.

    Raises:
        SettingsError: a file or text can't be read, is not valid, or is missing.
    """
    encrypted = admin.security_protocol in {"SSL", "SASL_SSL"}
    logs_in = admin.security_protocol in {"SASL_PLAINTEXT", "SASL_SSL"}
    mechanism = admin.sasl_mechanism if logs_in else None
    if encrypted or mechanism == "OAUTHBEARER":
        admin = with_pem(admin)
    security = Security(
        protocol=admin.security_protocol,
        ssl_context=_broker_context(admin) if encrypted else None,
        # Amazon's brokers take what AWS_MSK_IAM signs as a token of OAUTHBEARER.
        sasl_mechanism="OAUTHBEARER" if mechanism == "AWS_MSK_IAM" else mechanism,
        username=admin.sasl_username,
        password=admin.sasl_password,
        tokens=_tokens(admin, clock, mechanism),
        kerberos=_kerberos(admin) if mechanism == "GSSAPI" else None,
        names=Names(admin.settings_source, admin.sasl_setting_names),
    )
    if logs_in and admin.sasl_mechanism is None:
        raise SettingsError((f"{admin.security_protocol} needs a SASL mechanism",))
    by_password = security.sasl_mechanism not in {None, "OAUTHBEARER", "GSSAPI"}
    if by_password and (security.username is None or security.password is None):
        raise SettingsError((f"{security.sasl_mechanism} needs a user name and a password",))
    return security


def _kerberos(admin: KafkaAdmin) -> "Kerberos":
    from sidecar.kafka.client.kerberos import Kerberos  # noqa: PLC0415 - few log in so

    keytab, principal = admin.sasl_kerberos_keytab, admin.sasl_kerberos_principal
    if keytab is None or principal is None:
        raise SettingsError(("GSSAPI needs a keytab and a principal",))
    return Kerberos(keytab, principal, admin.sasl_kerberos_service_name)


def _tokens(
    admin: KafkaAdmin, clock: Callable[[], float], mechanism: str | None
) -> SharedTokens | TokenFile | None:
    if mechanism == "AWS_MSK_IAM":
        if admin.sasl_aws_region is None:
            raise SettingsError(("AWS_MSK_IAM needs a region",))
        from sidecar.kafka.client.aws_tokens import AwsTokens  # noqa: PLC0415 - as Kerberos

        return AwsTokens(admin.sasl_aws_region, clock)
    if mechanism != "OAUTHBEARER":
        return None
    url = admin.sasl_oauthbearer_token_endpoint_url
    if url is not None and (path := token_path(url)):
        return TokenFile(Path(path))
    client_id = admin.sasl_oauthbearer_client_credentials_client_id
    assertion = admin.sasl_oauthbearer_assertion_file
    if url is None or (client_id is None and assertion is None):
        raise SettingsError(("OAUTHBEARER needs a token URL and a client id",))
    return ClientCredentials(
        url,
        client_id=client_id,
        client_secret=admin.sasl_oauthbearer_client_credentials_client_secret or SecretStr(""),
        assertion_file=assertion,
        scope=admin.sasl_oauthbearer_scope,
        # The endpoint is often outside the cluster, so the system's certificates count besides.
        ssl_context=_trust(admin, besides_system=True),
        clock=clock,
    )


def _broker_context(admin: KafkaAdmin) -> ssl.SSLContext:
    context = _trust(admin, besides_system=False)
    context.check_hostname = admin.verifies_hostname
    key_pem = admin.ssl_keystore_key.get_secret_value() if admin.ssl_keystore_key else None
    password = admin.ssl_key_password.get_secret_value() if admin.ssl_key_password else ""
    read = admin.files or _NOTHING_READ
    with ExitStack() as files:
        chain_pem = admin.ssl_keystore_certificate_chain
        certificate = _path(admin.ssl_keystore_location, chain_pem or read.keystore, files)
        key_read = read.key if admin.ssl_keystore_key_location else read.keystore
        key = _path(admin.key_file, key_pem or key_read, files)
        if certificate is None and key is None:
            return context
        try:
            # Without a password OpenSSL would ask the terminal for one.
            context.load_cert_chain(certificate or key or "", key, password=lambda: password)
        except OSError as error:
            shown = _shown(admin.ssl_keystore_location, "client certificate")
            key_shown = f"its key file {admin.key_file}" if admin.key_file else "its key"
            why = reason_of(error, "is it PEM, and the key's password right?")
            text = f"{shown} or {key_shown} can't be used: {why}"
            raise SettingsError((text,)) from error
    return context


def _trust(admin: KafkaAdmin, *, besides_system: bool) -> ssl.SSLContext:
    if admin.ssl_truststore_location is None and admin.ssl_truststore_certificates is None:
        return ssl.create_default_context()
    context = (
        ssl.create_default_context() if besides_system else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    location, content = admin.ssl_truststore_location, (admin.files or _NOTHING_READ).truststore
    try:
        if location is not None and content is None:
            content = ca_certificates(location)
        with ExitStack() as files:
            context.load_verify_locations(
                cafile=_path(location, content, files),
                cadata=admin.ssl_truststore_certificates,
            )
    except (OSError, ValueError) as error:
        shown = _shown(location, "CA certificate")
        raise SettingsError((f"{shown} can't be used: {why_no_ca(error)}",)) from error
    return context


@contextmanager
def _as_file(text: bytes) -> Iterator[str]:
    # Python's ssl reads a client certificate only from a file; this file is in memory.
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, text)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _path(file: Path | None, text: str | bytes | None, files: ExitStack) -> str | None:
    if text is not None:
        data = text.encode() if isinstance(text, str) else text
        return files.enter_context(_as_file(data))
    return str(file) if file is not None else None


def _shown(file: Path | None, what: str) -> str:
    return f"the {what} file {file}" if file is not None else f"the {what} in the settings"
