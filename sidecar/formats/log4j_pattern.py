"""Reads a pattern of log4j's PatternLayout: where in a line the time and the logger are.

A pattern has text and conversions, such as ``%d`` (the time), ``%c`` (the logger) and ``%m`` (the
message). The parts before the message are the head of a line, and those after it are the tail. A
level and a number have a form of their own. Any other part, such as a thread, ends where the
character that follows it in the pattern first occurs.

Example: with ``%d{dd MMM yyyy HH:mm:ss,SSS} [%t] %m (%c)%n``, the head ``04 Mar 2026 05:06:07,101
[worker-1] `` has the time ``2026-03-04 05:06:07,101``.

Source: log4j's PatternLayout and DatePatternConverter; java.text.SimpleDateFormat.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

_TIMES: Final = ("d", "date")
_MESSAGES: Final = ("m", "msg", "message")
_LOGGERS: Final = ("c", "lo", "logger")
_FORMS: Final = {
    **dict.fromkeys(("p", "level"), b"[A-Z]+"),
    **dict.fromkeys(("L", "line"), rb"(?:\d+|\?)?"),
    **dict.fromkeys(("r", "relative", "T", "tid", "threadId"), rb"\d+"),
    **dict.fromkeys(("tp", "threadPriority", "sn", "sequenceNumber"), rb"\d+"),
    **dict.fromkeys(("pid", "processId"), rb"\d+"),
    **dict.fromkeys(("n", "ex", "exception", "throwable", "rEx", "xEx"), b""),
}
"""A request has no exception, and a line ends before its line end."""
_OTHERS: Final = (
    *("t", "tn", "thread", "threadName", "x", "NDC", "X", "mdc", "MDC", "C", "class"),
    *("F", "file", "l", "location", "M", "method", "marker", "markerSimpleName"),
)
_REFUSED: Final = (
    *("cyan", "magenta", "map", "maxLen", "maxLength", "nano", "notEmpty", "red", "repeat"),
    *("replace", "xwEx", "xwThrowable"),
)
"""Names that begin as others do; log4j takes the longest name."""
_NAMES: Final = sorted(
    (*_TIMES, *_MESSAGES, *_LOGGERS, *_FORMS, *_OTHERS, *_REFUSED), key=len, reverse=True
)
_PART: Final = re.compile(
    r"(?P<text>[^%]+|%%)"
    rf"|%(?P<pad>-?\d{{0,3}})(?:\.-?\d+)?(?P<name>{'|'.join(_NAMES)})(?P<options>(?:\{{[^}}]*\}})*)"
    r"|(?P<unknown>%-?[\d.]*\w*)"
)
_ZONE: Final = rb"(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)"
_ISO: Final = (
    rb"(?P<year>\d{4})-?(?P<month>\d\d)-?(?P<day>\d\d)[T ]"
    rb"(?P<hour>\d\d):?(?P<minute>\d\d):?(?P<second>\d\d)(?:[.,:](?P<fraction>\d{1,9}))?"
    rb"(?: ?" + _ZONE + rb")?"
)
_NAMED: Final = {
    "ABSOLUTE": "HH:mm:ss,SSS",
    "COMPACT": "yyyyMMddHHmmssSSS",
    "DATE": "dd MMM yyyy HH:mm:ss,SSS",
}
_SINCE_1970: Final = {"UNIX": rb"(?P<since>\d{1,11})", "UNIX_MILLIS": rb"(?P<since>\d{12,14})"}
_LETTERS: Final = re.compile(
    r"'(?P<quoted>[^']*)'|(?P<letters>([A-Za-z])\3*)|(?P<text>[^A-Za-z']+)"
)
_FIELDS: Final = {"M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_OF_LETTERS: Final = {
    **dict.fromkeys(("y", "yyyy", "u", "uuuu"), rb"(?P<year>\d{4})"),
    **dict.fromkeys(("MMM", "MMMM"), b"(?P<month>[A-Za-z]{3})[a-z]*"),
    **{each: rb"(?P<%b>\d\d?)" % name.encode() for each, name in _FIELDS.items()},
    **{each * 2: rb"(?P<%b>\d\d)" % name.encode() for each, name in _FIELDS.items()},
    **{"S" * count: rb"(?P<fraction>\d{%d})" % count for count in range(1, 10)},
    **dict.fromkeys(("z", "Z", "X", "XX", "XXX", "x", "xx", "xxx"), _ZONE),
    **dict.fromkeys(("E", "EEE", "EEEE"), b"[A-Za-z]+"),
}
_MONTHS: Final = b"jan feb mar apr may jun jul aug sep oct nov dec".split()


@dataclass(frozen=True, slots=True)
class LinePattern:
    """The parts of a line around its message.

    Attributes:
        head: matches what is before the message. The groups have the parts of the time and
            ``logger``; ``since`` is a time in seconds or milliseconds since 1970.
        tail: matches what is after it; None if that has neither the time nor the logger.
        is_utc: whether the pattern says that the times are in UTC.
    """

    head: re.Pattern[bytes]
    tail: re.Pattern[bytes] | None
    is_utc: bool

    def time(self, parts: Mapping[str, bytes]) -> bytes:
        """Return the time in ISO 8601; empty if the pattern has no date with a year.

        Args:
            parts: the groups of the matches, without ``since``, the time since 1970.
        """
        if not parts.keys() >= {"year", "month", "day", "hour", "minute"}:
            return b""
        month = parts["month"]
        if month.isalpha():
            known = month.lower() in _MONTHS
            month = b"%d" % (_MONTHS.index(month.lower()) + 1) if known else month
        fraction, zone = parts.get("fraction", b""), parts.get("zone", b"")
        return b"%b-%b-%b %b:%b:%b%b%b" % (
            parts["year"],
            month.rjust(2, b"0"),
            parts["day"].rjust(2, b"0"),
            parts["hour"].rjust(2, b"0"),
            parts["minute"].rjust(2, b"0"),
            parts.get("second", b"0").rjust(2, b"0"),
            b"," + fraction if fraction else b"",
            zone or b"Z" * self.is_utc,
        )


def checked_pattern(text: str) -> str:
    """Return a pattern that can be parsed.

    Raises:
        ValueError: as ``parse_pattern``.
    """
    parse_pattern(text)
    return text


def parse_pattern(text: str) -> LinePattern:
    """Read a pattern.

    Raises:
        ValueError: it has no message, or a conversion that can't be used; the text says which.
    """
    parts = list(_PART.finditer(text))
    messages = [number for number, part in enumerate(parts) if part["name"] in _MESSAGES]
    if len(messages) != 1:
        raise ValueError(f"{text!r} must have %m, the message, once")
    if sum(part["name"] in _TIMES for part in parts) > 1:
        raise ValueError(f"{text!r} has the time twice")
    if sum(part["name"] in _LOGGERS for part in parts) > 1:
        raise ValueError(f"{text!r} has the logger twice")
    (middle,) = messages
    head, tail = (b"".join(_regexes(each)) for each in (parts[:middle], parts[middle + 1 :]))
    is_utc = any(part["name"] in _TIMES and len(_options(part)) > 1 for part in parts)
    try:
        return LinePattern(
            re.compile(head, re.DOTALL),
            re.compile(tail, re.DOTALL) if b"(?P<" in tail else None,
            is_utc,
        )
    except re.error as error:
        raise ValueError(f"{text!r} has a part of the time twice") from error


def _regexes(parts: list[re.Match[str]]) -> Iterator[bytes]:
    for part, after in zip_longest(parts, parts[1:]):
        name = part["name"]
        if part["unknown"] or name in _REFUSED:
            raise ValueError(f"{part[0]} can't be used here, because its form is not known")
        if part["text"]:
            yield re.escape(part["text"].replace("%%", "%").encode())
            continue
        form = _time(part) if name in _TIMES else _FORMS.get(name)
        if form is None:
            form = _until(part, after)
        if name in _LOGGERS:
            form = b"(?P<logger>%b)" % form
        width = part["pad"].lstrip("-0")
        pad = b" {0,%d}" % int(width) if width and form else b""
        yield form + pad if part["pad"].startswith("-") else pad + form


def _until(part: re.Match[str], after: re.Match[str] | None) -> bytes:
    """Return a form for anything up to the next character of the pattern, or to the end."""
    if after is None or (after["name"] and _FORMS.get(after["name"]) == b""):
        return b".*"
    if not after["text"]:
        raise ValueError(f"{part[0]} needs a text after it, because it may be of any length")
    return b"[^%b]*+" % re.escape(after["text"][0].encode()[:1])


def _options(part: re.Match[str]) -> list[str]:
    return re.findall(r"\{([^}]*)\}", part["options"])


def _time(part: re.Match[str]) -> bytes:
    form, *zones = _options(part) or [""]
    if any(zone not in {"UTC", "GMT", "Z"} for zone in zones):
        raise ValueError(
            f"{part[0]}: of the zones only UTC can be used; leave it out, and name the zone of the"
            " clocks where times are read"
        )
    if not form or form.startswith(("ISO8601", "DEFAULT")):
        return _ISO
    if form in _SINCE_1970:
        return _SINCE_1970[form]
    return b"".join(_field(part[0], field) for field in _LETTERS.finditer(_NAMED.get(form, form)))


def _field(conversion: str, field: re.Match[str]) -> bytes:
    letters = field["letters"]
    if letters is None:
        return re.escape((field["text"] or field["quoted"] or "'").encode())
    if letters not in _OF_LETTERS:
        raise ValueError(f"{conversion}: {letters} can't be read in a time")
    return _OF_LETTERS[letters]
