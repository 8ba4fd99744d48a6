"""Requests as records of charges."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sidecar.quotas.entities import QuotaKey
from sidecar.requestlog.mutation_counts import TopicSizes
from sidecar.requestlog.request_detail import CREATE_TOPICS
from tests.sidecar.requestlog.lines import topics_line
from tests.support.charges import charges
from tests.usage_pipeline.kernels.requests import requests
from tests.usage_pipeline.silver_tables import batch_of
from usage_pipeline.kernels.places import BROKER_BITS, LINE_BITS
from usage_pipeline.replay.encoder import mutation_charges, request_charges
from usage_pipeline.replay.entities import EVER, Quota, Quotas
from usage_pipeline.replay.packing import Met
from usage_pipeline.replay.slots import Slot, SlotsOfClients
from usage_pipeline.tables.schemas import QUOTA_TYPES
from usage_pipeline.usage import mutations

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
TEN_MS = int(TEN.timestamp() * 1000)
ALICES = Quotas("produce")
for limit, since_ms, until_ms in ((1000.0, -EVER, TEN_MS + 10), (2000.0, TEN_MS + 10, EVER)):
    ALICES.add("alice", None, Quota("user=alice", limit, since_ms, until_ms))
QUOTAS = {quota_type: Quotas(quota_type) for quota_type in QUOTA_TYPES} | {"produce": ALICES}
"""Alice's produce quota changes at 10:00:00.010."""
DAY = TEN_MS // 86_400_000


def encode(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Returns whose and which limit, time after ten, file, line, amount and id, in their order."""
    met = Met(SlotsOfClients(QUOTAS))
    records = request_charges(batch, met)
    assert {(DAY << BROKER_BITS) | 7} == set(records["place"].tolist())
    names = ("slot", "at_ms", "line", "amount", "extra")
    rows = zip(*(records[name].tolist() for name in names), strict=True)
    files = list(met.files)
    found = []
    for slot, at, line, amount, extra in rows:
        one = met.slots.slots[slot]
        who = (QUOTA_TYPES[one.kind], one.shared_by, one.limit)
        place = (files[line >> LINE_BITS], line % (1 << LINE_BITS))
        found.append((*who, at - TEN_MS, *place, amount, extra))
    return sorted(found, key=str)


def test_a_request_is_charged_with_its_bytes_and_its_time() -> None:
    """The slot is that of client, kind and time; ties of a line are in the order of charges."""
    late = TEN + timedelta(microseconds=10_999)
    assert [
        ("produce", "user=alice", 1000.0, 0, "a.log", 500, 100.0, 0),
        ("produce", "user=alice", 2000.0, 10, "a.log", 500, 100.0, 0),
        ("produce", "user=bob", None, 0, "b.log", 500, 7.0, 0),
        ("request", "user=alice", None, 0, "a.log", 501, pytest.approx(0.0258), 0),
    ] == encode(
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
    records = request_charges(batch, Met(SlotsOfClients(QUOTAS)))
    by_line = sorted((r["line"], r["amount"], r["logged_throttle_ms"]) for r in records)
    assert [(500, 70), (600, 5)] == [
        (line, logged_throttle_ms) for line, _, logged_throttle_ms in by_line
    ]
    assert np.isnan(by_line[0][1])
    assert 100.0 == by_line[1][1]


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
    met = Met(SlotsOfClients(QUOTAS))
    charged = mutation_charges(batch.select(mutations.NEEDED), met, mutations.Sizes({}))
    records = np.sort(charged, order="line")
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
            r["logged_throttle_ms"],
        )
        for r in records
    ]
    assert [2, 3, 2] == records["position"].tolist()
    assert [DAY, DAY, DAY + 1] == (records["place"] >> BROKER_BITS).tolist()
    assert [Slot(3, "user=alice", "user=alice", None, counts=False)] == met.slots.slots
