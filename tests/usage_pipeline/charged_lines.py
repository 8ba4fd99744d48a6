"""What lines are charged with, one by one: what the pipeline is compared with.

Bytes of PRODUCE, time and mutations are ``tests.support.charges``'s; it leaves out FETCH and
producer ids, whose sizes and ids are ``requestlog``'s.

Example: a PRODUCE of 10,035 bytes that took 0.258 ms: ("produce", 10_035, False) and ("request",
258_000, True), which is whole nanoseconds and a lower bound.
"""

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sidecar.quotas.entities import QuotaKey
from sidecar.requestlog.allocated_ids import producer_id
from sidecar.requestlog.exempt import FETCH, PRODUCE, is_exempt
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS, TopicSizes
from tests.support.charges import charges
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.ingest.stored_logs import log_files
from usage_pipeline.kernels.charge_times import charged_at_ms
from usage_pipeline.kernels.fetch_size import fetch_answer, fetch_bytes

NS_PER_PERCENT = 10_000_000
Used = tuple[str, int, bool]
"""Quota type, amount, and whether more was requested or used."""


SHARE_FETCH: Final = 78


def used_of(line: Line, sizes: TopicSizes | None = None) -> Iterator[Used]:
    """Returns what a line's request used.

    Args:
        line: of a broker or controller.
        sizes: of topics before it; None: only what the line itself has of mutations.
    """
    charged = {each.key: each.amount for each in charges(line, TopicSizes()).charges}
    if line.api_key == PRODUCE:
        size = charged.get(QuotaKey.PRODUCE)
        yield "produce", int(size or 0), size is None
    if line.api_key == FETCH and not is_exempt(line):
        answer = fetch_answer(line)
        size = None if answer is None else fetch_bytes(answer, line.api_version)
        yield "fetch", size or 0, size is None
    if line.api_key == SHARE_FETCH:
        yield "fetch", 0, True
    if QuotaKey.REQUEST in charged:
        yield "request", round(charged[QuotaKey.REQUEST] * NS_PER_PERCENT), True
    if line.is_forwarded and line.api_key in ABOUT_TOPICS:
        yield _mutations(line, sizes)
    if producer_id(line) is not None:
        yield "producer_ids", 1, False


def _mutations(line: Line, sizes: TopicSizes | None) -> Used:
    found = (TopicSizes() if sizes is None else sizes).mutations(line)
    accepted = [one.partitions for one in found or () if not one.refused]
    is_whole = found is not None and None not in accepted
    amount = sum(each or 0 for each in accepted) if is_whole or sizes is not None else 0
    return "controller_mutation", amount, not is_whole or len(accepted) < len(found or ())


def lines_of(logs: RequestLogs) -> list[tuple[int, str, int, Line]]:
    """Returns the lines that can be read, by time, each with its broker, file and place."""
    found = []
    for file in log_files(logs.path, logs.zones, logs.broker_pattern):
        text = Path(file.path).read_bytes()
        offset = 0
        for each in (gzip.decompress(text) if file.path.endswith(".gz") else text).splitlines(True):
            line = parse(each)
            if isinstance(line, Line):
                found.append((file.broker, file.path, offset, line))
            offset += len(each)
    return sorted(found, key=lambda one: (one[3].time, *one[1:3]))


def usage_of(logs: RequestLogs, sizes: TopicSizes | None = None) -> list[dict[str, Any]]:
    """Returns the rows of gold_usage_1s, in an order, of logs whose clock is UTC's."""
    sums: dict[tuple[Any, ...], list[int]] = {}
    for broker, _, _, line in lines_of(logs):
        second = charged_at_ms(line) // 1000
        for quota_type, amount, is_short in used_of(line, sizes):
            key = (broker, line.user, line.client_id, quota_type, second)
            own = (amount, 1, line.throttle_ms > 0, line.throttle_ms, is_short)
            sums[key] = [
                one + other for one, other in zip(sums.get(key, [0] * 5), own, strict=True)
            ]
    return in_order(_row(*key, *each) for key, each in sums.items())


def in_order(rows: Any) -> list[dict[str, Any]]:
    """Returns rows of gold_usage_1s in the order of their columns."""
    names = ("dt", "broker", "user", "client_id", "quota_type", "window_start")
    return sorted(rows, key=lambda row: [row[name] for name in names])


def _row(  # noqa: PLR0917  a table's columns
    broker: int,
    user: str,
    client_id: str,
    quota_type: str,
    second: int,
    amount: int,
    events: int,
    throttled: int,
    throttle_ms: int,
    short: int,
) -> dict[str, Any]:
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    return {
        "dt": start.date(),
        "broker": broker,
        "user": user,
        "client_id": client_id,
        "quota_type": quota_type,
        "window_start": start,
        "amount": amount / (NS_PER_PERCENT if quota_type == "request" else 1),
        "events": events,
        "throttled": throttled,
        "throttle_ms": throttle_ms,
        "lower_bound": short > 0,
    }
