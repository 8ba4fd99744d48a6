"""The volume history as a table: one row for a volume and a time, however many sidecars saw it.

A line of the history is an observation (``sidecar.history``): what a sidecar saw of all brokers.
Every sidecar writes the same cluster, each at its own times. Readings of a volume in the same ten
seconds of the clock are one row, the latest of them: a line's time is that of the whole
observation, which a broker's answer may precede by the poll's deadline, 10 s, so readings that are
closer than that can't be ordered anyhow; and 1,000 sidecars make no more rows than six a minute. A
line that a crash has torn is passed over.

Example: three sidecars see broker 1's /d1 at 08:00:01, :04 and :11: two rows, of :04 and of :11.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from sidecar.pipeline.tables.schemas import SILVER_VOLUME

HISTORY_LINE: Final = (
    "time string, origin string, brokers array<int>,"
    " volumes array<struct<broker_id:int,log_dir:string,"
    "total_bytes:bigint,available_bytes:bigint>>,"
    " offline array<struct<broker_id:int,log_dir:string>>, _corrupt_record string"
)
"""A line, in Spark's SQL. What else a later sidecar writes is passed over."""

SLOT_S: Final = 10
"""Seconds of the clock in which a volume has one row; a divisor of a day's."""

_READING: Final = (
    "named_struct('broker', one.broker_id, 'log_dir', one.log_dir, 'total_bytes', {total},"
    " 'available_bytes', {available}, 'offline', {offline})"
)
_ONLINE: Final = _READING.format(
    total="one.total_bytes", available="one.available_bytes", offline="false"
)
_OFFLINE: Final = _READING.format(
    total="CAST(NULL AS bigint)", available="CAST(NULL AS bigint)", offline="true"
)
_READINGS: Final = (
    f"concat(transform(coalesce(line.volumes, array()), one -> {_ONLINE}),"
    f" transform(coalesce(line.offline, array()), one -> {_OFFLINE}))"
)


def silver_volume(lines: DataFrame) -> DataFrame:
    """SILVER_VOLUME.

    Args:
        lines: of the history files: ``value``, as ``spark.read.text`` gives them.
    """
    return one_per_slot(_readings(lines))


def one_per_slot(readings: DataFrame) -> DataFrame:
    """SILVER_VOLUME, of readings that may be of the same times: of its own rows and new ones.

    Args:
        readings: with its columns but ``dt``.
    """
    fields = ["observed_ts", "offline", "total_bytes", "available_bytes"]
    return SILVER_VOLUME.select(
        readings.withColumn("slot", sql.expr(f"unix_seconds(observed_ts) DIV {SLOT_S}"))
        .groupBy("broker", "log_dir", "slot")
        .agg(sql.max(sql.struct(*fields)).alias("latest"))
        .select("broker", "log_dir", "latest.*")
        .withColumn("dt", sql.to_date("observed_ts"))
    )


def _readings(lines: DataFrame) -> DataFrame:
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt_record"}
    readings = (
        lines.select("value")
        .where("trim(value) != ''")
        .withColumn("line", sql.from_json("value", HISTORY_LINE, options))
        .withColumn("observed_ts", sql.expr("TRY_CAST(line.time AS timestamp)"))
        .where("line._corrupt_record IS NULL AND observed_ts IS NOT NULL")
        .selectExpr("observed_ts", f"inline({_READINGS})")
    )
    return readings.where(
        "broker IS NOT NULL AND log_dir IS NOT NULL"
        " AND (offline OR total_bytes >= 0 AND available_bytes BETWEEN 0 AND total_bytes)"
    )
