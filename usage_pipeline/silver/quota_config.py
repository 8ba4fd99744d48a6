"""Which entity had which quota from when to when: from a snapshot and the changes in the logs.

ALTER_CLIENT_QUOTAS on the controller's line has each change; what failed, or was only to be
validated, changes nothing. A snapshot tells what was in force at its time: a quota in it holds from
there on until the logs tell otherwise, and back to the last change that they tell before it, or as
long as is known where they tell none. A quota that the snapshot does not have, and that the logs
tell of, had been removed unseen by then.

Example: a snapshot of 12:00 has 10 MB/s for alice and the log sets 5 MB/s for her at 14:00: she has
10 MB/s from 1970, since nothing else is known, until 14:00, and 5 from then on.

Source: KIP-546; Kafka's ClientQuotaControlManager.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from sidecar.quotas.entities import ClientQuotas, Default, Name
from usage_pipeline.tables.apis import QUOTA_APIS
from usage_pipeline.tables.schemas import SILVER_QUOTA_CONFIG

DEFAULT: Final = "<default>"
"""Whoever has no quota of their own."""

_SNAPSHOT: Final = pa.schema(
    [
        ("user", pa.string()),
        ("client_id", pa.string()),
        ("key", pa.string()),
        ("value", pa.float64()),
    ]
)
_BY_ENTITY: Final = ("user", "client_id", "key")


class SnapshotRow(NamedTuple):
    """A quota in force.

    Attributes:
        user: None for none, ``DEFAULT`` for the default.
        client_id: likewise.
        key: its name in Kafka.
        value: per second; percent for request_percentage.
    """

    user: str | None
    client_id: str | None
    key: str
    value: float


def snapshot_rows(quotas: ClientQuotas) -> list[SnapshotRow]:
    """The client quotas of a snapshot; those of addresses are not about requests."""
    return [
        SnapshotRow(_name(entity.user), _name(entity.client_id), key, value)
        for entity, values in quotas.items()
        if entity.ip is None
        for key, value in values.items()
    ]


def is_quota_line() -> Column:
    """Whether a row of SILVER_REQUEST is a controller's line of a change of quotas."""
    return sf.col("is_forwarded") & sf.col("api").isin(*QUOTA_APIS)


def entity_of(user: Column, client_id: Column) -> Column:
    """As the tables write it: "user=alice,client-id=etl"; parts that are null are left out."""
    return sf.concat_ws(
        ",", sf.concat(sf.lit("user="), user), sf.concat(sf.lit("client-id="), client_id)
    )


def silver_quota_config(
    silver: DataFrame, snapshot: Sequence[SnapshotRow] = (), as_of: datetime | None = None
) -> DataFrame:
    """All that is known of quotas.

    Args:
        silver: of SILVER_REQUEST.
        snapshot: what was in force, if that is known.
        as_of: when, with its time zone; None: there is no snapshot.

    Returns:
        Of SILVER_QUOTA_CONFIG.

    Raises:
        ValueError: a snapshot without a time, or a time without a zone.
    """
    if as_of is None and snapshot:
        raise ValueError("name the time at which the quotas of the snapshot were in force")
    if as_of is not None and as_of.tzinfo is None:
        raise ValueError("name the time zone of the snapshot's time")
    rows = _changes(silver)
    if as_of is not None:
        rows = _with_snapshot(silver.sparkSession, rows, snapshot, as_of)
    later = Window.partitionBy(*_BY_ENTITY).orderBy("valid_from", "src_file", "src_offset", "at")
    return SILVER_QUOTA_CONFIG.select(
        rows.withColumns(
            {
                "valid_to": sf.lead("valid_from").over(later),
                "entity": entity_of(sf.col("user"), sf.col("client_id")),
            }
        )
    )


def _changes(silver: DataFrame) -> DataFrame:
    return (
        silver.where(is_quota_line() & ~sf.coalesce("validate_only", sf.lit(False)))
        .select(
            sf.posexplode("quota_changes").alias("at", "change"),
            *("log_ts", "src_file", "src_offset"),
        )
        .where("coalesce(change.error, 0) = 0 and change.ip is null")
        .select(
            *("change.user", "change.client_id", "change.key", "change.value"),
            sf.col("log_ts").alias("valid_from"),
            *("src_file", "src_offset", "at"),
            sf.lit("log").alias("source"),
        )
    )


def _with_snapshot(
    spark: SparkSession, changes: DataFrame, snapshot: Sequence[SnapshotRow], as_of: datetime
) -> DataFrame:
    """The changes, and what the snapshot tells that they do not."""
    taken = sf.lit(as_of).cast("timestamp")
    before = (
        changes.where(sf.col("valid_from") <= taken)
        .groupBy(*_BY_ENTITY)
        .agg(
            sf.max_by("value", sf.struct("valid_from", "src_file", "src_offset", "at")).alias(
                "was"
            ),
            sf.lit(True).alias("was_stated"),
        )
    )
    # As Arrow: else each row goes through a worker.
    rows = [row._asdict() for row in snapshot]
    stated = spark.createDataFrame(pa.Table.from_pylist(rows, schema=_SNAPSHOT))
    same = [sf.col(f"stated.{name}").eqNullSafe(sf.col(f"before.{name}")) for name in _BY_ENTITY]
    both = stated.alias("stated").join(before.alias("before"), same, how="full")
    unlike = ~sf.col("stated.value").eqNullSafe(sf.col("was"))
    since = sf.when(sf.col("was_stated"), taken).otherwise(sf.timestamp_seconds(sf.lit(0)))
    missing = both.where(sf.col("was_stated").isNull() | unlike).select(
        *(sf.coalesce(f"stated.{name}", f"before.{name}").alias(name) for name in _BY_ENTITY),
        sf.col("stated.value").alias("value"),
        since.alias("valid_from"),
        sf.lit("").alias("src_file"),
        sf.lit(-1).cast("bigint").alias("src_offset"),
        sf.lit(0).alias("at"),
        sf.lit("snapshot").alias("source"),
    )
    return changes.unionByName(missing)


def _name(name: Name) -> str | None:
    return name.value if isinstance(name, Default) else name
