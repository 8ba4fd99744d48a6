"""The volume history as a table: one row for a volume and a time, however many sidecars saw it.

A line of the history is an observation (``sidecar.history``): what a sidecar saw of all brokers.
Every sidecar writes the same cluster, each at its own times. Readings of a volume in the same ten
seconds of the clock are one row, the latest of them: a line's time is that of the whole
observation, which a broker's answer may precede by the poll's deadline, 10 s, so readings that are
closer than that can't be ordered anyhow; and 1,000 sidecars make no more rows than six a minute. A
line that a crash has torn is passed over.

Example: three sidecars see broker 1's /d1 at 08:00:01, :04 and :11: two rows, of :04 and of :11.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sidecar.errors import SidecarError
from sidecar.pipeline.ingest.stored_logs import files_of
from sidecar.pipeline.runtime.addresses import address_of
from sidecar.pipeline.runtime.by_workers import Batches, by_workers
from sidecar.pipeline.runtime.filesystems import open_input
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


class NoHistoryError(SidecarError):
    """There is no volume history."""


def history_lines(spark: SparkSession, path: str) -> DataFrame:
    """The lines of history files, packed or not, as ``value``.

    Args:
        spark: whose workers read them.
        path: of a file, a folder or a glob.

    Raises:
        NoHistoryError: there are no files.
    """
    options = address_of(path).options
    files = sorted(files_of(path))
    if not files:
        raise NoHistoryError(f"{path}: there is no volume history; name its folder")
    cores = spark.sparkContext.defaultParallelism
    tasks = [some for some in (files[task :: 2 * cores] for task in range(2 * cores)) if some]

    def read(_: int, some: Sequence[str]) -> Batches:
        for name in some:
            # An hour's file at a time: some megabytes.
            with open_input(name, options) as opened:
                content = (
                    pa.CompressedInputStream(opened, "gzip") if name.endswith(".gz") else opened
                )
                lines = content.read().decode(errors="replace").splitlines()
            yield pa.RecordBatch.from_arrays([pa.array(lines, pa.string())], ["value"])

    return by_workers(spark, tasks, read, "value string")


def silver_volume(lines: DataFrame) -> DataFrame:
    """SILVER_VOLUME.

    Args:
        lines: of the history files: ``value``.
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
