"""Request logs as log4j, containers and shippers write them."""

import json
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.requestlog.layout import Layout
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.rejected import Rejected, RejectedKind
from tests.sidecar.requestlog.lines import LAYOUTS, line

OTHER, TORN, TEXT = RejectedKind.OTHER, RejectedKind.TORN, RejectedKind.TEXT
_THREAD: Final = "data-plane-kafka-network-thread-3-ListenerName(CLIENTS-9094)-SASL_SSL-1"
_WHOLE: Final = line(3, client_id='] (x) {} DEBUG Completed request:{"a":1}')
_JSON: Final = _WHOLE.partition(b"Completed request:")[2].rpartition(b" ")[0].decode()
_TIME: Final = datetime(2026, 11, 20, 10, 0, 0, 123_000)  # noqa: DTZ001  as the log has it
_WHOLE_SECOND: Final = _TIME.replace(microsecond=0)
_MESSAGE: Final = f"Completed request:{_JSON}"
_LINE: Final = f"[2026-11-20 10:00:00,123] DEBUG {_MESSAGE} (kafka.request.logger)"


_PUBLIC: Final[tuple[tuple[str, int, list[RejectedKind]], ...]] = (
    ("apache-default", 3, []),
    ("strimzi-log4j1-default", 3, []),
    ("strimzi-log4j2-kafka-4.0", 3, []),
    ("strimzi-log4j2-kafka-4.1plus", 3, []),
    ("chef-iso8601-c-colon", 3, []),
    ("default-with-thread", 3, []),
    ("log4j2-iso8601-T", 3, []),
    ("utc-Z-in-the-time", 3, []),
    ("ibm-syslog-m-n", 3, []),
    ("rsyslog-file-default", 3, []),
    ("strimzi-JsonTemplateLayout", 3, []),
    ("ecs", 3, []),
    ("cri", 3, []),
    ("fluent-bit-envelope", 3, []),
    ("pretty-multiline", 0, [TORN, *[OTHER] * 59, TORN]),
    ("crlf", 3, []),
    ("level-padded-and-TRACE", 3, []),
    ("text-0.10", 0, [TEXT, TEXT]),
    ("text-1.x-2.6", 0, [TEXT]),
    ("json-2.7", 2, []),
    ("kip-673-draft", 0, [RejectedKind.UNEXPECTED]),
    ("json-4.x-topic-ids", 2, []),
    ("json-future-versions", 3, []),
    ("share-fetch-4.2plus", 3, []),
    ("odd-fields", 15, []),
    ("kubectl-logs-mixed", 3, [OTHER] * 4),
    ("msk-cloudwatch-masked", 3, []),
    ("truncated-8k", 1, [TORN]),
    ("whole-seconds-default", 3, []),
    ("kafkaapis-trace", 0, [OTHER]),
)


@pytest.mark.parametrize(("name", "read", "rejected"), _PUBLIC)
def test_public_layouts(name: str, read: int, rejected: list[RejectedKind]) -> None:
    """Each line is read, or refused for the right reason, whatever came before it in the log."""
    layout = Layout()
    lines = (LAYOUTS / f"{name}.log").read_bytes().splitlines()
    found = [parse(text, layout) for text in lines]
    assert found == [parse(text) for text in lines]
    assert read == sum(isinstance(each, Line) for each in found)
    assert rejected == [each.kind for each in found if isinstance(each, Rejected)]


