"""Parses one line of a broker's request log.

With ``kafka.request.logger`` at DEBUG, a broker writes a line for each request when it has sent the
answer: ``[time] DEBUG Completed request:{json} (kafka.request.logger)``. Requests of deprecated
versions are logged at INFO. Strimzi's pattern (``time DEBUG [thread] logger:line - Completed ...``)
is supported too. The logger's name must be at the start or the end of the line. Otherwise a
client-id in a message of another logger could be mistaken for a line. A line that can't be read is
a ``Rejected``, never an exception.

``parse`` reads the fields that every line has and leaves ``request`` and ``response`` as JSON.
``sidecar.requestlog.request_detail`` decodes these two on demand. Durations are milliseconds. The
time of the line is in the broker's time zone, which the line does not contain. A line is as long as
its request: with 1,000 partitions it has 100 kB or more.

Example: a PRODUCE of alice was throttled by 198 ms and took 0.258 ms of a request handler's time.
Its ``Line`` has ``api_key`` 0, ``throttle_ms`` 198, ``local_ms`` 0.258 and ``user`` "alice".

Source: Kafka's RequestChannel.updateRequestMetrics, RequestConvertToJson (3.3 to 4.3).
"""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

import msgspec

LOGGER: Final = "kafka.request.logger"
"""The logger of the request log."""


class RejectedKind(StrEnum):
    """Why a line can't be read."""

    OTHER = "other"
    """The line is of another logger."""
    TORN = "torn"
    """The start or the end of the line is missing."""
    DAMAGED = "damaged"
    """The part after "Completed request:" is not JSON."""
    UNEXPECTED = "unexpected"
    """The JSON is not that of a request."""
    TIME = "time"
    """The time can't be parsed."""


class Rejected(msgspec.Struct, frozen=True, gc=False):
    """A line, or a part of it, that can't be read.

    Attributes:
        kind: why it can't be read.
        message: the error, for a person; it contains no text of the line.
    """

    kind: RejectedKind
    message: str


_Ms = Annotated[float, msgspec.Meta(ge=0)]


