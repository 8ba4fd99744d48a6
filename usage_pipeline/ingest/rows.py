"""Turns a line into a row of silver_request, with the values that ``requestlog`` reads.

This module defines the meaning of a row; ``fast_parser`` makes the same rows faster. A line with a
value that does not fit a column (a time before 1970, a number beyond 64 bits) is not read.

Most logs' times are local times of the broker, in a zone that the line does not name. For the
repeated hour in autumn, ``second_pass`` finds out to which pass a line belongs.

Example: a PRODUCE of 25,532 bytes in two partitions is logged at 10:00:00.123 in Berlin, after
0.207 ms in the queue and of sending. Its log_ts is 09:00:00.123 UTC, its quota_ts 09:00:00.122, its
records_bytes 25,532, and its quota_bytes 25,591.

Source: KafkaApis and ControllerApis for the charges and their times; KIP-124 for exempt requests.
"""

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from operator import attrgetter
from typing import Final, NamedTuple

from sidecar.quotas.entities import Default, Name
from sidecar.requestlog.allocated_ids import producer_id
from sidecar.requestlog.exempt import FETCH, PRODUCE, is_exempt
from sidecar.requestlog.line import Line
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS, mutations_of
from sidecar.requestlog.produce_size import Produce, produce_bytes
from sidecar.requestlog.rejected import Rejected, RejectedKind
from sidecar.requestlog.request_detail import TopicChange, TopicChanges
from sidecar.requestlog.wire import InitProducerIdAnswer
from usage_pipeline.kernels.charge_times import charged_at_ms
from usage_pipeline.kernels.fetch_size import fetch_answer, fetch_bytes
from usage_pipeline.kernels.line_detail import QuotaChanges, detail
from usage_pipeline.tables.schemas import SILVER_REQUEST

TopicValue = tuple[str, str, int | None, int | None]
"""An entry of topic_changes: topic, topic_id, partitions, error."""
QuotaValue = tuple[str | None, str | None, str | None, str, float | None, int | None]
"""An entry of quota_changes: user, client_id, ip, key, value, error."""


class Row(NamedTuple):
    """The columns of a line, without its position; times are microseconds since 1970, UTC.

    Only some APIs have the columns from ``is_follower`` on.
    """

    log_ts: int
    quota_ts: int
    user: str
    client_id: str
    listener: str
    api: str
    api_version: int
    is_forwarded: bool
    exempt: bool
    local_ms: float
    remote_ms: float
    throttle_ms: int
    is_follower: bool = False
    acks: int | None = None
    records_bytes: int | None = None
    quota_bytes: int | None = None
    bytes_known: bool | None = None
    producer_id: int | None = None
    mutations: int | None = None
    mutations_known: bool | None = None
    validate_only: bool | None = None
    topic_changes: list[TopicValue] | None = None
    quota_changes: list[QuotaValue] | None = None


LONGEST_QUEUED_MS: Final = 1e12
"""The longest time in the response queue and of sending for which a charge's time is known."""
YEARS: Final = (1971, 9998)
"""The first and the last year whose times are valid in every zone."""

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  local times are reckoned as if they were UTC
_US: Final = timedelta(microseconds=1)
_BELOW: Final = {
    column.name: 1 << (31 if column.type == "int" else 63)
    for column in SILVER_REQUEST.columns
    if column.type in ("int", "bigint") and column.name in Row._fields
}
"""The upper bound (exclusive) of each integer column."""
_INTS: Final = attrgetter(*_BELOW)


def row(line: Line, zone: tzinfo, fold: int = 0) -> Row | Rejected:
    """Return the row of a line.

    Args:
        line: the line as it was logged.
        zone: the time zone of the broker's clock, for a time without an offset.
        fold: for a repeated time, the first pass (0) or the second (1).
    """
    if line.time is None:
        return Rejected(RejectedKind.TIME, "the line has no date and time")
    time = line.time
    logged_us = since_1970_us(time.replace(fold=fold), zone)
    queued_ms = line.body.send_time_ms + line.body.response_queue_time_ms
    if logged_us is None:
        return Rejected(RejectedKind.TIME, "not of the years 1970 to 9999")
    if not queued_ms <= LONGEST_QUEUED_MS:
        return Rejected(RejectedKind.UNEXPECTED, "queued for longer than can be")
    ahead_us = 0 if time.tzinfo is not None else local_us(time) - logged_us
    made = Row(
        log_ts=logged_us,
        quota_ts=charged_at_ms(line) * 1000 - ahead_us,
        user=line.user,
        client_id=line.client_id,
        listener=line.body.listener,
        api=line.api,
        api_version=line.api_version,
        is_forwarded=line.is_forwarded,
        exempt=is_exempt(line),
        local_ms=line.local_ms,
        remote_ms=line.body.remote_time_ms,
        throttle_ms=line.throttle_ms,
    )
    made = _detailed(made, line)
    return made if _fits(made) else Rejected(RejectedKind.UNEXPECTED, "a number is too large")


