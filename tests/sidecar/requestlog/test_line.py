"""One line of the request log as a value."""

import json
import re
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.requestlog.exempt import is_exempt
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.rejected import Rejected, RejectedKind
from sidecar.requestlog.request_detail import detail
from tests.sidecar.requestlog.lines import BY_HAND, REAL, line, parsed_line, read

_PRODUCE = BY_HAND[0]


def test_what_every_line_says() -> None:
    """The line is the docstring's: a throttled PRODUCE."""
    produce = read(_PRODUCE)
    assert datetime.fromisoformat("2026-11-20 10:00:00.123") == produce.time
    assert (0, 11, "PRODUCE") == (produce.api_key, produce.api_version, produce.api)
    assert ("alice", "orders-writer-3") == (produce.user, produce.client_id)
    assert (0.258, 198) == (produce.local_ms, produce.throttle_ms)
    assert produce.is_forwarded is False
    assert "CLIENT" == produce.body.listener
    assert (3.094, 0.063, 0.144) == (
        produce.body.remote_time_ms,
        produce.body.response_queue_time_ms,
        produce.body.send_time_ms,
    )


@pytest.mark.parametrize("text", REAL + BY_HAND, ids=range(20))
def test_lines_of_a_broker_are_read(text: bytes) -> None:
    """Every sample is a whole record and says what its JSON says."""
    body = json.loads(text[text.index(b"{") : text.rindex(b"}") + 1])
    found = read(text)
    assert body["requestHeader"]["requestApiKeyName"] == found.api
    assert body["requestHeader"]["clientId"] == found.client_id
    assert body["principal"] == f"User:{found.user}"
    assert body["localTimeMs"] == found.local_ms
    assert body["isForwarded"] is found.is_forwarded
    assert datetime.fromisoformat(text[1:24].decode()) == found.time


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_the_end_of_a_line_may_be_there(ending: bytes) -> None:
    """Whoever reads lines need not take their ends off."""
    assert read(_PRODUCE) == read(_PRODUCE + ending)


@pytest.mark.parametrize(
    ("own", "response", "expected"),
    [
        (198, {"throttleTimeMs": 0}, 198),
        (0, {"throttleTimeMs": 1250}, 1250),
        (198, {"throttleTimeMs": 1250}, 1250),
        (198, {}, 198),
        (198, "", 198),
        (198, None, 198),
        (198, {"throttleTimeMs": "long"}, 198),
    ],
)
def test_throttle_time_is_the_greater(own: int, response: object, expected: int) -> None:
    """Controllers report it in the answer alone; without an answer the line's own counts."""
    assert expected == parsed_line(0, throttleTimeMs=own, response=response).throttle_ms


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"client_id": None}, ("alice", "")),
        ({"principal": "User:CN=a:b,O=x"}, ("CN=a:b,O=x", "etl")),
        ({"principal": "Robot:r2"}, ("r2", "etl")),
        (
            {"client_id": 'é\n"{} (kafka.request.logger)'},
            ("alice", 'é\n"{} (kafka.request.logger)'),
        ),
    ],
)
def test_names_are_whole(fields: dict[str, object], expected: tuple[str, str]) -> None:
    """Only the principal's type is removed; a client-id may have any characters or be missing."""
    found = parsed_line(0, **fields)
    assert expected == (found.user, found.client_id)


def test_an_api_without_a_name_is_reported_by_its_number() -> None:
    """Before 2.8 the header has no name."""
    assert "22" == parsed_line(22).api


def test_unknown_fields_are_skipped() -> None:
    """A newer Kafka's line is parsed, whatever else it has."""
    newer = parsed_line(0, somethingNew={"deep": [1, {"x": None}]}, temporaryMemoryBytes=10)
    assert "alice" == newer.user


