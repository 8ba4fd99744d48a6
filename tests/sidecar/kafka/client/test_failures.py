"""Foreign errors, and the messages that a person reads."""

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

from sidecar.kafka.client.failures import (
    ClosedUnansweredError,
    Names,
    ProtocolError,
    TokenError,
    UnsupportedError,
    error_name,
    one_line,
    to_failure,
)
from sidecar.settings.keys import FIELDS, environment_key
from sidecar.settings.values import Place
from sidecar.volumes import Failure, FailureKind
from tests.support.raw_server import raw_server

HERE = Names()


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (TimeoutError(), FailureKind.TIMEOUT, "no answer in time while connecting"),
        (OSError(errno.ETIMEDOUT, "x"), FailureKind.TIMEOUT, "no answer in time"),
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 9092)"),
            FailureKind.CONNECT,
            ": connection refused: nothing listens there; is the broker up, and is this its address"
            " and port?",
        ),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect call failed ('::1', 9092, 0, 0), "
                "[Errno 111] Connect call failed ('127.0.0.1', 9092)"
            ),
            FailureKind.CONNECT,
            ": connection refused: nothing listens there; ",
        ),
        (
            OSError(
                "Multiple exceptions: [Errno 101] Connect call failed ('fd00::1', 9092, 0, 0), "
                "[Errno 111] Connect call failed ('10.0.0.1', 9092)"
            ),
            FailureKind.CONNECT,
            ": network is unreachable, connection refused while connecting",
        ),
        (
            OSError(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.1', 9092)"),
            FailureKind.CONNECT,
            ": no route to host while connecting",
        ),
        (OSError(errno.EMFILE, "Too many"), FailureKind.CONNECT, "[Errno 24] Too many while conn"),
        (
            ConnectionResetError(),
            FailureKind.CONNECT,
            "the connection was dropped while connecting; does this listener speak TLS? (SIDECAR",
        ),
        (
            asyncio.IncompleteReadError(b"", 4),
            FailureKind.CONNECT,
            "the connection was closed while connecting; does this listener speak TLS? (SIDECAR",
        ),
        (ssl.SSLError(1, "handshake failure"), FailureKind.TLS, "TLS failed: "),
        (SaslAuthenticationFailed("bad"), FailureKind.AUTHENTICATION, "bad"),
        (
            IllegalSaslStateError("<AIOKafkaConnection host=b1>"),
            FailureKind.AUTHENTICATION,
            "the login was refused: this listener has no login; set "
            "SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL to PLAINTEXT or SSL",
        ),
        (
            UnsupportedSaslMechanismError("<AIOKafkaConnection host=b1>"),
            FailureKind.AUTHENTICATION,
            "does not have this SASL mechanism",
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
    failure = to_failure(error, "b1:9092", "connecting", HERE)
    assert kind is failure.kind
    assert failure.message.startswith("b1:9092: ")
    assert says in failure.message
    assert "AIOKafkaConnection" not in failure.message
    assert "call failed" not in failure.message


def test_a_connection_that_had_worked_is_of_the_right_protocol() -> None:
    """What breaks later has other reasons."""
    error = asyncio.IncompleteReadError(b"", 4)
    failure = to_failure(error, "b1:9092", "waiting for DescribeCluster", HERE)
    assert "b1:9092: the connection was closed while waiting for DescribeCluster" == failure.message


def test_a_login_that_may_be_missing() -> None:
    """It is reported for requests that read: quotas are set after such a request was answered."""
    error = ClosedUnansweredError()
    failure = to_failure(error, "b1:9092", "waiting for DescribeCluster", HERE)
    expected = (
        "b1:9092: the connection was closed while waiting for DescribeCluster; if this listener "
        "requires a login (SASL), set SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL and "
        "SIDECAR_KAFKA_ADMIN_SASL_MECHANISM"
    )
    assert Failure(FailureKind.CONNECT, expected) == failure
    failure = to_failure(error, "b1:9092", "setting quotas", HERE)
    assert "b1:9092: the connection was closed while setting quotas" == failure.message


def _distrust(code: int, why: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, why
    return error


def _alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "an alert")
    error.reason = reason
    return error


NAMED = [
    (ConnectionResetError(), "was dropped", {"security_protocol"}),
    (IllegalSaslStateError(), "has no login", {"security_protocol"}),
    (UnsupportedSaslMechanismError(), "SASL mechanism", {"sasl_mechanism"}),
    (_distrust(19, "self-signed"), "is not trusted: self-signed;", {"ssl_truststore_location"}),
    (_distrust(20, "no issuer"), "is not trusted: no issuer;", {"ssl_truststore_location"}),
    (_distrust(10, "certificate has expired"), "is not trusted: certificate has expired", set()),
    *(
        (
            _distrust(code, "mismatch"),
            "its certificate is for another name: mismatch; ",
            {"ssl_endpoint_identification_algorithm"},
        )
        for code in (62, 64)
    ),
    *(
        (
            _alert(reason),
            f"{reason}; the broker requires a client certificate that it trusts, and that is valid"
            " now: check ",
            {"ssl_keystore_location"},
        )
        for reason in (
            "TLSV13_ALERT_CERTIFICATE_REQUIRED",
            "TLSV1_ALERT_UNKNOWN_CA",
            "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        )
    ),
    (_alert("SSLV3_ALERT_HANDSHAKE_FAILURE"), "TLS failed: ", set()),
    (
        SaslAuthenticationFailed("Authentication failed: Invalid username or password"),
        "Invalid username or password (check ",
        {"sasl_username", "sasl_password", "sasl_password_file"},
    ),
    (SaslAuthenticationFailed("too many connections"), "too many connections", set()),
]


@pytest.mark.parametrize(("error", "says", "settings"), NAMED)
def test_the_settings_to_check_are_named(error: Exception, says: str, settings: set[str]) -> None:
    """The message names the environment variable of each setting that could help, and no other."""
    failure = to_failure(error, "b1:9092", "connecting", HERE)
    assert says in failure.message
    fields = {f"kafka_admin_{setting}" for setting in settings}
    assert fields <= set(FIELDS)
    reported = set(re.findall("SIDECAR_[A-Z_]+", failure.message))
    assert set(map(environment_key, fields)) == reported


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("environment", "; SIDECAR_KAFKA_ADMIN_SSL_TRUSTSTORE_LOCATION must name"),
        ("command config", "; ssl.truststore.location in --command-config must name"),
        (
            "properties",
            "; client.quota.callback.static.kafka.admin.ssl.truststore.location"
            " (SIDECAR_KAFKA_ADMIN_SSL_TRUSTSTORE_LOCATION) must name",
        ),
        (
            "toml",
            "; kafka_admin.ssl_truststore_location"
            " (SIDECAR_KAFKA_ADMIN_SSL_TRUSTSTORE_LOCATION) must name",
        ),
    ],
)
def test_settings_have_the_names_that_the_reader_uses(place: Place, expected: str) -> None:
    """An option that a command lacks is not named; a hint is never cut at its end."""
    error = _distrust(19, "self-signed certificate in certificate chain")
    message = to_failure(error, "broker-1.kafka.example:9093", "connecting", Names(place)).message
    assert expected in message
    assert message.endswith(" a PEM file with the certificate of the CA that signed it")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (Names("command config"), "sasl.jaas.config in --command-config"),
        (Names("command config", ("USER", "FILE (x:3)")), "USER and FILE (x:3)"),
        (Names("environment", ("USER", "FILE (x:3)")), "USER and FILE (x:3)"),
    ],
)
def test_a_wrong_password(names: Names, expected: str) -> None:
    """The message names the settings that the login comes from, else the key of Java's file."""
    error = SaslAuthenticationFailed("invalid credentials with SASL mechanism SCRAM-SHA-512")
    message = to_failure(error, "b1:9092", "connecting", names).message
    assert message.endswith(f" (check {expected})")