class Header(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The request's header.

    Attributes:
        request_api_key: the API's number.
        request_api_version: the version of the request.
        client_id: the client's id; None or "" if it has none.
        request_api_key_name: the API's name; "" before Kafka 2.8.
    """

    request_api_key: int
    request_api_version: int
    client_id: str | None = None
    request_api_key_name: str = ""


class Body(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The JSON of a line, by Kafka's names; ``request`` and ``response`` are not decoded."""

    request_header: Header
    principal: str
    local_time_ms: _Ms
    is_forwarded: bool = False
    request: msgspec.Raw = msgspec.Raw(b'""')
    response: msgspec.Raw = msgspec.Raw(b'""')
    connection: str = ""
    listener: str = ""
    security_protocol: str = ""
    total_time_ms: _Ms = 0.0
    request_queue_time_ms: _Ms = 0.0
    remote_time_ms: _Ms = 0.0
    response_queue_time_ms: _Ms = 0.0
    send_time_ms: _Ms = 0.0
    throttle_time_ms: Annotated[int, msgspec.Meta(ge=0)] = 0


class _Throttle(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    throttle_time_ms: int = 0


class Line(msgspec.Struct, frozen=True, gc=False):
    """One request, as a broker or controller logged it.

    It refers to the bytes of its line. To save memory, keep the fields that you need, not the
    ``Line``.

    Attributes:
        time: when the answer was sent, in the broker's time zone.
        body: all other fields.
    """

    time: datetime
    body: Body

    @property
    def api_key(self) -> int:
        """The API's number."""
        return self.body.request_header.request_api_key

    @property
    def api_version(self) -> int:
        """The version of the request."""
        return self.body.request_header.request_api_version

    @property
    def api(self) -> str:
        """The API's name, such as "PRODUCE"; its number if the line has no name."""
        header = self.body.request_header
        return header.request_api_key_name or str(header.request_api_key)

    @property
    def client_id(self) -> str:
        """The client's id; "" if it has none."""
        return self.body.request_header.client_id or ""

    @property
    def user(self) -> str:
        """The user that quotas apply to: "alice" for the principal "User:alice"."""
        return self.body.principal.partition(":")[2]

    @property
    def is_forwarded(self) -> bool:
        """Whether a controller wrote this line, for a request that a broker forwarded to it."""
        return self.body.is_forwarded

    @property
    def local_ms(self) -> float:
        """The request handler's time, a lower bound of the time that KIP-124 charges.

        Kafka also charges the network thread's time, which is not in the log.
        """
        return self.body.local_time_ms

    @property
    def throttle_ms(self) -> int:
        """The client's throttle time: the line's or the answer's, whichever is longer.

        In a controller's line only the answer has it. Without an answer (acks=0, a closed
        connection) only the line has it.
        """
        own = self.body.throttle_time_ms
        try:
            answer = _THROTTLE.decode(self.body.response)
        except msgspec.MsgspecError:
            return own
        return own if not isinstance(answer, _Throttle) else max(own, answer.throttle_time_ms)


_BODY: Final = msgspec.json.Decoder(Body)
_THROTTLE: Final = msgspec.json.Decoder(_Throttle | str | None)

_END: Final = f" ({LOGGER})".encode()
_MARK: Final = b"Completed request:"
_REGULAR: Final = b"] DEBUG " + _MARK
_REGULAR_AT: Final = len("[2026-11-20 23:05:20,927")
_REGULAR_BODY: Final = _REGULAR_AT + len(_REGULAR)

_START: Final = re.compile(
    rb"(?P<open>\[)?(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?(open)\])"
    rb"\s+(?:DEBUG|INFO)\s+(?:\[[\w.-]+\]\s+)?(?P<logger>(?:kafka\.request\.)?logger(?::\d+)?\s+-\s+)?"
    + _MARK
)
"""The start in both patterns: the time, the level, and optionally the thread and the logger."""


_NO_START: Final = Rejected(RejectedKind.TORN, "the start is missing, or of an unknown pattern")
_FOREIGN: Final = Rejected(RejectedKind.OTHER, "not a line of the request log")


def parse(line: bytes) -> Line | Rejected:
    """Parses a line, with or without its line end."""
    line = line.rstrip(b"\r\n")
    if line.startswith(_REGULAR, _REGULAR_AT) and line.endswith(_END) and line.startswith(b"["):
        return _read(line[1:_REGULAR_AT], line[_REGULAR_BODY : -len(_END)])
    start = _START.match(line)
    if start is None:
        return _NO_START if line.endswith(_END) else _FOREIGN
    if line.endswith(_END):
        return _read(start["time"], line[start.end() : -len(_END)])
    if start["logger"] is not None:
        return _read(start["time"], line[start.end() :])
    if line.endswith(b")"):
        return Rejected(RejectedKind.OTHER, "another logger's line")
    return Rejected(RejectedKind.TORN, "the end is missing, where the logger is named")


def _read(time: bytes, body: bytes) -> Line | Rejected:
    try:
        when = datetime.fromisoformat(time.decode("ascii"))
    except ValueError:
        return Rejected(RejectedKind.TIME, "the time can't be read")
    if when.tzinfo is not None:
        return Rejected(RejectedKind.TIME, "the time has an offset")
    try:
        return Line(when, _BODY.decode(body))
    except msgspec.ValidationError as error:
        return Rejected(RejectedKind.UNEXPECTED, str(error))
    except (RecursionError, UnicodeDecodeError) as error:
        text = "nested too deeply" if isinstance(error, RecursionError) else "not UTF-8"
        return Rejected(RejectedKind.DAMAGED, text)
    except msgspec.DecodeError as error:
        return Rejected(RejectedKind.DAMAGED, str(error))
