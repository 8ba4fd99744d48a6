"""What quotas would have done: every charge held against those in force and against others.

Charges are joined with the quota that their client was under at the time, grouped by day, broker,
kind and who shares it, and replayed in the order (time, file, offset), event by event, by the
kernels. All quotas to try are replayed in one pass over the charges.

Each day starts with empty windows and full buckets, so that a day can be replayed by itself: what
was used in the last seconds (producer ids: hours) before midnight is not held against it. Charges
whose amount no line tells are counted and not replayed.

Charges go to Python by the thousand, in shards of many groups each; one group is in one shard, and
its charges, some 200 bytes each, in the memory of one worker.

Example: 1,500 bytes at once by alice, who has 100 a second: one row "in force" with a wait of
5,000 ms and one of "x2" with none.

Source: issue of KIP-124, KIP-599 and KIP-936's arithmetic: ``sidecar.quotas.prediction``.
"""

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from sidecar.pipeline.entities import client_quotas
from sidecar.pipeline.events import CONTROLLER_MUTATION, PRODUCER_IDS
from sidecar.pipeline.kernels.group import Windows
from sidecar.pipeline.kernels.shard import ID_DIGITS, SUMMED, TOLD, Retold, Sweep
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
    sweep = Sweep.of(scenarios, _windows(window, mutation_window, id_window))
    quotas = _quotas(events, config)
    summed = _shards(events, quotas).groupBy("shard").applyInArrow(_function(sweep.rows), SUMMED)
    return GOLD_REPLAY.select(_named(summed, quotas))


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
    retold = Retold(_windows(window, mutation_window, id_window))
    quotas = _quotas(events, config)
    told = (
        _shards(events, quotas, "told_ms")
        .groupBy("shard")
        .applyInArrow(_function(retold.rows), TOLD)
    )
    named = _named(told, quotas).join(sf.broadcast(_files(events)), "file", how="inner")
    return REPLAY_EVENTS.select(named.withColumn("accepted", ~sf.col("refused")))


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


def _quotas(events: DataFrame, config: DataFrame) -> DataFrame:
    """The quotas of all clients, with numbers for their names."""
    clients = events.select("quota_type", "user", "client_id").distinct()
    return client_quotas(clients, config).withColumns(
        {"shared": _ident("shared_by"), "whose": _ident("entity")}
    )


def _ident(name: str) -> Expression:
    """As ``shard.ident``."""
    digest = sf.sha2(sf.concat_ws(" ", "quota_type", name), 256)
    return sf.conv(sf.substring(digest, 1, ID_DIGITS), 16, 10).cast("bigint")


def _files(events: DataFrame) -> DataFrame:
    """Each file's place in the order of names."""
    by_name = Window.orderBy("src_file")
    named = events.select("src_file").distinct()
    return named.select("src_file", sf.row_number().over(by_name).alias("file"))


def _shards(events: DataFrame, quotas: DataFrame, *more: str) -> DataFrame:
    """What the kernels take: numbers alone."""
    charged = events.alias("charged")
    held = quotas.alias("held")
    same = [sf.col(f"charged.{name}") == sf.col(f"held.{name}") for name in _CLIENT]
    in_time = (sf.col("at_ms") >= sf.col("from_ms")) & (sf.col("at_ms") < sf.col("to_ms"))
    kind = sum(
        (
            sf.when(sf.col("charged.quota_type") == quota_type, number).otherwise(0)
            for number, quota_type in enumerate(QUOTA_TYPES)
        ),
        start=sf.lit(0),
    )
    day = sf.unix_date("dt").cast("bigint")
    place = sf.shiftleft(sf.shiftleft(day, 31).bitwiseOR(sf.col("broker")), 3).bitwiseOR(kind)
    extra = (
        sf.when(
            sf.col("charged.quota_type") == CONTROLLER_MUTATION,
            sf.col("waited_ms") * 2 + sf.col("strict").cast("bigint"),
        )
        .when(sf.col("charged.quota_type") == PRODUCER_IDS, sf.col("producer_id"))
        .otherwise(0)
    )
    return (
        charged.join(sf.broadcast(held), [*same, in_time], how="inner")
        .join(sf.broadcast(_files(events)), "src_file", how="inner")
        .select(
            place.alias("place"),
            *("shared", "whose", "at_ms", "file", "src_offset", "position", "amount"),
            extra.cast("bigint").alias("extra"),
            *("limit", "counts", *more),
        )
        .withColumn("shard", sf.pmod(sf.xxhash64("place", "shared"), sf.lit(_SHARDS)))
    )


_CLIENT: Final = ("quota_type", "user", "client_id")


def _named(rows: DataFrame, quotas: DataFrame) -> DataFrame:
    """Rows with names for their numbers."""
    names = quotas.select("shared", "whose", "quota_type", "entity", "shared_by").distinct()
    return rows.join(sf.broadcast(names), ["shared", "whose"], how="inner").withColumns(
        {
            "broker": sf.shiftright("place", 3).bitwiseAND((1 << 31) - 1),
            "dt": sf.date_from_unix_date(sf.shiftright("place", 34).cast("int")),
        }
    )
