"""What quotas would have done: every charge held against those in force and against others.

Charges are joined with the quota that their client was under at the time, grouped by day, broker,
kind and who shares it, and replayed in the order (time, file, offset), event by event, by the
kernels. All quotas to try are replayed in one pass over the charges.

Each day starts with empty windows and full buckets, so that a day can be replayed by itself: what
was used in the last seconds (producer ids: hours) before midnight is not held against it. Charges
whose amount no line tells are counted and not replayed.

Who the clients are, and which files there are, is asked first, in a pass of its own over the
events; both are few, and the driver knows them. Charges go to Python in shards of many groups each;
one group is in one shard, and its charges, some 200 bytes each, in the memory of one worker.

Example: 1,500 bytes at once by alice, who has 100 a second: one row "in force" with a wait of
5,000 ms and one of "x2" with none.

Source: KIP-13, KIP-124, KIP-599, KIP-936; ``sidecar.quotas.prediction`` is the same for one node.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as sf

from sidecar.pipeline.entities import ClientQuota, quotas_of, resolved
from sidecar.pipeline.events import CONTROLLER_MUTATION, PRODUCER_IDS
from sidecar.pipeline.kernels.columns import BROKER_BITS, LINE_BITS, Slots
from sidecar.pipeline.kernels.group import Windows
from sidecar.pipeline.kernels.shard import SUMMED, TOLD, Retold, Sweep
from sidecar.pipeline.kernels.values import Span
from sidecar.pipeline.sweep import IN_FORCE, QUOTA_TYPES, Scenario
from sidecar.pipeline.tables import GOLD_REPLAY, Column, Table
from sidecar.quotas.rate import QuotaWindow

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
        Column("throttle_ms", "bigint", "how long its client would be told to wait for this quota"),
        Column("accepted", "boolean", "false: a strict mutation that would be refused"),
        Column("told_ms", "bigint", "what the line says that the client was told, for any quota"),
    ),
    (),
    "a charge whose amount is known, and what the quota in force did with it; a request waits for"
    " the greatest of its charges' times",
)

_SHARDS: Final = 64
"""Groups of groups: enough to spread, few enough that each is worth a call."""


def replay(
    events: DataFrame,
    config: DataFrame,
    scenarios: Sequence[Scenario] = (IN_FORCE,),
    window: QuotaWindow | None = None,
    *,
    mutation_window: QuotaWindow | None = None,
    id_window: QuotaWindow | None = None,
    silver: DataFrame | None = None,
) -> DataFrame:
    """What quotas would have done to those who share them, on each broker in each day.

    Args:
        events: of EVENTS.
        config: of SILVER_QUOTA_CONFIG.
        scenarios: to try; ``IN_FORCE`` among them where that is wanted.
        window: quota.window.num and quota.window.size.seconds; None: 11 of 1 s.
        mutation_window: controller.quota.window.num and .size.seconds; None: 11 of 1 s.
        id_window: producer.id.quota.window.num and .size.seconds; None: 11 of 1 h.
        silver: of SILVER_REQUEST, what the events were made from: it is quicker to ask for the
            clients and files; None: the events are asked.

    Returns:
        Of GOLD_REPLAY.
    """
    known = _known(events, config, silver)
    special: dict[int, tuple[Scenario, ...]] = {}
    for each in scenarios:
        if each.quota_type is not None and each.entity is not None:
            # A name that nobody has is about nobody.
            number = known.numbers.get((each.quota_type, each.entity), -1)
            special[number] = (*special.get(number, ()), each)
    sweep = Sweep(
        _windows(window, mutation_window, id_window),
        known.slots,
        tuple(each for each in scenarios if each.entity is None),
        special,
    )
    summed = _sharded(events, known).applyInArrow(_function(sweep.rows), SUMMED)
    return GOLD_REPLAY.select(summed)


def replay_events(
    events: DataFrame,
    config: DataFrame,
    window: QuotaWindow | None = None,
    *,
    mutation_window: QuotaWindow | None = None,
    id_window: QuotaWindow | None = None,
    silver: DataFrame | None = None,
) -> DataFrame:
    """What the quotas in force did with each charge, to be compared with what clients were told.

    Args:
        events: of EVENTS.
        config: of SILVER_QUOTA_CONFIG.
        window: as in ``replay``.
        mutation_window: likewise; mutations by the token bucket.
        id_window: likewise.
        silver: likewise.

    Returns:
        Of REPLAY_EVENTS, in no order.
    """
    known = _known(events, config, silver)
    retold = Retold(_windows(window, mutation_window, id_window), known.slots, known.files)
    told = _sharded(events, known, "position", "told_ms").applyInArrow(_function(retold.rows), TOLD)
    return REPLAY_EVENTS.select(told)


def _function(method: Callable[[pa.Table], pa.Table]) -> Callable[[pa.Table], pa.Table]:
    """Of one argument: of a method Spark counts ``self`` too, and passes it the key."""

    def of_table(charges: pa.Table) -> pa.Table:
        return method(charges)

    return of_table


def _windows(
    rate: QuotaWindow | None, mutation: QuotaWindow | None, ids: QuotaWindow | None
) -> Windows:
    given = {"rate": rate, "mutation": mutation, "ids": ids}
    return Windows()._replace(
        **{
            name: Span(window.samples, window.window_ms)
            for name, window in given.items()
            if window is not None
        }
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """What is few: clients with their quotas, and files.

    Attributes:
        quotas: of all clients; each is a slot, by its place.
        files: by name; a file's number is its place.
        numbers: of quota types and names.
    """

    quotas: Sequence[ClientQuota]
    files: Sequence[str]
    numbers: Mapping[tuple[str, str], int]

    @property
    def slots(self) -> Slots:
        """As the kernels have them."""
        return Slots(
            [name for _, name in self.numbers],
            np.array([QUOTA_TYPES.index(each.quota_type) for each in self.quotas], np.int64),
            np.array([self.numbers[each.quota_type, each.shared_by] for each in self.quotas]),
            np.array([self.numbers[each.quota_type, each.entity] for each in self.quotas]),
            np.array([each.limit for each in self.quotas], np.float64),
            np.array([each.counts for each in self.quotas], np.bool_),
        )


def _known(events: DataFrame, config: DataFrame, silver: DataFrame | None) -> _Known:
    asked = events if silver is None else silver
    told = asked.select("user", "client_id", "src_file").distinct().collect()
    clients = sorted({(row.user, row.client_id) for row in told})
    quotas = quotas_of(config)
    found = list(resolved([(each, *one) for each in QUOTA_TYPES for one in clients], quotas))
    named = dict.fromkeys(
        (each.quota_type, name) for each in found for name in (each.entity, each.shared_by)
    )
    return _Known(
        found,
        sorted({row.src_file for row in told}),
        {each: number for number, each in enumerate(named)},
    )


def _sharded(events: DataFrame, known: _Known, *more: str) -> GroupedData:
    """What the kernels take, numbers alone: all charges of a group are in one shard."""
    spark = events.sparkSession
    held, files = spark.createDataFrame(_held(known)), spark.createDataFrame(_files(known))
    in_time = (sf.col("at_ms") >= sf.col("from_ms")) & (sf.col("at_ms") < sf.col("to_ms"))
    day = sf.unix_date("dt").cast("bigint")
    # A line is longer than the number of its charges, so lines do not overlap.
    line = sf.shiftleft("file", LINE_BITS) + sf.col("src_offset") + sf.col("position")
    return (
        events.join(sf.broadcast(held), ["quota_type", "user", "client_id"], how="inner")
        .where(in_time)
        .join(sf.broadcast(files), "src_file", how="inner")
        .select(
            sf.shiftleft(day, BROKER_BITS).bitwiseOR(sf.col("broker")).alias("place"),
            "slot",
            "at_ms",
            line.alias("line"),
            "amount",
            _extra().alias("extra"),
            *more,
            sf.pmod(sf.xxhash64("dt", "broker", "shared"), sf.lit(_SHARDS))
            .cast("int")
            .alias("shard"),
        )
        .groupBy("shard")
    )


def _held(known: _Known) -> pa.Table:
    """Slots, for the join. As Arrow: else Spark looks at each of tens of thousands of values."""
    quotas = known.quotas
    shared = [known.numbers[each.quota_type, each.shared_by] for each in quotas]
    return pa.table(
        {
            "quota_type": pa.array([each.quota_type for each in quotas], pa.string()),
            "user": pa.array([each.user for each in quotas], pa.string()),
            "client_id": pa.array([each.client_id for each in quotas], pa.string()),
            "from_ms": pa.array([each.from_ms for each in quotas], pa.int64()),
            "to_ms": pa.array([each.to_ms for each in quotas], pa.int64()),
            "slot": pa.array(range(len(quotas)), pa.int32()),
            "shared": pa.array(shared, pa.int32()),
        }
    )


def _files(known: _Known) -> pa.Table:
    """Files and their numbers."""
    return pa.table(
        {
            "src_file": pa.array(known.files, pa.string()),
            "file": pa.array(range(len(known.files)), pa.int64()),
        }
    )


def _extra() -> Expression:
    """What only some kinds have: a mutation's wait and strictness, or an id."""
    mutation = sf.col("waited_ms") * 2 + sf.col("strict").cast("bigint")
    return (
        sf.when(sf.col("quota_type") == CONTROLLER_MUTATION, mutation)
        .when(sf.col("quota_type") == PRODUCER_IDS, sf.col("producer_id"))
        .otherwise(0)
        .cast("bigint")
    )
