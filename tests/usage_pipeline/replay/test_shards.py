"""Which shards groups are in, and which groups are large."""

import numpy as np
import pyarrow as pa

from tests.usage_pipeline.kernels.requests import TEN, requests
from usage_pipeline.kernels.charge import key_of
from usage_pipeline.kernels.places import place_of
from usage_pipeline.replay.entities import EVER, Quota, Quotas
from usage_pipeline.replay.shards import Shards, group_sizes
from usage_pipeline.replay.slots import SlotsOfClients, hash_of
from usage_pipeline.tables.schemas import QUOTA_TYPES

PRODUCE, FETCH, REQUEST, _, IDS = range(len(QUOTA_TYPES))


def key(kind: int, shared_by: str, broker: int = 7) -> int:
    place = np.array([place_of(TEN.date(), broker)])
    return int(key_of((place, np.array([hash_of(kind, shared_by)]))).view(np.int64)[0])


def test_a_large_group_has_shards_of_its_own() -> None:
    """The others share; of several shards, each replays its part of the scenarios."""
    place, hashes = np.arange(1000), np.arange(1000) * 7
    keys = key_of((place, hashes)).view(np.int64).tolist()
    shards = Shards.apart(64, {keys[0]: 80, keys[1]: 310}, 64 * 50, 21)
    of_group = [shards.copies_of(each) for each in shards.of(place, hashes)[:2].tolist()]
    assert [1, 3] == list(map(len, of_group))
    assert [64, 65, 66, 67] == sorted(number for each in of_group for number in each)
    assert of_group[1] == shards.copies_of(of_group[1][-1])
    others = shards.of(place, hashes)[2:]
    assert others.tolist() == Shards(64).of(place, hashes)[2:].tolist()
    assert (68, 64, range(5, 6)) == (shards.count, Shards(64).count, shards.copies_of(5))
    scenarios = list(range(7))
    assert scenarios == scenarios[shards.scenarios(5)]
    assert scenarios == scenarios[shards.scenarios(of_group[0][0])]
    parts = [scenarios[shards.scenarios(number)] for number in of_group[1]]
    assert [[0, 3, 6], [1, 4], [2, 5]] == parts


def test_others_share_fewer_shards_if_a_group_has_too_few_scenarios_for_several() -> None:
    """A few scenarios take as long as the preparation of the charges."""
    made = [Shards.apart(64, {5: 1200}, 64 * 50, scenarios) for scenarios in (1, 5, 21, 1000)]
    assert [1, 2, 6, 8] == [shards.count - shards.shared for shards in made]
    assert [5, 10, 30, 40] == [shards.shared for shards in made]
    assert 64 == Shards.apart(64, {}, 0, 21).count


def test_charges_are_counted_by_group_and_kind() -> None:
    """The clients of a user share; another broker's requests are another group."""
    quotas = {quota_type: Quotas(quota_type) for quota_type in QUOTA_TYPES}
    for each in quotas.values():
        each.add("alice", None, Quota("user=alice", 5.0, -EVER, EVER))
    batch = requests(
        {"exempt": False},
        {"client_id": "web", "exempt": False},
        {"api": "FETCH"},
        {"api": "METADATA", "exempt": False},
        {"api": "INIT_PRODUCER_ID", "producer_id": 5},
        {"broker": 8},
        {"api": "FETCH", "is_follower": True},
    )
    batches = [batch, batch.slice(0, 1)]
    sizes = pa.Table.from_batches(group_sizes(iter(batches), SlotsOfClients(quotas)))
    counted = dict(zip(sizes["key"].to_pylist(), sizes["charges"].to_pylist(), strict=True))
    assert {
        key(PRODUCE, "user=alice"): 3,
        key(FETCH, "user=alice"): 1,
        key(REQUEST, "user=alice"): 4,
        key(IDS, "user=alice"): 1,
        key(PRODUCE, "user=alice", broker=8): 1,
    } == counted
