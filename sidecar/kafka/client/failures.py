"""Turns exceptions of sockets, TLS, aiokafka and decoding into failures that a person can act on.

The layers below raise exceptions. The layers above get a ``Failure`` with a kind from a closed
list. The kind says what to check: the network, certificates, credentials or the broker. The message
begins with the address, and contains no secret.
"""

import errno
import os
import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    BrokerResponseError,
    IllegalSaslStateError,
    KafkaError,
    KafkaProtocolError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
    for_code,
)

from sidecar.settings.keys import name_in
from sidecar.settings.values import Place
from sidecar.volumes import Failure, FailureKind


class ProtocolError(Exception):
    """The peer's bytes are not Kafka's protocol, or not valid."""


class ClosedUnansweredError(ConnectionError):
    """The broker closed the connection at the first request, before any login."""


class UnsupportedError(Exception):
    """The broker supports no version of the request that the sidecar supports."""


class TokenError(Exception):
    """There is no token for the login, or no ticket."""


EXPECTED_ERRORS = (OSError, EOFError, KafkaError, ProtocolError, UnsupportedError, TokenError)
"""The exceptions that a call to a broker may raise. Any other exception is a bug."""

_AUTHENTICATION_ERRORS = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    SaslAuthenticationFailed,
)
_MESSAGE_LIMIT = 400


@dataclass(frozen=True, slots=True)
class Names:
    """The names of settings in messages, as the reader of the message writes them.

    Attributes:
        place: where the reader sets them.
        login: the names of the settings of user and password; empty if not known.
    """

    place: Place = "environment"
    login: tuple[str, ...] = ()

    def __getitem__(self, setting: str) -> str:
        """The name of a ``kafka.admin.*`` setting; ``setting`` is the rest, with underscores."""
        return name_in(self.place, f"kafka_admin_{setting}")


def to_failure(error: BaseException, address: str, doing: str, names: Names) -> Failure:
    """Turns an exception into a failure.

    Args:
        error: one of ``EXPECTED_ERRORS``.
        address: the address that was called, "host:port".
        doing: the step that failed: "connecting" or "waiting for" and the request's name.
        names: the names of the settings to check.
    """
    # aiokafka fails calls in flight with an error of its own, whose cause is the reason.
    if isinstance(error, KafkaError) and isinstance(error.__cause__, EXPECTED_ERRORS):
        error = error.__cause__
    for rule in _RULES:
        if isinstance(error, rule.errors):
            text = rule.text(error, doing, names)
            return Failure(rule.kind, one_line(f"{address}: {text}"))
    raise TypeError(f"not an expected error: {error!r}")


def kind_of(error: BaseException) -> FailureKind:
    """The kind of the failure that ``to_failure`` returns."""
    return to_failure(error, "", "", Names()).kind


def error_name(code: int) -> str:
    """Describes a broker's error code: "error 31 (CLUSTER_AUTHORIZATION_FAILED)"."""
    known = for_code(code)
    return f"error {code} ({known.message})" if known.errno == code else f"error {code}"


def other_cluster(address: str, found: str | None, known: str | None) -> Failure | None:
    """Why the broker at an address belongs to another cluster; None if it may be of the known one.

    A broker that has no id is no sign of another cluster.
    """
    if not found or known is None or found == known:
        return None
    text = f"{address}: belongs to cluster {found}, not to {known}"
    return Failure(FailureKind.OTHER_CLUSTER, text)


