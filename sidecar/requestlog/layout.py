r"""Finds a request in a line of a log, whatever the log4j layout.

Kafka's message is ``Completed request:`` and a JSON object. Layouts put the time, and perhaps the
level, the thread and the logger, before it or after it, and programs that collect logs add more
around that. A line is a request's if the rest of it consists of such parts only. Otherwise a
client-id in another logger's message could be mistaken for a request. If the line names a logger,
it must be ``kafka.request.logger``.

Read are:

- Kafka's own layout, Strimzi's layouts, and others of the time, the level, the thread in brackets,
  and the logger, in any order, with or without colours.
- The same after the prefix of a container's log (CRI), of syslog, ``kubectl logs --timestamps`` and
  Docker Compose.
- The same in a field of a JSON object: Docker, Fluent Bit, Vector, logstash, ECS, log4j's
  JsonTemplateLayout.
- Anything that a pattern describes, if the log's own is known.

Example: Strimzi's Kafka 4.0 logs ``2026-03-04 05:06:07 DEBUG [data-plane-kafka-network-thread-3-
ListenerName(CLIENTS-9094)-SASL_SSL-1] logger:317 - Completed request:{...}``. The time is
2026-03-04 05:06:07, in the broker's zone.

Source: log4j's PatternLayout, JsonTemplateLayout; Strimzi's log4j files; CRI's logging format; RFC
3164 and RFC 5424.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import repeat
from operator import eq
from typing import Any, Final

import msgspec

from sidecar.formats.log4j_pattern import LinePattern, parse_pattern
from sidecar.requestlog.pieces import Pieces
from sidecar.requestlog.rejected import LOGGER, Rejected, RejectedKind

Buffer = bytes | memoryview
"""Read-only bytes."""
Request = tuple[bytes, bytes]
"""The time in ISO 8601, without an offset if the line has none, and empty if the line has no time
with a year; and the JSON."""

MARK: Final = b"Completed request:"
_LOGGED: Final = f" ({LOGGER})".encode()
_LONGEST_HEAD: Final = 1024
_MOST_FORMS: Final = 32
"""A form may have the thread's name, without its number."""
_LONG: Final = 2000
"""Bytes of a line that a collector may have cut; syslog's cut is the shortest, 2 KiB."""
_LARGEST_SECOND: Final = 1e11
"""A larger number is in milliseconds, or in a smaller unit: until the year 5138."""
_MOST_UNITS: Final = 3
"""Milliseconds, microseconds and nanoseconds."""

