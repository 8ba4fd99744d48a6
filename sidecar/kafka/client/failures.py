"""The one place where foreign errors become failures that a person can act on.

Everything below this line (sockets, TLS, aiokafka, decoding) raises; everything above it gets a
``Failure`` with a kind from a closed list. The rule: the kind names whose turn it is (network,
certificates, credentials, broker), the message names the address first, and has no secret.
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
    """What came back is not Kafka's, or makes no sense."""


class ClosedUnansweredError(ConnectionError):
    """The connection was closed at the first request on it, and nobody had logged in."""


class UnsupportedError(Exception):
    """The broker knows no version of the request that we can use."""


class TokenError(Exception):
    """The token endpoint returned no token."""


EXPECTED_ERRORS = (OSError, EOFError, KafkaError, ProtocolError, UnsupportedError, TokenError)
"""What a call to a broker may raise; any other exception is a bug and stays one."""

_AUTHENTICATION_ERRORS = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    SaslAuthenticationFailed,
)
_MESSAGE_LIMIT = 400


@dataclass(frozen=True, slots=True)
class Names:
    """What the settings are called that a message names to be checked.

    Attributes:
        place: where the reader of the message sets them.
        login: the names of the settings of user and password; empty when they are not known.
    """

    place: Place = "environment"
    login: tuple[str, ...] = ()

    def __getitem__(self, setting: str) -> str:
        """One of ``kafka.admin.*``, by its name after that with underscores."""
        return name_in(self.place, f"kafka_admin_{setting}")


def to_failure(error: BaseException, address: str, doing: str, names: Names) -> Failure:
    """What a foreign error means.

    Args:
        error: one of ``EXPECTED_ERRORS``.
        address: whom the call was to, "host:port".
        doing: what did not end, for a deadline: "connecting" or the request's name.
        names: what to call the settings to check.
    """
    # aiokafka fails the calls in flight with an error of its own; the reason is that one's cause.
    if isinstance(error, KafkaError) and isinstance(error.__cause__, EXPECTED_ERRORS):
        error = error.__cause__
    kind, text = _classify(error, doing, names)
    return Failure(kind, one_line(f"{address}: {text}"))


def error_name(code: int) -> str:
    """A broker's error code for a person: 31 is "error 31 (CLUSTER_AUTHORIZATION_FAILED)"."""
    known = for_code(code)
    return f"error {code} ({known.message})" if known.errno == code else f"error {code}"


def one_line(text: str) -> str:
    """The text without line breaks, at most 400 characters of it."""
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE_LIMIT else line[: _MESSAGE_LIMIT - 1] + "…"


@dataclass(frozen=True, slots=True)
class _Rule:
    errors: type[BaseException] | tuple[type[BaseException], ...]
    kind: FailureKind
    text: Callable[[Any, str, Names], str]


def _itself(error: BaseException, _doing: str, _names: Names) -> str:
    return str(error)


def _distrusted(error: ssl.SSLCertVerificationError, _doing: str, names: Names) -> str:
    why = getattr(error, "verify_message", error)
    code = getattr(error, "verify_code", None)
    if code in _OTHER_NAME:
        return (
            f"its certificate is for another name: {why}; dial and advertise a name that it has; "
            f"empty {names['ssl_endpoint_identification_algorithm']} accepts any name"
        )
    hint = (
        f"; {names['ssl_truststore_location']} must name a PEM file with the certificate of the CA"
        " that signed it"
        if code in _UNKNOWN_CA
        else ""
    )
    return f"its certificate is not trusted: {why}{hint}"


def _tls(error: ssl.SSLError, _doing: str, names: Names) -> str:
    # Errors that OpenSSL did not make have no reason.
    reason = getattr(error, "reason", None)
    hint = ""
    if reason in _NOT_TLS:
        hint = f"; {_speaks_tls(names)}"
    elif reason in _WANTS_OURS:
        hint = (
            "; the broker requires a certificate of ours that it trusts: "
            f"{names['ssl_keystore_location']}"
        )
    return f"TLS failed: {reason or error}{hint}"


def _unconnected(error: OSError) -> str:
    """Why no address of a name could be connected to, by the loop's errors; "" if it was another.

    The loop's text has the number alone, and it makes one error of those of several addresses.
    """
    if _CALL_FAILED not in str(error):
        return ""
    numbers = dict.fromkeys(int(number) for number in re.findall(r"\[Errno (\d+)\]", str(error)))
    return ", ".join(os.strerror(number).lower() for number in numbers)


def _system(error: OSError, doing: str, names: Names) -> str:
    # The loop raises some without a text, such as a reset during the TLS handshake.
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
    # What a broker does with a client that speaks TLS where it does not, or the reverse.
    hint = f"; {_speaks_tls(names)}" if doing == "connecting" else ""
    return f"the connection {how} while {doing}{hint}"


def _speaks_tls(names: Names) -> str:
    return f"does this listener speak TLS? ({names['security_protocol']})"


def _unanswered(_error: BaseException, doing: str, names: Names) -> str:
    message = f"the connection was closed while {doing}"
    # Quotas are set after others were read: a login was not what was missing.
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
"""What asyncio says in place of the system's text."""
_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING")
"""OpenSSL's reasons where another protocol's bytes, or an end, came instead of a handshake."""
_WANTS_OURS = (
    "TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "TLSV1_ALERT_UNKNOWN_CA",
    "SSLV3_ALERT_BAD_CERTIFICATE",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
)
"""A broker's answer to a client without a certificate, or with one of a CA that it doesn't trust;
the last two are Java's up to TLS 1.2."""
_UNKNOWN_CA = (18, 19, 20, 21)
"""OpenSSL's X509_V_ERR: self-signed, alone or in its chain, and an issuer that is not known."""
_OTHER_NAME = (62, 64)
"""OpenSSL's X509_V_ERR: neither this name nor this IP address is in it."""
_WRONG_PASSWORD = ("invalid credentials", "invalid username or password")
"""Kafka's texts, with SCRAM and with PLAIN."""

# The first that fits counts: time-outs and TLS errors are OSErrors too.
_RULES = (
    _Rule(
        TimeoutError,
        FailureKind.TIMEOUT,
        lambda _, doing, _names: f"no answer in time while {doing}",
    ),
    _Rule(ssl.SSLCertVerificationError, FailureKind.TLS, _distrusted),
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
            "the login was refused: this listener has none; set PLAINTEXT or SSL as "
            f"{names['security_protocol']}"
        ),
    ),
    _Rule(_AUTHENTICATION_ERRORS, FailureKind.AUTHENTICATION, _refused),
    _Rule(TokenError, FailureKind.AUTHENTICATION, _itself),
    _Rule((ProtocolError, KafkaProtocolError), FailureKind.PROTOCOL, _itself),
    _Rule(UnsupportedError, FailureKind.UNSUPPORTED, _itself),
    _Rule(BrokerResponseError, FailureKind.BROKER, _itself),
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


def _classify(error: BaseException, doing: str, names: Names) -> tuple[FailureKind, str]:
    for rule in _RULES:
        if isinstance(error, rule.errors):
            return rule.kind, rule.text(error, doing, names)
    raise TypeError(f"not an error that is expected: {error!r}")