def one_line(text: str) -> str:
    """The text without line breaks, cut to 400 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE_LIMIT else line[: _MESSAGE_LIMIT - 1] + "…"


@dataclass(frozen=True, slots=True)
class _Rule:
    errors: type[BaseException] | tuple[type[BaseException], ...]
    kind: FailureKind
    text: Callable[[Any, str, Names], str]


def _own_text(error: BaseException, _doing: str, _names: Names) -> str:
    return str(error)


def _untrusted(error: ssl.SSLCertVerificationError, _doing: str, names: Names) -> str:
    why = getattr(error, "verify_message", error)
    code = getattr(error, "verify_code", None)
    if code in _OTHER_NAME:
        return (
            f"its certificate is for another name: {why}; connect to and advertise a name in the "
            f"certificate; empty {names['ssl_endpoint_identification_algorithm']} accepts any name"
        )
    hint = (
        f"; {names['ssl_truststore_location']} must name a PEM file with the certificate of the CA"
        " that signed it"
        if code in _UNKNOWN_CA
        else ""
    )
    return f"its certificate is not trusted: {why}{hint}"


def _tls(error: ssl.SSLError, _doing: str, names: Names) -> str:
    # Errors that do not come from OpenSSL have no reason.
    reason = getattr(error, "reason", None)
    hint = ""
    if reason in _NOT_TLS:
        hint = f"; {_speaks_tls(names)}"
    elif reason in _NEEDS_CLIENT_CERTIFICATE:
        hint = (
            "; the broker requires a client certificate that it trusts, and that is valid now: "
            f"check {names['ssl_keystore_location']}"
        )
    return f"TLS failed: {reason or error}{hint}"


def _unconnected(error: OSError) -> str:
    """Why no address of a host could be connected to; "" for other errors.

    asyncio's message contains only the error numbers, and combines those of several addresses.
    """
    if _CALL_FAILED not in str(error):
        return ""
    numbers = dict.fromkeys(int(number) for number in re.findall(r"\[Errno (\d+)\]", str(error)))
    return ", ".join(os.strerror(number).lower() for number in numbers)


def _system(error: OSError, doing: str, names: Names) -> str:
    # asyncio raises some errors without a text, such as a reset during the TLS handshake.
    unconnected = _unconnected(error)
    if unconnected == os.strerror(errno.ECONNREFUSED).lower():
        return (
            f"{unconnected}: nothing listens there; is the broker up, and is this its address and "
            "port?"
        )
    if unconnected:
        return f"{unconnected} while {doing}"
    return f"{error!s} while {doing}" if str(error) else _dropped("was dropped", doing, names)


def _dropped(how: str, doing: str, names: Names) -> str:
    # A broker does this if only one of the two sides uses TLS.
    hint = f"; {_speaks_tls(names)}" if doing == "connecting" else ""
    return f"the connection {how} while {doing}{hint}"


def _speaks_tls(names: Names) -> str:
    return f"does this listener speak TLS? ({names['security_protocol']})"


def _unanswered(_error: BaseException, doing: str, names: Names) -> str:
    message = f"the connection was closed while {doing}"
    # When quotas are set, an earlier request has already shown that no login is missing.
    if not doing.startswith("waiting for"):
        return message
    return (
        f"{message}; if this listener requires a login (SASL), set "
        f"{names['security_protocol']} and {names['sasl_mechanism']}"
    )


def _refused(error: KafkaError, _doing: str, names: Names) -> str:
    message = str(error)
    if not any(text in message.lower() for text in _WRONG_PASSWORD):
        return f"the login was refused: {message}"
    where = " and ".join(names.login)
    if not where and names.place == "command config":
        where = names["sasl_jaas_config"]
    elif not where:
        passwords = f"{names['sasl_password']} or {names['sasl_password_file']}"
        where = f"{names['sasl_username']} and {passwords}"
    return f"the login was refused: {message} (check {where})"


_CALL_FAILED = "Connect call failed"
"""asyncio's text in place of the system's."""
_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING")
"""OpenSSL's reasons if the peer sends another protocol, or nothing, instead of a handshake."""
_NEEDS_CLIENT_CERTIFICATE = (
    "TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "TLSV1_ALERT_UNKNOWN_CA",
    "SSLV3_ALERT_BAD_CERTIFICATE",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    "SSLV3_ALERT_CERTIFICATE_REVOKED",
)
"""A broker's answers to a client without a certificate, or with a certificate that it does not
trust. Java sends the third and the fourth, proxies for TLS the last two."""
_UNKNOWN_CA = (18, 19, 20, 21)
"""OpenSSL's X509_V_ERR: a self-signed certificate, alone or in the chain, or an unknown issuer."""
_OTHER_NAME = (62, 64)
"""OpenSSL's X509_V_ERR: the certificate lacks the host name, or the IP address."""
_WRONG_PASSWORD = ("invalid credentials", "invalid username or password")
"""Kafka's texts for SCRAM and for PLAIN."""

# The first matching rule applies, because time-outs and TLS errors are OSErrors too.
_RULES = (
    _Rule(
        TimeoutError,
        FailureKind.TIMEOUT,
        lambda _, doing, _names: f"no answer in time while {doing}",
    ),
    _Rule(ssl.SSLCertVerificationError, FailureKind.TLS, _untrusted),
    _Rule(ssl.SSLError, FailureKind.TLS, _tls),
    _Rule(
        UnsupportedSaslMechanismError,
        FailureKind.AUTHENTICATION,
        lambda _error, _doing, names: (
            "the login was refused: the listener does not have this SASL mechanism "
            f"({names['sasl_mechanism']})"
        ),
    ),
    _Rule(
        IllegalSaslStateError,
        FailureKind.AUTHENTICATION,
        # aiokafka's text is the connection's repr.
        lambda _error, _doing, names: (
            "the login was refused: this listener has no login; set "
            f"{names['security_protocol']} to PLAINTEXT or SSL"
        ),
    ),
    _Rule(_AUTHENTICATION_ERRORS, FailureKind.AUTHENTICATION, _refused),
    _Rule(TokenError, FailureKind.AUTHENTICATION, _own_text),
    _Rule((ProtocolError, KafkaProtocolError), FailureKind.PROTOCOL, _own_text),
    _Rule(UnsupportedError, FailureKind.UNSUPPORTED, _own_text),
    _Rule(BrokerResponseError, FailureKind.BROKER, _own_text),
    _Rule(
        socket.gaierror,
        FailureKind.CONNECT,
        lambda error, _doing, _names: f"the name has no address: {error.strerror}",
    ),
    _Rule(EOFError, FailureKind.CONNECT, lambda _, *how: _dropped("was closed", *how)),
    _Rule(ClosedUnansweredError, FailureKind.CONNECT, _unanswered),
    _Rule(
        (ConnectionResetError, BrokenPipeError),
        FailureKind.CONNECT,
        lambda _, *how: _dropped("was dropped", *how),
    ),
    _Rule((OSError, KafkaError), FailureKind.CONNECT, _system),
)
