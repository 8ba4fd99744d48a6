"""What clients used in each second, summed by workers."""

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.usage_pipeline.kernels.requests import TEN, requests
from usage_pipeline.kernels.seconds import packed, usage_rows


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
    rows = usage_rows(pa.Table.from_batches(packed_rows)).to_pylist()
    later = TEN + timedelta(seconds=1)
    assert [
        (TEN.date(), 7, "alice", "etl", "produce", TEN, 300.0, 3, 1, 70, False),
        (TEN.date(), 7, "alice", "etl", "produce", later, 0.0, 1, 0, 0, True),
        (TEN.date(), 7, "alice", "etl", "request", TEN, pytest.approx(0.0258), 1, 0, 0, True),
        (TEN.date(), 8, "bob", "", "produce", TEN, 100.0, 1, 0, 0, False),
    ] == [tuple(each.values()) for each in rows]


def test_what_a_client_used_of_a_broker_in_an_hour_is_in_one_shard() -> None:
    """It doesn't matter which worker read it, or how often that one packs what it has."""
    clients = [{"user": f"user{at}", "broker": at % 3} for at in range(40)]
    workers = [clients, clients[::-1], clients[5:9]]
    packed_rows = [row for own in workers for row in packed([requests(*own)] * 2, 8, gathered=1)]
    shards = pa.Table.from_batches(packed_rows)
    found: dict[tuple[int, str], set[int]] = {}
    for shard in sorted(set(shards.column("shard").to_pylist())):
        of_shard = usage_rows(shards.filter(pc.equal(shards.column("shard"), shard))).to_pylist()
        for row in of_shard:
            found.setdefault((row["broker"], row["user"]), set()).add(shard)
        assert {2 * 3, 2 * 2} >= {row["events"] for row in of_shard}
    assert 40 == len(found)
    assert {1} == set(map(len, found.values()))
    assert 8 == len(set.union(*found.values()))


def test_a_client_that_uses_most_is_not_one_workers_alone() -> None:
    """Its hours are in several shards, each whole in one."""
    used_at = [TEN + timedelta(minutes=30 * half) for half in range(20)]
    rows = packed([requests(*({"quota_ts": at} for at in used_at))], 4)
    shards = pa.Table.from_batches(rows).to_pylist()
    hours = [
        {row["window_start"].hour for row in usage_rows(pa.Table.from_pylist([shard])).to_pylist()}
        for shard in shards
    ]
    assert 4 == len(shards)
    assert 10 == sum(map(len, hours)) == len(set.union(*hours))
