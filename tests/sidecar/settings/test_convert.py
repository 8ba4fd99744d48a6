"""The forms of single values."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.formats.addresses import HostPort
from sidecar.settings import convert


@pytest.mark.parametrize(
    ("expected", "raw"),
    [
        ((HostPort("broker-0", 9092),), "broker-0:9092"),
        ((HostPort("a", 1), HostPort("b", 2)), "a:1, b:2,"),
        ((HostPort("::1", 9092), HostPort("10.0.0.1", 1)), "[::1]:9092,10.0.0.1:1"),
        ((HostPort("fe80::1%eth0", 65_535),), "[fe80::1%eth0]:65535"),
        ((HostPort("a_b.svc.cluster.local", 9092),), ["a_b.svc.cluster.local:9092"]),
        ((HostPort("kafka.svc.", 9092),), "kafka.svc.:9092"),
        ((HostPort("a", 1),), "a:1,a:1"),
        ((HostPort("a", 1), HostPort("b", 2)), "a:1,\nb:2\n"),
    ],
)
def test_brokers_are_a_list_of_addresses(expected: tuple[HostPort, ...], raw: object) -> None:
    """Names, IPv4 and IPv6 in brackets are taken, from text or TOML's list; each once."""
    assert expected == convert.addresses(raw)


@pytest.mark.parametrize(
    ("message", "raw"),
    [
        ("is not host:port", "broker-0"),
        ("is not host:port", "PLAINTEXT://broker-0:9092"),
        ("is not host:port", "a:1;b:2"),
        ("is not host:port", "a:x"),
        ("is not host:port", "a:\u0661"),
        ("needs brackets", "::1:9092"),
        ("names no host$", ":9092"),
        ("is not an IP address", "[::g]:1"),
        ("is not an IP address", "300.1.1.1:1"),
        ("is not a host name: each part between its dots", "kafka..svc:1"),
        ("is not a host name: each part between its dots", ".svc:1"),
        ("is not a host name: each part between its dots", f"{'k' * 64}.svc:1"),
        ("the port must be 1 to 65535", "a:0"),
        ("the port must be 1 to 65535", "a:65536"),
        ("at least one host:port", " , "),
        ("is empty", ""),
        ("at least one host:port", []),
        ("must be text", [1]),
        ("must be text", 9092),
    ],
)
def test_what_is_no_broker_is_refused(message: str, raw: object) -> None:
    """Each wrong form has a sentence of its own."""
    with pytest.raises(ValueError, match=message):
        convert.addresses(raw)


def test_a_listener_may_have_port_zero() -> None:
    """Port 0 asks the system for a free one; to connect to it makes no sense."""
    assert HostPort("127.0.0.1", 0) == convert.listen_address("127.0.0.1:0")


@pytest.mark.parametrize(
    ("read", "expected", "raws"),
    [
        (convert.positive_size, 1, ["1", 1, "+1"]),
        (convert.positive_size, 2**63 - 1, [str(2**63 - 1)]),
        (convert.positive_size, 10 << 30, ["10Gi", "10GiB", str(10 << 30), 10 << 30]),
        (convert.open_ratio, 0.05, ["0.05", 0.05, "5e-2", ".05"]),
        (convert.factor, 0.0, ["0", 0, "-0.0"]),
        (convert.factor, 0.25, ["0.25", 0.25]),
        (convert.factor, 1.0, ["1.0", 1]),
    ],
)
def test_a_number_is_text_or_tomls(
    read: Callable[[object], object], expected: object, raws: list[object]
) -> None:
    """It is at most Java's largest long; also with an exponent; -0.0 is never shown as such."""
    assert [str(expected)] * len(raws) == [str(read(raw)) for raw in raws]


SIZES = ["0", "-1", 0, str(2**63), "1.0", 1.5, "1e9", "1_000", "0GB", " 1", "1\n", True, [], ""]
RATIOS = [
    "0",
    "0.0",
    "1",
    "1.0",
    "-0.1",
    "1e-999",
    "nan",
    "inf",
    float("nan"),
    "5%",
    "0,5",
    1,
    True,
]
FACTORS = ["-0.01", "1.01", "nan", float("inf"), "one", 2, 10**400]