def test_every_public_layout_is_tried() -> None:
    """The table above has all files."""
    assert {file.stem for file in LAYOUTS.iterdir()} == {case[0] for case in _PUBLIC}


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (f"2026-11-20 10:00:00,123 DEBUG {_MESSAGE}", _TIME),
        (f"2026/11/20 10:00:00,123 DEBUG {_MESSAGE}", _TIME),
        (f"20261120T100000,123 DEBUG {_MESSAGE}", _TIME),
        (f"[2026-11-20 10:00:00,123 UTC] DEBUG {_MESSAGE}", _TIME.replace(tzinfo=UTC)),
        (f"[2026-11-20 11:00:00,123+0100] DEBUG {_MESSAGE}", _TIME.replace(tzinfo=UTC)),
        (f"[2026-11-20 05:00:00,123 -05] DEBUG {_MESSAGE}", _TIME.replace(tzinfo=UTC)),
        (f"[{_THREAD}] DEBUG [2026-11-20 10:00:00,123] {_MESSAGE}", _TIME),
        (f"DEBUG | 2026-11-20 10:00:00,123 | {_THREAD} | {_MESSAGE}", _TIME),
        (f"[DEBUG] [2026-11-20 10:00:00,123] [kafka.request.logger] {_MESSAGE}", _TIME),
        (f"2026-11-20 10:00:00,123 DEBUG (kafka.request.logger) {_MESSAGE}", _TIME),
        (f"2026-11-20 10:00:00,123 DEBUG k.r.logger - {_MESSAGE}", _TIME),
        (f"2026-11-20 10:00:00 DEBUG [{_THREAD}] logger:264 - {_MESSAGE}", _WHOLE_SECOND),
        (f"2026-11-20 10:00:00 DEBUG [{_THREAD}] logger:? - {_MESSAGE}", _WHOLE_SECOND),
        (f"2026-11-20 10:00:00,123 DEBUG {_MESSAGE} (kafka.request.logger) {{}}", _TIME),
        (f"2026-11-20 10:00:00,123 DEBUG {_MESSAGE} {{traceId=7}} [{_THREAD}]", _TIME),
        (f"2026-11-20 10:00:00,123 DEBUG {_MESSAGE} (RequestChannel.scala:317)", _TIME),
        (f"\x1b[36m2026-11-20 10:00:00,123\x1b[m \x1b[1;32mDEBUG\x1b[m {_MESSAGE}\x1b[m", _TIME),
        (f"Nov 20 10:00:00 host kafka[812]: [2026-11-20 10:00:00,123] DEBUG {_MESSAGE}", _TIME),
        (f"2026-11-20T10:00:01+00:00 h kafka-start.sh[8]: {_LINE}", _TIME),
        (f"2026-11-20T10:00:01.5Z [2026-11-20 10:00:00,123] DEBUG {_MESSAGE}", _TIME),
        (f"[pod/my-kafka-3/kafka] 2026-11-20 10:00:00,123 DEBUG {_MESSAGE}", _TIME),
        (f"kafka-1  | [2026-11-20 10:00:00,123] DEBUG {_MESSAGE}", _TIME),
        (f"kafka-1  | 2026-11-20T10:00:01.5Z {_LINE}", _TIME),
        (f"[pod/my-kafka-3/kafka] 2026-11-20T10:00:01.5Z {_LINE}", _TIME),
        (f"[pod/my-kafka-3/kafka] 2026-11-20T10:00:00.123Z {_MESSAGE}", _TIME.replace(tzinfo=UTC)),
        (f"Nov 20 10:00:00.123456 host kafka[812]: {_LINE}", _TIME),
        (f'<30>1 2026-11-20T10:00:01Z h kafka 8 - [a@1 x="\\]"][b@2 y=""] {_LINE}', _TIME),
        (f"812 <30>1 2026-11-20T10:00:01Z h kafka 8 - - {_LINE}", _TIME),
        (f"2026-11-20T10:00:00.123Z stdout F {_MESSAGE}", _TIME.replace(tzinfo=UTC)),
        (f"2026-11-20T10:00:00.123+00:00 host kafka: {_MESSAGE}", _TIME.replace(tzinfo=UTC)),
        (f"DEBUG {_MESSAGE}", None),
        (_MESSAGE, None),
    ],
)
@pytest.mark.parametrize("end", ["", "\r"])
def test_other_layouts(text: str, time: datetime | None, end: str) -> None:
    """The first line of a form and those after it are read, whatever the client's name."""
    layout = Layout()
    for _ in range(2):
        found = parse((text + end).encode(), layout)
        assert isinstance(found, Line)
        assert (time, '] (x) {} DEBUG Completed request:{"a":1}') == (found.time, found.client_id)


