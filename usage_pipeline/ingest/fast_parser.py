"""Parses most lines of a block into columns: one pass over each line's JSON, into typed structs.

PRODUCE, FETCH and the requests whose content no quota needs are nearly all lines of a log. The
others, and lines with anything unusual, are left to ``rows``, which defines what is correct. A line
that this parser reads has the same row there.

Example: 998 of 1,000 lines of a busy broker are read here. A CREATE_TOPICS and half a line are not.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from itertools import compress, count
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidecar.requestlog.exempt import FETCH, PRODUCE, is_exempt_by_api
from sidecar.requestlog.layout import Buffer, Layout, Request
from sidecar.requestlog.line import UNREADABLE_TIME, Common, Header, logged_at
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS
from sidecar.requestlog.produce_size import Produce, ProduceTopic, produce_bytes
from sidecar.requestlog.rejected import Rejected
from sidecar.requestlog.request_detail import INIT_PRODUCER_ID
from sidecar.requestlog.wire import Fetch, Int32, Int64
from usage_pipeline.ingest.log_clock import ahead_ms
from usage_pipeline.ingest.rows import LONGEST_QUEUED_MS, YEARS, local_us
from usage_pipeline.kernels.fetch_size import Fetched, fetch_bytes
from usage_pipeline.kernels.line_detail import ALTER_CLIENT_QUOTAS
from usage_pipeline.kernels.values import Flags, Longs

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_YEARS: Final = tuple(b"%d" % year for year in YEARS)
_OFFSET: Final = re.compile(rb"(?:Z|[+-]\d\d(?::?\d\d)?)$")
_UNREADABLE: Final = -1
"""A time that can't be read, in microseconds since 1970."""
_NEWLINE: Final = ord("\n")
_PIECE_BYTES: Final = 1 << 17
"""The bytes whose lines are decoded at once. They fit into a processor's cache."""
_NO_REQUEST: Final = (b"", b"")
_LEFT: Final = frozenset({ALTER_CLIENT_QUOTAS, *ABOUT_TOPICS})
"""The APIs whose lines have columns that usual lines lack."""
_MS: Final = ("local_time_ms", "remote_time_ms", "response_queue_time_ms", "send_time_ms")
_Ms = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_QUEUED_MS / 2)]


class _Request(Fetch, frozen=True, gc=False):
    """A FETCH, a PRODUCE, or any other request."""

    acks: Int32 | None = None
    topics: tuple[ProduceTopic, ...] | None = msgspec.field(default=None, name="topicData")
    transactional_id: str | None = None

    records_bytes = Produce.records_bytes


class _Answer(Fetched, frozen=True, gc=False):
    """The answer to a FETCH, an INIT_PRODUCER_ID, or any other request."""

    error: Int32 | None = msgspec.field(default=None, name="errorCode")
    producer_id: Int64 = -1


class _Body(Common, frozen=True, gc=False, kw_only=True):
    """The JSON of a line of any API. A line with unlikely fields is left to ``rows``."""

    local_time_ms: _Ms
    remote_time_ms: _Ms = 0.0
    response_queue_time_ms: _Ms = 0.0
    send_time_ms: _Ms = 0.0
    request: _Request | str | None = None
    response: _Answer | str | None = None


_DECODE: Final[Callable[[bytes], _Body]] = msgspec.json.Decoder(_Body).decode
_Sender = tuple[Header, str, str, bool]
_SENDER: Final[Callable[[_Body], _Sender]] = attrgetter(
    "request_header", "principal", "listener", "is_forwarded"
)
"""A block has few distinct ones, so what depends on them alone is computed once for each."""
_OF_SENDER: Final[dict[str, tuple[pa.DataType, Callable[[Header, str, str, bool], object]]]] = {
    "user": (pa.string(), lambda _, principal, *__: principal.partition(":")[2]),
    "client_id": (pa.string(), lambda header, *_: header.client_id or ""),
    "listener": (pa.string(), lambda *sender: sender[2]),
    "api": (pa.string(), lambda header, *_: header.api),
    "api_version": (pa.int32(), lambda header, *_: header.request_api_version),
    "is_forwarded": (pa.bool_(), lambda *sender: sender[3]),
    "exempt": (
        pa.bool_(),
        lambda header, *sender: (
            header.request_api_key not in {PRODUCE, FETCH}
            and is_exempt_by_api(header.request_api_key, is_forwarded=sender[2])
        ),
    ),
}
"""Columns, and their values for a sender."""


