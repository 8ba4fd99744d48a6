"""Records by shard."""

import numpy as np

from usage_pipeline.kernels.charge import CHARGE, Records, by_shard, joined, shard_of, taken


def records(*places: int) -> Records:
    made = np.zeros(len(places), CHARGE)
    made["place"] = places
    return made


def places(found: list[tuple[int, Records]]) -> dict[int, list[int]]:
    return {shard: own["place"].tolist() for shard, own in found}


def test_records_of_a_shard_come_together_whole() -> None:
    """They are in the order in which they came."""
    several = joined([records(7, 8, 9), records(10)])
    assert {0: [8], 2: [7, 9, 10]} == places(by_shard(several, np.array([2, 0, 2, 2]), 4))
    assert {} == places(by_shard(records(), np.array([], np.int64), 4))
    assert [10, 7] == taken(several, np.array([3, 0]))["place"].tolist()


def test_many_records_of_a_shard_keep_their_order() -> None:
    """There are more than a sort would leave as they are by chance."""
    order = np.random.default_rng(6).permutation(10_000)
    found = places(by_shard(records(*order), np.arange(10_000) % 2, 2))
    assert {0: order[0::2].tolist(), 1: order[1::2].tolist()} == found


def test_any_number_of_shards() -> None:
    """They may be too many for a sort by digits."""
    shard = np.array([70_000, 4464, 70_000])
    assert {4464: [2], 70_000: [1, 3]} == places(by_shard(records(1, 2, 3), shard, 70_001))


def test_keys_are_spread_and_stay_together() -> None:
    """The same key has the same shard in every array, and each shard its part of the keys."""
    place, client = np.arange(64_000) % 4, np.arange(64_000) // 4
    shard = shard_of((place, client), 64)
    assert shard[5:9].tolist() == shard_of((place[5:9], client[5:9]), 64).tolist()
    assert 2000 > np.bincount(shard, minlength=64).max()
    assert 500 < np.bincount(shard, minlength=64).min()
