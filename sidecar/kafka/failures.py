"""The one place where foreign errors become failures that a person can act on.

Everything below this line (sockets, TLS, aiokafka, decoding) raises; everything above it gets a
``Failure`` with a kind from a closed list. The rule: the kind says whose turn it is (network,
certificates, credentials, broker), the message names the address first, and never holds a secret.
"""

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

from sidecar.volumes import Failure, FailureKind


class ProtocolError(Exception):
    """What came back is not Kafka's, or makes no sense."""


class ClosedUnansweredError(ConnectionError):
    """The connection was closed at the first request on it, and nobody had logged in."""


class UnsupportedError(Exception):
    """The broker knows no version of the request that we can use."""


class TokenError(Exception):
    """The token endpoint gave no token."""


EXPECTED_ERRORS = (OSError, EOFError, KafkaError, ProtocolError, UnsupportedError, TokenError)
"""What a call to a broker may raise; any other exception is a bug and stays one."""

_AUTHENTICATION_ERRORS = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    SaslAuthenticationFailed,
)
_MESSAGE_LIMIT = 300

SET_PROTOCOL = (
    "security.protocol in --command-config; for the daemon SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL"
)
"""Where it is said whether TLS and SASL are spoken."""
_SET_MECHANISM = (
    "sasl.mechanism in --command-config; for the daemon SIDECAR_KAFKA_ADMIN_SASL_MECHANISM"
)


def to_failure(error: BaseException, address: str, doing: str) -> Failure:
    """What a foreign error means.

    Args:
        error: one of ``EXPECTED_ERRORS``.
        address: whom the call was to, "host:port".
        doing: what did not end, for a deadline: "connecting" or the request's name.
    """
    # aiokafka fails the calls in flight with an error of its own; the reason is that one's cause.
    if isinstance(error, KafkaError) and isinstance(error.__cause__, EXPECTED_ERRORS):
        error = error.__cause__
    kind, text = _classify(error, doing)
    return Failure(kind, one_line(f"{address}: {text}"))


def error_name(code: int) -> str:
    """A broker's error code for a person.

    Example: 31 is "error 31 (CLUSTER_AUTHORIZATION_FAILED)".
    """
    known = for_code(code)
    return f"error {code} ({known.message})" if known.errno == code else f"error {code}"


def one_line(text: str) -> str:
    """The text without line breaks, at most 300 characters of it."""
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE_LIMIT else line[: _MESSAGE_LIMIT - 1] + "…"


@dataclass(frozen=True, slots=True)
class _Rule:
    errors: type[BaseException] | tuple[type[BaseException], ...]
    kind: FailureKind
    text: Callable[[Any, str], str]


def _itself(error: BaseException, _doing: str) -> str:
    return str(error)


def _tls(error: ssl.SSLError, _doing: str) -> str:
    # Errors that OpenSSL did not make have no reason.
    reason = getattr(error, "reason", None)
    asked = f"; does this listener speak TLS? ({SET_PROTOCOL})" if reason in _NOT_TLS else ""
    return f"TLS failed: {reason or error}{asked}"


def _system(error: OSError, doing: str) -> str:
    # The loop raises some without a word, such as a reset during the TLS handshake.
    return f"{error!s} while {doing}" if str(error) else _dropped("was dropped", doing)


def _dropped(how: str, doing: str) -> str:
    # What a broker does with a client that speaks TLS where it does not, or the other way round.
    asked = f"; does this listener speak TLS? ({SET_PROTOCOL})" if doing == "connecting" else ""
    return f"the connection {how} while {doing}{asked}"


def _unanswered(_error: BaseException, doing: str) -> str:
    told = f"the connection was closed while {doing}"
    # Quotas are set after others were read: a login was not what was missing.
    if not doing.startswith("waiting for"):
        return told
    return (
        f"{told}; if this listener wants a login (SASL), say which: security.protocol and "
        "sasl.mechanism in --command-config; for the daemon SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL "
        "and ..._SASL_MECHANISM"
    )


_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING")
"""OpenSSL's words for another protocol's, or for an end, where a handshake was expected."""

# The first that fits counts: time-outs and TLS errors are OSErrors too.
_RULES = (
    _Rule(TimeoutError, FailureKind.TIMEOUT, lambda _, doing: f"no answer in time while {doing}"),
    _Rule(
        ssl.SSLCertVerificationError,
        FailureKind.TLS,
        lambda error, _: (
            f"its certificate is not trusted: {getattr(error, 'verify_message', error)}"
        ),
    ),
    _Rule(ssl.SSLError, FailureKind.TLS, _tls),
    _Rule(
        UnsupportedSaslMechanismError,
        FailureKind.AUTHENTICATION,
        lambda _error, _doing: (
            "the login was refused: the listener does not have this SASL mechanism "
            f"({_SET_MECHANISM})"
        ),
    ),
    _Rule(
        IllegalSaslStateError,
        FailureKind.AUTHENTICATION,
        # aiokafka's words are the connection's repr.
        lambda _error, _doing: (
            "the login was refused: this listener wants none; set PLAINTEXT or SSL as "
            f"{SET_PROTOCOL}"
        ),
    ),
    _Rule(
        _AUTHENTICATION_ERRORS,
        FailureKind.AUTHENTICATION,
        lambda error, _: f"the login was refused: {error}",
    ),
    _Rule(TokenError, FailureKind.AUTHENTICATION, _itself),
    _Rule((ProtocolError, KafkaProtocolError), FailureKind.PROTOCOL, _itself),
    _Rule(UnsupportedError, FailureKind.UNSUPPORTED, _itself),
    _Rule(BrokerResponseError, FailureKind.BROKER, _itself),
    _Rule(
        socket.gaierror,
        FailureKind.CONNECT,
        lambda error, _: f"the name has no address: {error.strerror}",
    ),
    _Rule(EOFError, FailureKind.CONNECT, lambda _, doing: _dropped("was closed", doing)),
    _Rule(ClosedUnansweredError, FailureKind.CONNECT, _unanswered),
    _Rule(
        (ConnectionResetError, BrokenPipeError),
        FailureKind.CONNECT,
        lambda _, doing: _dropped("was dropped", doing),
    ),
    _Rule((OSError, KafkaError), FailureKind.CONNECT, _system),
)


def _classify(error: BaseException, doing: str) -> tuple[FailureKind, str]:
    for rule in _RULES:
        if isinstance(error, rule.errors):
            return rule.kind, rule.text(error, doing)
    raise TypeError(f"not an error that is expected: {error!r}")