TIME: Final = (
    rb"(?:\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d|\d{8}T\d{6})(?:[.,]\d{1,9})?"
    rb"(?: ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)(?![\w-]))?"
)
"""A date and time, with an optional offset."""
_THREAD: Final = rb"(?:data-plane-|control-plane-)?kafka-[\w.()-]+"
_LOGGER: Final = rb"(?:(?:k|kafka)\.)?(?:(?:r|request)\.)?logger(?::(?:\d+|\?))?"
_OWN_LOGGER: Final = re.compile(_LOGGER)
_PART: Final = (
    rb"[\s:|,-]|(?:DEBUG|INFO|TRACE)\b|\[(?!\d{4}[-/\d])[^\]]*+\]|\{[^}]*+\}"
    rb"|"
    + _LOGGER
    + rb"(?![\w.])|"
    + _THREAD
    + rb"|\((?:"
    + _LOGGER
    + rb"|[\w.$]*+[^\w.$)][^)]*+)\)"
)
"""A level, a thread, the logger, or what separates them.

In parentheses, a word with dots is a logger. Only its own logger may write a request.
"""
_PARTS: Final = re.compile(rb"(?:" + _PART + rb")*+")
_HEAD: Final = re.compile(
    rb"(?:" + _PART + rb")*+(?P<open>\[)?(?P<time>" + TIME + rb")(?(open)\])(?:" + _PART + rb")*+"
)
_RFC_3164_TIME: Final = rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
_HOST: Final = rb"(?!TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\S+"
_TAG: Final = rb"(?:[\w-]+|[\w./-]+(?=\[\d))(?:\[\d+\])?: "
"""A program and its process. A name with dots and without a process is a logger."""
_PREFIX: Final = re.compile(
    rb"(?P<cri>" + TIME + rb") (?:stdout|stderr) [FP](?::\w+)* "
    rb"|(?:\d+ )?<\d{1,3}>\d (?P<rfc5424>" + TIME + rb") \S+ \S+ \S+ \S+ "
    rb"(?:-|(?:\[(?:[^\]\\]|\\.)*+\])+) (?:\xef\xbb\xbf)?"
    rb"|(?:<\d{1,3}>)?" + _RFC_3164_TIME + rb" " + _HOST + rb" (?:" + _TAG + rb")?"
    rb"|(?P<rsyslog>" + TIME + rb") " + _HOST + rb" " + _TAG + rb"|"
    rb"(?:\[(?!\d{4}[-/\d])[^\]]*\] |[\w.-]+ +\| )?(?P<kubectl>" + TIME + rb") "
    rb"|[\w.-]+ +\| "
)
_NUMBER: Final = re.compile(rb"\d+")
_FRACTION: Final = re.compile(rb"[.,]\d")
_NEVER: Final = re.compile(rb"(?!)").fullmatch
_TEXT: Final = re.compile(rb"(?:RequestHeader\(|\{?api_key=|Name:)")
_FOREIGN_TAIL: Final = re.compile(rb"\((?!" + _LOGGER + rb"\))[\w.$]+\)\s*$")
_CUT_END: Final = re.compile(rb"[(\[{][^)\]}]*\Z|" + TIME)
"""The end of a line that was cut in what follows the request, or of two lines."""
_WITHOUT_ALL: Final = re.compile(rb'\{.*"MESSAGE"\s*:\s*null')
"""What journalctl writes for a message of more than 4,096 bytes."""
_LISTED: Final = re.compile(rb'\{.*"MESSAGE"\s*:\s*\[\s*(\d{1,3}(?:\s*,\s*\d{1,3})*)\s*\]')
"""The bytes of a message that is not only text, as journalctl writes them."""
_COLOUR: Final = re.compile(rb"\x1b\[[\d;]*m")

_FOREIGN: Final = Rejected(RejectedKind.OTHER, "not a line of the request log")
_ANOTHER: Final = Rejected(RejectedKind.OTHER, "another logger's line")
_PIECE: Final = Rejected(RejectedKind.OTHER, "a piece of a long line, read with its last piece")
_REPEATED: Final = Rejected(
    RejectedKind.OTHER, "a request that another appender has written too, read once"
)
_NUMBERED: Final = b'"correlationId":'
"""Only lines with a number of their own can be told to be the same request."""
_MOST_BETWEEN: Final = 16
"""Lines of other threads that may be between the two lines of a request."""
_TWO: Final = Rejected(RejectedKind.TORN, "two lines in one")
_NO_START: Final = Rejected(RejectedKind.TORN, "the start is missing")
_NO_END: Final = Rejected(RejectedKind.TORN, "the end is missing")
_CUT: Final = Rejected(
    RejectedKind.TORN, "the end is missing; syslog and some collectors cut long lines"
)
_LEFT_OUT: Final = Rejected(
    RejectedKind.TORN, "the line is missing; journalctl writes long ones only with --all"
)
_UNKNOWN: Final = Rejected(
    RejectedKind.LAYOUT, "a request in a layout that is not known; docs/request-log.md has a list"
)
_OLD: Final = Rejected(RejectedKind.TEXT, "not JSON: text of Kafka before 2.7")