_UTC: Final = "2026-11-20T10:00:00.123Z"


@pytest.mark.parametrize(
    ("envelope", "time"),
    [
        ({"log": _LINE + "\n", "stream": "stdout", "time": "2026-11-20T10:00:09Z"}, _TIME),
        ({"message": _LINE, "timestamp": "2026-11-20T10:00:09Z", "kubernetes": {"x": []}}, _TIME),
        ({"MESSAGE": _LINE, "__REALTIME_TIMESTAMP": "1"}, _TIME),
        ({"@timestamp": _UTC, "message": _MESSAGE, "logger_name": "kafka.request.logger"}, UTC),
        ({"@timestamp": _UTC, "message": _MESSAGE, "log": {"level": "DEBUG"}}, UTC),
        (
            {
                "instant": {"epochSecond": 1795168800, "nanoOfSecond": 123_000_000},
                "message": _MESSAGE,
            },
            UTC,
        ),
        (
            {
                "timeMillis": 1795168800123,
                "message": _MESSAGE,
                "loggerName": "kafka.request.logger",
            },
            UTC,
        ),
        (
            {
                "@timestamp": "2026-11-20T18:00:00Z",
                "timestamp": "2026-11-20T18:00:00Z",
                "instant": {"epochSecond": 1795168800, "nanoOfSecond": 123_000_000},
                "message": _MESSAGE,
            },
            UTC,
        ),
        (
            {
                "@timestamp": "2026-11-20T18:00:00Z",
                "timeMillis": 1795168800123,
                "message": _MESSAGE,
            },
            UTC,
        ),
        ({"timestamp": 1795168800.123, "short_message": _MESSAGE}, UTC),
        ({"timestamp": 1795168800123000, "message": _MESSAGE}, UTC),
        ({"timestamp": 1795168800123000000, "message": _MESSAGE}, UTC),
        ({"timestamp": 1795168800123, "message": _MESSAGE, "logger": "k.r.logger"}, UTC),
        ({"msg": _MESSAGE}, None),
        ({"timestamp": 1e300, "message": _MESSAGE}, None),
        ({"timestamp": -1e300, "message": _MESSAGE}, None),
        ({"timeMillis": 10**400, "message": _MESSAGE}, None),
        ({"instant": {"epochSecond": 10**400}, "message": _MESSAGE}, None),
    ],
)
def test_envelopes(envelope: dict[str, object], time: datetime | object | None) -> None:
    """A line, or Kafka's message, in a field of a JSON object."""
    found = parse(json.dumps(envelope).encode())
    assert isinstance(found, Line), found
    expected = _TIME.replace(tzinfo=UTC) if time is UTC else time
    assert expected == found.time
    assert "alice" == found.user


@pytest.mark.parametrize("message", ['"MESSAGE":null', '"MESSAGE" : null'])
def test_a_line_that_journalctl_has_left_out(message: str) -> None:
    """A long one, as those of requests are; otherwise it would be another logger's."""
    found = parse(f'{{"_PID":"812",{message},"PRIORITY":"6"}}'.encode())
    assert isinstance(found, Rejected)
    assert (TORN, True) == (found.kind, "--all" in found.message)


@pytest.mark.parametrize(("text", "is_read"), [(f"\x1b[36m{_LINE}\x1b[m", True), ("x", False)])
def test_a_line_that_journalctl_writes_as_numbers(text: str, is_read: bool) -> None:
    """It does so with a message that has colours."""
    found = parse(json.dumps({"_PID": "812", "MESSAGE": list(text.encode())}).encode())
    assert is_read is isinstance(found, Line)
    assert _TIME == found.time if isinstance(found, Line) else OTHER is found.kind