@dataclass(frozen=True, slots=True)
class FastLines:
    """The usual lines of a block, in their order.

    Attributes:
        bodies: their JSON.
        starts: where they begin in the block.
        local_us: their times in microseconds since 1970, as if they were UTC.
        has_offset: which of the times have an offset; these are UTC.
        left: where the other lines begin and end, and what the layout has found.
    """

    bodies: Sequence[_Body]
    starts: Longs
    local_us: Longs
    has_offset: Flags
    left: Sequence[tuple[int, int, Request | Rejected]]

    @property
    def seconds(self) -> Longs:
        """The time of each line in seconds since 1970, as if it were UTC."""
        return self.local_us // 1_000_000

    def columns(
        self, names: Collection[str], zone: tzinfo, is_second: Flags | None = None
    ) -> dict[str, pa.Array]:
        """Return columns of ``rows.Row``; those that usual lines lack are null.

        Args:
            names: the requested columns; other names are ignored.
            zone: the time zone of the broker's clock.
            is_second: which lines belong to the second pass of a repeated hour; None means none.
        """
        ahead = ahead_ms(self.seconds, zone)
        if is_second is not None:
            ahead = np.where(is_second, ahead_ms(self.seconds, zone, 1), ahead)
        ahead_us = np.where(self.has_offset, 0, ahead * 1000)
        local, remote, queued, sending = (
            np.fromiter(map(attrgetter(name), self.bodies), np.float64) for name in _MS
        )
        # In the order of charge_times.
        charged_us = np.floor(self.local_us / 1000 - sending - queued).astype(np.int64) * 1000
        numbers: dict[_Sender, int] = defaultdict(count().__next__)
        sender = np.fromiter(map(numbers.__getitem__, map(_SENDER, self.bodies)), np.int64)
        made = {
            "log_ts": pa.array(self.local_us - ahead_us).cast(_TIMESTAMP),
            "quota_ts": pa.array(charged_us - ahead_us).cast(_TIMESTAMP),
            "local_ms": pa.array(local),
            "remote_ms": pa.array(remote),
        }
        for name, (kind, of) in _OF_SENDER.items():
            made[name] = pa.array([of(*each) for each in numbers], kind).take(pa.array(sender))
        apis = np.array([header.request_api_key for header, *_ in numbers], np.int64)
        made |= self._of_apis(apis[sender], made["exempt"].to_numpy(zero_copy_only=False))
        return {name: column for name, column in made.items() if name in names}

    def _of_apis(self, api: Longs, is_exempt: Flags) -> dict[str, pa.Array]:
        """Return the columns that differ between APIs."""
        bodies = self.bodies
        acks, records, size, producer_id = np.full((4, len(bodies)), None)
        answered_ms = [
            answer.throttle_time_ms if isinstance(answer := body.response, _Answer) else 0
            for body in bodies
        ]
        own_ms = np.fromiter([body.throttle_time_ms for body in bodies], np.int64)
        throttle_ms = np.maximum(own_ms, np.fromiter(answered_ms, np.int64))
        is_produce = api == PRODUCE
        produced: list[Any] = list(compress(bodies, is_produce.tolist()))
        acks[is_produce] = [body.request.acks for body in produced]
        records[is_produce] = [body.request.records_bytes for body in produced]
        size[is_produce] = [
            produce_bytes(body.request, header.request_api_version, header.client_id or "")
            for body in produced
            for header in [body.request_header]
        ]
        is_fetch = api == FETCH
        fetches: list[Any] = list(compress(bodies, is_fetch.tolist()))
        follows = np.zeros(len(bodies), np.bool_)
        follows[is_fetch] = [body.request.replica >= 0 for body in fetches]
        # If Kafka throttles a consumer, its answer has no records.
        has_records = [
            isinstance(answer := body.response, _Answer) and bool(answer.responses or not wait)
            for body, wait in zip(fetches, throttle_ms[is_fetch].tolist(), strict=True)
        ]
        fetches = list(compress(fetches, has_records))
        at = np.flatnonzero(is_fetch)[has_records]
        records[at] = [body.response.records_bytes for body in fetches]
        size[at] = [
            fetch_bytes(body.response, body.request_header.request_api_version) for body in fetches
        ]
        size[follows] = None
        for place in np.flatnonzero(api == INIT_PRODUCER_ID).tolist():
            answer = bodies[place].response
            if isinstance(answer, _Answer) and answer.error == 0 and answer.producer_id >= 0:
                producer_id[place] = answer.producer_id
        sizes = pa.array(size, pa.int64())
        return {
            "throttle_ms": pa.array(throttle_ms),
            "is_follower": pa.array(follows),
            "exempt": pa.array(is_exempt | follows | (acks == 0)),
            "acks": pa.array(acks, pa.int32()),
            "records_bytes": pa.array(records, pa.int64()),
            "quota_bytes": sizes,
            "bytes_known": pc.if_else(is_produce | is_fetch & ~follows, sizes.is_valid(), None),
            "producer_id": pa.array(producer_id, pa.int64()),
        }