class Layout:
    """Finds the requests of one log. Most of its lines have a form that it has seen before.

    Each request is found once, although Strimzi's log4j configuration for Kafka 3 writes each
    twice: to the appender of its logger, and to the same one of the root logger.

    Attributes:
        in_whole_seconds: whether the times have no fraction of a second; None before the first one.
    """

    def __init__(self, pattern: str | None = None, longest_line: int = 1 << 26) -> None:
        """Nothing is known of the log yet, except perhaps its pattern.

        Args:
            pattern: the pattern of log4j's PatternLayout; lines that it does not match are read as
                without one. None if it is not known.
            longest_line: the most bytes of a line that a container's log has in pieces.

        Raises:
            ValueError: the pattern can't be used.
        """
        self.in_whole_seconds: bool | None = None
        self._pattern = None if pattern is None else _parsed(pattern)
        self._pieces = Pieces(longest_line)
        self._heads: set[bytes] = set()
        self._tails: set[bytes] = set()
        self._known: Callable[..., re.Match[bytes] | None] = _NEVER
        self._last: Request | Rejected | None = None
        self._recent: deque[Request | Rejected] | None = None

    def find(self, line: bytes) -> Request | Rejected:
        """Finds the request of a line, with or without its line end."""
        return self._once(self._found(line))

    def find_each(
        self, block: Buffer, starts: Sequence[int], ends: Sequence[int]
    ) -> Sequence[Request | Rejected]:
        """Finds the requests of consecutive lines, as ``find`` does for each of them, but sooner.

        Args:
            block: contains the lines.
            starts: where they begin.
            ends: where they end; at least one line.
        """
        found = [
            self._found(bytes(block[start:end])) if match is None else _request(match)
            for start, end, match in zip(
                starts, ends, map(self._known, repeat(block), starts, ends), strict=True
            )
        ]
        if self._recent is not None or any(map(eq, found, [self._last, *found])):
            return list(map(self._once, found))
        self._last = found[-1]
        return found

    def _found(self, line: bytes) -> Request | Rejected:
        found: Request | Rejected | None = self._by_form(line)
        if found is None:
            whole = self._pieces.join(line.rstrip(b"\r\n"))
            found = _PIECE if whole is None else self._first(whole)
        return found

    def _by_form(self, line: bytes) -> Request | None:
        """Finds the request of a line in a form that was seen before."""
        match = self._known(line)
        return None if match is None else _request(match)

    def _once(self, found: Request | Rejected) -> Request | Rejected:
        """Rejects a request that was found before."""
        if found == self._last or self._recent is not None:
            return _REPEATED if self._is_repeated(found) else found
        self._last = found
        return found

    def _is_repeated(self, found: Request | Rejected) -> bool:
        """Whether this request was found a few lines before.

        The second line of a request may come after lines of other threads, but in a log that has
        each request twice, some come at once.
        """
        if isinstance(found, Rejected) or _NUMBERED not in found[1]:
            return False
        if self._recent is None:
            self._recent = deque([found], maxlen=_MOST_BETWEEN)
            return True
        if found in self._recent:
            return True
        self._recent.append(found)
        return False

    def _first(self, line: bytes) -> Request | Rejected:
        """Finds the request of a line in a form that was not seen before."""
        head, mark, rest = line.partition(MARK)
        if not mark:
            listed = _LISTED.match(line)
            numbers = [] if listed is None else listed[1].split(b",")
            inner = bytes(int(number) & 0xFF for number in numbers)
            return self._first(inner) if inner else _without_mark(line)
        if self._pattern is not None:
            matched = _by_pattern(self._pattern, _COLOUR.sub(b"", head), rest)
            if isinstance(matched, tuple):
                self._note_seconds(matched[0])
            if matched is not None:
                return matched
        if head.startswith(b"{"):
            return self._unwrapped(line)
        end = rest.rfind(b"}") + 1
        message, tail = rest[:end].lstrip(b" "), rest[end:]
        plain_tail = _COLOUR.sub(b"", tail)
        time = _time_of(_COLOUR.sub(b"", head))
        if _PARTS.fullmatch(plain_tail) is None or not message.startswith(b"{"):
            why = _why_not(message, plain_tail)
            # What is around a request in an unknown layout may have an end of its own.
            return time if why.kind is RejectedKind.TORN and isinstance(time, Rejected) else why
        if isinstance(time, Rejected):
            return time
        if time:
            self._remember(head, time, tail)
        return time, message

    def _note_seconds(self, time: bytes) -> None:
        if time and self.in_whole_seconds is not False:
            self.in_whole_seconds = _FRACTION.search(time) is None

    def _remember(self, head: bytes, time: bytes, tail: bytes) -> None:
        self._note_seconds(time)
        if max(len(self._heads), len(self._tails)) >= _MOST_FORMS:
            return
        before, _, after = map(_form, head.rpartition(time))
        # The parts of two heads do not make a third one.
        self._heads.add(rb"%b(%b)%b" % (before, TIME, after))
        self._tails.add(_form(tail))
        heads, tails = b"|".join(self._heads), b"|".join(self._tails)
        self._known = re.compile(
            rb"(?:%b)%b ?(\{.*\})(?:%b)[\r\n]*" % (heads, MARK, tails), re.DOTALL
        ).fullmatch

    def _unwrapped(self, line: bytes) -> Request | Rejected:
        """Finds the request in a JSON object with a line, or with Kafka's message alone."""
        try:
            envelope = _ENVELOPE.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return _NO_END if not line.endswith(b"}") else _UNKNOWN
        message = envelope.text.rstrip("\r\n").encode()
        if not message.startswith(MARK):
            # The request is in a field that is not known, such as Loki's "line".
            if not message or message.startswith(b"{"):
                return _UNKNOWN
            return self._by_form(message) or self._first(message)
        if envelope.is_foreign:
            return _ANOTHER
        time = envelope.iso_time
        self._note_seconds(time)
        return time, message[len(MARK) :]


