"""What quotas would have done: every charge compared with those in force and against others.

Charges get the quota that their client was under at the time, are grouped by day, broker, kind and
who shares it, and replayed in the order (time, file, offset), event by event, by the kernels. All
quotas to try are replayed in one pass over the charges.

Each day starts with empty windows and full buckets, so that a day can be replayed by itself: what
was used in the last seconds (producer ids: hours) before midnight is not counted. Charges whose
amount no line has are counted and not replayed.

Who the clients are, and which files there are, is read first, in a pass of its own
(``Dimensions``); both are few, and every worker gets all of them. Workers lay out what requests are
charged with, in Arrow, and hand the charges on in shards of many groups each, packed; one group is
in one shard, and its charges, some 200 bytes each, in the memory of one worker.

Example: 1,500 bytes at once by alice, who has 100 a second: one row "in force" with a wait of
5,000 ms and one of "x2" with none.

Source: KIP-13, KIP-124, KIP-599, KIP-936; ``sidecar.quotas.prediction`` is the same for one node.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData

from sidecar.pipeline.kernels.charge import CHARGE, PACKED, Records, unpacked
from sidecar.pipeline.replay.columns import Slots
from sidecar.pipeline.replay.encoder import OF_REQUESTS, Layout
from sidecar.pipeline.replay.entities import ClientQuota, quotas_of
from sidecar.pipeline.replay.group import Windows
from sidecar.pipeline.replay.scenarios import IN_FORCE, Scenario
from sidecar.pipeline.replay.shard import COMPARED, SUMMED, Comparison, Sweep
from sidecar.pipeline.runtime.by_workers import Batches
from sidecar.pipeline.silver.dimensions import Dimensions
from sidecar.pipeline.silver.requests import Requests
from sidecar.pipeline.tables.schemas import GOLD_REPLAY, QUOTA_TYPES, Column, Table
from sidecar.pipeline.usage.mutations import MutationRequests

REPLAY_EVENTS: Final = Table(
    "replay_events",
    (
        Column("dt", "date", "the day of the charge"),
        Column("broker", "int", "the node that charged it"),
        Column("quota_type", "string", "of which quota"),
        Column("entity", "string", "whose quota it was"),
        Column("shared_by", "string", "who shared it"),
        Column("at_ms", "bigint", "when it was charged, milliseconds since 1970"),
        Column("src_file", "string", "the file of the request's line"),
        Column("src_offset", "bigint", "of the line in it"),
        Column("position", "int", "of the charge among its request's"),
        Column("limit", "double", "in force; null: none"),
        Column("rate", "double", "as Kafka takes it, with this charge in it"),
        Column("throttle_ms", "bigint", "how long its client would have to wait for this quota"),
        Column("accepted", "boolean", "false: a strict mutation that would be refused"),
        Column("told_ms", "bigint", "what the line says the client had to wait, for any quota"),
    ),
    (),
    "a charge whose amount is known, and what the quota in force did with it; a request waits for"
    " the greatest of its charges' times",
)
WINDOWS: Final = Windows()
"""11 samples of a second; of ids, of an hour."""


def replay(
    requests: Requests,
    mutations: MutationRequests,
    config: DataFrame,
    scenarios: Sequence[Scenario] = (IN_FORCE,),
    windows: Windows = WINDOWS,
) -> DataFrame:
    """What quotas would have done to those who share them, on each broker in each day.

    Args:
        requests: all of them.
        mutations: those of them that are about topics.
        config: of SILVER_QUOTA_CONFIG.
        scenarios: to try; ``IN_FORCE`` among them where that is wanted.
        windows: the brokers' quota.window.num and .size.seconds, and those of controllers and ids.

    Returns:
        Of GOLD_REPLAY.
    """
    sharing = _Quotas.of(requests.dimensions, config)
    special: dict[int, tuple[Scenario, ...]] = {}
    for each in scenarios:
        if each.quota_type is not None and each.entity is not None:
            # A name that nobody has is about nobody.
            number = sharing.numbers.get((each.quota_type, each.entity), -1)
            special[number] = (*special.get(number, ()), each)
    sweep = Sweep(
        windows, sharing.slots, tuple(each for each in scenarios if each.entity is None), special
    )
    sharded = _sharded(requests, mutations, sharing.slots)
    return GOLD_REPLAY.select(sharded.applyInArrow(_function(sweep.rows), SUMMED))


def replay_events(
    requests: Requests,
    mutations: MutationRequests,
    config: DataFrame,
    windows: Windows = WINDOWS,
) -> DataFrame:
    """What the quotas in force did with each charge, to be compared with the logged throttle times.

    Args:
        requests: all of them.
        mutations: those of them that are about topics.
        config: of SILVER_QUOTA_CONFIG.
        windows: as in ``replay``; mutations by the token bucket.

    Returns:
        Of REPLAY_EVENTS, in no order.
    """
    slots = _Quotas.of(requests.dimensions, config).slots
    comparison = Comparison(windows, slots, requests.dimensions.files)
    sharded = _sharded(requests, mutations, slots)
    return REPLAY_EVENTS.select(sharded.applyInArrow(_function(comparison.rows), COMPARED))


def _function(rows: Callable[[Records], pa.Table]) -> Callable[[pa.Table], pa.Table]:
    """Of one argument: of a method Spark counts ``self`` too, and passes it the key."""

    def of_table(table: pa.Table) -> pa.Table:
        return rows(unpacked(table, CHARGE))

    return of_table


@dataclass(frozen=True, slots=True)
class _Quotas:
    """The quotas of all clients; each is a slot, by its place."""

    slots: Slots
    numbers: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, dimensions: Dimensions, config: DataFrame) -> "_Quotas":
        """Of SILVER_QUOTA_CONFIG."""
        quotas: list[ClientQuota] = []
        first: list[int] = []
        in_config = quotas_of(config)
        for quota_type in QUOTA_TYPES:
            for client in dimensions.clients:
                first.append(len(quotas))
                quotas += in_config[quota_type].of(*client)
        named = dict.fromkeys(
            (each.quota_type, name) for each in quotas for name in (each.entity, each.shared_by)
        )
        numbers = {each: number for number, each in enumerate(named)}
        slots = Slots(
            [name for _, name in numbers],
            np.array([QUOTA_TYPES.index(each.quota_type) for each in quotas], np.int64),
            np.array([numbers[each.quota_type, each.shared_by] for each in quotas], np.int64),
            np.array([numbers[each.quota_type, each.entity] for each in quotas], np.int64),
            np.array([each.limit for each in quotas], np.float64),
            np.array([each.counts for each in quotas], np.bool_),
            np.array([each.to_ms for each in quotas], np.int64),
            np.array(first, np.int64).reshape(len(QUOTA_TYPES), len(dimensions.clients)),
        )
        return cls(slots, numbers)


def _sharded(requests: Requests, mutations: MutationRequests, slots: Slots) -> GroupedData:
    """Packed charges; all of a group are in one shard."""
    dimensions, sizes = requests.dimensions, mutations.sizes
    layout = Layout(dimensions.numbers, slots, dimensions.shards())

    def of_mutations(batches: Batches) -> Batches:
        return layout.of_mutations(batches, sizes)

    rows = requests.mapped(OF_REQUESTS, layout.of_requests, PACKED)
    return rows.unionByName(mutations.rows.mapInArrow(of_mutations, PACKED)).groupBy("shard")
