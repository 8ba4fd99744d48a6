"""Parses most lines of a block into columns: one pass over each line's JSON, into typed structs.

PRODUCE, FETCH and the requests whose content no quota needs are nearly all lines of a log. The
others, and lines with anything unusual, are left to ``rows``, which defines what is correct. A line
that this parser reads has the same row there.

Example: 998 of 1,000 lines of a busy broker are read here. A CREATE_TOPICS and half a line are not.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from itertools import compress
from operator import itemgetter
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidecar.requestlog.exempt import FETCH, PRODUCE, is_exempt_by_api
from sidecar.requestlog.layout import Layout, Request
from sidecar.requestlog.line import UNREADABLE_TIME, Common, Throttled, logged_at
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS
from sidecar.requestlog.produce_size import Produce, produce_bytes
from sidecar.requestlog.rejected import Rejected
from sidecar.requestlog.request_detail import INIT_PRODUCER_ID
from sidecar.requestlog.wire import Fetch, InitProducerIdAnswer
from usage_pipeline.ingest.log_clock import ahead_ms
from usage_pipeline.ingest.rows import LONGEST_QUEUED_MS, YEARS, local_us
from usage_pipeline.kernels.fetch_size import Fetched, fetch_bytes
from usage_pipeline.kernels.line_detail import ALTER_CLIENT_QUOTAS
from usage_pipeline.kernels.values import Flags, Longs

Buffer = bytes | memoryview
"""Read-only bytes."""
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_LARGEST_MS: Final = 1e15
_KEY: Final = b'"requestApiKey":'
_TIME: Final = 2
"""The place of the time in a usual line."""
_YEARS: Final = tuple(b"%d" % year for year in YEARS)
_OFFSET: Final = re.compile(rb"(?:Z|[+-]\d\d(?::?\d\d)?)$")
_UNKNOWN: Final = -1
"""A time that can't be read, in microseconds since 1970."""
_DETAILED: Final = frozenset({PRODUCE, FETCH, INIT_PRODUCER_ID, ALTER_CLIENT_QUOTAS, *ABOUT_TOPICS})
"""The APIs whose requests or answers have columns of their own."""


class _Produced(Common, frozen=True, gc=False, kw_only=True):
    request: Produce
    response: Throttled | str | None = None


class _Consumed(Common, frozen=True, gc=False, kw_only=True):
    request: Fetch
    response: Fetched | str | None = None


class _Initialized(Common, frozen=True, gc=False, kw_only=True):
    response: InitProducerIdAnswer | str | None = None


class _Other(Common, frozen=True, gc=False, kw_only=True):
    response: Throttled | str | None = None


_Body = _Produced | _Consumed | _Initialized | _Other
_DECODE: Final[dict[bytes, Callable[[bytes], _Body]]] = {
    b"%d," % PRODUCE: msgspec.json.Decoder(_Produced).decode,
    b"%d," % FETCH: msgspec.json.Decoder(_Consumed).decode,
    b"%d" % INIT_PRODUCER_ID: msgspec.json.Decoder(_Initialized).decode,
}
_DECODE_OTHER: Final[Callable[[bytes], _Body]] = msgspec.json.Decoder(_Other).decode


_FIELDS: Final = (
    *("start", "end", "time", "send_ms", "queued_ms", "principal"),
    *("client_id", "listener", "api", "api_version", "is_forwarded", "local_ms", "remote_ms"),
    *("throttle_ms", "is_follower", "exempt", "acks", "records_bytes", "quota_bytes"),
    *("bytes_known", "producer_id"),
)
"""What a usual line has: where it begins and ends, its time, the times of sending and in the
response queue, the principal, and columns of ``rows.Row``."""
_Usual = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class FastLines:
    """The usual lines of a block, in their order.

    Attributes:
        fields: the values of the lines, by ``_FIELDS``; empty if there are no lines.
        starts: where they begin in the block.
        local_us: their times in microseconds since 1970, as if they were UTC.
        has_offset: which of the times have an offset; these are UTC.
        left: where the other lines begin and end, and what the layout has found.
    """

    fields: Mapping[str, Sequence[Any]]
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
        columns: dict[str, Callable[[], pa.Array]] = {
            "log_ts": lambda: pa.array(self.local_us - ahead_us).cast(_TIMESTAMP),
            "quota_ts": lambda: pa.array(self._charged_us() - ahead_us).cast(_TIMESTAMP),
            "user": self._users,
            **{
                name: partial(pa.array, self.fields.get(name, ()), kind)
                for name, kind in _COLUMNS.items()
            },
        }
        return {name: columns[name]() for name in names if name in columns}

    def _users(self) -> pa.Array:
        principals = self.fields.get("principal", ())
        users = {each: each.partition(":")[2] for each in set(principals)}
        return pa.array([users[each] for each in principals], pa.string())

    def _charged_us(self) -> Longs:
        """The times of charges, in the order of ``charge_times``."""
        sending = np.array(self.fields.get("send_ms", ()), np.float64)
        queued = np.array(self.fields.get("queued_ms", ()), np.float64)
        charged = np.floor(self.local_us / 1000 - sending - queued)
        return np.asarray(charged.astype(np.int64) * 1000)