async def test_another_protocol_in_the_tls_handshake() -> None:
    """OpenSSL's own error is for words that are no TLS: the message asks if it is spoken there."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with raw_server(talk) as address:
        with pytest.raises(ssl.SSLError) as raised:
            await asyncio.open_connection(
                address.host, address.port, ssl=ssl.create_default_context()
            )
    failure = to_failure(raised.value, "b1:9092", "connecting", HERE)
    assert FailureKind.TLS is failure.kind
    assert "does this listener speak TLS? (SIDECAR_KAFKA_ADMIN_SECURITY" in failure.message


def test_the_cause_of_a_broken_connection_counts() -> None:
    """Calls in flight get an error of aiokafka's own; why they failed is its cause."""
    error = KafkaConnectionError("Connection at b1:9092 closed")
    error.__cause__ = ProtocolError("garbage")
    expected = Failure(FailureKind.PROTOCOL, "b1:9092: garbage")
    assert expected == to_failure(error, "b1:9092", "connecting", HERE)


def test_a_bug_stays_a_bug() -> None:
    """What no call is expected to raise becomes no failure."""
    with pytest.raises(TypeError):
        to_failure(KeyError("x"), "b1:9092", "connecting", HERE)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (31, "error 31 (CLUSTER_AUTHORIZATION_FAILED)"),
        (114, "error 114"),
        (-1, "error -1 (UNKNOWN)"),
    ],
)
def test_error_codes_have_names_where_they_are_known(code: int, expected: str) -> None:
    """A code that aiokafka does not know is shown as a number."""
    assert expected == error_name(code)


def test_messages_are_one_short_line() -> None:
    """Line breaks of a broker's text are spaces, and no text is longer than 400 characters."""
    assert one_line("a\n b\r\nc") == "a b c"
    assert len(one_line("x" * 1000)) == 400
