"""The one place where foreign errors become failures that a person can act on.

Everything below this line (sockets, TLS, aiokafka, decoding) raises; everything above it gets a
``Failure`` with a kind from a closed list. The rule: the kind says whose turn it is (network,
certificates, credentials, broker), the message names the address first, and never holds a secret.
"""

import socket
import ssl
from collections.abc import Callable
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


class UnsupportedError(Exception):
    """The broker knows no version of the request that we can use."""


class TokenError(Exception):
    """The token endpoint gave no token."""


EXPECTED_ERRORS = (OSError, EOFError, KafkaError, ProtocolError, UnsupportedError, TokenError)
"""What a call to a broker may raise; any other exception is a bug and stays one."""

_AUTHENTICATION_ERRORS = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    IllegalSaslStateError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
_MESSAGE_LIMIT = 300


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


def _unverified(error: ssl.SSLCertVerificationError, _doing: str) -> str:
    return f"its certificate is not trusted: {error.verify_message}"


def _tls(error: ssl.SSLError, _doing: str) -> str:
    return f"TLS failed: {error.reason or error}"


def _plain(error: BaseException, _doing: str) -> str:
    return str(error)


# The first that fits counts: time-outs and TLS errors are OSErrors too.
_RULES: tuple[
    tuple[
        type[BaseException] | tuple[type[BaseException], ...],
        FailureKind,
        Callable[[Any, str], str],
    ],
    ...,
] = (
    (
        TimeoutError,
        FailureKind.TIMEOUT,
        lambda _, doing: f"no answer by the deadline while {doing}",
    ),
    (ssl.SSLCertVerificationError, FailureKind.TLS, _unverified),
    (ssl.SSLError, FailureKind.TLS, _tls),
    (
        _AUTHENTICATION_ERRORS,
        FailureKind.AUTHENTICATION,
        lambda error, _: f"the login was refused: {error}",
    ),
    (TokenError, FailureKind.AUTHENTICATION, _plain),
    ((ProtocolError, KafkaProtocolError), FailureKind.PROTOCOL, _plain),
    (UnsupportedError, FailureKind.UNSUPPORTED, _plain),
    (BrokerResponseError, FailureKind.BROKER, _plain),
    (
        socket.gaierror,
        FailureKind.CONNECT,
        lambda error, _: f"the name has no address: {error.strerror}",
    ),
    (EOFError, FailureKind.CONNECT, lambda _, doing: f"closed the connection while {doing}"),
    (Exception, FailureKind.CONNECT, lambda error, doing: f"{error} while {doing}"),
)


def _classify(error: BaseException, doing: str) -> tuple[FailureKind, str]:
    for types, kind, text in _RULES:
        if isinstance(error, types):
            return kind, text(error, doing)
    raise TypeError(f"not an error that is expected: {error!r}")