@pytest.mark.parametrize(
    ("read", "message", "raw"),
    [
        *((convert.positive_size, "bytes|in quotes|is empty", raw) for raw in SIZES),
        *(
            (convert.open_ratio, r"must be > 0\.0 and < 1\.0|is not a number", raw)
            for raw in [*RATIOS, None, "."]
        ),
        *((convert.factor, r"between 0\.0 and 1\.0|is not a number", raw) for raw in FACTORS),
    ],
)
def test_other_numbers_are_refused(
    read: Callable[[object], object], message: str, raw: object
) -> None:
    """A unit, a separator, a truth value, no finite number, or one out of range is refused."""
    with pytest.raises(ValueError, match=message):
        read(raw)


@pytest.mark.parametrize(
    ("read", "raw", "message"),
    [
        (convert.positive_size, "10G", "'10G' may mean 10GB or 10Gi: write one of the two"),
        (convert.ids_rate, "0", "must be 1e-06 to 1e\\+12"),
        (convert.positive_whole, "0", "must be > 0"),
        (convert.positive_whole, "1.5", "not a whole number"),
        (convert.broker_id, "-1", "must be >= 0"),
        (convert.urls, "a:7070", "not an address that starts with"),
        (convert.broker_urls, "http://b:11001/metrics", "needs broker ids, such as 0=http"),
        (convert.broker_urls, "-1=http://b:11001/metrics", "must be >= 0"),
        (convert.broker_urls, "1=b:11001/metrics", "not an address that starts with"),
        (convert.broker_urls, "1=http://b/,1=http://c/", "has two addresses for one broker"),
    ],
)
def test_what_else_is_refused_has_a_sentence(
    read: Callable[[object], object], raw: str, message: str
) -> None:
    """The sentence says what is meant, or what may be written."""
    with pytest.raises(ValueError, match=message):
        read(raw)


def test_addresses_of_metrics_have_a_broker_each_and_no_secret() -> None:
    """All addresses are shown, so a password is refused, and the message does not quote it."""
    urls = ((1, "http://b:11001/metrics"), (2, "https://c/m?name[]=a"))
    assert urls == convert.broker_urls("1=http://b:11001/metrics, 2=https://c/m?name[]=a")
    assert urls[:1] == convert.broker_urls(["1=http://b:11001/metrics"])
    for text in ("1=http://me:hidden@b/", "http://me:hidden@b/", "1:http://me:hidden@b/"):
        with pytest.raises(ValueError, match=r"must not contain|needs broker ids") as raised:
            convert.broker_urls(text)
        assert "hidden" not in str(raised.value)


def test_a_positive_duration_is_longer_than_nothing() -> None:
    """No time at all disables the interval alone; elsewhere it is a mistake."""
    assert 0.1 == convert.positive_duration("PT0.1S")
    for nothing in ("PT0S", "0s"):
        with pytest.raises(ValueError, match="must be longer than 0s"):
            convert.positive_duration(nothing)


def test_a_duration_is_text() -> None:
    """TOML's bare 60 is not a duration: it doesn't say of what."""
    with pytest.raises(
        ValueError, match="60 has no unit: write a duration in quotes, such as '60s'"
    ):
        convert.duration(60)


@pytest.mark.parametrize(("expected", "raw"), [("info", "INFO"), ("SASL_SSL", "sasl_ssl")])
def test_a_word_is_taken_in_any_case(expected: str, raw: str) -> None:
    """INFO is info, and sasl_ssl is what Kafka calls SASL_SSL."""
    assert expected == convert.choice("info", "SSL", "SASL_SSL")(raw)


def test_another_word_names_all() -> None:
    """The message lists what may be written."""
    with pytest.raises(ValueError, match="'trace' is not one of debug, info"):
        convert.choice("debug", "info")("trace")


@pytest.mark.parametrize("form", [convert.text, convert.secret, convert.path, convert.duration])
def test_an_empty_value_is_not_taken_for_none(form: Callable[[object], object]) -> None:
    """An empty variable is more often a mistake than a wish for the default."""
    with pytest.raises(ValueError, match="is empty"):
        form("")