_START_AT = len("[2026-11-20 10:00:00,123] DEBUG ")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"", RejectedKind.OTHER),
        (b"[2026-11-20 10:00:00,123] INFO Started (kafka.server.KafkaServer)", RejectedKind.OTHER),
        (b"\tat kafka.server.KafkaApis.handle(KafkaApis.scala:264)", RejectedKind.OTHER),
        (_PRODUCE.replace(b"(kafka.request.logger)", b"(kafka.server.Apis)"), RejectedKind.OTHER),
        (b"[2026-11-20 10:00:00,123] WARN id " + _PRODUCE[_START_AT:], RejectedKind.LAYOUT),
        (b"x" + _PRODUCE[1:], RejectedKind.LAYOUT),
        (_PRODUCE[-100:], RejectedKind.TORN),
        (_PRODUCE[:-1], RejectedKind.TORN),
        (_PRODUCE[:200], RejectedKind.TORN),
    ],
)
def test_what_is_no_line(text: bytes, kind: RejectedKind) -> None:
    """Torn lines and other loggers' are refused, even with a request's text in a client-id."""
    rejected = parse(text)
    assert isinstance(rejected, Rejected)
    assert kind == rejected.kind


def test_no_part_of_a_line_is_a_line() -> None:
    """A line that is torn at any byte, at either end, is refused, or has the whole request."""
    whole = read(_PRODUCE)
    parts = [_PRODUCE[:at] for at in range(len(_PRODUCE))]
    parts += [_PRODUCE[at:] for at in range(1, len(_PRODUCE))]
    found = [parse(part) for part in parts]
    read_parts = [each for each in found if isinstance(each, Line)]
    assert all(each.time in (None, whole.time) for each in read_parts)
    assert all(each.body == whole.body for each in read_parts)
    assert len(read_parts) < 10


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (b'"principal":"User:alice"', b'"principal":7', RejectedKind.UNEXPECTED),
        (b'"principal":"User:alice",', b"", RejectedKind.UNEXPECTED),
        (b'"localTimeMs":0.258', b'"localTimeMs":-1', RejectedKind.UNEXPECTED),
        (b'"localTimeMs":0.258', b'"localTimeMs":1e400', RejectedKind.UNEXPECTED),
        (b'"localTimeMs":0.258', b'"localTimeMs":NaN', RejectedKind.DAMAGED),
        (b"User:alice", b"User:\xff", RejectedKind.DAMAGED),
        (b'"acks":-1,', b'"acks":' + b"[" * 100_000, RejectedKind.DAMAGED),
        (b"2026-11-20 10:00:00,123", b"2026-13-20 10:00:00,123", RejectedKind.TIME),
        (b"2026-11-20 10:00:00,123", b"20261320T100000.1+01:00", RejectedKind.TIME),
        (b'"acks":-1,', b'"acks":,', RejectedKind.DAMAGED),
    ],
)
def test_what_is_wrong_is_reported(old: bytes, new: bytes, kind: RejectedKind) -> None:
    """Each kind of damage is a value."""
    rejected = parse(_PRODUCE.replace(old, new, 1))
    assert isinstance(rejected, Rejected)
    assert kind == rejected.kind


def test_the_reason_has_none_of_the_line() -> None:
    """The reason may be logged: it has no name or value of the line."""
    rejected = parse(line(0, principal=["secret"], localTimeMs="secret"))
    assert isinstance(rejected, Rejected)
    assert "secret" not in rejected.message
    assert re.search("principal|localTimeMs", rejected.message)


@given(st.binary())
def test_garbage_is_never_an_exception(text: bytes) -> None:
    assert isinstance(parse(text), Rejected)


@given(st.sampled_from(REAL + BY_HAND), st.integers(0, 900), st.integers(0, 40), st.binary())
def test_damage_is_never_an_exception(text: bytes, at: int, cut: int, put: bytes) -> None:
    """A line with a part replaced returns a value, whose properties can be read."""
    parsed = parse(text[:at] + put + text[at + cut :])
    if isinstance(parsed, Line):
        assert parsed.throttle_ms >= 0
        assert parsed.user is not None


@pytest.mark.parametrize("api_key", [0, 1, 22])
def test_a_request_or_an_answer_that_is_not_utf_8(api_key: int) -> None:
    """They are decoded when they are needed, and are as good as missing then."""
    whole = line(api_key, request="!", response="!", throttleTimeMs=7)
    parsed = read(whole.replace(b"!", b"\xff"))
    assert 7 == parsed.throttle_ms
    assert not is_exempt(parsed)
    assert not isinstance(detail(parsed), Line)
