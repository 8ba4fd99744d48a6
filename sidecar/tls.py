"""TLS of the sidecars' HTTP: contexts from PEM files, for a server and for its clients.

A context is made anew from all of its files, and nothing is changed if one of them can't be used.
With CAs for clients, a server asks each client for a certificate. It accepts a connection without
one, because the kubelet's probes have none; ``sidecar.api.protocol`` refuses its requests.

Example: the certificate is new and the key is still the old one: SettingsError names both files,
and the server continues with the context that it has.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.errors import SettingsError

CERTIFICATE: Final = "SIDECAR_HTTP_SSL_CERTIFICATE_FILE"

_OTHER_KEY: Final = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The PEM files of one sidecar, or of a command.

    Attributes:
        ca: the CA certificates to trust other sidecars by; None trusts the machine's.
        certificate: the certificate chain; a server's, and a client's under mutual TLS.
        key: its key; None if the file of the certificate contains it.
        client_ca: the CA certificates of clients; None asks clients for no certificate.
        verifies: whether a client checks the server's certificate.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    verifies: bool = True

    @property
    def all(self) -> tuple[Path, ...]:
        """The files that are set."""
        files = (self.ca, self.certificate, self.key, self.client_ca)
        return tuple(file for file in files if file is not None)


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a server.

    Raises:
        SettingsError: a file can't be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    _identify(context, files)
    if files.client_ca is not None:
        _trust(context, files.client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a client, which also has a certificate if one is set.

    Raises:
        SettingsError: a file can't be used.
    """
    if files.ca is None:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _trust(context, files.ca)
    if not files.verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if files.certificate is not None:
        _identify(context, files)
    return context


def _identify(context: ssl.SSLContext, files: TlsFiles) -> None:
    certificate = files.certificate or ""
    try:
        # Without a password OpenSSL would ask the terminal for one.
        context.load_cert_chain(certificate, files.key, password=lambda: "")
    except OSError as error:
        what = f"the certificate file {certificate} or its key" + (
            f" {files.key}" * bool(files.key)
        )
        why = reason_of(error, "is it PEM, and the key without a password?")
        raise SettingsError((f"{what} can't be used: {why}",)) from error


def _trust(context: ssl.SSLContext, file: Path) -> None:
    try:
        context.load_verify_locations(file)
    except OSError as error:
        raise SettingsError((f"the CA file {file} can't be used: {why_no_ca(error)}",)) from error


def reason_of(error: Exception, hint: str) -> str:
    """Return why a certificate or key can't be used, in texts without the content of the file."""
    if isinstance(error, ssl.SSLError):
        if error.reason in _OTHER_KEY:
            return f"{error.reason}: the key does not belong to the certificate"
        return f"{error.reason or 'it is not PEM'} ({hint})"
    if isinstance(error, OSError):
        return error.strerror or "it can't be read"
    return "it is not PEM"


def why_no_ca(error: Exception) -> str:
    """Return why CA certificates can't be used."""
    if not isinstance(error, ssl.SSLError):
        return reason_of(error, "")
    # For text in memory, OpenSSL's error has a message but no reason.
    if error.reason == "NO_CERTIFICATE_OR_CRL_FOUND" or "not contain a certificate" in str(error):
        return "it has no certificate (PEM that begins with -----BEGIN CERTIFICATE-----)"
    return f"{error.reason} (is it PEM?)" if error.reason else "it is not PEM"