def test_a_secret_is_not_quoted() -> None:
    """Neither a secret's repr nor the complaint about a wrong one shows it."""
    assert "hunter2" not in repr(convert.secret("hunter2"))
    with pytest.raises(ValueError, match=r"^must be text in quotes$"):
        convert.secret(12345678)


def test_a_path_is_taken_as_it_is() -> None:
    """Whether it is there is asked at the start, not here; a NUL never can be."""
    assert Path("/no/such/file") == convert.path("/no/such/file")
    with pytest.raises(ValueError, match="has a NUL"):
        convert.path("a\0b")


@pytest.mark.parametrize("read", [convert.text, convert.secret, convert.client_id])
def test_a_text_is_utf_8(read: Callable[[object], object]) -> None:
    """It could not be sent to a broker; a path may be of any bytes."""
    latin_1 = b"caf\xe9".decode(errors="surrogateescape")
    with pytest.raises(ValueError, match=r"^is not UTF-8"):
        read(latin_1)
    assert Path(latin_1) == convert.path(latin_1)


def test_a_client_id_fits_into_a_request() -> None:
    """Kafka's protocol has two bytes with a sign for its length, which is in bytes."""
    assert "é" * 16_383 == convert.client_id("é" * 16_383)
    with pytest.raises(ValueError, match="longer than 32767 bytes"):
        convert.client_id("é" * 16_384)


@pytest.mark.parametrize(
    "raw", ["http://idp/token", "https://idp.example:8443/realms/x/token?a=b", "https://h"]
)
def test_a_token_endpoint_is_an_http_address(raw: str) -> None:
    """It is with or without TLS, port and path."""
    assert raw == convert.token_url(raw)


@pytest.mark.parametrize("raw", ["file:///etc/token", "idp/token", "https:// x", "s3cret"])
def test_another_address_is_not_quoted(raw: str) -> None:
    """What is no address may be a secret in the wrong place."""
    with pytest.raises(ValueError, match="starts with http") as refusal:
        convert.folder_url(raw)
    assert raw not in str(refusal.value)


def test_a_user_in_an_address_is_refused() -> None:
    """It would be a secret in plain sight, and the message doesn't repeat it."""
    with pytest.raises(ValueError, match="must not contain a user or password") as refusal:
        convert.token_url("https://me:hunter2@idp/token")
    assert "hunter2" not in str(refusal.value)
    for read in (convert.folder_url, convert.urls, convert.secret_url):
        for end in "/?#":
            with pytest.raises(ValueError, match="must not contain a user or password") as refusal:
                read(f"https://me:1{end}hunter2@idp/token")
            assert "hunter2" not in str(refusal.value)
    assert convert.token_url("https://idp/token?for=me@example.org")


def test_a_path_may_have_an_at_sign() -> None:
    """Such as the URL of a channel of Microsoft Teams."""
    url = "https://example.webhook.office.com/webhookb2/1@2/IncomingWebhook/3/4"
    assert url == convert.secret_url(url).get_secret_value()


@pytest.mark.parametrize(
    "raw",
    [
        "http://b1:70700",
        "http://b1:abc",
        "http://b1:0",
        "http://[::1",
        "http://b1:7070:7071",
        "http://:7070",
    ],
)
def test_a_host_or_port_that_is_not_valid_is_refused(raw: str) -> None:
    """In a list of addresses too. It may be part of a password, so it is not repeated."""
    for read in (convert.folder_url, convert.urls, convert.secret_url):
        with pytest.raises(ValueError, match=r"^has a host or port that is not valid$"):
            read(raw)


def test_a_url_beyond_ascii_is_refused() -> None:
    """HTTP has no such URLs. It may be a secret, so it is not repeated."""
    for read in (convert.token_url, convert.urls, convert.secret_url):
        with pytest.raises(ValueError, match="written like %C3%BC for ü") as refusal:
            read("http://b1/grün")
        assert "grün" not in str(refusal.value)
    assert "http://b1/gr%C3%BCn/" == convert.folder_url("http://b1/grün"), "not secret"


def test_a_long_value_is_cut() -> None:
    """A message stays one readable line."""
    assert 80 == len(convert.shown("x" * 1000))