def test_an_unknown_layout_is_not_torn() -> None:
    """Fluent Bit's files have a bracket behind the object."""
    found = parse(f"kube.kafka: [1795168800.0, {json.dumps({'log': _LINE})}]".encode())
    assert isinstance(found, Rejected)
    assert RejectedKind.LAYOUT is found.kind


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (" (kafka.request.logger) #12", RejectedKind.LAYOUT),
        (" host=kafka-1 {traceId=7} x", RejectedKind.LAYOUT),
        (" (kafka.request.logg", TORN),
        (" (kafka.request.logger)[2026-11-20 10:00:01,123] DEB", TORN),
    ],
)
def test_an_unknown_end_is_not_torn(end: str, kind: RejectedKind) -> None:
    """The request is whole, unless its line was cut in what follows it, or two lines are joined."""
    found = parse(f"[2026-11-20 10:00:00,123] DEBUG {_MESSAGE}{end}".encode())
    assert isinstance(found, Rejected)
    assert kind is found.kind


@pytest.mark.parametrize(
    "envelope",
    [
        {"labels": {"app": "kafka"}, "line": _LINE, "timestamp": _UTC},
        {"textPayload": _LINE},
        {"body": {"stringValue": _LINE}},
        {"result": {"_raw": _LINE}},
    ],
)
def test_a_request_in_a_field_that_is_not_known(envelope: dict[str, object]) -> None:
    """Of Loki, Google Cloud, OpenTelemetry and Splunk: no other logger wrote it."""
    found = parse(json.dumps(envelope).encode())
    assert isinstance(found, Rejected)
    assert RejectedKind.LAYOUT is found.kind


@pytest.mark.parametrize(
    "text",
    [
        f"[2026-11-20 10:00:00,123] INFO Client {_MESSAGE} is gone (kafka.server.KafkaServer)",
        f"[2026-11-20 10:00:00,123] INFO {_MESSAGE} (kafka.server.KafkaServer)",
        f"[2026-11-20 10:00:00,123] INFO {_MESSAGE} (state.change.logger)",
        f"2026-11-20 10:00:00,123 DEBUG kafka.server.Apis: {_MESSAGE}",
        f"2026-11-20 10:00:00,123 DEBUG (kafka.server.Apis) {_MESSAGE}",
        f"2026-11-20 10:00:00,123 main kafka.server.Apis: {_MESSAGE}",
        f"2026-11-20 10:00:00,123 DEBUG [x] clientId={_MESSAGE}",
        f"[2026-11-20 10:00:00,123] WARN {_MESSAGE} (kafka.request.logger)",
        json.dumps({"message": _MESSAGE, "logger": "kafka.server.Apis"}),
        json.dumps({"message": f"x {_MESSAGE}", "logger": "kafka.server.Apis"}),
        json.dumps({"log": {"logger": "kafka.server.Apis"}, "message": _MESSAGE}),
        json.dumps({"message": json.dumps({"message": _MESSAGE})}),
        json.dumps({"user_agent": _MESSAGE}),
    ],
)
def test_another_loggers_line_is_no_request(text: str) -> None:
    """A request's text in the name of a client can't make one."""
    assert isinstance(parse(text.encode()), Rejected)


@given(st.lists(st.sampled_from([*"[](){} -", "DEBUG", "logger", "2026-11-20 10:00:00"])))
def test_any_head_is_read_in_time(parts: list[str]) -> None:
    """Nothing around a request takes long to look at, and nothing is an exception."""
    around = "".join(parts)
    assert parse(f"{around * 20}{_MESSAGE}{around * 20}".encode()) is not None


@pytest.mark.parametrize("part", ["(", "( ", "[", "{", "(a", "(a)", ") ", "\x1b[", "-"])
def test_a_long_end_takes_no_time(part: str) -> None:
    """It grows with the length alone; a client's name may be the end of a line that was cut."""
    text = f"[2026-11-20 10:00:00,123] DEBUG {_MESSAGE}{part * 300_000}x"
    assert isinstance(parse(text.encode()), Rejected)