_COLUMNS: Final = {
    **dict.fromkeys(("client_id", "listener", "api"), pa.string()),
    **dict.fromkeys(("is_forwarded", "is_follower", "exempt", "bytes_known"), pa.bool_()),
    **dict.fromkeys(("api_version", "acks"), pa.int32()),
    **dict.fromkeys(("records_bytes", "quota_bytes", "throttle_ms", "producer_id"), pa.int64()),
    **dict.fromkeys(("local_ms", "remote_ms"), pa.float64()),
}


def fast_lines(block: Buffer, layout: Layout) -> FastLines:
    """Read the usual lines.

    Args:
        block: complete lines; the last one may lack its newline.
        layout: what is known of the log's layout.
    """
    lines = []
    left: list[tuple[int, int, Request | Rejected]] = []
    end = -1
    for text in bytes(block).split(b"\n"):
        start, end = end + 1, end + 1 + len(text)
        found = layout.find(text)
        line = None if isinstance(found, Rejected) else _read(start, end, found)
        if line is not None:
            lines.append(line)
        elif start < len(block):
            left.append((start, end, found))
    local_us, has_offset = _times([line[_TIME] for line in lines])
    if (unknown := local_us == _UNKNOWN).any():
        left += [(*line[:_TIME], UNREADABLE_TIME) for line in compress(lines, unknown)]
        left.sort(key=itemgetter(0))
        lines = list(compress(lines, ~unknown))
        local_us, has_offset = local_us[~unknown], has_offset[~unknown]
    fields = dict(zip(_FIELDS, zip(*lines, strict=True), strict=False))
    starts = np.array(fields.get("start", ()), np.int64)
    return FastLines(fields, starts, local_us, has_offset, left)


def _read(start: int, end: int, found: Request) -> _Usual | None:
    """A line, or None if it is not usual."""
    time, message = found
    at = message.find(_KEY) + len(_KEY)
    try:
        body = _DECODE.get(message[at : at + 2], _DECODE_OTHER)(message)
    except (ValueError, RecursionError):
        return None
    header, answer, throttle_ms = body.request_header, body.response, body.throttle_time_ms
    if not (answer is None or isinstance(answer, str)) and answer.throttle_time_ms > throttle_ms:
        throttle_ms = answer.throttle_time_ms
    details = _details(body, throttle_ms)
    if details is None or not (
        body.send_time_ms + body.response_queue_time_ms <= LONGEST_QUEUED_MS
        and body.local_time_ms + body.remote_time_ms <= _LARGEST_MS
        and _YEARS[0] <= time[:4] <= _YEARS[1]
    ):
        return None
    return (
        *(start, end, time, body.send_time_ms, body.response_queue_time_ms, body.principal),
        *(header.client_id or "", body.listener, body.api, header.request_api_version),
        *(body.is_forwarded, body.local_time_ms, body.remote_time_ms, throttle_ms),
        *details,
    )


def _details(body: _Body, throttle_ms: int) -> _Usual | None:
    """The fields from ``is_follower`` on, or None if the line is not usual."""
    key = body.request_header.request_api_key
    if isinstance(body, _Produced):
        return _produced(body) if key == PRODUCE else None
    if isinstance(body, _Consumed):
        return _consumed(body, throttle_ms) if key == FETCH else None
    if not isinstance(body, _Initialized):
        exempt = is_exempt_by_api(key, is_forwarded=body.is_forwarded)
        return None if key in _DETAILED else (False, exempt, None, None, None, None, None)
    answer, producer_id = body.response, None
    if isinstance(answer, InitProducerIdAnswer) and answer.error == 0 and answer.producer_id >= 0:
        producer_id = answer.producer_id
    is_usual = key == INIT_PRODUCER_ID
    return (False, False, None, None, None, None, producer_id) if is_usual else None


def _produced(body: _Produced) -> _Usual:
    produce, header = body.request, body.request_header
    acks = produce.acks
    size = produce_bytes(produce, header.request_api_version, header.client_id or "")
    return False, acks == 0, acks, produce.records_bytes, size, size is not None, None


def _consumed(body: _Consumed, throttle_ms: int) -> _Usual:
    is_follower, answer = body.request.replica >= 0, body.response
    records, size, is_known = None, None, None if is_follower else False
    if isinstance(answer, Fetched) and (throttle_ms == 0 or answer.responses):
        records = answer.records_bytes
        if not is_follower:
            size = fetch_bytes(answer, body.request_header.request_api_version)
            is_known = size is not None
    return is_follower, is_follower, None, records, size, is_known, None


def _times(times: Sequence[bytes]) -> tuple[Longs, Flags]:
    """Return the times in microseconds since 1970, as if they were UTC, and which have an offset.

    Args:
        times: the times of lines. Of a time that is none, the result is ``_UNKNOWN``.
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
        return _UNKNOWN, False
    if when.tzinfo is None:
        return local_us(when), False
    return local_us(when.astimezone(UTC).replace(tzinfo=None)), True