def fast_lines(block: Buffer, layout: Layout) -> FastLines:
    """Read the usual lines.

    Args:
        block: complete lines; the last one may lack its newline.
        layout: what is known of the log's layout.
    """
    starts: list[int] = []
    ends: list[int] = []
    times: list[bytes] = []
    bodies: list[_Body] = []
    left: list[tuple[int, int, Request | Rejected]] = []
    for begun, ended in _pieces(block):
        found = layout.find_each(block, begun, ended)
        requests = [each if isinstance(each, tuple) else _NO_REQUEST for each in found]
        read = _bodies(requests)
        left += compress(zip(begun, ended, found, strict=True), [body is None for body in read])
        starts += compress(begun, read)
        ends += compress(ended, read)
        times += compress(map(itemgetter(0), requests), read)
        bodies += filter(None, read)
    us, has_offset = _times(times)
    begins = np.array(starts, np.int64)
    if (unknown := us == _UNREADABLE).any():
        left += [(starts[at], ends[at], UNREADABLE_TIME) for at in np.flatnonzero(unknown)]
        left.sort(key=itemgetter(0))
        bodies = list(compress(bodies, ~unknown))
        begins, us, has_offset = begins[~unknown], us[~unknown], has_offset[~unknown]
    return FastLines(bodies, begins, us, has_offset, left)


def _pieces(block: Buffer) -> Iterator[tuple[list[int], list[int]]]:
    """Yield where lines begin and end, some of them at once."""
    text = np.frombuffer(block, np.uint8)
    start = 0
    for at in range(0, len(text), _PIECE_BYTES):
        ends = (np.flatnonzero(text[at : at + _PIECE_BYTES] == _NEWLINE) + at).tolist()
        if at + _PIECE_BYTES >= len(text) and text[-1] != _NEWLINE:
            ends.append(len(text))
        if ends:
            yield [start, *(end + 1 for end in ends[:-1])], ends
            start = ends[-1] + 1


def _bodies(requests: Sequence[Request]) -> list[_Body | None]:
    """Return the JSON of lines, and None for those that are not usual."""
    messages = iter([message for _, message in requests])
    bodies: list[_Body | None] = []
    while len(bodies) < len(requests):
        try:
            bodies.extend(map(_DECODE, messages))
        except (ValueError, RecursionError):
            # The list has the lines before this one, and those after it follow.
            bodies.append(None)
    return [
        body
        if body is not None
        and _YEARS[0] <= time[:4] <= _YEARS[1]
        and (
            api not in _LEFT
            if (api := body.request_header.request_api_key) > FETCH or api < PRODUCE
            else isinstance(request := body.request, _Request)
            and (api == FETCH or (request.acks is not None and request.topics is not None))
        )
        else None
        for body, (time, _) in zip(bodies, requests, strict=True)
    ]


def _times(times: Sequence[bytes]) -> tuple[Longs, Flags]:
    """Return the times in microseconds since 1970, as if they were UTC, and which have an offset.

    Args:
        times: the times of lines. Of a time that is none, the result is ``_UNREADABLE``.
    """
    has_offset = bool(times) and _OFFSET.search(times[0]) is not None
    texts = pc.replace_substring(pa.array(times, pa.binary()), b",", b".")
    try:
        # All times of a log have the same form. This is far quicker than one by one.
        parsed = texts.cast(pa.string()).cast(pa.timestamp("us", "UTC" if has_offset else None))
    except pa.ArrowInvalid:
        each = [_time(time) for time in times]
        return np.array([us for us, _ in each]), np.array([has for _, has in each])
    return np.asarray(parsed.cast(pa.int64())), np.full(len(times), has_offset)


def _time(time: bytes) -> tuple[int, bool]:
    try:
        when = logged_at(time)
    except ValueError:
        return _UNREADABLE, False
    if when.tzinfo is None:
        return local_us(when), False
    return local_us(when.astimezone(UTC).replace(tzinfo=None)), True
