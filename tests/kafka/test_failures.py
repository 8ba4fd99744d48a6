"""Foreign errors, and what a person is told."""

import asyncio
import errno
import ssl

import pytest
from aiokafka.errors import (
    CorrelationIdError,
    IllegalSaslStateError,
    KafkaConnectionError,
    RequestTimedOutError,
    SaslAuthenticationFailed,
)

from sidecar.kafka.failures import (
    ProtocolError,
    TokenError,
    UnsupportedError,
    error_name,
    one_line,
    to_failure,
)
from sidecar.volumes import Failure, FailureKind


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (TimeoutError(), FailureKind.TIMEOUT, "no answer in time while connecting"),
        (OSError(errno.ETIMEDOUT, "x"), FailureKind.TIMEOUT, "no answer in time"),
        (ConnectionRefusedError(111, "refused"), FailureKind.CONNECT, "refused while connecting"),
        (
            ConnectionResetError(),
            FailureKind.CONNECT,
            "the connection was dropped while connecting; is security.protocol that of this",
        ),
        (
            asyncio.IncompleteReadError(b"", 4),
            FailureKind.CONNECT,
            "the connection was closed while connecting; is security.protocol that of this",
        ),
        (ssl.SSLError(1, "handshake failure"), FailureKind.TLS, "TLS failed: "),
        (SaslAuthenticationFailed("bad"), FailureKind.AUTHENTICATION, "bad"),
        (IllegalSaslStateError(), FailureKind.AUTHENTICATION, "the login was refused"),
        (TokenError("no token"), FailureKind.AUTHENTICATION, "no token"),
        (CorrelationIdError("mixed up"), FailureKind.PROTOCOL, "mixed up"),
        (ProtocolError("garbage"), FailureKind.PROTOCOL, "garbage"),
        (UnsupportedError("too old"), FailureKind.UNSUPPORTED, "too old"),
        (RequestTimedOutError(), FailureKind.BROKER, "Error 7"),
        (KafkaConnectionError("closed"), FailureKind.CONNECT, "closed while connecting"),
    ],
)
def test_every_foreign_error_has_a_kind(error: Exception, kind: FailureKind, says: str) -> None:
    """The message begins with the address and says what was being done."""
    failure = to_failure(error, "b1:9092", "connecting")
    assert kind is failure.kind
    assert failure.message.startswith("b1:9092: ")
    assert says in failure.message


def test_a_connection_that_had_worked_is_of_the_right_protocol() -> None:
    """What breaks later has other reasons."""
    error = asyncio.IncompleteReadError(b"", 4)
    failure = to_failure(error, "b1:9092", "waiting for DescribeCluster")
    assert "b1:9092: the connection was closed while waiting for DescribeCluster" == failure.message


def test_the_cause_of_a_broken_connection_counts() -> None:
    """Calls in flight get an error of aiokafka's own; why they failed is its cause."""
    error = KafkaConnectionError("Connection at b1:9092 closed")
    error.__cause__ = ProtocolError("garbage")
    expected = Failure(FailureKind.PROTOCOL, "b1:9092: garbage")
    assert expected == to_failure(error, "b1:9092", "connecting")


def test_a_bug_stays_a_bug() -> None:
    """What no call is expected to raise becomes no failure."""
    with pytest.raises(TypeError):
        to_failure(KeyError("x"), "b1:9092", "connecting")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (31, "error 31 (CLUSTER_AUTHORIZATION_FAILED)"),
        (114, "error 114"),
        (-1, "error -1 (UNKNOWN)"),
    ],
)
def test_error_codes_have_names_where_they_are_known(code: int, expected: str) -> None:
    """A code that aiokafka does not know is told as a number."""
    assert expected == error_name(code)


def test_messages_are_one_short_line() -> None:
    """Line breaks of a broker's text are spaces, and no text is longer than 300 characters."""
    assert one_line("a\n b\r\nc") == "a b c"
    assert len(one_line("x" * 1000)) == 300