def _request(match: re.Match[bytes]) -> Request:
    """The time, in the group of the line's form, and the JSON."""
    groups = match.groups()
    return groups[0] or next(filter(None, groups)), groups[-1]


def _form(part: bytes) -> bytes:
    """A pattern of what is around a request, with any numbers."""
    return _NUMBER.sub(rb"\\d+", re.escape(part))


def _by_pattern(pattern: LinePattern, head: bytes, rest: bytes) -> Request | Rejected | None:
    """Find the request by the log's pattern; None if the line does not match it."""
    if len(head) > _LONGEST_HEAD:
        return None
    prefix = _PREFIX.match(head)
    before = pattern.head.fullmatch(head)
    if before is None and prefix is not None:
        before = pattern.head.fullmatch(head, prefix.end())
    if before is None:
        return None
    matches = [before]
    end = rest.rfind(b"}") + 1
    if pattern.tail is not None:
        after = pattern.tail.fullmatch(_COLOUR.sub(b"", rest[end:]))
        if after is None:
            return None
        matches.append(after)
    parts = {key: part for match in matches for key, part in match.groupdict(b"").items()}
    if "logger" in parts and _OWN_LOGGER.fullmatch(parts["logger"]) is None:
        return _ANOTHER
    time = _iso(int(parts["since"])) if "since" in parts else pattern.time(parts)
    return time, rest[:end].lstrip(b" ")


def without_context(message: bytes) -> bytes | None:
    """A message without what follows its JSON object: log4j's context also ends with a brace."""
    tail = _after_object(message)
    if not tail or _PARTS.fullmatch(tail) is None:
        return None
    return message[: -len(tail)]


def _after_object(message: bytes) -> bytes | None:
    """What follows the JSON object of a message; None if the object is not whole."""
    text = message.decode("utf-8", "surrogateescape")
    try:
        _, end = _OBJECT.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return text[end:].encode("utf-8", "surrogateescape")


def _without_mark(line: bytes) -> Rejected:
    """Why a line has no request."""
    if _WITHOUT_ALL.match(line):
        return _LEFT_OUT
    return _NO_START if line.endswith(_LOGGED) else _FOREIGN


