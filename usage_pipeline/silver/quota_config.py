"""The quotas of each entity over time, from a snapshot and the changes in the logs.

The controller's line of ALTER_CLIENT_QUOTAS states each change. Requests that failed, or that were
only validated, change nothing. A snapshot states the quotas that applied at its time. A quota of
the snapshot applies until the next change in the logs. It also applies back to the last change
before the snapshot, or to 1970 if the logs have no such change. If the snapshot lacks a quota that
the logs state, the quota was removed before the snapshot by a request that is not in the logs.

Example: a snapshot of 12:00 has 10 MB/s for alice, and the log sets 5 MB/s for her at 14:00. Her
quota is 10 MB/s from 1970, since nothing else is known, until 14:00, and 5 MB/s from then on.

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
from usage_pipeline.tables.arrow import schema_of
from usage_pipeline.tables.schemas import SILVER_QUOTA_CONFIG

DEFAULT: Final = "<default>"
"""The name of the default entity, whose quotas apply to clients without quotas of their own."""

_SNAPSHOT: Final = schema_of("user string, client_id string, key string, value double")
_BY_ENTITY: Final = ("user", "client_id", "key")


class SnapshotRow(NamedTuple):
    """A quota that applies at the time of the snapshot.

    Attributes:
        user: the user's name; ``DEFAULT`` for the default, None if the entity has no user.
        client_id: the client-id, with the same special values.
        key: the quota's name in Kafka.
        value: per second; for request_percentage, percent.
    """

    user: str | None
    client_id: str | None
    key: str
    value: float


def snapshot_rows(quotas: ClientQuotas) -> list[SnapshotRow]:
    """Return the client quotas of a snapshot, without quotas of IP addresses."""
    return [
        SnapshotRow(_name(entity.user), _name(entity.client_id), key, value)
        for entity, values in quotas.items()
        if entity.ip is None
        for key, value in values.items()
    ]


def is_quota_line() -> Column:
    """Return whether a row of SILVER_REQUEST is a controller's line that changes quotas."""
    return sf.col("is_forwarded") & sf.col("api").isin(*QUOTA_APIS)


def entity_of(user: Column, client_id: Column) -> Column:
    """Return the entity's name in tables: "user=alice,client-id=etl"; null parts are left out."""
    return sf.concat_ws(
        ",", sf.concat(sf.lit("user="), user), sf.concat(sf.lit("client-id="), client_id)
    )


def silver_quota_config(
    silver: DataFrame, snapshot: Sequence[SnapshotRow] = (), as_of: datetime | None = None
) -> DataFrame:
    """Compute the history of quotas from all sources.

    Args:
        silver: rows of SILVER_REQUEST.
        snapshot: the quotas at the time of the snapshot, if there is one.
        as_of: the time of the snapshot, with its time zone; None without a snapshot.

    Returns:
        Rows of SILVER_QUOTA_CONFIG.

    Raises:
        ValueError: a snapshot has no time, or its time has no time zone.
    """
    if as_of is None and snapshot:
        raise ValueError("name the time at which the quotas of the snapshot applied")
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
    """Return the changes, and rows for the differences between them and the snapshot."""
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
    # As an Arrow table, because otherwise each row passes through a Python worker.
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
