"""Requests and events as records of charges."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sidecar.pipeline.ingest.records import ROWS
from sidecar.pipeline.kernels.charge import CHARGE, unpacked
from sidecar.pipeline.kernels.charging import charged, charged_with_mutations
from sidecar.pipeline.kernels.numbered import Numbers
from sidecar.pipeline.kernels.places import BROKER_BITS, LINE_BITS
from sidecar.pipeline.kernels.seconds import packed, used
from sidecar.pipeline.replay.columns import Slots
from sidecar.pipeline.replay.encoder import Layout

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
REFUSED = {"topic": "a", "topic_id": "", "partitions": 12, "error": 89}
DAY = TEN_MS // 86_400_000


def requests(*rows: dict[str, Any]) -> pa.RecordBatch:
    usual = {
        "broker": 7,
        "quota_ts": TEN,
        "user": "alice",
        "client_id": "etl",
        "api": "PRODUCE",
        "is_follower": False,
        "exempt": True,
        "bytes_known": True,
        "quota_bytes": 100,
        "local_ms": 0.258,
        "throttle_ms": 0,
        "src_file": "a.log",
        "src_offset": 500,
    }
    return pa.RecordBatch.from_pylist([{**usual, **each} for each in rows], ROWS)


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


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"api": "0"}, [(0, 100, True)]),
        ({"api": "FETCH"}, [(1, 100, True)]),
        ({"api": "FETCH", "is_follower": True}, []),
        ({"api": "1", "bytes_known": False, "quota_bytes": None}, [(1, 0, False)]),
        ({"api": "METADATA", "bytes_known": None, "quota_bytes": None}, []),
        ({"api": "METADATA", "exempt": False}, [(2, 258_000, True)]),
        ({"api": "METADATA", "exempt": False, "local_ms": 1e300}, [(2, 1 << 52, True)]),
        ({"api": "INIT_PRODUCER_ID", "producer_id": 4000, "bytes_known": None}, [(4, 1, True)]),
    ],
)
def test_what_a_request_is_charged_with(
    fields: dict[str, Any], expected: list[tuple[int, int, bool]]
) -> None:
    """The API decides; what no line has is charged with an unknown amount."""
    found = charged(requests(fields))
    assert expected == list(
        zip(found.kind.tolist(), found.amount.tolist(), found.known.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"mutations": 12, "mutations_known": True}, [(3, 12, True)]),
        ({"api": "19", "mutations": 12, "mutations_known": True}, [(3, 12, True)]),
        ({"mutations": 0, "mutations_known": True, "topic_changes": [REFUSED]}, [(3, 0, False)]),
        ({"mutations": None, "mutations_known": False}, [(3, 0, False)]),
        ({"is_forwarded": False, "mutations": 12, "mutations_known": True}, []),
        ({"api": "ALTER_CLIENT_QUOTAS"}, []),
    ],
)
def test_mutations_are_what_a_controllers_line_says(
    fields: dict[str, Any], expected: list[tuple[int, int, bool]]
) -> None:
    """Refused ones were asked for, and no line counts them; brokers' lines are the same request."""
    usual = {"api": "CREATE_TOPICS", "is_forwarded": True, "bytes_known": None}
    batch = requests({**usual, **fields}, {"quota_bytes": 7})
    found = charged_with_mutations(batch)
    charges = zip(found.kind.tolist(), found.amount.tolist(), found.known.tolist(), strict=True)
    assert [(0, 7, True), *expected] == list(charges)
    assert [1, *[0] * len(expected)] == found.row.tolist()


@pytest.mark.parametrize("workers", [[[0, 1]], [[1], [0]]], ids=["one", "two"])
def test_seconds_are_summed_over_batches(workers: list[list[int]]) -> None:
    """A sum has a place, client and kind; an amount that no line has makes it a lower bound."""
    half = TEN + timedelta(milliseconds=999)
    batches = [
        requests({"exempt": False}, {"quota_ts": half, "throttle_ms": 70}),
        requests(
            {"quota_ts": TEN + timedelta(seconds=1), "quota_bytes": None, "bytes_known": False},
            {"quota_ts": half},
            {"user": "bob", "client_id": "", "broker": 8},
        ),
    ]
    # Two workers meet the clients in another order.
    packed_rows = [row for own in workers for row in packed([batches[at] for at in own], 1)]
    rows = used(pa.Table.from_batches(packed_rows)).to_pylist()
    later = TEN + timedelta(seconds=1)
    assert [
        (TEN.date(), 7, "alice", "etl", "produce", TEN, 300.0, 3, 1, 70, False),
        (TEN.date(), 7, "alice", "etl", "produce", later, 0.0, 1, 0, 0, True),
        (TEN.date(), 7, "alice", "etl", "request", TEN, pytest.approx(0.0258), 1, 0, 0, True),
        (TEN.date(), 8, "bob", "", "produce", TEN, 100.0, 1, 0, 0, False),
    ] == [tuple(each.values()) for each in rows]


def test_what_a_client_used_of_a_broker_is_in_one_shard() -> None:
    """It doesn't matter which worker read it, or how often that one packs what it has."""
    clients = [{"user": f"user{at}", "broker": at % 3} for at in range(40)]
    workers = [clients, clients[::-1], clients[5:9]]
    packed_rows = [row for own in workers for row in packed([requests(*own)] * 2, 8, gathered=1)]
    shards = pa.Table.from_batches(packed_rows)
    found: dict[tuple[int, str], set[int]] = {}
    for shard in sorted(set(shards.column("shard").to_pylist())):
        of_shard = used(shards.filter(pc.equal(shards.column("shard"), shard))).to_pylist()
        for row in of_shard:
            found.setdefault((row["broker"], row["user"]), set()).add(shard)
        assert {2 * 3, 2 * 2} >= {row["events"] for row in of_shard}
    assert 40 == len(found)
    assert {1} == set(map(len, found.values()))
    assert 8 == len(set.union(*found.values()))