def _why_not(message: bytes, tail: bytes) -> Rejected:
    """Why a request can't be told from what follows it."""
    if _TEXT.match(message + tail):
        return _OLD
    if MARK in tail:
        return _TWO
    if _FOREIGN_TAIL.search(tail):
        return _ANOTHER
    end = _after_object(message + tail)
    if end is not None and _CUT_END.search(end[-_LONGEST_HEAD:]) is None:
        return _UNKNOWN
    return _CUT if len(message) + len(tail) >= _LONG else _NO_END


def _time_of(head: bytes) -> bytes | Rejected:
    """The time in front of a request, from the program nearest to the broker that wrote one."""
    if len(head) > _LONGEST_HEAD:
        return _UNKNOWN
    whole = _HEAD.fullmatch(head)
    if whole is not None:
        return whole["time"]
    prefix = _PREFIX.match(head)
    if prefix is None:
        return b"" if _PARTS.fullmatch(head) else _UNKNOWN
    inner = _HEAD.fullmatch(head, prefix.end())
    if inner is not None:
        return inner["time"]
    if _PARTS.fullmatch(head, prefix.end()) is None:
        return _UNKNOWN
    return next((time for time in prefix.groups() if time is not None), b"")


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    """The fields of a JSON object that can hold a line, its time and its logger."""

    message: str = ""
    log: str | dict[str, Any] = ""
    msg: str = ""
    short_message: str = ""
    journal: str = msgspec.field(default="", name="MESSAGE")
    at: str | float | None = msgspec.field(default=None, name="@timestamp")
    timestamp: str | float | None = None
    instant: str | dict[str, int] | None = None
    time: str | float | None = None
    millis: int | None = msgspec.field(default=None, name="timeMillis")
    ecs_logger: str = msgspec.field(default="", name="log.logger")
    logger_name: str = ""
    logger: str = ""
    log4j_logger: str = msgspec.field(default="", name="loggerName")

    @property
    def text(self) -> str:
        """A line, or Kafka's message."""
        log = self.log if isinstance(self.log, str) else ""
        return self.message or log or self.msg or self.short_message or self.journal

    @property
    def is_foreign(self) -> bool:
        """Whether another logger is named."""
        nested = self.log.get("logger", "") if isinstance(self.log, dict) else ""
        named = self.ecs_logger or self.logger_name or self.logger or self.log4j_logger or nested
        return named != "" and _OWN_LOGGER.fullmatch(str(named).encode()) is None

    @property
    def iso_time(self) -> bytes:
        """The time in ISO 8601; empty if there is none."""
        instant: object = self.instant
        try:
            if isinstance(instant, dict):
                instant = instant.get("epochSecond", 0) + instant.get("nanoOfSecond", 0) / 1e9
            millis = None if self.millis is None else self.millis / 1000
        except OverflowError:
            # JSON has numbers of any length.
            return b""
        # log4j's own fields first: the others may be the time when a collector read the line.
        for found in (instant, millis, self.at, self.timestamp, self.time):
            if isinstance(found, str):
                return found.encode()
            if isinstance(found, int | float):
                return _iso(found)
        return b""


def _iso(since_1970: float) -> bytes:
    """A time since 1970 in ISO 8601; empty if there is no such time.

    Args:
        since_1970: seconds, milliseconds, microseconds or nanoseconds.
    """
    seconds = since_1970
    try:
        for _ in range(_MOST_UNITS):
            seconds = seconds / 1000 if seconds >= _LARGEST_SECOND else seconds
        time = datetime.fromtimestamp(seconds, UTC)
        timespec = "auto" if seconds == since_1970 else "milliseconds"
        return time.isoformat(timespec=timespec).encode()
    except (ValueError, OverflowError, OSError):
        return b""


_OBJECT: Final = json.JSONDecoder()
_parsed: Final = lru_cache(maxsize=16)(parse_pattern)
_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
