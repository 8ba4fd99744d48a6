"""Parses one line of a broker's request log.

With ``kafka.request.logger`` at DEBUG, a broker writes a line for each request when it has sent the
answer: ``[time] DEBUG Completed request:{json} (kafka.request.logger)``. Requests of deprecated
versions are logged at INFO. ``layout`` finds the request in this and in other layouts. A line that
can't be read is a ``Rejected``, never an exception.

``parse`` reads the fields that every line has and leaves ``request`` and ``response`` as JSON.
``sidecar.requestlog.request_detail`` decodes these two on demand. Durations are milliseconds. Most
layouts write the time without its offset, in the broker's time zone. A line is as long as its
request: with 1,000 partitions it has 100 kB or more.

Example: a PRODUCE of alice was throttled by 198 ms and took 0.258 ms of a request handler's time.
Its ``Line`` has ``api_key`` 0, ``throttle_ms`` 198, ``local_ms`` 0.258 and ``user`` "alice".

Source: Kafka's RequestChannel.updateRequestMetrics, RequestConvertToJson (3.3 to 4.3).
"""

from datetime import datetime
from typing import Annotated, Final

import msgspec

from sidecar.requestlog.layout import Layout, Request, without_context
from sidecar.requestlog.rejected import Rejected, RejectedKind
from sidecar.requestlog.wire import Int32, Size

_Ms = Annotated[float, msgspec.Meta(ge=0)]


class Header(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The request's header.

    Attributes:
        request_api_key: the API's number.
        request_api_version: the version of the request.
        client_id: the client's id; None or "" if it has none.
        request_api_key_name: the API's name; "" before Kafka 2.8.
    """

    request_api_key: Int32
    request_api_version: Int32
    client_id: str | None = None
    request_api_key_name: str = ""

    @property
    def api(self) -> str:
        """The API's name, such as "PRODUCE"; its number if the line has no name."""
        return self.request_api_key_name or str(self.request_api_key)


class Common(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of every line's JSON that are read, by Kafka's names."""

    request_header: Header
    principal: str
    local_time_ms: _Ms
    is_forwarded: bool = False
    listener: str = ""
    remote_time_ms: _Ms = 0.0
    response_queue_time_ms: _Ms = 0.0
    send_time_ms: _Ms = 0.0
    throttle_time_ms: Size = 0


class Body(Common, frozen=True, gc=False):
    """The JSON of a line; ``request`` and ``response`` are not decoded."""

    request: msgspec.Raw = msgspec.Raw(b'""')
    response: msgspec.Raw = msgspec.Raw(b'""')


class Throttled(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The throttle time in an answer."""

    throttle_time_ms: Int32 = 0


class Line(msgspec.Struct, frozen=True, gc=False):
    """One request, as a broker or controller logged it.

    It refers to the bytes of its line. To save memory, keep the fields that you need, not the
    ``Line``.

    Attributes:
        time: when the answer was sent; without an offset, it is in the broker's time zone. None
            if the line has no time with a year.
        body: all other fields.
    """

    time: datetime | None
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
        return self.body.request_header.api

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
        except ValueError:
            return own
        return own if not isinstance(answer, Throttled) else max(own, answer.throttle_time_ms)


_BODY: Final = msgspec.json.Decoder(Body)
_THROTTLE: Final = msgspec.json.Decoder(Throttled | str | None)

UNREADABLE_TIME: Final = Rejected(RejectedKind.TIME, "the time can't be read")
_TRUNCATED: Final = "Input data was truncated"


def parse(line: bytes, layout: Layout | None = None) -> Line | Rejected:
    """Parses a line, with or without its line end.

    Args:
        line: the line.
        layout: what is known of its log's layout; None for a line alone.
    """
    return read((layout or Layout()).find(line))


def read(found: Request | Rejected) -> Line | Rejected:
    """Reads what ``Layout.find`` found."""
    if isinstance(found, Rejected):
        return found
    time, body = found
    try:
        when = logged_at(time) if time else None
    except ValueError:
        return UNREADABLE_TIME
    try:
        return Line(when, _decoded(body))
    except msgspec.ValidationError as error:
        return Rejected(RejectedKind.UNEXPECTED, str(error))
    except (RecursionError, UnicodeDecodeError) as error:
        text = "nested too deeply" if isinstance(error, RecursionError) else "not UTF-8"
        return Rejected(RejectedKind.DAMAGED, text)
    except msgspec.DecodeError as error:
        kind = RejectedKind.TORN if str(error) == _TRUNCATED else RejectedKind.DAMAGED
        return Rejected(kind, str(error))


def _decoded(body: bytes) -> Body:
    try:
        return _BODY.decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        shorter = without_context(body)
        if shorter is None:
            raise
        return _BODY.decode(shorter)


def logged_at(time: bytes) -> datetime:
    """The time of a line, with its offset if it has one.

    Raises:
        ValueError: it is not a time.
    """
    text = time.decode("ascii").replace("/", "-").replace("UTC", "Z").replace("GMT", "Z")
    # A space may be between date and time, and before the offset.
    date, space, rest = text.partition(" ")
    return datetime.fromisoformat(date + space + rest.replace(" ", ""))
