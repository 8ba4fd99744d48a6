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

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as sf

from sidecar.pipeline.entities import CLIENT_QUOTAS, ClientQuota, quotas_of, resolved
from sidecar.pipeline.events import CONTROLLER_MUTATION, PRODUCER_IDS
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
) -> DataFrame:
    """What quotas would have done to those who share them, on each broker in each day.

    Args:
        events: of EVENTS.
        config: of SILVER_QUOTA_CONFIG.
        scenarios: to try; ``IN_FORCE`` among them where that is wanted.
        window: quota.window.num and quota.window.size.seconds; None: 11 of 1 s.
        mutation_window: controller.quota.window.num and .size.seconds; None: 11 of 1 s.
        id_window: producer.id.quota.window.num and .size.seconds; None: 11 of 1 h.

    Returns:
        Of GOLD_REPLAY.
    """
    known = _known(events, config)
    special: dict[int, tuple[Scenario, ...]] = {}
    for each in scenarios:
        if each.quota_type is not None and each.entity is not None:
            # A name that nobody has is about nobody.
            number = known.numbers.get((each.quota_type, each.entity), -1)
            special[number] = (*special.get(number, ()), each)
    sweep = Sweep(
        _windows(window, mutation_window, id_window),
        known.names,
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
) -> DataFrame:
    """What the quotas in force did with each charge, to be compared with what clients were told.

    Args:
        events: of EVENTS.
        config: of SILVER_QUOTA_CONFIG.
        window: as in ``replay``.
        mutation_window: likewise; mutations by the token bucket.
        id_window: likewise.

    Returns:
        Of REPLAY_EVENTS, in no order.
    """
    known = _known(events, config)
    retold = Retold(_windows(window, mutation_window, id_window), known.names, known.files)
    told = _sharded(events, known, "told_ms").applyInArrow(_function(retold.rows), TOLD)
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
        quotas: of all clients.
        files: by name; a file's number is its place.
        names: of entities and of who shares a quota, by their numbers.
        numbers: of quota types and names.
    """

    quotas: Sequence[ClientQuota]
    files: Sequence[str]
    names: Sequence[str]
    numbers: Mapping[tuple[str, str], int]


def _known(events: DataFrame, config: DataFrame) -> _Known:
    told = events.select("quota_type", "user", "client_id", "src_file").distinct().collect()
    clients = sorted({(row.quota_type, row.user, row.client_id) for row in told})
    quotas = list(resolved(clients, quotas_of(config)))
    named = dict.fromkeys(
        (each.quota_type, name) for each in quotas for name in (each.entity, each.shared_by)
    )
    return _Known(
        quotas,
        sorted({row.src_file for row in told}),
        [name for _, name in named],
        {each: number for number, each in enumerate(named)},
    )


def _sharded(events: DataFrame, known: _Known, *more: str) -> GroupedData:
    """What the kernels take, numbers alone: all charges of a group are in one shard."""
    spark = events.sparkSession
    held = spark.createDataFrame(
        [
            (
                *each,
                known.numbers[each.quota_type, each.shared_by],
                known.numbers[each.quota_type, each.entity],
            )
            for each in known.quotas
        ],
        f"{CLIENT_QUOTAS.schema}, shared int, whose int",
    ).drop("entity", "shared_by")
    files = spark.createDataFrame(
        [(name, number) for number, name in enumerate(known.files)], "src_file string, file int"
    )
    in_time = (sf.col("at_ms") >= sf.col("from_ms")) & (sf.col("at_ms") < sf.col("to_ms"))
    return (
        events.join(sf.broadcast(held), ["quota_type", "user", "client_id"], how="inner")
        .where(in_time)
        .join(sf.broadcast(files), "src_file", how="inner")
        .select(
            _place().alias("place"),
            *("shared", "whose", "at_ms", "file", "src_offset", "position", "amount"),
            _extra().alias("extra"),
            *("limit", "counts", *more),
        )
        .withColumn("shard", sf.pmod(sf.xxhash64("place", "shared"), sf.lit(_SHARDS)))
        .groupBy("shard")
    )


def _place() -> Expression:
    """As ``shard.place_of``."""
    number = sf.array_position(sf.array(*map(sf.lit, QUOTA_TYPES)), sf.col("quota_type")) - 1
    day = sf.unix_date("dt").cast("bigint")
    return sf.shiftleft(sf.shiftleft(day, 31).bitwiseOR(sf.col("broker")), 3).bitwiseOR(number)


def _extra() -> Expression:
    """What only some kinds have: a mutation's wait and strictness, or an id."""
    mutation = sf.col("waited_ms") * 2 + sf.col("strict").cast("bigint")
    return (
        sf.when(sf.col("quota_type") == CONTROLLER_MUTATION, mutation)
        .when(sf.col("quota_type") == PRODUCER_IDS, sf.col("producer_id"))
        .otherwise(0)
        .cast("bigint")
    )
