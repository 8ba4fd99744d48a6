"""Parses most lines of a block into columns: one pass over each line's JSON, into typed structs.

PRODUCE, FETCH and the requests whose content no quota needs are nearly all lines of a log. The
others, and lines with anything unusual, are left to ``rows``, which defines what is correct. A line
that this parser reads has the same row there.

Example: 998 of 1,000 lines of a busy broker are read here. A CREATE_TOPICS and half a line are not.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial
from operator import attrgetter
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from sidecar.requestlog.exempt import FETCH, PRODUCE, is_exempt_by_api
from sidecar.requestlog.layout import Layout, Request
from sidecar.requestlog.line import Common, Throttled, logged_at
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS
from sidecar.requestlog.rejected import Rejected
from sidecar.requestlog.request_detail import INIT_PRODUCER_ID
from sidecar.requestlog.wire import Fetch, InitProducerIdAnswer
from usage_pipeline.ingest.log_clock import ahead_ms
from usage_pipeline.ingest.rows import LONGEST_QUEUED_MS, YEARS, local_us
from usage_pipeline.kernels.fetch_size import Fetched, fetch_bytes
from usage_pipeline.kernels.line_detail import ALTER_CLIENT_QUOTAS
from usage_pipeline.kernels.produce_size import Produce, produce_bytes
from usage_pipeline.kernels.values import Flags, Longs

Buffer = bytes | memoryview
"""Read-only bytes."""
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_LARGEST_MS: Final = 1e15
_KEY: Final = b'"requestApiKey":'
_SECOND: Final = len("2026-11-20 23:05:20")
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


class _Usual(msgspec.Struct, gc=False):
    """A usual line.

    Attributes:
        start: where it begins in the block.
        local_us: its time in microseconds since 1970, as if it were UTC.
        has_offset: whether the time has an offset; ``local_us`` is UTC then.
        throttle_ms: the throttle time, and the further columns of ``rows.Row``.
        body: its JSON.
    """

    start: int
    local_us: int
    has_offset: bool
    body: _Body
    throttle_ms: int
    is_follower: bool = False
    exempt: bool = False
    acks: int | None = None
    records_bytes: int | None = None
    quota_bytes: int | None = None
    bytes_known: bool | None = None
    producer_id: int | None = None


@dataclass(frozen=True, slots=True)
class FastLines:
    """The usual lines of a block, in their order.

    Attributes:
        lines: the lines.
        starts: where they begin in the block.
        local_us: their times in microseconds since 1970, as if they were UTC.
        has_offset: which of the times have an offset; these are UTC.
        left: where the other lines begin and end, and what the layout has found.
    """

    lines: Sequence[_Usual]
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
            "client_id": lambda: self._of("body.request_header.client_id", _TEXT).fill_null(""),
            **{name: partial(self._of, field, kind) for name, (field, kind) in _COLUMNS.items()},
        }
        return {name: columns[name]() for name in names if name in columns}

    def _of(self, field: str, kind: pa.DataType) -> pa.Array:
        return pa.array(list(map(attrgetter(field), self.lines)), kind)

    def _users(self) -> pa.Array:
        principals = [line.body.principal for line in self.lines]
        users = {each: each.partition(":")[2] for each in set(principals)}
        return pa.array([users[each] for each in principals], _TEXT)

    def _charged_us(self) -> Longs:
        """The times of charges, in the order of ``charge_times``."""
        sending = np.array([line.body.send_time_ms for line in self.lines])
        queued = np.array([line.body.response_queue_time_ms for line in self.lines])
        charged = np.floor(self.local_us / 1000 - sending - queued)
        return np.asarray(charged.astype(np.int64) * 1000)


_TEXT: Final = pa.string()
_COLUMNS: Final = {
    "listener": ("body.listener", _TEXT),
    "api": ("body.api", _TEXT),
    "api_version": ("body.request_header.request_api_version", pa.int32()),
    "is_forwarded": ("body.is_forwarded", pa.bool_()),
    "is_follower": ("is_follower", pa.bool_()),
    "exempt": ("exempt", pa.bool_()),
    "acks": ("acks", pa.int32()),
    "records_bytes": ("records_bytes", pa.int64()),
    "quota_bytes": ("quota_bytes", pa.int64()),
    "bytes_known": ("bytes_known", pa.bool_()),
    "local_ms": ("body.local_time_ms", pa.float64()),
    "remote_ms": ("body.remote_time_ms", pa.float64()),
    "throttle_ms": ("throttle_ms", pa.int64()),
    "producer_id": ("producer_id", pa.int64()),
}


def fast_lines(block: Buffer, layout: Layout) -> FastLines:
    """Read the usual lines.

    Args:
        block: complete lines; the last one may lack its newline.
        layout: what is known of the log's layout.
    """
    lines = []
    left = []
    seconds: dict[bytes, int] = {}
    end = -1
    for text in bytes(block).split(b"\n"):
        start, end = end + 1, end + 1 + len(text)
        found = layout.find(text)
        line = None if isinstance(found, Rejected) else _read(start, *found, seconds)
        if line is not None:
            lines.append(line)
        elif start < len(block):
            left.append((start, end, found))
    return FastLines(
        lines,
        np.array([line.start for line in lines], np.int64),
        np.array([line.local_us for line in lines], np.int64),
        np.array([line.has_offset for line in lines], np.bool_),
        left,
    )


def _read(start: int, time: bytes, message: bytes, seconds: dict[bytes, int]) -> _Usual | None:
    """A line, or None if it is not usual."""
    at = message.find(_KEY) + len(_KEY)
    try:
        body = _DECODE.get(message[at : at + 2], _DECODE_OTHER)(message)
        local_us, has_offset = _time(time, seconds)
    except (ValueError, RecursionError):
        return None
    answer = body.response
    throttle_ms = body.throttle_time_ms
    if not (answer is None or isinstance(answer, str)) and answer.throttle_time_ms > throttle_ms:
        throttle_ms = answer.throttle_time_ms
    line = _Usual(start, local_us, has_offset, body, throttle_ms)
    is_usual = (
        _fill(line)
        and body.send_time_ms + body.response_queue_time_ms <= LONGEST_QUEUED_MS
        and body.local_time_ms + body.remote_time_ms <= _LARGEST_MS
    )
    return line if is_usual else None


def _time(time: bytes, seconds: dict[bytes, int]) -> tuple[int, bool]:
    """The time in microseconds since 1970, as if it were UTC, and whether it has an offset.

    Args:
        time: the time in a line.
        seconds: the seconds that were seen before.

    Raises:
        ValueError: it is not a time, or not of ``YEARS``.
    """
    text = time[:_SECOND]
    second = seconds.get(text)
    if second is None and b"-" in text:
        second = seconds[text] = local_us(_of_years(logged_at(text)))
    digits = time[_SECOND + 1 :]
    if second is not None and len(digits) == 3 and digits.isdigit():
        return second + int(digits) * 1000, False
    when = _of_years(logged_at(time))
    if when.tzinfo is None:
        return local_us(when), False
    return local_us(when.astimezone(UTC).replace(tzinfo=None)), True


def _of_years(time: datetime) -> datetime:
    if not YEARS[0] <= time.year <= YEARS[1]:
        raise ValueError("not of these years")
    return time


def _fill(line: _Usual) -> bool:
    """Fill the columns of a line's API; return whether the line is usual."""
    body = line.body
    key = body.request_header.request_api_key
    if isinstance(body, _Produced):
        _fill_produced(line, body)
        return key == PRODUCE
    if isinstance(body, _Consumed):
        _fill_consumed(line, body)
        return key == FETCH
    if isinstance(body, _Initialized):
        answer = body.response
        if isinstance(answer, InitProducerIdAnswer) and answer.error == 0:
            line.producer_id = answer.producer_id if answer.producer_id >= 0 else None
        return key == INIT_PRODUCER_ID
    line.exempt = is_exempt_by_api(key, is_forwarded=body.is_forwarded)
    return key not in _DETAILED


def _fill_produced(line: _Usual, body: _Produced) -> None:
    produce, header = body.request, body.request_header
    line.acks, line.exempt = produce.acks, produce.acks == 0
    line.records_bytes = produce.records_bytes
    line.quota_bytes = produce_bytes(produce, header.request_api_version, header.client_id or "")
    line.bytes_known = line.quota_bytes is not None


def _fill_consumed(line: _Usual, body: _Consumed) -> None:
    line.is_follower = line.exempt = body.request.replica >= 0
    answer = body.response
    if not isinstance(answer, Fetched) or (line.throttle_ms > 0 and not answer.responses):
        line.bytes_known = None if line.is_follower else False
        return
    line.records_bytes = answer.records_bytes
    if not line.is_follower:
        line.quota_bytes = fetch_bytes(answer, body.request_header.request_api_version)
        line.bytes_known = line.quota_bytes is not None
