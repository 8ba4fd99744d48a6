"""Replays every charge with the current quotas and with other quotas.

A charge gets the quota of its client at that time. Charges are grouped by day, broker, kind and
sharing clients, and the kernels replay them event by event in the order (time, file, offset). One
pass over the charges replays all quotas.

Each day starts with empty windows and full buckets, so that a day can be replayed alone. Usage from
the last seconds before midnight (for producer ids, hours) does not count. Charges with unknown
amounts are counted but not replayed.

Workers compute the charges in Arrow with the quotas of their clients (``slots``), and send them in
shards of many groups (``packing``). A group is in one shard and arrives in the order of time, so a
worker has about a million charges in memory, however large a group is (``shard``). The driver has
no list of clients or of their candidates, of which there may be millions.

Example: alice sends 1,500 bytes at once, and her quota is 100 a second. The row of the scenario
``in force`` has a wait of 5,000 ms, and the row "x2" has none.

Source: KIP-13, KIP-124, KIP-599, KIP-936; ``tests/support/prediction.py`` is the same for one node.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark.sql import DataFrame

from usage_pipeline.kernels.places import place_of
from usage_pipeline.replay.encoder import OF_REQUESTS, mutation_charges, request_charges
from usage_pipeline.replay.entities import Quotas, quotas_of
from usage_pipeline.replay.group import Windows
from usage_pipeline.replay.packing import IN_ORDER, PACKED, Encode, packed, packed_peaks
from usage_pipeline.replay.scenarios import IN_FORCE, Scenario
from usage_pipeline.replay.shard import COMPARED, Comparison, Sweep
from usage_pipeline.replay.shards import Shards, shards_of
from usage_pipeline.replay.slots import SlotsOfClients
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.runtime.shards import by_shard
from usage_pipeline.silver.requests import Requests
from usage_pipeline.tables.schemas import GOLD_REPLAY
from usage_pipeline.usage.mutations import MutationRequests

WINDOWS: Final = Windows()
"""The default windows: 11 samples of a second, or of an hour for ids."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidate quotas of each group that shares a quota.

    Attributes:
        peaks: the highest rates, rows of ``kernels.peak.PEAKS``.
        count: the number of candidates, at least 2.
    """

    peaks: DataFrame
    count: int


def replay(
    requests: Requests,
    mutations: MutationRequests,
    config: DataFrame,
    scenarios: Sequence[Scenario] = (IN_FORCE,),
    windows: Windows = WINDOWS,
    *,
    candidates: Candidates | None = None,
) -> DataFrame:
    """Replay quotas on each broker and day.

    Args:
        requests: all requests.
        mutations: the requests that change topics.
        config: rows of SILVER_QUOTA_CONFIG.
        scenarios: the scenarios to replay, with ``IN_FORCE`` for the current quotas.
        windows: the brokers' quota.window.num and .size.seconds, and those of controllers and ids.
        candidates: additional candidates; None for none.

    Returns:
        Rows of GOLD_REPLAY.
    """
    count = 0 if candidates is None else candidates.count
    quotas = quotas_of(config)
    shards = shards_of(requests, quotas, len(scenarios) + count)
    rows = _packed(requests, mutations, quotas, shards)
    sweep = Sweep(windows, scenarios, count, shards)
    if candidates is not None:
        places = sorted(place_of(*each) for each in requests.days_and_brokers())
        peaks = candidates.peaks.mapInArrow(
            lambda batches: packed_peaks(batches, places, shards), PACKED
        )
        rows = rows.unionByName(peaks)
    return _replayed(rows, shards, sweep.rows, GOLD_REPLAY.schema)


def replay_events(
    requests: Requests,
    mutations: MutationRequests,
    config: DataFrame,
    windows: Windows = WINDOWS,
) -> DataFrame:
    """Return the effect of the current quotas on each charge, for a comparison with the logs.

    Args:
        requests: all requests.
        mutations: the requests that change topics.
        config: rows of SILVER_QUOTA_CONFIG.
        windows: as in ``replay``; mutations use the token bucket.

    Returns:
        Unordered rows of ``shard.COMPARED``, for charges with known amounts. A request waits for
        the longest of its charges' times.
    """
    shards = Shards(requests.shards())
    rows = _packed(requests, mutations, quotas_of(config), shards)
    return _replayed(rows, shards, Comparison(windows).rows, COMPARED)


def _packed(
    requests: Requests, mutations: MutationRequests, quotas: Mapping[str, Quotas], shards: Shards
) -> DataFrame:
    """Return packed charges."""
    sizes = mutations.sizes

    def pack_with(encode: Encode) -> Callable[[Batches], Batches]:
        return lambda batches: packed(batches, encode, SlotsOfClients(quotas), shards)

    rows = requests.mapped(OF_REQUESTS, pack_with(request_charges), PACKED)
    of_topics = pack_with(partial(mutation_charges, sizes=sizes))
    return rows.unionByName(mutations.rows.mapInArrow(of_topics, PACKED))


def _replayed(
    rows: DataFrame, shards: Shards, made: Callable[[Batches], Batches], schema: str
) -> DataFrame:
    """Process packed charges shard by shard, in the order of time."""
    if shards.large.size:
        # No other shard may be in the partition of a large group.
        rows = rows.repartitionById(shards.count, "shard")
    else:
        rows = by_shard(rows, shards.count)
    ordered = rows.sortWithinPartitions(*IN_ORDER)
    # Spark would count the ``self`` of a method as a parameter.
    return ordered.mapInArrow(lambda batches: made(batches), schema)  # noqa: PLW0108  see above
