"""Patterns of log4j's PatternLayout: the time and the logger of a line, and what can't be used."""

import pytest

from sidecar.formats.log4j_pattern import parse_pattern


@pytest.mark.parametrize(
    ("conversion", "text", "expected"),
    [
        ("%d", "2026-03-04 05:06:07,101", "2026-03-04 05:06:07,101"),
        ("%date{ISO8601}", "2026-03-04T05:06:07.101", "2026-03-04 05:06:07,101"),
        ("%d{ISO8601_BASIC}", "20260304T050607,101", "2026-03-04 05:06:07,101"),
        ("%d{DEFAULT}{UTC}", "2026-03-04 05:06:07,101", "2026-03-04 05:06:07,101Z"),
        ("%d{DATE}", "04 Mar 2026 05:06:07,101", "2026-03-04 05:06:07,101"),
        ("%d{COMPACT}", "20260304050607101", "2026-03-04 05:06:07,101"),
        ("%d{d/MMM/yyyy:H:mm:ss Z}", "4/Mar/2026:5:06:07 +0100", "2026-03-04 05:06:07+0100"),
        ("%d{EEEE, dd. MMMM yyyy HH:mm}", "Wednesday, 04. March 2026 05:06", "2026-03-04 05:06:00"),
        ("%d{yyyy.MM.dd 'at' HH:mm:ss.SSSSSS}", "2026.03.04 at 05:06:07.101202", None),
        ("%d{ABSOLUTE}", "05:06:07,101", ""),
        ("%r", "512345", ""),
    ],
)
@pytest.mark.parametrize("after", [False, True])
def test_times(conversion: str, text: str, expected: str | None, after: bool) -> None:
    """Each form gives the time in ISO 8601, before the message or after it."""
    expected = "2026-03-04 05:06:07,101202" if expected is None else expected
    pattern = parse_pattern(f"%m {conversion}" if after else f"{conversion} %m")
    part = pattern.tail if after else pattern.head
    match = None if part is None else part.fullmatch((f" {text}" if after else f"{text} ").encode())
    assert expected.encode() == pattern.time({} if match is None else match.groupdict(b""))


@pytest.mark.parametrize(
    ("form", "text"), [("UNIX", "1772600767"), ("UNIX_MILLIS", "1772600767101")]
)
def test_times_since_1970(form: str, text: str) -> None:
    """The number is a group of its own."""
    match = parse_pattern(f"%d{{{form}}} %m").head.fullmatch(f"{text} ".encode())
    assert match is not None
    assert text.encode() == match["since"]


@pytest.mark.parametrize(
    ("pattern", "head"),
    [
        ("%-5p [%t] %c{1}:%L - %m%n", "INFO  [a thread: 1] logger:317 - "),
        ("%-5p [%t] %c{1}:%L - %m%n", "DEBUG [] logger:317 - "),
        ("%5level %.20logger{36} %X{trace id}|%m%n", " INFO logger |"),
        ("100%% %c %m", "100% logger "),
        ("%c(%F:%M) %message%n%ex", "logger(A.java:run) "),
    ],
)
def test_the_parts_of_a_head(pattern: str, head: str) -> None:
    """A padded part has spaces, and a part of any length ends at the character after it."""
    match = parse_pattern(pattern).head.fullmatch(head.encode())
    assert match is not None
    assert b"logger" == match["logger"]


def test_a_head_that_does_not_match_costs_little() -> None:
    """Each part of any length has one possible end."""
    pattern = parse_pattern("%-5p %t %x %X %C %F %M %l %m%n")
    assert pattern.head.fullmatch(b"A" + b" " * 1023) is None


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("%d %p", "must have %m, the message, once"),
        ("%m %msg", "must have %m, the message, once"),
        ("%d %d{UNIX} %m", "has the time twice"),
        ("%d{yyyy yyyy} %m", "has a part of the time twice"),
        ("%c %logger %m", "has the logger twice"),
        ("%highlight{%p} %m", "%highlight can't be used here"),
        ("%maxLen{%p}{9} %m", "%maxLen{%p}"),
        ("50% %m", "% can't be used here"),
        ("%t%c %m", "%t needs a text after it"),
        ("%d{yy-MM-dd} %m", "%d{yy-MM-dd}: yy can't be read in a time"),
        ("%d{hh:mm a} %m", "%d{hh:mm a}: hh can't be read in a time"),
        ("%d{ISO8601}{Europe/Berlin} %m", "of the zones only UTC can be used"),
        ("%9999d %m", "can't be used here"),
    ],
)
def test_a_pattern_that_can_not_be_used(pattern: str, message: str) -> None:
    """The error names the conversion."""
    with pytest.raises(ValueError, match=r".") as raised:
        parse_pattern(pattern)
    assert message in str(raised.value)
