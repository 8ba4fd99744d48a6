"""Foreign errors, and what a person is told."""

import asyncio
import errno
import re
import ssl

import pytest
from aiokafka.errors import (
    CorrelationIdError,
    IllegalSaslStateError,
    KafkaConnectionError,
    RequestTimedOutError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from sidecar.kafka.failures import (
    ClosedUnansweredError,
    ProtocolError,
    TokenError,
    UnsupportedError,
    error_name,
    one_line,
    to_failure,
)
from sidecar.settings.keys import FIELDS, environment_key
from sidecar.volumes import Failure, FailureKind
from tests.kafka.servers import raw_server


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (TimeoutError(), FailureKind.TIMEOUT, "no answer in time while connecting"),
        (OSError(errno.ETIMEDOUT, "x"), FailureKind.TIMEOUT, "no answer in time"),
        (ConnectionRefusedError(111, "refused"), FailureKind.CONNECT, "refused while connecting"),
        (
            ConnectionResetError(),
            FailureKind.CONNECT,
            "the connection was dropped while connecting; does this listener speak TLS? (security",
        ),
        (
            asyncio.IncompleteReadError(b"", 4),
            FailureKind.CONNECT,
            "the connection was closed while connecting; does this listener speak TLS? (security",
        ),
        (ssl.SSLError(1, "handshake failure"), FailureKind.TLS, "TLS failed: "),
        (SaslAuthenticationFailed("bad"), FailureKind.AUTHENTICATION, "bad"),
        (
            IllegalSaslStateError("<AIOKafkaConnection host=b1>"),
            FailureKind.AUTHENTICATION,
            "the login was refused: this listener wants none; set PLAINTEXT or SSL as security.pro",
        ),
        (
            UnsupportedSaslMechanismError("<AIOKafkaConnection host=b1>"),
            FailureKind.AUTHENTICATION,
            "does not have this SASL mechanism (sasl.mechanism in --command-config; for the daemon",
        ),
        (
            ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
            FailureKind.CONNECT,
            "dropped while connecting; does this listener speak TLS? (security.protocol in --comm",
        ),
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
    assert "AIOKafkaConnection" not in failure.message


def test_a_connection_that_had_worked_is_of_the_right_protocol() -> None:
    """What breaks later has other reasons."""
    error = asyncio.IncompleteReadError(b"", 4)
    failure = to_failure(error, "b1:9092", "waiting for DescribeCluster")
    assert "b1:9092: the connection was closed while waiting for DescribeCluster" == failure.message


def test_a_login_that_may_be_missing() -> None:
    """Told of a request that reads, as quotas are set after such a request was answered."""
    error = ClosedUnansweredError()
    failure = to_failure(error, "b1:9092", "waiting for DescribeCluster")
    expected = (
        "b1:9092: the connection was closed while waiting for DescribeCluster; if this listener "
        "wants a login (SASL), say which: security.protocol and sasl.mechanism in "
        "--command-config; for the daemon SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL and "
        "..._SASL_MECHANISM"
    )
    assert Failure(FailureKind.CONNECT, expected) == failure
    failure = to_failure(error, "b1:9092", "setting quotas")
    assert "b1:9092: the connection was closed while setting quotas" == failure.message


def test_the_names_that_are_told_are_settings() -> None:
    """Both variables are of the daemon's settings."""
    failures = [
        to_failure(error, "b1:9092", "connecting")
        for error in (IllegalSaslStateError(), UnsupportedSaslMechanismError())
    ]
    told = {name for each in failures for name in re.findall("SIDECAR_[A-Z_]+", each.message)}
    expected = {
        environment_key(field)
        for field in ("kafka_admin_security_protocol", "kafka_admin_sasl_mechanism")
        if field in FIELDS
    }
    assert 2 == len(expected)
    assert expected == told


async def test_another_protocol_in_the_tls_handshake() -> None:
    """OpenSSL's own error of words that are no TLS: is it spoken there?"""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with raw_server(talk) as address:
        with pytest.raises(ssl.SSLError) as raised:
            await asyncio.open_connection(
                address.host, address.port, ssl=ssl.create_default_context()
            )
    failure = to_failure(raised.value, "b1:9092", "connecting")
    assert FailureKind.TLS is failure.kind
    assert "does this listener speak TLS? (security.protocol in --command-config" in failure.message


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