def test_a_long_head_is_not_looked_at() -> None:
    """It is no layout's."""
    found = parse(b"[" * 100_000 + _MESSAGE.encode())
    assert isinstance(found, Rejected)
    assert RejectedKind.LAYOUT == found.kind


@pytest.mark.slow
def test_forms_are_bounded() -> None:
    """A log whose lines all differ is read, and is not remembered without end."""
    layout = Layout()
    for number in range(300):
        text = f"[2026-11-20 10:00:00,123] DEBUG [{'x' * number}] {_MESSAGE}"
        assert isinstance(parse(text.encode(), layout), Line)


def test_the_parts_of_two_heads_make_no_third_one() -> None:
    """A damaged line is judged alike, whatever was read before it."""
    layout = Layout()
    for head in ("2026-11-20 10:00:00,123 DEBUG logger:302 - ", "[2026-11-20 10:00:00,123] DEBUG "):
        assert isinstance(parse(f"{head}{_MESSAGE}".encode(), layout), Line)
    damaged = f"2026-11-20 10:00:00,123] DEBUG {_MESSAGE}".encode()
    assert parse(damaged) == parse(damaged, layout)
    assert isinstance(parse(damaged, layout), Rejected)


@pytest.mark.parametrize(
    ("pattern", "text", "time"),
    [
        (
            "%d{DATE} %p %m (%c)%n",
            "20 Nov 2026 10:00:00,123 DEBUG {} (kafka.request.logger)",
            _TIME,
        ),
        ("%d{DATE} %m%n", "\x1b[36m20 Nov 2026 10:00:00,123\x1b[m {}\x1b[m", _TIME),
        ("%d{DATE} %m%n", "2026-11-20T10:00:01.5Z stdout F 20 Nov 2026 10:00:00,123 {}", _TIME),
        ("%m (%c) at %d{DATE}%n", "{} (k.r.logger) at 20 Nov 2026 10:00:00,123", _TIME),
        ("[%d{dd/MMM/yyyy:HH:mm:ss.SSS}] %m%n", "[20/Nov/2026:10:00:00.123] {}", _TIME),
        ("%r %c - %m%n", "512345 kafka.request.logger - {}", None),
        ("%d{DATE} %c{1}:%L - %m%n", "20 Nov 2026 10:00:00,123 logger:? - {}", _TIME),
        ("%d{DATE} %m%n", _LINE.replace(_MESSAGE, "{}"), _TIME),
    ],
)
def test_a_layout_by_its_pattern(pattern: str, text: str, time: datetime | None) -> None:
    """It is read behind a collector's prefix too; other lines are read without the pattern."""
    layout = Layout(pattern)
    for _ in range(2):
        found = parse(text.replace("{}", _MESSAGE).encode(), layout)
        assert isinstance(found, Line)
        assert time == found.time


def test_a_pattern_in_a_json_object() -> None:
    """A collector's object has the line as it was written."""
    text = json.dumps({"message": f"20 Nov 2026 10:00:00,123 {_MESSAGE}"}).encode()
    found = parse(text, Layout("%d{DATE} %m%n"))
    assert isinstance(found, Line)
    assert _TIME == found.time


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"20 Nov 2026 10:00:00,123 a.b.Other - {_MESSAGE}", OTHER),
        (f"20 Nov 2026 10:00:00,123 kafka.request.logger - x {_MESSAGE}", RejectedKind.LAYOUT),
        (f"20 Nox 2026 10:00:00,123 kafka.request.logger - {_MESSAGE}", RejectedKind.TIME),
        (f"20 Nov 2026 10:00:00,123 kafka.request.logger - {_MESSAGE[:60]}", TORN),
    ],
)
def test_a_line_that_the_pattern_does_not_allow(text: str, kind: RejectedKind) -> None:
    """Another logger's line, and a request within another text, are not read."""
    found = parse(text.encode(), Layout("%d{DATE} %c - %m%n"))
    assert isinstance(found, Rejected)
    assert kind is found.kind


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("DATE", "20 Nov 2026 10:00:00,000", False),
        ("UNIX_MILLIS", "1795168800000", False),
        ("UNIX", "1795168800", True),
        ("ABSOLUTE", "10:00:00,000", None),
    ],
)
def test_a_pattern_tells_whole_seconds(form: str, text: str, expected: bool | None) -> None:
    """Milliseconds that are 0 are not whole seconds."""
    layout = Layout(f"%d{{{form}}} %m%n")
    assert layout.in_whole_seconds is None
    parse(f"{text} {_MESSAGE}".encode(), layout)
    assert expected == layout.in_whole_seconds


