"""Records packed by shard, and unpacked."""

import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels.charge import CHARGE, Records, packed, shard_of, unpacked


def records(*places: int) -> Records:
    made = np.zeros(len(places), CHARGE)
    made["place"] = places
    return made


def test_records_of_a_shard_come_together_whole() -> None:
    """They are in the order in which they came."""
    pieces = [(records(7, 8, 9), np.array([2, 0, 2])), (records(10), np.array([2]))]
    rows = pa.Table.from_batches(list(packed(pieces, 4)))
    assert [0, 2] == rows.column("shard").to_pylist()
    places = [unpacked(rows.slice(at, 1), CHARGE)["place"].tolist() for at in range(2)]
    assert [[8], [7, 9, 10]] == places
    assert [] == unpacked(rows.slice(0, 0), CHARGE).tolist()


def test_many_records_of_a_shard_keep_their_order() -> None:
    """There are more than a sort would leave as they are by chance."""
    order = np.random.default_rng(6).permutation(10_000)
    (row,) = packed([(records(*order), np.arange(10_000) % 2)], 2)
    found = [unpacked(pa.Table.from_batches([row.slice(at, 1)]), CHARGE)["place"] for at in (0, 1)]
    assert [order[0::2].tolist(), order[1::2].tolist()] == [each.tolist() for each in found]


def test_any_number_of_shards_and_of_records() -> None:
    """Shards may be too many for a sort by digits, and there may be no record."""
    shard = np.array([70_000, 4464, 70_000])
    (row,) = packed([(records(1, 2, 3), shard)], 70_001)
    assert [4464, 70_000] == row.column("shard").to_pylist()
    assert [1, 3] == unpacked(pa.Table.from_batches([row.slice(1)]), CHARGE)["place"].tolist()
    (none,) = packed([(records(), np.array([], np.int64))], 4)
    assert 0 == none.num_rows


def test_what_is_gathered_is_bounded() -> None:
    """A worker packs what it has before it has all."""
    pieces = ((records(1, 2), np.array([0, 0])) for _ in range(3))
    tables = [pa.Table.from_batches([each]) for each in packed(pieces, 1, gathered=4)]
    assert [4, 2] == [unpacked(each, CHARGE).size for each in tables]


def test_keys_are_spread_and_stay_together() -> None:
    """The same key has the same shard in every array, and each shard its part of the keys."""
    place, client = np.arange(64_000) % 4, np.arange(64_000) // 4
    shard = shard_of((place, client), 64)
    assert shard[5:9].tolist() == shard_of((place[5:9], client[5:9]), 64).tolist()
    assert 2000 > np.bincount(shard, minlength=64).max()
    assert 500 < np.bincount(shard, minlength=64).min()
