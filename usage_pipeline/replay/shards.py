"""The shards of a replay: many groups share one, and a large group has its own.

One tenant may have 40 % of the requests of a broker's day. A shard with such a group and others
would take several times as long as the rest. A large group therefore has a shard of its own, where
its charges arrive sorted. A very large one has several, and each of these replays some of the
scenarios. If there are too few scenarios for that, the others share fewer and larger shards. Groups
are never cut, so the results are those of one shard.

Example: of 64 shards, one has 50,000 charges on average. A group of 80,000 has the shard 64 for
itself, and one of 300,000 the shards 65 and 66. Of 21 scenarios, these replay 11 and 10.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from usage_pipeline.kernels.charge import Keys, key_of
from usage_pipeline.kernels.charging import FOR_KINDS, kinds_of_charges, longs, micros
from usage_pipeline.kernels.places import BROKER_BITS
from usage_pipeline.kernels.values import Longs
from usage_pipeline.replay.entities import Quotas
from usage_pipeline.replay.slots import SlotsOfClients
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.silver.requests import Requests

_LEAST_LARGE: Final = 50_000
"""The charges of the smallest group that is worth a shard: 20 ms."""
_AVERAGES: Final = 3
"""A large group with as many charges as this number of average shards takes at most as long as two:
its charges need no sort, and it has few sums."""
_SCENARIOS: Final = 4
"""The fewest scenarios that are worth the preparation of charges in one more shard."""
_CHARGES: Final = 2
"""The charges of most requests: bytes and time."""
_MOST_SIZES: Final = 1 << 18
"""The groups that a worker counts at once: about 50 MB."""
_US_PER_MS: Final = 1000
_MS_PER_DAY: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of groups.

    Attributes:
        shared: the number of shards that groups share.
        large: the keys of the large groups, ascending.
        ends: the exclusive end of each large group's shards. The first begins after the shared
            shards, and the next where the one before it ends.
    """

    shared: int
    large: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    ends: Longs = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def apart(cls, shared: int, sizes: Mapping[int, int], total: int, scenarios: int) -> "Shards":
        """Give large groups shards of their own.

        Args:
            shared: the number of shards that groups share, at most.
            sizes: the charges of the large groups, by their keys as signed numbers.
            total: about how many charges all groups have.
            scenarios: about how many scenarios each group has.
        """
        if not sizes:
            return cls(shared)
        large = np.array(list(sizes), np.int64).view(np.uint64)
        charges = np.array(list(sizes.values()), np.int64)
        copies = np.ceil(charges * shared / (_AVERAGES * total))
        copies = copies.clip(1, -(-scenarios // _SCENARIOS)).astype(np.int64)
        # A replay waits for the longest shard anyway, so others need not be much shorter.
        others = total - int(charges.sum())
        shared = min(shared, max(1, int(_AVERAGES * others / (charges / copies).max())))
        order = np.argsort(large)
        return cls(shared, large[order], shared + np.cumsum(copies[order]))

    @property
    def count(self) -> int:
        """The number of shards."""
        return int(self.ends[-1]) if self.ends.size else self.shared

    def of(self, place: Longs, hashes: Longs) -> Longs:
        """Return the shards of groups, the first one of large groups.

        Args:
            place: the days and brokers.
            hashes: ``slots.hash_of`` of each.
        """
        key = key_of((place, hashes))
        shard = (key % np.uint64(self.shared)).astype(np.int64)
        if not self.large.size:
            return shard
        at = np.searchsorted(self.large, key).clip(max=self.large.size - 1)
        return np.where(self.large[at] == key, self._starts[at], shard)

    def copies_of(self, shard: int) -> range:
        """Return all shards that have the charges of one."""
        if shard < self.shared:
            return range(shard, shard + 1)
        at = np.searchsorted(self.ends, shard, side="right")
        return range(int(self._starts[at]), int(self.ends[at]))

    def scenarios(self, shard: int) -> slice:
        """Return which of each group's scenarios a shard replays."""
        copies = self.copies_of(shard)
        return slice(shard - copies.start, None, len(copies))

    @property
    def _starts(self) -> Longs:
        return np.concatenate(([self.shared], self.ends[:-1]))


def shards_of(requests: Requests, quotas: Mapping[str, Quotas], scenarios: int) -> Shards:
    """Query the large groups of requests, and return the shards.

    Args:
        requests: the requests to replay.
        quotas: the quotas of each kind.
        scenarios: about how many scenarios each group has.
    """
    shared, total = requests.shards(), requests.count * _CHARGES
    least = max(_LEAST_LARGE, total // shared)
    if requests.count < least:
        return Shards(shared)
    sizes = requests.mapped(
        FOR_KINDS,
        lambda batches: group_sizes(batches, SlotsOfClients(quotas)),
        "key bigint, charges bigint",
    )
    of_groups = sizes.groupBy("key").agg(sf.sum("charges").alias("charges"))
    large = of_groups.where(sf.col("charges") >= least).collect()
    return Shards.apart(shared, {row["key"]: row["charges"] for row in large}, total, scenarios)


def group_sizes(batches: Batches, slots: SlotsOfClients) -> Batches:
    """Count the charges of each group, from rows with FOR_KINDS, without mutations.

    Returns:
        Keys of groups as signed numbers, and charges; a key may occur several times.
    """
    sizes: Counter[int] = Counter()
    for batch in batches:
        row, kind = kinds_of_charges(batch)
        at_ms = (micros(batch, "quota_ts") // _US_PER_MS)[row]
        place = (at_ms // _MS_PER_DAY << BROKER_BITS) | longs(batch, "broker")[row]
        hashes = slots.hashes_of(slots.slot_numbers(batch, row, kind, at_ms))
        keys, counts = np.unique(key_of((place, hashes)).view(np.int64), return_counts=True)
        sizes.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
        slots.forget_many()
        if len(sizes) > _MOST_SIZES:
            yield _sizes(sizes)
            sizes.clear()
    yield _sizes(sizes)


def _sizes(sizes: Mapping[int, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"key": pa.array(sizes, pa.int64()), "charges": pa.array(sizes.values(), pa.int64())}
    )