@pytest.mark.parametrize(
    ("time", "expected"),
    [("2026-11-20T10:00:00Z", True), ("2026-11-20T10:00:00.000Z", False), (1795168800, True)],
)
def test_a_json_object_tells_whole_seconds(time: object, expected: bool) -> None:
    """As a pattern does."""
    layout = Layout()
    parse(json.dumps({"@timestamp": time, "message": _MESSAGE}).encode(), layout)
    assert expected is layout.in_whole_seconds


def numbered(number: int, time: str = "2026-11-20 10:00:00,123") -> bytes:
    """A line with the number of its request."""
    return f'{time} DEBUG Completed request:{{"correlationId":{number}}} (k.r.logger)'.encode()


def test_a_request_that_two_appenders_have_written_is_found_once() -> None:
    """As Strimzi's configuration for Kafka 3 does; lines of other threads may be in between."""
    layout = Layout()
    order = [1, 1, 1, 2, 3, 2, 3, 4, 5, 6, 4, 6, 5, 4, 7]
    found = [isinstance(layout.find(numbered(number)), tuple) for number in order]
    assert list(range(1, 8)) == [
        number for number, is_found in zip(order, found, strict=True) if is_found
    ]
    again = layout.find(numbered(7))
    assert isinstance(again, Rejected)
    assert RejectedKind.OTHER == again.kind


def test_a_request_that_a_container_logged_twice_is_found_once() -> None:
    """The times of the container's log differ."""
    layout = Layout()
    found = [
        layout.find(b"2026-11-20T10:00:00.12345678%dZ stdout F %b" % (at, numbered(1)))
        for at in range(2)
    ]
    assert [False, True] == [isinstance(each, Rejected) for each in found]


def test_alike_is_not_the_same() -> None:
    """A client may send what it sent before, and lines without a number can't be told apart."""
    layout = Layout()
    lines = [numbered(1), numbered(1, "2026-11-20 10:00:00,124"), numbered(2)]
    plain = b"2026-11-20 10:00:00,123 DEBUG Completed request:{} (k.r.logger)"
    assert not any(isinstance(layout.find(line), Rejected) for line in [*lines, plain, plain])


_MIXED: Final = (
    *map(numbered, range(3)),
    numbered(1, "[2026-11-20 10:00:00,123]"),
    numbered(0).replace(b"(k.r.logger)", b"(kafka.server.KafkaServer)"),
    b"2026-11-20T10:00:00.1Z stdout P " + numbered(5)[:40],
    b"2026-11-20T10:00:00.2Z stdout F " + numbered(5)[40:],
    b"2026-11-20T10:00:00.2Z stdout F " + numbered(6) + b"\r",
    json.dumps({"log": numbered(7).decode() + "\n", "stream": "stdout"}).encode(),
    b"",
)


@given(
    parts=st.lists(
        st.lists(st.sampled_from(_MIXED), min_size=1, max_size=6), min_size=1, max_size=4
    )
)
def test_lines_of_a_block_are_found_as_one_by_one(parts: list[list[bytes]]) -> None:
    """Whatever forms they have, and whether some are repeated or in pieces."""
    single, layout = Layout(), Layout()
    for lines in parts:
        ends = list(accumulate(map(len, lines), lambda end, size: end + 1 + size))
        starts = [end - len(text) for end, text in zip(ends, lines, strict=True)]
        found = layout.find_each(memoryview(b"\n".join(lines)), starts, ends)
        assert list(map(single.find, lines)) == list(found)
