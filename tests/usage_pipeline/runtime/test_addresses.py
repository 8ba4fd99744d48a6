"""What a path says of where it is."""

import pytest

from usage_pipeline.runtime.addresses import (
    Address,
    NotAnOptionError,
    SecretInPathError,
    address_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/logs/a?b", Address("", "/logs/a?b")),
        ("s3://logs", Address("s3://logs", "")),
        ("s3a://logs/a b.log", Address("s3://logs", "/a b.log")),
        (
            "s3://logs/x?region=eu-west-1&scheme=http",
            Address("s3://logs", "/x", "?region=eu-west-1&scheme=http"),
        ),
        ("hdfs://me@name-node:8020/x", Address("hdfs://me@name-node:8020", "/x")),
        ("file:///logs/x", Address("file://", "/logs/x")),
    ],
)
def test_where_it_is(text: str, expected: Address) -> None:
    """An address has the store, the path in it and options; s3a means s3."""
    assert expected == address_of(text)


def test_names_are_what_they_are() -> None:
    """A URI escapes special characters. Messages have the plain name without options."""
    address = address_of("s3://logs/a b%20#1.log?region=eu-west-1")
    assert "s3://logs/a%20b%2520%231.log?region=eu-west-1" == address.uri
    assert "s3://logs/a b%20#1.log" == str(address)


@pytest.mark.parametrize(
    "text",
    [
        "s3://key:hidden@logs/x",
        "s3a://key:hidden@logs/x?region=eu-west-1",
        "s3://logs/x?secret_key=hidden",
        "s3://logs/x?region=a&session_token=hidden",
        "abfs://logs/x?sig=hidden",
    ],
)
def test_credentials_are_refused_and_not_shown(text: str) -> None:
    """Paths appear in tables, logs and messages."""
    with pytest.raises(SecretInPathError, match="must not contain credentials") as refused:
        address_of(text)
    assert "hidden" not in str(refused.value)


def test_what_arrow_alone_knows_is_refused() -> None:
    """The message names a setting that works for both libraries."""
    with pytest.raises(NotAnOptionError, match=r"^s3://logs/x: .* tls_ca_.* the variable SSL_CERT"):
        address_of("s3a://logs/x?region=a&tls_ca_file_path=ca.pem")