def since_1970_us(time: datetime, zone: tzinfo) -> int | None:
    """Return microseconds since 1970, UTC, or None outside of the years 1970 to 9999.

    Args:
        time: a time.
        zone: its zone if it has no offset.
    """
    try:
        known = time if time.tzinfo is not None else time.replace(tzinfo=zone)
        utc = known.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        return None
    return local_us(utc) if utc >= _EPOCH else None


def local_us(local: datetime) -> int:
    """Return microseconds since 1970, as if a local time were UTC."""
    return (local - _EPOCH) // _US


def _fits(made: Row) -> bool:
    numbers = zip(_INTS(made), _BELOW.values(), strict=True)
    counts = (count for change in made.topic_changes or () for count in change[2:])
    errors = (change[-1] for change in made.quota_changes or ())
    return (
        all(number is None or -most <= number < most for number, most in numbers)
        and all(number is None or -(1 << 31) <= number < 1 << 31 for number in (*counts, *errors))
        and math.isfinite(made.local_ms)
        and math.isfinite(made.remote_ms)
    )


def _detailed(made: Row, line: Line) -> Row:
    """Set the columns that only the line's API has."""
    if line.api_key == FETCH:
        return _fetch(made, line)
    fields = detail(line)
    if line.api_key == PRODUCE:
        unread = made._replace(bytes_known=False)
        return _produce(made, line, fields) if isinstance(fields, Produce) else unread
    if line.api_key in ABOUT_TOPICS:
        unread = made._replace(mutations_known=False)
        return _topics(made, line, fields) if isinstance(fields, TopicChanges) else unread
    if isinstance(fields, InitProducerIdAnswer):
        return made._replace(producer_id=producer_id(line))
    return _quotas(made, fields) if isinstance(fields, QuotaChanges) else made


def _fetch(made: Row, line: Line) -> Row:
    answer = fetch_answer(line)
    records = None if answer is None else answer.records_bytes
    # Only fetches by replicas are exempt.
    if is_exempt(line):
        return made._replace(is_follower=True, records_bytes=records)
    size = None if answer is None else fetch_bytes(answer, line.api_version)
    return made._replace(records_bytes=records, quota_bytes=size, bytes_known=size is not None)


def _produce(made: Row, line: Line, fields: Produce) -> Row:
    size = produce_bytes(fields, line.api_version, line.client_id)
    return made._replace(
        acks=fields.acks,
        records_bytes=fields.records_bytes,
        quota_bytes=size,
        bytes_known=size is not None,
    )


def _topics(made: Row, line: Line, fields: TopicChanges) -> Row:
    mutations = _mutations(line.api_key, fields.changes)
    return made._replace(
        mutations=mutations,
        mutations_known=mutations is not None,
        validate_only=fields.validate_only,
        topic_changes=[
            (change.topic, change.topic_id, change.partitions, change.error)
            for change in fields.changes
        ],
    )


def _mutations(api_key: int, changes: Iterable[TopicChange]) -> int | None:
    """Return the accepted mutations if the line has all; topics' sizes may be in other lines."""
    total = 0
    for change in changes:
        mutation = mutations_of(api_key, change, size=None)
        if mutation is None or mutation.refused:
            continue
        if mutation.partitions is None:
            return None
        total += mutation.partitions
    return total


def _quotas(made: Row, fields: QuotaChanges) -> Row:
    return made._replace(
        validate_only=fields.validate_only,
        quota_changes=[
            (
                _name(change.entity.user),
                _name(change.entity.client_id),
                _name(change.entity.ip),
                change.key,
                change.value,
                change.error,
            )
            for change in fields.changes
        ],
    )


def _name(name: Name) -> str | None:
    return name.value if isinstance(name, Default) else name
