"""Requests as records of charges."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sidecar.pipeline.kernels.charge import CHARGE, unpacked
from sidecar.pipeline.kernels.numbered import Numbers
from sidecar.pipeline.kernels.places import BROKER_BITS, LINE_BITS
from sidecar.pipeline.replay.columns import Slots
from sidecar.pipeline.replay.encoder import Layout
from sidecar.pipeline.usage import mutations
from sidecar.quotas.entities import QuotaKey
from sidecar.requestlog.charges import charges
from sidecar.requestlog.mutation_counts import TopicSizes
from sidecar.requestlog.request_detail import CREATE_TOPICS
from tests.pipeline.kernels.requests import requests
from tests.pipeline.silver_tables import batch_of
from tests.requestlog.lines import topics_line

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
TEN_MS = int(TEN.timestamp() * 1000)
EVER = 1 << 62
NUMBERS = Numbers({("alice", "etl"): 0, ("bob", ""): 1}, {"a.log": 0, "b.log": 1})
SLOTS = Slots(
    names=["user=alice", "user=bob"],
    kind=np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    shared=np.array([0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]),
    whose=np.array([0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]),
    limit=np.full(11, np.nan),
    counts=np.ones(11, np.bool_),
    to_ms=np.array([TEN_MS + 10, *[EVER] * 10]),
    first=np.array([[0, 2], [3, 4], [5, 6], [7, 8], [9, 10]]),
)
"""Alice's produce quota changes at 10:00:00.010."""
LAYOUT = Layout(NUMBERS, SLOTS, 4)
DAY = TEN_MS // 86_400_000


def laid_out(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Returns slot, time after ten, line, amount and id, in the order of lines."""
    records = unpacked(pa.Table.from_batches(list(LAYOUT.of_requests([batch]))), CHARGE)
    assert {(DAY << BROKER_BITS) | 7} == set(records["place"].tolist())
    names = ("slot", "at_ms", "line", "amount", "extra")
    rows = zip(*(records[name].tolist() for name in names), strict=True)
    return sorted((s, at - TEN_MS, line, amount, extra) for s, at, line, amount, extra in rows)


def test_a_request_is_charged_with_its_bytes_and_its_time() -> None:
    """The slot is that of client, kind and time; ties of a line are in the order of charges."""
    late = TEN + timedelta(microseconds=10_999)
    assert [
        (0, 0, 500, 100.0, 0),
        (1, 10, 500, 100.0, 0),
        (2, 0, (1 << LINE_BITS) + 500, 7.0, 0),
        (5, 0, 501, pytest.approx(0.0258), 0),
    ] == laid_out(
        requests(
            {"exempt": False},
            {"quota_ts": late},
            {"user": "bob", "client_id": "", "src_file": "b.log", "quota_bytes": 7},
        )
    )


def test_what_no_line_says_has_no_amount_and_throttle_times_are_laid_out() -> None:
    """A replay leaves that charge out; its result is compared with the brokers' throttle times."""
    batch = requests(
        {"api": "FETCH", "bytes_known": False, "quota_bytes": None, "throttle_ms": 70},
        {"src_offset": 600, "throttle_ms": 5},
    )
    records = unpacked(pa.Table.from_batches(list(LAYOUT.of_requests([batch]))), CHARGE)
    by_line = sorted((r["line"], r["amount"], r["told_ms"]) for r in records)
    assert [(500, 70), (600, 5)] == [(line, told_ms) for line, _, told_ms in by_line]
    assert np.isnan(by_line[0][1])
    assert 100.0 == by_line[1][1]


def test_a_client_without_a_number_is_an_error() -> None:
    """Its charges would be another's."""
    with pytest.raises(KeyError, match="carol"):
        laid_out(requests({"user": "carol"}))


def test_a_mutation_is_charged_when_the_controller_begins() -> None:
    """Times, amounts and strictness are the daemon's; the day is that of the answer."""
    made = {"name": "a", "numPartitions": 12}, {"name": "b", "numPartitions": 7}
    midnight: dict[str, Any] = {"time": "2026-11-21 00:00:00,001", "remoteTimeMs": 2.5}
    lines = [
        topics_line(CREATE_TOPICS, *made, version=6, remoteTimeMs=3.5, throttleTimeMs=70),
        topics_line(CREATE_TOPICS, {"name": "c", "numPartitions": 3}, version=5, **midnight),
    ]
    of_lines = batch_of(lines)
    files = pa.array(["a.log"] * len(lines))
    batch = of_lines.set_column(of_lines.schema.get_field_index("src_file"), "src_file", files)
    shards = LAYOUT.of_mutations([batch.select(mutations.NEEDED)], mutations.Sizes({}))
    records = np.sort(unpacked(pa.Table.from_batches(list(shards)), CHARGE), order="line")
    expected = [
        (offset, each.at_ms, each.amount, each.strict, each.waited_ms, line.throttle_ms)
        for offset, line in enumerate(lines)
        for each in charges(line, TopicSizes()).charges
        if each.key is QuotaKey.CONTROLLER_MUTATION
    ]
    assert expected == [
        (
            r["line"] - r["position"],
            r["at_ms"],
            r["amount"],
            r["extra"] % 2,
            r["extra"] // 2,
            r["told_ms"],
        )
        for r in records
    ]
    assert [2, 3, 2] == records["position"].tolist()
    assert [DAY, DAY, DAY + 1] == (records["place"] >> BROKER_BITS).tolist()
    assert {7} == set(records["slot"].tolist())
